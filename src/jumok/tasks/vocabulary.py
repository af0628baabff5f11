"""The tokenizers of a run: trained on its text or given, saved with it, loaded again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from jumok.data.readers import read_pairs
from jumok.errors import BadInput
from jumok.files import remove_folder
from jumok.recipe import Recipe
from jumok.text.tags import with_tags
from jumok.text.tokenizer import Tokenizer, train_tokenizer

Say = Callable[[str], None]


def train_tokenizers(recipe: Recipe, say: Say) -> tuple[Tokenizer, Tokenizer]:
    """The recipe's tokenizers: loaded where it names folders, else trained on the training text; with its tags."""
    source, target = _without_tags(recipe, say)
    tagged = with_tags(source, [corpus.tag for corpus in recipe.data.train if corpus.tag is not None])
    return tagged, tagged if target is source else target


def _without_tags(recipe: Recipe, say: Say) -> tuple[Tokenizer, Tokenizer]:
    section = recipe.tokenizer
    if section.joint and (section.source or section.target):
        raise BadInput("tokenizer.joint: one vocabulary for both sides cannot be mixed with a given tokenizer folder")
    loaded = [Tokenizer.load(Path(path)) if path else None for path in (section.source, section.target)]
    if loaded[0] is not None and loaded[1] is not None:
        return loaded[0], loaded[1]
    say(f"training the tokenizer{'' if section.joint else 's'} ({section.kind}, at most {section.vocabulary} tokens)")

    def fit(*sides: int) -> Tokenizer:
        lines = (pair[side] for pair in _sample(recipe) for side in sides)
        return train_tokenizer(lines, section.kind, section.vocabulary, section.lowercase)

    if section.joint:
        joint = fit(0, 1)
        return joint, joint
    return loaded[0] or fit(0), loaded[1] or fit(1)


def _sample(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """At most `tokenizer.sample` evenly spaced pairs of all corpora, streamed: a first pass only counts."""
    total = sum(corpus.pairs if corpus.grammar else sum(1 for _ in read_pairs(corpus)) for corpus in recipe.data.train)
    stride = -(-total // recipe.tokenizer.sample)
    for corpus in recipe.data.train:
        yield from islice(read_pairs(corpus, corpus.split or "train"), 0, None, stride)


def load_tokenizers(folder: Path, joint: bool) -> tuple[Tokenizer, Tokenizer]:
    """Source and target (one and the same, when joint) from a run's `tokenizer/`."""
    source = Tokenizer.load(folder / "source")
    return source, source if joint else Tokenizer.load(folder / "target")


def save_tokenizers(folder: Path, tokenizers: dict[str, Tokenizer]) -> None:
    """All or none: a run killed in between must not be taken for one with fewer vocabularies."""
    for abandoned in folder.parent.glob(f".{folder.name}-*"):  # of a run that was killed here; the folder is locked
        remove_folder(abandoned)
    temporary = folder.with_name(f".{folder.name}-{os.getpid()}")
    for name, tokenizer in tokenizers.items():
        tokenizer.save(temporary / name)
    remove_folder(folder)
    temporary.rename(folder)
