"""The attention of a whole translation, read off in one pass.

Decoding wrote `ŷ`; feeding `ŷ` back with teacher forcing takes the model through the very same states, so the weights
recorded there are those of the decoding, whatever the beam pruned or reordered on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from jumok.data.batch import PairBatch
from jumok.data.pharaoh import Link
from jumok.errors import BadInput
from jumok.inspect.alignment import argmax_links
from jumok.inspect.attention import Attention
from jumok.inspect.record import record
from jumok.tasks.translator import Translator
from jumok.text.tokenizer import Encoded

END_MARK = "<eos>"
BATCH = 64


@torch.inference_mode()
def forced_attention(
    translator: Translator,
    sentences: Sequence[str],
    targets: Sequence[Sequence[int]],
    words: bool = True,
    scores: Sequence[float | None] | None = None,
) -> list[Attention]:
    """For each sentence and its translation (token ids): who looked at what, by words or by tokens."""
    pictures = []
    for index, (source, ids, picture) in enumerate(_by_tokens(translator, sentences, targets)):
        picture = replace(picture, score=scores[index] if scores else None)
        if words:
            text = translator.target.decode([ids])[0]
            places = [*source.words, None], [*translator.target.word_of_piece(ids), None]
            picture = picture.merge(*places, sentences[index].split(), text.split())
        pictures.append(picture)
    return pictures


def word_links(
    translator: Translator, sentences: Sequence[str], targets: Sequence[str] | Sequence[Sequence[int]]
) -> list[set[Link]]:
    """Each target word linked to the source word it looked at most: (source word, target word), counted from 0.

    `targets` are texts (whose words keep their numbers even where the vocabulary does not know them) or token ids.
    """
    encoded: list[Encoded | None] = []
    ids: list[list[int]] = []
    for target in targets:
        known = translator.target.encode_with_offsets(target) if isinstance(target, str) else None
        encoded.append(known)
        ids.append(known.ids if known else [int(number) for number in target])
    links = []
    for known, (source, row, picture) in zip(encoded, _by_tokens(translator, sentences, ids), strict=True):
        target_words = translator.target.word_of_piece(row) if known is None else known.words
        tokens = picture.part(len(row), len(source.ids))  # <eos> is no word
        merged = tokens.merge(source.words, target_words)
        source_numbers, target_numbers = list(dict.fromkeys(source.words)), list(dict.fromkeys(target_words))
        links.append({(source_numbers[s], target_numbers[t]) for s, t in argmax_links(merged.weights)})
    return links


def _by_tokens(
    translator: Translator, sentences: Sequence[str], targets: Sequence[Sequence[int]]
) -> Iterator[tuple[Encoded, list[int], Attention]]:
    """The source as it was cut, the target's ids, and the attention between their tokens."""
    translator.model.eval()
    for start in range(0, len(sentences), BATCH):
        texts = sentences[start : start + BATCH]
        sources = [_cut(translator.source.encode_with_offsets(text.strip()), translator.max_length) for text in texts]
        rows = [list(target) for target in targets[start : start + BATCH]]
        group = PairBatch.of([source.ids for source in sources], rows).to(translator.device)
        with record(translator.model) as seen:
            translator.model(group.source, group.target.ids[:, :-1])
        if not seen.records:
            raise BadInput("this model has no attention to show: train lstm-luong or lstm-bahdanau instead")
        weights_BTS = seen.weights()
        for index, (source, row) in enumerate(zip(sources, rows, strict=True)):
            weights = weights_BTS[index, : len(row) + 1, : len(source.ids) + 1].numpy()
            names = (*source.tokens, END_MARK), (*translator.target.pieces(row), END_MARK)
            yield source, row, Attention(*names, weights)


def _cut(source: Encoded, limit: int) -> Encoded:
    """As the translator cuts a sentence over its limit."""
    return Encoded(source.ids[:limit], source.tokens[:limit], source.offsets[:limit], source.words[:limit])
