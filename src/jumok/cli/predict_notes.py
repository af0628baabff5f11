"""What must be known of texts and pictures besides what a model says about them: gathered on the way, told once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from jumok.api import TrainedReader
    from jumok.data.images.raw import RawImage
    from jumok.tasks.classifier import Text
    from jumok.text.tokenizer import Tokenizer

COUNTED = 10_000  # characters of a text in which unknown tokens are counted


class Unknown:
    """How much of the texts the vocabulary has no entry for: what is said of such a text is said of its length."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.tokens = self.unknown = 0

    def count(self, texts: Sequence[str]) -> None:
        for ids in self.tokenizer.encode([text[:COUNTED] for text in texts]):
            self.tokens += len(ids)
            self.unknown += ids.count(self.tokenizer.specials.unknown)

    def tell(self) -> None:
        if 2 * self.unknown > self.tokens:
            share = f"{self.unknown:,} of {self.tokens:,} tokens"
            typer.echo(f"note: {share} are not in the vocabulary of this run: it was trained on other texts", err=True)


class Cut:
    """How many texts were longer than what the model reads at once."""

    def __init__(self, model: TrainedReader) -> None:
        self.model, self.cut, self.count = model, 0, 0

    def see(self, texts: Sequence[Text], apart: bool = False) -> None:
        from jumok.tasks.classifier import cut_texts

        self.cut += cut_texts(self.model.tokenizer, texts, self.model.limit, apart)
        self.count += len(texts) * (1 + apart)

    def tell(self) -> None:
        from jumok.data.rows import about_cut

        if self.cut:
            key = "data.window" if self.model.recipe.task == "pretraining" else "data.max_length"
            typer.echo(f"note: {about_cut(self.cut, self.count, self.model.limit, key)}", err=True)


class Animated:
    """Pictures behind which others follow, in animations and files of several pages: nobody looks at those."""

    def __init__(self) -> None:
        self.count, self.first = 0, ""

    def seen(self, images: Iterable[RawImage]) -> Iterator[RawImage]:
        """The same images, looked at on their way."""
        from jumok.data.images.picture import is_animated

        for image in images:
            if is_animated(image):
                self.first = self.first or image.name
                self.count += 1
            yield image

    def tell(self) -> None:
        from jumok.data.images.raw import shown

        if self.count == 1:
            typer.echo(f"note: {shown(self.first)} has more pictures than one: its first was looked at", err=True)
        elif self.count:
            which = f"{self.count:,} files have more pictures than one ({shown(self.first)} is the first of them)"
            typer.echo(f"note: {which}: of each, its first was looked at", err=True)


class Tabs:
    """Lines with more columns than the run reads texts: a table with labels, perhaps."""

    def __init__(self, pairs: bool | None) -> None:
        self.most, self.lines = (0 if pairs is False else 1), 0

    def see(self, lines: Sequence[str]) -> None:
        self.lines += sum(line.count("\t") > self.most for line in lines)

    def tell(self) -> None:
        if not self.lines:
            return
        count = f"{self.lines:,} line{'s' * (self.lines > 1)}"
        if self.most:
            told = f"{count} with more than two columns: all behind the first tab is read as the second text. "
        else:
            told = f"{count} with tabs: such a line is read whole, as one text. "
        typer.echo(f"note: {told}Name a file with the texts alone", err=True)
