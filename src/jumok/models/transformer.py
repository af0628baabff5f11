"""The encoder–decoder Transformer (Vaswani et al. 2017).

The encoder's words see each other; the decoder's words see those before them and, in every layer, the whole source.

    h = encoder(E_x[x] √d + PE)     s = decoder(E_y[<sos> y_1 …] √d + PE, h)     p(y_t | y_<t, x) = softmax(W s_t + b)

Training computes all positions at once; search computes one at a time (models/transformer_decoder.py).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.data.batch import PAD, START, Sequences
from jumok.data.packing import PackedSide
from jumok.layers.block import Source
from jumok.layers.dropout import WordDropout
from jumok.layers.embedding import Embedding
from jumok.layers.multihead import Look
from jumok.layers.spans import Spans
from jumok.layers.stack import Stack
from jumok.models.bert import Bert
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.models.transformer_decoder import Memory, TransformerDecoding
from jumok.recipe import TransformerSection


class Transformer(TransformerDecoding, EncoderDecoder):
    packs = True
    embedding: Embedding

    def __init__(self, section: TransformerSection, source_size: int, target_size: int) -> None:
        super().__init__()
        self.replays = section.position != "relative"  # its packed attention is laid out anew for every batch
        self.section = section
        self.embedding = Embedding(target_size, section.width, PAD)
        self.unseen = WordDropout(section.target_word_dropout)
        shared = section.tie_embeddings == "all"
        self.reader = Bert(section.reader, source_size) if section.reader is not None else None
        if self.reader is None:
            self.source_embedding = self.embedding if shared else Embedding(source_size, section.width, PAD)
            self.encoder = Stack(section, section.encoder_layers, "self", "encoder")
        else:
            self.packs = self.replays = False  # the reader begins each sentence with a token of its own
            # the same modules by their usual names, without being parameters twice
            object.__setattr__(self, "source_embedding", self.reader.embedding)
            object.__setattr__(self, "encoder", self.reader.encoder)
        self.decoder = Stack(section, section.decoder_layers, "causal", "decoder", cross=True)
        self.tied = section.tie_embeddings != "none"
        if section.position == "learned":
            self.longest = section.max_positions
        self.bias = nn.Parameter(torch.zeros(target_size))
        if not self.tied:
            self.weight = nn.Parameter(torch.empty(target_size, section.width))
            nn.init.normal_(self.weight, std=section.width**-0.5)

    def output(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logits are W s + b, where W may be the word vectors themselves."""
        return hidden, self.embedding.weight if self.tied else self.weight, self.bias

    def forward(self, source: Sequences | PackedSide, target: Tensor | PackedSide) -> Tensor:
        """Hidden states (B, T, D) after reading `<sos> y_1 … y_(T-1)`; `head` of position t predicts y_t.

        The target is ids (B, T) where padding stands at the end of a row: no real word looks at it. Or both sides are
        packed, and B is 1.
        """
        if isinstance(source, PackedSide) and isinstance(target, PackedSide):
            look = Look(spans=Spans.across(target, source))
            sources = [Source(memory, look) for memory in self.offered(self._encoded(source))]
            return self.decoder(self.unseen(self.embedding(target.ids)), sources=sources, packed=target)
        assert isinstance(source, Sequences)
        assert isinstance(target, Tensor)  # both sides are packed, or none is
        look = Look(source.mask)
        sources = [Source(memory, look) for memory in self.offered(self._encoded(source))]
        return self.decoder(self.unseen(self.embedding(target)), sources=sources)

    def _encoded(self, source: Sequences | PackedSide) -> Tensor:
        """h (B, S, D): what the encoder says about each word of the source."""
        if self.reader is not None:
            assert isinstance(source, Sequences)
            return self._read(self.reader, source)
        if isinstance(source, PackedSide):
            return self.encoder(self.source_embedding(source.ids), packed=source)
        return self.encoder(self.source_embedding(source.ids), source.mask)

    @staticmethod
    def _read(reader: Bert, source: Sequences) -> Tensor:
        """A BERT has always read `[CLS]` before a text, whose place its decoder has no need of."""
        first_B1 = torch.full_like(source.ids[:, :1], START)
        return reader(Sequences(torch.cat([first_B1, source.ids], dim=1), source.lengths + 1))[:, 1:]

    def log_probs(self, hidden: Tensor) -> Tensor:
        return F.log_softmax(self.head(hidden).float(), dim=-1)

    def encode(self, batch: Sequences) -> Memory:
        return self.remember(self._encoded(batch), batch.mask)
