"""The attention of a whole translation, read off in one pass.

Decoding wrote `ŷ`; feeding `ŷ` back with teacher forcing takes the model through the very same states, so the weights
recorded there are those of the decoding, whatever the beam pruned or reordered on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch

from jumok.data.batch import PairBatch
from jumok.data.pharaoh import Link
from jumok.inspect.alignment import reading_named
from jumok.inspect.attention import END_MARK, Attention, Weights, merged
from jumok.inspect.record import record
from jumok.inspect.tokens import START_MARK
from jumok.inspect.view import View
from jumok.tasks.translator import Translator
from jumok.text.tokenizer import Encoded

BATCH = 64
Targets = Sequence[str] | Sequence[Sequence[int]]  # translations as texts or as token ids


def forced_attention(
    translator: Translator,
    sentences: Sequence[str],
    targets: Targets,
    words: bool = True,
    scores: Sequence[float | None] | None = None,
    view: View | None = None,
    ended: Sequence[bool] | None = None,
) -> list[Attention]:
    """For each sentence and its translation: who looked at what, by words or by tokens.

    `ended`: which translations the model ended itself (`Translation.finished`); one that was cut has no `<eos>`.
    """
    view = view or View()
    name = view.name(translator.model)
    pictures = []
    written = [_written(translator, target) for target in targets]
    shown = _weights(translator, sentences, [target.ids for target in written], [view])
    for index, (target, (source, weights)) in enumerate(zip(written, shown, strict=True)):
        keys, queries = _sides(translator, sentences[index], source, target, view.kind, ended is None or ended[index])
        score = scores[index] if scores else None
        seen = weights[0, : len(queries.tokens), : len(keys.tokens)]
        picture = Attention(tuple(keys.tokens), tuple(queries.tokens), seen, score, view.kind, name)
        if words:
            picture = picture.merge(keys.words, queries.words, keys.texts, queries.texts)
        pictures.append(picture)
    return pictures


def forced_views(
    translator: Translator, sentence: str, target: str | Sequence[int], views: Sequence[View], ended: bool = True
) -> tuple[Side, Side, Weights]:
    """Keys, queries and what each of several views of one kind shows (views, queries, keys), by tokens, in one pass."""
    translator.refuse_long([sentence])
    written = _written(translator, target)
    source, weights = next(_weights(translator, [sentence], [written.ids], views))
    keys, queries = _sides(translator, sentence, source, written, views[0].kind, ended)
    return keys, queries, weights[:, : len(queries.tokens), : len(keys.tokens)]


class Side(NamedTuple):
    """What looks or is looked at."""

    tokens: Sequence[str]
    words: Sequence[int | None]  # the word of each token
    texts: Sequence[str]  # of the words


def _sides(
    translator: Translator, sentence: str, source: Encoded, target: _Written, kind: str, ended: bool
) -> tuple[Side, Side]:
    """Keys and queries. Each word is named where it is written: the query is the word before it.

    Where the model did not end the translation there is no `<eos>`, and nobody looked at the last word.
    """
    tag = translator.source.pieces(translator.before)
    read = Side((*tag, *source.tokens, END_MARK), (*[None] * len(tag), *source.words, None), sentence.split())
    if kind == "self":
        return read, read
    count = len(target.tokens) + ended
    queries = Side((*target.tokens, END_MARK)[:count], (*target.words, None)[:count], target.texts)
    past = Side((START_MARK, *target.tokens)[:count], (None, *target.words)[:count], target.texts)
    return read if kind == "cross" else past, queries


class _Written(NamedTuple):
    ids: list[int]
    tokens: list[str]
    words: Sequence[int | None]
    texts: list[str]


def _written(translator: Translator, target: str | Sequence[int]) -> _Written:
    """A translation as text, whose words keep their places even where the vocabulary does not know them; or its ids,
    where an unknown word leaves no text and so is part of no word."""
    if isinstance(target, str):
        known = translator.target.encode_with_offsets(target)
        return _Written(known.ids, known.tokens, known.words, target.split())
    ids = [int(number) for number in target]
    text, written = translator.target.decode_with_offsets(ids)
    special = map(translator.target.is_special, ids)
    words = [None if none else word for word, none in zip(written.words, special, strict=True)]
    return _Written(ids, translator.target.pieces(ids), words, text.split())


def word_links(
    translator: Translator,
    sentences: Sequence[str],
    targets: Targets,
    layer: int | None = None,
    head: int | None = None,
) -> list[set[Link]]:
    """Each target word linked to the source word it looked at most: (source word, target word), counted from 0.

    A layer and a head of a Transformer may be chosen; `View` says what is taken without them.
    """
    return [links for (links,) in links_of_views(translator, sentences, targets, [View(layer, head)])]


def links_of_views(
    translator: Translator, sentences: Sequence[str], targets: Targets, views: Sequence[View]
) -> Iterator[list[set[Link]]]:
    """For each sentence the links that each view of the cross-attention gives; the model runs once for all of them."""
    written = [_written(translator, target) for target in targets]
    readings = [reading_named(view.reading) for view in views]
    first = len(translator.before)  # a tag is no word, nor is <eos>
    shown = _weights(translator, sentences, [target.ids for target in written], views)
    for target, (source, weights) in zip(written, shown, strict=True):
        places = [place for place, word in enumerate(target.words) if word is not None]
        words = [word for word in target.words if word is not None]
        rows = [np.array(places, dtype=int) + int(view.shift) for view in views]  # a row per word, and that of <eos>
        pieces = np.stack([one[row, first : first + len(source.ids)] for row, one in zip(rows, weights, strict=True)])
        source_numbers, target_numbers = list(dict.fromkeys(source.words)), list(dict.fromkeys(words))
        yield [
            {(source_numbers[s], target_numbers[t]) for s, t in read(by_words)}
            for read, by_words in zip(readings, merged(pieces, source.words, words), strict=True)
        ]


@torch.inference_mode()
def _weights(
    translator: Translator, sentences: Sequence[str], targets: Sequence[list[int]], views: Sequence[View]
) -> Iterator[tuple[Encoded, Weights]]:
    """The source as it was cut, and what each view shows: (views, queries, keys), by tokens."""
    model = translator.model.eval()
    taps = [view.tap(model) for view in views]
    kind = views[0].kind
    before = list(translator.before)
    limit = translator.max_length - len(before)
    for start in range(0, len(sentences), BATCH):
        texts = sentences[start : start + BATCH]
        sources = [_cut(translator.source.encode_with_offsets(text.strip()), limit) for text in texts]
        rows = targets[start : start + BATCH]
        group = PairBatch.of([before + source.ids for source in sources], rows).to(translator.device)
        with record(model, layers={tap.layer for tap in taps}, kinds={kind}) as seen:
            model(group.source, group.target.ids[:, :-1])
        shown = []
        for view, tap in zip(views, taps, strict=True):
            weights = seen.weights(tap.name)
            if weights.dim() == 4:
                weights = weights.mean(dim=1) if view.head is None else weights[:, view.head]
            if kind == "self" and getattr(model, "reader", None) is not None:
                weights = weights[:, 1:, 1:]  # without what a pretrained reader puts before every text
                weights = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-12)
            shown.append(weights.numpy())
        weights_BVTS = np.stack(shown, axis=1)
        for index, (source, row) in enumerate(zip(sources, rows, strict=True)):
            read, written = len(before) + len(source.ids) + 1, len(row) + 1
            queries, keys = {"cross": (written, read), "self": (read, read), "causal": (written, written)}[kind]
            yield source, weights_BVTS[index, :, :queries, :keys]


def _cut(source: Encoded, limit: int) -> Encoded:
    """As the translator cuts a sentence over its limit."""
    return Encoded(source.ids[:limit], source.tokens[:limit], source.offsets[:limit], source.words[:limit])
