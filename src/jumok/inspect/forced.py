"""The attention of a whole translation, read off in one pass.

Decoding wrote `ŷ`; feeding `ŷ` back with teacher forcing takes the model through the very same states, so the weights
recorded there are those of the decoding, whatever the beam pruned or reordered on the way.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from jumok.data.batch import PairBatch
from jumok.errors import BadInput
from jumok.inspect.attention import Attention
from jumok.inspect.record import record
from jumok.tasks.translator import Translator

END_MARK = "<eos>"


@torch.inference_mode()
def forced_attention(
    translator: Translator,
    sentences: Sequence[str],
    targets: Sequence[Sequence[int]],
    words: bool = True,
    scores: Sequence[float | None] | None = None,
    batch: int = 64,
) -> list[Attention]:
    """For each sentence and its translation (token ids): who looked at what, by words or by tokens."""
    pictures: list[Attention] = []
    translator.model.eval()
    for start in range(0, len(sentences), batch):
        sources = [translator.source.encode_with_offsets(text.strip()) for text in sentences[start : start + batch]]
        rows = [list(target) for target in targets[start : start + batch]]
        group = PairBatch.of([source.ids for source in sources], rows).to(translator.device)
        with record(translator.model) as seen:
            translator.model(group.source, group.target.ids[:, :-1])
        if not seen.records:
            raise BadInput("this model has no attention to show: train lstm-luong or lstm-bahdanau instead")
        weights_BTS = seen.weights()
        for index, (source, row) in enumerate(zip(sources, rows, strict=True)):
            score = scores[start + index] if scores else None
            picture = Attention(
                (*source.tokens, END_MARK),
                (*translator.target.pieces(row), END_MARK),
                weights_BTS[index, : len(row) + 1, : len(source.ids) + 1].numpy(),
                score,
            )
            if words:
                text = translator.target.decode([row])[0]
                picture = picture.merge(
                    [*source.words, None],
                    [*translator.target.word_of_piece(row), None],
                    sentences[start + index].split(),
                    text.split(),
                )
            pictures.append(picture)
    return pictures
