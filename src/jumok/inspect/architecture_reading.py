"""Which parts the models have that read texts: a BERT or recurrent layers, and what a task puts on them."""

from __future__ import annotations

from typing import Any

from torch import nn

from jumok.inspect.architecture import Architecture, Column, Link, Part
from jumok.inspect.architecture_parts import (
    TEXT_LETTERS,
    Told,
    cell_name,
    linear_sizes,
    norm_part,
    reader_parts,
    size,
    unused_pooler,
)
from jumok.models.bert import Bert, HiddenWords
from jumok.models.reader import Likeness, RecurrentReader, TextLabeller

TWO = "2B: the first texts and the second ones, in rows of their own"
OUTPUTS = {
    "pretraining": "the hidden words",
    "classification": "the label",
    "regression": "the number",
    "tagging": "a tag for each word",
    "answering": "where the answer begins and ends",
}


def reading_architecture(model: Any, told: Told, name: str, task: str, notes: tuple[str, ...] = ()) -> Architecture:
    """A model that reads texts, by the task that it learns."""
    reader = model.reader
    parts, beside, links = reader_parts(reader, told), [], []
    read = parts[-1]
    if isinstance(model, HiddenWords):
        parts += _hidden_words(model, told)
        if model.order is not None:
            first = _first(reader, told)
            halves = first, _scores("do the halves follow?", model.order.scores, told)
            beside.append(Column("order", "the first token", "", halves, "yes or no"))
            links.append(Link(read, first, "its vector"))
    else:
        parts += _pooled(model, told) if isinstance(model, TextLabeller) else []
        if isinstance(model.head, Likeness):
            about = "of both texts' vectors"
            parts.append(Part("a · cos(u, v) + b", "output", about, told.of(model.head), size(model.head)))
        else:
            parts.append(_scores("scores", model.head.scores, told))
    if isinstance(reader, Bert) and not _pools(model):
        beside.append(unused_pooler(reader))
    kind = "BERT" if isinstance(reader, Bert) else f"{cell_name(reader.recurrent)} reader"
    apart = isinstance(model, TextLabeller) and model.apart
    column = Column(kind, "tokens of both texts" if apart else "tokens", told.input, tuple(parts), OUTPUTS[task])
    letters = (*TEXT_LETTERS, *([TWO] if apart else []))
    title = f"{name}: {kind} for {task}"
    return Architecture(title, (column, *beside), tuple(links), size(model), letters, notes)


def _pools(model: nn.Module) -> bool:
    """Whether something stands on the vector of a BERT's first word."""
    if isinstance(model, HiddenWords):
        return model.order is not None
    return isinstance(model, TextLabeller) and getattr(model.reader.section, "pooling", "") == "first"


def _pooled(model: TextLabeller, told: Told) -> list[Part]:
    reader = model.reader
    if isinstance(reader, RecurrentReader):
        parts = [Part("largest of each number", "plain", "over all tokens: what stands for the text")]
    elif _pools(model):
        parts = [_first(reader, told)]
    else:
        parts = [Part("mean over all tokens", "plain", "what stands for the text")]
    if model.apart and not isinstance(model.head, Likeness):
        parts.append(Part("[u; v; |u − v|; u ⊙ v]", "plain", "of both texts' vectors, of equal length"))
    return parts


def _first(reader: Bert, told: Told) -> Part:
    about = f"of the first token: {linear_sizes(reader.pooler)}"
    return Part("tanh(W h + b)", "feed", about, told.of(reader.pooler), size(reader.pooler))


def _scores(name: str, layer: nn.Linear, told: Told) -> Part:
    return Part(name, "output", linear_sizes(layer), told.of(layer), size(layer))


def _hidden_words(model: HiddenWords, told: Told) -> list[Part]:
    transform = f"{linear_sizes(model.transform)}, {model.reader.section.activation}"
    return [
        Part("at the hidden words", "feed", transform, told.of(model.transform), size(model.transform)),
        norm_part(model.norm, told),
        Part(
            "softmax over words",
            "output",
            f"W: the word vectors, b: {len(model.bias):,}",
            told.logits,
            size(model.bias),
        ),
    ]
