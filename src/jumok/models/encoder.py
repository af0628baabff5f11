"""Reading the source: word vectors, then recurrent layers, forwards, backwards or both."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from jumok.data.batch import PAD, Sequences
from jumok.layers.dropout import Dropout
from jumok.layers.embedding import Embedding
from jumok.layers.recurrent import Recurrent, State
from jumok.recipe import Seq2SeqSection


class Encoded(NamedTuple):
    """What the encoder says about each source token, in the order of the text, and its state at the end."""

    outputs: Tensor  # (B, S, D)
    mask: Tensor  # (B, S)
    state: State


class Encoder(nn.Module):
    """h_1 … h_S and the final state. Read backwards, the words are turned round but `<eos>` stays last, and the
    outputs are turned back: position s always means word s of the text."""

    def __init__(self, section: Seq2SeqSection, vocabulary: int) -> None:
        super().__init__()
        self.reverse = section.reverse_source
        self.embedding = Embedding(vocabulary, section.embedding, PAD)
        self.dropout = Dropout(section.dropout)
        self.recurrent = Recurrent(
            section.cell,
            section.embedding,
            section.width,
            section.layers,
            section.bidirectional,
            section.dropout,
            section.forget_bias,
            section.written_out,
        )

    def forward(self, source: Sequences) -> Encoded:
        ids_BS = source.ids
        order_BS = reading_order(source) if self.reverse else None
        if order_BS is not None:
            ids_BS = ids_BS.gather(1, order_BS)
        embedded_BSD = self.dropout(self.embedding(ids_BS))
        outputs_BSD, state = self.recurrent(embedded_BSD, source.lengths)
        if order_BS is not None:  # turning round twice is the order of the text again
            outputs_BSD = outputs_BSD.gather(1, order_BS[..., None].expand_as(outputs_BSD))
        return Encoded(outputs_BSD, source.mask, state)


def reading_order(source: Sequences) -> Tensor:
    """(B, S) positions that reverse each row's words in front of its `<eos>`; its own inverse."""
    position_BS = torch.arange(source.ids.size(1), device=source.ids.device).expand_as(source.ids)
    last_B1 = source.lengths.to(source.ids.device)[:, None] - 1
    return torch.where(position_BS < last_B1, last_B1 - 1 - position_BS, position_BS)
