"""Reading by writing: one character after the other, each with an eye on the picture and on what was written before.

    p(y | x) = Π_t p(y_t | y_<t, h),    h = encoder(x),    y_n+1 = <eos>

recurrent     an LSTM with Bahdanau's attention (2015; on columns of a picture: Shi et al. 2016, "Robust Scene Text
              Recognition with Automatic Rectification"). It begins with what the picture is on the whole, s_0 =
              tanh(W mean(h) + b) (Xu et al. 2015, "Show, Attend and Tell")
transformer   the decoder of Vaswani et al. 2017

Both are those that translate (models/decoder.py, models/transformer_decoder.py), with characters instead of words. They
are a Stepper for the search (search/pictures.py); `read` is greedy search for rows that all begin together, which
leaves out what that has for rows that come and go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from jumok.layers.block import Source
from jumok.layers.characters import CharacterEmbedding, CharacterHead
from jumok.layers.dropout import Dropout
from jumok.layers.multihead import Look
from jumok.layers.stack import Stack
from jumok.models import decoder as recurrent
from jumok.models import transformer_decoder as transformer
from jumok.models.decoder import RecurrentDecoding, build_decoder
from jumok.models.encoder import Encoded
from jumok.models.recognizer import Reading, Recognizer, reading_of
from jumok.models.seq2seq import HIDDEN_SCALE
from jumok.models.transformer_decoder import TransformerDecoding
from jumok.recipe.models import Seq2SeqSection, TransformerSection
from jumok.recipe.recognition import RecognizerSection
from jumok.text.charset import Charset
from jumok.text.special import END, PAD, SPECIAL_TOKENS, START, UNKNOWN

NO_CHARACTER = (PAD, UNKNOWN, START)  # never written
LOOK_EVERY = 4  # steps; a GPU is not kept waiting for the news that all rows have ended


@dataclass(frozen=True)
class PictureBatch:
    """Pictures as a search takes them: each is a source of as many tokens as the encoder's grid has places."""

    images: Tensor  # (B, C, H, W)
    places: int

    @property
    def ids(self) -> Tensor:
        """(B, S) a number for each place, which nobody reads; none is that of a special token."""
        numbers_S = torch.arange(self.places, device=self.images.device) + len(SPECIAL_TOKENS)
        return numbers_S.expand(len(self), -1)

    @property
    def lengths(self) -> Tensor:
        return torch.full((len(self),), self.places)

    def __len__(self) -> int:
        return len(self.images)

    def to(self, device: torch.device | str) -> PictureBatch:
        return PictureBatch(self.images.to(device, non_blocking=True), self.places)


class WritingRecognizer(Recognizer):
    def __init__(self, section: RecognizerSection, charset: Charset) -> None:
        super().__init__(section, charset)
        self.replays = section.encoder == "vit"
        kind = RecurrentWriter if section.decoder == "recurrent" else TransformerWriter
        self.writer: RecurrentWriter | TransformerWriter = kind(section, charset)

    # ------------------------------------------------------------ learning

    def forward(self, pictures: Tensor, read_BT: Tensor) -> Tensor:
        """Hidden states (B, T, D) after reading `<sos> y_1 … y_(T-1)`. Pictures are (B, C, H, W), or what the encoder
        has made of them, (B, S, D)."""
        seen_BSD = self.encoder(pictures) if pictures.dim() == 4 else pictures
        return self.writer.forced(seen_BSD, read_BT)

    def scores(self, pictures: Tensor, ids_BT: Tensor, lengths_B: Tensor) -> Tensor:
        """(B, T): log p of each character and of <eos>, given those before it; 0 after that."""
        start_B1 = torch.full_like(ids_BT[:, :1], START)
        hidden_BTD = self(pictures, torch.cat([start_B1, ids_BT[:, :-1]], dim=1))
        real_BT = torch.arange(ids_BT.size(1), device=ids_BT.device) <= lengths_B[:, None]
        return torch.where(real_BT, self.writer.head.of(hidden_BTD, ids_BT), 0.0)

    def losses(self, images_BCHW: Tensor, ids_BT: Tensor, lengths_B: Tensor) -> dict[str, Tensor]:
        return {"loss": -self.scores(images_BCHW, ids_BT, lengths_B).sum(dim=1)}

    # ------------------------------------------------------------ reading

    @torch.no_grad()
    def written(self, seen_BSD: Tensor, fast: bool = False, sure: float = 1.0) -> Reading:
        """Greedy: the likeliest character after those that are there, until it is <eos> or there is no room."""
        memory: Any = self.writer.remember_picture(seen_BSD)
        rows, longest, device = len(seen_BSD), self.section.max_length, seen_BSD.device
        cache, head = self.start(memory, rows, longest + 1), self.writer.head
        written_B = torch.full((rows,), START, device=device)
        ended_B = torch.zeros(rows, dtype=torch.bool, device=device)
        ending_B = torch.zeros(rows, device=device)
        ids: list[Tensor] = []
        log_probs: list[Tensor] = []
        for position in range(longest):
            hidden_BD, cache = self.writer.advance(written_B, memory, cache)
            best_B, written_B = head.best(hidden_BD, NO_CHARACTER)
            ending_B = torch.where(ended_B | (written_B != END), ending_B, best_B)
            ended_B = ended_B | (written_B == END)
            ids.append(written_B.masked_fill(ended_B, PAD))
            log_probs.append(best_B.masked_fill(ended_B, 0.0))
            looks = device.type == "cpu" or position % LOOK_EVERY == LOOK_EVERY - 1
            if looks and bool(ended_B.all()):
                break
        else:  # nothing but <eos> has room now
            hidden_BD, _ = self.writer.advance(written_B, memory, cache)
            last_B = head.of(hidden_BD[:, None], torch.full_like(written_B, END)[:, None])[:, 0]
            ending_B = torch.where(ended_B, ending_B, last_B)
        ids_BL = torch.stack(ids, dim=1)
        return Reading(ids_BL, (ids_BL != PAD).sum(dim=1), torch.stack(log_probs, dim=1), ending_B)

    @torch.no_grad()
    def said_as(self, seen_BSD: Tensor, rows_N: Tensor, ids_NT: Tensor, lengths_N: Tensor, fast: bool) -> Reading:
        log_probs_NT = self.scores(seen_BSD[rows_N], ids_NT, lengths_N)
        return reading_of(ids_NT, log_probs_NT)

    def batch(self, images_BCHW: Tensor) -> PictureBatch:
        """For the search."""
        return PictureBatch(images_BCHW, self.encoder.grid[0] * self.encoder.grid[1])

    # ------------------------------------------------------------ the Stepper protocol

    def encode(self, batch: PictureBatch) -> Any:
        return self.writer.remember_picture(self.encoder(batch.images))

    def start(self, memory: Any, rows: int, capacity: int, coverage: bool = False) -> Any:
        return self.writer.start(memory, rows, capacity, coverage)

    def step(self, tokens: Tensor, positions: Tensor, memory: Any, cache: Any) -> tuple[Tensor, Any]:
        return self.writer.step(tokens, positions, memory, cache)

    def select(self, memory: Any, cache: Any, rows: Tensor) -> tuple[Any, Any]:
        return self.writer.select(memory, cache, rows)

    def join(self, parts: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
        return self.writer.join(parts)

    def coverage(self, cache: Any) -> Tensor:
        return self.writer.coverage(cache)


# ---------------------------------------------------------------- who writes


class RecurrentWriter(RecurrentDecoding, nn.Module):
    def __init__(self, section: RecognizerSection, charset: Charset) -> None:
        super().__init__()
        self.layers = section.decoder_layers
        self.embedding = CharacterEmbedding(charset.size, section.width, charset.first_syllable, charset.jamo)
        self.decoder = build_decoder(
            Seq2SeqSection(
                embedding=section.width,
                width=section.width,
                layers=section.decoder_layers,
                attention="bahdanau",
                scorer="additive",
                dropout=section.dropout,
            )
        )
        self.dropout = Dropout(section.dropout)
        self.head = EnlargedHead(section.width, charset.size, charset.first_syllable, charset.jamo)

    def log_probs(self, hidden: Tensor) -> Tensor:
        return self.head.log_probs(hidden)

    def remember_picture(self, seen_BSD: Tensor) -> recurrent.Memory:
        whole_LBD = seen_BSD.mean(dim=1).expand(self.layers, -1, -1)
        return self.decoder.remember(Encoded(seen_BSD, _everywhere(seen_BSD), (whole_LBD, whole_LBD)))

    def forced(self, seen_BSD: Tensor, read_BT: Tensor) -> Tensor:
        embedded_BTD = self.dropout(self.embedding(read_BT))
        return self.dropout(self.decoder(embedded_BTD, self.remember_picture(seen_BSD)))


class EnlargedHead(CharacterHead):
    """A recurrent hidden state is small: enlarged, the output layer learns faster (models/seq2seq.py)."""

    def scores(self, hidden: Tensor) -> list[Tensor]:
        return super().scores(hidden * HIDDEN_SCALE)


class TransformerWriter(TransformerDecoding, nn.Module):
    def __init__(self, section: RecognizerSection, charset: Charset) -> None:
        super().__init__()
        self.embedding = CharacterEmbedding(charset.size, section.width, charset.first_syllable, charset.jamo)
        blocks = TransformerSection(
            width=section.width,
            heads=section.decoder_heads,
            feed_forward=section.feed_forward,
            activation="gelu",
            dropout=section.dropout,
            position="sinusoidal" if section.width % 2 == 0 else "learned",
            max_positions=section.max_length + 1,
        )
        self.decoder = Stack(blocks, section.decoder_layers, "causal", "decoder", cross=True)
        self.head = CharacterHead(section.width, charset.size, charset.first_syllable, charset.jamo)

    def log_probs(self, hidden: Tensor) -> Tensor:
        return self.head.log_probs(hidden)

    def remember_picture(self, seen_BSD: Tensor) -> transformer.Memory:
        return self.remember(seen_BSD, _everywhere(seen_BSD))

    def forced(self, seen_BSD: Tensor, read_BT: Tensor) -> Tensor:
        sources = [Source(memory, Look()) for memory in self.offered(seen_BSD)]
        return self.decoder(self.embedding(read_BT), sources=sources)


def _everywhere(seen_BSD: Tensor) -> Tensor:
    """(B, S): a picture has no padding."""
    return torch.ones(seen_BSD.shape[:2], dtype=torch.bool, device=seen_BSD.device)
