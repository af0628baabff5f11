"""How well a language model predicts a text: perplexity by token and by word, bits by character.

    perplexity = exp(Σ −log p(y_t | y_<t) / n)          bits = Σ −log₂ p(y_t | y_<t) / characters

The sum is the same in all three; they differ in what it is divided by. By token depends on the tokenizer. By word
(words between spaces, and each line's end as one more, as is customary for WikiText) and by character do not, so that
models with different vocabularies can be compared, unless tokens are unknown: those are counted, and told.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.batch import END, UNKNOWN
from jumok.data.shuffle import IntArray
from jumok.data.windows import window_batch
from jumok.errors import BadInput
from jumok.models.language import LanguageModel
from jumok.text.tokenizer import Tokenizer

POSITIONS = 2048  # whose logits are computed at once: with 33,000 words, 270 MB
STREAMS = 16  # parts that a recurrent model reads side by side when it need not be one


@dataclass(frozen=True)
class Perplexity:
    loss: float  # Σ −log p, in nats
    tokens: int
    words: int  # with each line's end
    characters: int  # with each line's end
    lines: int
    unknown: int  # tokens that are not in the vocabulary
    context: str  # what each token was predicted from

    @property
    def per_token(self) -> float:
        return _exp(self.loss / self.tokens)

    @property
    def per_word(self) -> float:
        return _exp(self.loss / self.words)

    @property
    def bits_per_character(self) -> float:
        return self.loss / math.log(2) / self.characters

    def to_json(self) -> dict[str, Any]:
        return {
            "perplexity_per_token": self.per_token,
            "perplexity_per_word": self.per_word,
            "bits_per_character": self.bits_per_character,
            **{name: getattr(self, name) for name in ("tokens", "words", "characters", "lines", "unknown", "context")},
        }

    def summary(self) -> str:
        lines = f"{self.lines:,} line{'s' * (self.lines != 1)}"
        counts = f"{lines}, {self.words:,} words, {self.tokens:,} tokens, {self.characters:,} characters"
        rows = [
            f"{counts} (each line's end counts as one)",
            f"perplexity per token  {self.per_token:10.2f}",
            f"perplexity per word   {self.per_word:10.2f}",
            f"bits per character    {self.bits_per_character:10.4f}",
            f"context: {self.context}",
        ]
        if self.unknown:
            share = self.unknown / self.tokens
            rows.append(
                f"note: {self.unknown:,} tokens ({share:.1%}) are not in the vocabulary and count as one unknown word: "
                "do not compare with models of other vocabularies"
            )
        return "\n".join(rows)


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.inf


def measure(
    model: LanguageModel,
    tokenizer: Tokenizer,
    lines: Iterable[str],
    window: int,
    device: torch.device,
    stride: int | None = None,
) -> Perplexity:
    """All lines as one text, each token predicted from as much before it as the model can use.

    A recurrent model carries its state from the beginning to the end. A Transformer reads windows that begin `stride`
    tokens after each other (half a window by itself), and only what no window before had is counted.
    """
    lines = list(lines)
    rows = tokenizer.encode(lines)
    ids = np.fromiter((id for row in rows for id in (*row, END)), np.int64)
    if not any(rows):
        raise BadInput("there is no text to measure: every line is empty")
    if model.carries:
        loss, context = carried_loss(model, ids, 1, device), "the whole text before, in the state carried along"
    else:
        stride = min(window, stride or -(-window // 2))
        loss = sliding_loss(model, ids, window, stride, device)
        context = f"{window - stride:,} to {window:,} tokens before (windows of {window:,}, every {stride:,})"
    return Perplexity(
        loss=loss,
        tokens=len(ids),
        words=sum(len(line.split()) + 1 for line in lines),
        characters=sum(len(line) + 1 for line in lines),
        lines=len(lines),
        unknown=int((ids == UNKNOWN).sum()),
        context=context,
    )


def text_loss(model: LanguageModel, ids: IntArray, window: int, device: torch.device) -> float:
    """Σ −log p of a text, measured quickly: for validation, where the same error at every time does not matter."""
    if model.carries:
        return carried_loss(model, ids, max(1, min(STREAMS, len(ids) // window)), device)
    return sliding_loss(model, ids, window, window, device)


@torch.no_grad()
def carried_loss(model: LanguageModel, ids: IntArray, streams: int, device: torch.device) -> float:
    """The text in `streams` equal parts, each read from its beginning to its end with the state carried along."""
    length = -(-len(ids) // streams)
    starts = np.minimum(np.arange(streams) * length, len(ids) - length)
    # parts may overlap by a few tokens at the end: each is counted where it first comes
    counted_B = torch.from_numpy(np.arange(streams) * length - starts).to(device)
    batch = window_batch(ids, starts, length)
    total, past = torch.zeros((), dtype=torch.float64, device=device), None
    model.eval()
    for start in range(0, length, chunk := max(1, POSITIONS // streams)):
        part = slice(start, start + chunk)
        ids_BT, targets_BT = batch.ids[:, part].to(device), batch.targets[:, part].to(device)
        hidden_BTD, past = model.read(ids_BT, past)
        place_T = start + torch.arange(ids_BT.size(1), device=device)
        total += _loss(model, hidden_BTD, targets_BT, place_T >= counted_B[:, None])
    return float(total)


@torch.no_grad()
def sliding_loss(model: LanguageModel, ids: IntArray, window: int, stride: int, device: torch.device) -> float:
    """The text in windows that begin every `stride` tokens; a token is counted in the first window that has it."""
    window = min(window, len(ids))
    last = len(ids) - window
    starts = np.append(np.arange(0, last, stride), last)
    counted = np.append(0, starts[:-1] + window) - starts  # what the window before had is not counted again
    total = torch.zeros((), dtype=torch.float64, device=device)
    model.eval()
    rows = max(1, POSITIONS // window)
    for first in range(0, len(starts), rows):
        chosen = slice(first, first + rows)
        batch = window_batch(ids, starts[chosen], window).to(device)
        counted_BT = torch.arange(window, device=device) >= torch.from_numpy(counted[chosen]).to(device)[:, None]
        total += _loss(model, model(batch.ids), batch.targets, counted_BT)
    return float(total)


def _loss(model: LanguageModel, hidden_BTD: Tensor, targets_BT: Tensor, counted_BT: Tensor) -> Tensor:
    hidden_ND, targets_N = hidden_BTD[counted_BT], targets_BT[counted_BT]
    total = torch.zeros((), dtype=torch.float64, device=hidden_BTD.device)
    for start in range(0, len(targets_N), POSITIONS):
        part = slice(start, start + POSITIONS)
        total += F.cross_entropy(model.head(hidden_ND[part]).float(), targets_N[part], reduction="sum").double()
    return total
