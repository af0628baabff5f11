"""Recognition: pictures of words → batches, model → objective, readings → how many are right.

    −log p(y_1 … y_n <eos> | picture), a sum over the characters

Pictures are rendered where the model learns, from glyphs that were drawn once, or come from files with what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch

from jumok.data.images.augment import Augment
from jumok.data.images.order import Order
from jumok.data.images.raw import RawImage
from jumok.data.images.sources import ImageSource
from jumok.data.images.store import ImageStore, open_store
from jumok.data.layout import IntArray
from jumok.data.plan import FEW, FEW_SAY_LITTLE, HELD_OUT, HELD_OUT_SHARE, LayoutPlan
from jumok.data.rendering.batch import PicturedWords, WordBatch, WrittenWords
from jumok.data.rendering.pictures import rendered
from jumok.data.rendering.rendered import RenderedWords, Split
from jumok.data.rendering.renderer import Renderer
from jumok.data.shuffle import Shuffle
from jumok.data.text_images.sources import open_text_images
from jumok.errors import BadInput
from jumok.files import replace_file
from jumok.models.recognizer import Recognizer, build_recognizer
from jumok.recipe import Augmentation, Corpus, Recipe, RecognizerSection
from jumok.tasks.charset_doctor import told_outside
from jumok.tasks.objective import Loss, Objective
from jumok.text.charset import Charset
from jumok.text.special import END, PAD
from jumok.text.tokenizer import Tokenizer

Say = Callable[[str], None]
Numbers = npt.NDArray[np.int64]
CHARSET = "charset.json"  # in a run folder
ROWS = 256  # pictures read together where nothing is learned
VALIDATED = 1000  # rendered words, unless the recipe says how many


class RecognitionObjective(Objective):
    model: Recognizer
    counted = "words"

    def __init__(self, model: Recognizer, augmentation: Augmentation, renderer: Renderer | None) -> None:
        super().__init__()
        self.model, self.renderer, self.augment = model, renderer, Augment(augmentation)

    def forward(self, batch: WordBatch) -> Loss:
        if isinstance(batch, WrittenWords):
            assert self.renderer is not None
            images = self.renderer(batch.glyphs).images
        else:
            assert isinstance(batch, PicturedWords)
            images = self.augment(batch.images)
        losses = {name: each.sum() for name, each in self.model.losses(images, batch.ids, batch.lengths).items()}
        return Loss(losses.pop("loss"), batch.tokens, losses)


@dataclass(frozen=True)
class Endless:
    """Numbers of rendered words, none twice. What is called an epoch is only how they are counted."""

    size: int
    batches: int
    endless: ClassVar[bool] = True

    def pairs(self, place: int, key: tuple[int, ...]) -> IntArray:
        start = (key[2] * self.batches + place) * self.size
        return np.arange(start, start + self.size)


@dataclass(frozen=True)
class Pictured:
    """Pictures from files, with their texts as the model writes them."""

    store: ImageStore
    ids: Numbers  # (texts, T), of each text that there is
    lengths: Numbers  # (texts,); -1: left out
    numbers: Numbers  # pictures that are learned from, or validated on

    def unsayable(self, columns: int) -> int:
        """Pictures whose text so many columns cannot say: a blank stands between equal letters."""
        letters = self.ids[:, :-1]
        doubled = ((letters[:, 1:] == letters[:, :-1]) & (letters[:, 1:] > END)).sum(axis=1)
        return int((self.lengths + doubled > columns)[self.store.labels[self.numbers]].sum())

    def batch(self, indices: Numbers, corpus: int = 0) -> PicturedWords:
        texts = self.store.labels[indices]
        arrays = (self.ids[texts], self.lengths[texts], np.ascontiguousarray(self.store.images[indices]))
        return PicturedWords(*map(torch.from_numpy, arrays), indices=tuple(indices.tolist()), corpus=corpus)


class RecognitionTask:
    """Everything `jumok train` needs to know about words in pictures."""

    objective: RecognitionObjective

    def __init__(self, recipe: Recipe, device: torch.device, say: Say) -> None:
        assert isinstance(recipe.model, RecognizerSection)
        self.recipe, self.device, self.section = recipe, device, recipe.model
        self.charset = Charset.of(recipe.charset)
        say = _once(say)  # training and validation look at the same fonts and words
        training = recipe.training
        self.words: RenderedWords | None = None
        if any(corpus.rendered for corpus in recipe.data.train):
            self.words = self._render("train", say)
        self.sources = [self._open(corpus, say) for corpus in recipe.data.train]
        self.held = list(self._validation(say))
        layouts = [
            Order(source.numbers, min(training.batch_images, len(source.numbers)))
            if isinstance(source, Pictured)
            else Endless(training.batch_images, max(1, corpus.pairs // training.batch_images))
            for source, corpus in zip(self.sources, recipe.data.train, strict=True)
        ]
        self.plan = LayoutPlan(
            layouts, [corpus.weight for corpus in recipe.data.train], recipe.seed, training.accumulate
        )
        torch.manual_seed(recipe.seed)
        model = build_recognizer(self.section, self.charset)
        self.objective = RecognitionObjective(model, recipe.augment, self._renderer(self.words))

    # ------------------------------------------------------------ what is learned from

    def _render(self, split: Split, say: Say) -> RenderedWords:
        return RenderedWords(self.recipe.render, self.charset, self.section.max_length, split, say)

    def _renderer(self, words: RenderedWords | None) -> Renderer | None:
        if words is None:
            return None
        return Renderer(words.atlas, self.recipe.render, self.section.image, self.section.channels)

    def _open(self, corpus: Corpus, say: Say) -> Pictured | RenderedWords:
        if corpus.rendered:
            assert self.words is not None
            return self.words
        section, recipe = self.section, self.recipe
        source = open_text_images(corpus.images, corpus.fields)
        for note in source.notes():
            say(note)
        store = open_store(Labelled(source), section.image, section.channels, recipe.data.resize, say)
        found = pictured(store, self.charset, section.max_length, recipe.charset.outside == "skip", say)
        if section.writes_columns and (count := found.unsayable(section.columns)):
            head = " (the decoder beside it can)" * (section.decoder != "ctc")
            say(
                f"{count:,} picture{'s' * (count > 1)} cannot be learned from by CTC{head}: equal letters side by side "
                f"need a column between them, and there are {section.columns}. A wider model.image has more"
            )
        return found

    def _validation(self, say: Say) -> Iterator[Pictured | PicturedWords]:
        """What is validated on: the corpora named for it; or words and fonts kept back; or pictures kept back."""
        for corpus in self.recipe.data.valid:
            yield (
                self._rendered(corpus.split or "valid", corpus.pairs, say)
                if corpus.rendered
                else self._kept(corpus, say)
            )
        if self.recipe.data.valid:
            return
        if self.words is not None:
            yield self._rendered("valid", VALIDATED, say)
            return
        first = self.sources[0]
        assert isinstance(first, Pictured)
        self.sources[0], kept = self._keep_back(first, say)
        yield kept

    def _kept(self, corpus: Corpus, say: Say) -> Pictured:
        found = self._open(corpus, say)
        assert isinstance(found, Pictured)
        return found

    def _rendered(self, split: Split, count: int, say: Say) -> PicturedWords:
        """Composed once, on the CPU: the same pictures for every device."""
        parts = list(rendered(self.recipe, self.charset, split, count, self.recipe.seed, say))
        names = ("ids", "lengths", "images")
        ids, lengths, images = (torch.cat([getattr(part, name) for part in parts]) for name in names)
        return PicturedWords(ids, lengths, images, indices=tuple(range(count)))

    def _keep_back(self, source: Pictured, say: Say) -> tuple[Pictured, Pictured]:
        size = len(source.numbers)
        if size < 2:
            raise BadInput(
                "a single picture: none can be kept back for validation. Add some, or name data.valid (--valid)"
            )
        count = max(1, min(self.recipe.data.hold_out, size // HELD_OUT_SHARE))
        kept = np.sort(source.numbers[Shuffle(size, self.recipe.seed, HELD_OUT)(np.arange(count))])
        many = "pictures are" if count > 1 else "picture is"
        few = "" if count >= FEW else FEW_SAY_LITTLE
        say(f"no validation data given: {count:,} training {many} kept back for it{few}")
        rest = np.setdiff1d(source.numbers, kept)
        return Pictured(source.store, source.ids, source.lengths, rest), Pictured(
            source.store, source.ids, source.lengths, kept
        )

    # ------------------------------------------------------------ what the loop asks for

    @property
    def tokenizers(self) -> Mapping[str, Tokenizer]:
        return {}

    @property
    def data_keys(self) -> list[str]:
        pictures = [*self.sources, *self.held]
        keys = [one.store.content for one in pictures if isinstance(one, Pictured)]
        return keys if self.words is None else [*keys, self.words.key]

    def keep(self, folder: Path) -> None:
        if not (folder / CHARSET).exists():
            replace_file(folder / CHARSET, self.charset.to_json())

    def sizes(self) -> str:
        files = sum(len(source.numbers) for source in self.sources if isinstance(source, Pictured))
        kept = sum(len(one) if isinstance(one, PicturedWords) else len(one.numbers) for one in self.held)
        parts = [f"{files:,} picture{'s' * (files != 1)}"] if files else []
        if self.words is not None:
            parts.append(f"words rendered in {len(self.words.faces)} fonts")
        return f"{' and '.join(parts)}, {len(self.charset.characters):,} characters, {kept:,} for validation"

    def batches(self, update: int, only: Sequence[int] | None = None) -> list[WordBatch]:
        return [self._batch(micro.corpus, micro.indices) for micro in self.plan.at(update, only)]

    def _batch(self, corpus: int, indices: IntArray) -> WordBatch:
        source = self.sources[corpus]
        if isinstance(source, Pictured):
            return source.batch(indices, corpus)
        return source.batch(indices, self._seed(corpus), corpus)

    def rows(self, count: int) -> WordBatch:
        """A batch of so many words: all are of one size."""
        source = self.sources[0]
        numbers = np.arange(count)
        return self._batch(
            0, source.numbers[numbers % len(source.numbers)] if isinstance(source, Pictured) else numbers
        )

    def _seed(self, corpus: int) -> int:
        return (self.recipe.seed * 1000 + corpus) % 2**63

    def name_batch(self, batch: WordBatch) -> str:
        source = self.sources[batch.corpus]
        shown = batch.indices[:5]
        if isinstance(source, Pictured):
            names = [source.store.names[index] for index in shown]
        else:
            names = [repr(text) for text in source.texts.at(np.array(shown, np.int64), self._seed(batch.corpus))]
        more = f" and {len(batch.indices) - 5} more" if len(batch.indices) > 5 else ""
        return f"the batch of {'; '.join(names)}{more}"

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Mean loss and share of words that are read right to the letter, over all validation data by their weights."""
        self.objective.eval()
        model = self.objective.model
        weights = [corpus.weight for corpus in self.recipe.data.valid] or [1]
        loss = right = 0.0
        for held, weight in zip(self.held, weights, strict=True):
            sums, count = torch.zeros(2, dtype=torch.float64, device=self.device), 0
            for batch in _in_parts(held):
                batch = batch.to(self.device)
                entropy = model.losses(batch.images, batch.ids, batch.lengths)["loss"].sum()
                reading = model.read(batch.images)
                sums += torch.stack([entropy.double(), same(reading.ids, batch.ids).sum().double()])
                count += len(batch)
            loss += weight * float(sums[0]) / count
            right += weight * float(sums[1]) / count
        return {"loss": loss / sum(weights), "accuracy": right / sum(weights)}


def _once(say: Say) -> Say:
    """Says nothing twice."""
    said: set[str] = set()

    def say_once(text: str) -> None:
        if text not in said:
            said.add(text)
            say(text)

    return say_once


class Labelled:
    """Pictures of a source, all of which say what is written there."""

    def __init__(self, source: ImageSource) -> None:
        self.source, self.key = source, source.key

    def __iter__(self) -> Iterator[RawImage]:
        for image in self.source:
            if image.label is None:
                raise BadInput(
                    f"{image.name}: it is not said what is written there. Name a folder or zip with a labels file "
                    "(labels.txt: a picture, a tab, its text), an LMDB, a table, or the labels file itself"
                )
            yield image


def read_charset(file: Path) -> Charset:
    """What a run folder keeps of it."""
    try:
        content = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} cannot be read ({error}). Copy the run folder again") from None
    return Charset.from_json(content, str(file))


def same(read_BL: torch.Tensor, ids_BT: torch.Tensor) -> torch.Tensor:
    """Whether each row was read as it is: (B,)."""
    true_BT = torch.where(ids_BT == END, PAD, ids_BT)
    width = max(read_BL.size(1), true_BT.size(1))
    read, true = (torch.nn.functional.pad(each, (0, width - each.size(1)), value=PAD) for each in (read_BL, true_BT))
    return (read == true).all(dim=1)


def _in_parts(held: Pictured | PicturedWords) -> Iterator[PicturedWords]:
    if isinstance(held, PicturedWords):
        yield from held.split(-(-len(held) // ROWS))
        return
    for start in range(0, len(held.numbers), ROWS):
        yield held.batch(held.numbers[start : start + ROWS])


def pictured(store: ImageStore, charset: Charset, max_length: int, skip: bool, say: Say) -> Pictured:
    """Pictures of files as the model reads them. What cannot be written is told with its name before anything is
    learned; with `skip` it is left out then, else it is an error."""
    texts = store.classes
    if told := told_outside(store, charset, max_length):
        if not skip:
            raise BadInput(f"{told}\nor leave them out: charset.outside=skip")
        say(f"{told}\nthey are left out (charset.outside: skip)")
    ids, lengths = np.full((len(texts), max_length + 1), PAD, np.int64), np.full(len(texts), -1, np.int64)
    for number, text in enumerate(texts):
        if charset.outside(text):
            continue
        row = charset.encode(text)
        if len(row) > max_length:
            continue
        ids[number, : len(row)], ids[number, len(row)], lengths[number] = row, END, len(row)
    numbers = np.flatnonzero(lengths[store.labels] >= 0)
    if not len(numbers):
        raise BadInput(
            f"none of the pictures can be learned from: all their texts have characters outside the charset or are "
            f"longer than model.max_length {max_length}"
        )
    return Pictured(store, ids, lengths, numbers)
