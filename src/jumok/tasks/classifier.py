"""What was learned about texts, used: labels with their probabilities, or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from jumok.data.plan import length_batches
from jumok.data.rows import PairRows, Rows, framed
from jumok.errors import BadInput
from jumok.models.reader import TextLabeller
from jumok.tasks.labelling import Classes, Numbers
from jumok.text.tokenizer import Tokenizer

Text = str | tuple[str, str | None]
TOKENS = 8192  # read at once where nothing is learned
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Said:
    """A label with the probabilities of all; or a number."""

    label: str
    probability: float
    probabilities: dict[str, float]


class Classifier:
    """Says a label (or a number) about texts, or about pairs of texts."""

    def __init__(
        self,
        model: TextLabeller,
        tokenizer: Tokenizer,
        labelling: Classes | Numbers,
        max_length: int,
        device: torch.device,
        pairs: bool | None = None,
    ) -> None:
        self.model, self.tokenizer, self.labelling = model, tokenizer, labelling
        self.max_length, self.device = max_length, device
        self.pairs = pairs  # whether it has learned from two texts at a time; None: nobody knows

    @property
    def labels(self) -> tuple[str, ...]:
        return self.labelling.names if isinstance(self.labelling, Classes) else ()

    def scores(self, texts: Sequence[Text]) -> Floats:
        """(N, L), before the softmax."""
        for number, text in enumerate(texts, 1):
            if self.pairs is not None and (as_pair(text)[1] is not None) != self.pairs:
                learned = "pairs of texts" if self.pairs else "single texts"
                given = "a single text" if self.pairs else "a pair"
                raise BadInput(f"text {number} is {given}, and this run has learned from {learned}")
        rows, _ = text_rows(self.tokenizer, [as_pair(text) for text in texts], self.max_length, self.model.apart)
        return text_scores(self.model, rows, self.device)

    def probabilities(self, texts: Sequence[Text]) -> npt.NDArray[np.float64]:
        """(N, L) for the labels in their order."""
        if isinstance(self.labelling, Numbers):
            raise BadInput("this run measures: it has numbers and no probabilities")
        return torch.softmax(torch.from_numpy(self.scores(texts)).double(), dim=-1).numpy()

    def measure(self, texts: Sequence[Text]) -> npt.NDArray[np.float64]:
        """(N,) the numbers of a run that measures."""
        if isinstance(self.labelling, Classes):
            raise BadInput("this run tells labels apart: it has no numbers")
        return self.scores(texts)[:, 0].astype(np.float64) * self.labelling.scale + self.labelling.mean

    def predict(self, texts: Sequence[Text]) -> list[Said]:
        """The likeliest label of each text; of a run that measures, its number as `label`."""
        if isinstance(self.labelling, Numbers):
            return [Said(f"{value:.4f}", 1.0, {}) for value in self.measure(texts)]
        names = self.labels
        said = []
        for row in self.probabilities(texts):
            best = int(row.argmax())
            said.append(Said(names[best], float(row[best]), dict(zip(names, row.tolist(), strict=True))))
        return said


def as_pair(text: Text) -> tuple[str, str | None]:
    return (text, None) if isinstance(text, str) else text


def text_rows(
    tokenizer: Tokenizer, texts: Sequence[tuple[str, str | None]], limit: int, apart: bool = False
) -> tuple[Rows | PairRows, int]:
    """Texts or pairs as a model reads them, in one row or `apart`; and how many were cut off at the limit."""
    if not apart:
        rows, segments, cut = encode_texts(tokenizer, texts, limit)
        return Rows.of(rows, segments), cut
    if any(second is None for _, second in texts):
        raise BadInput("model.pairs: apart compares two texts, and there is only one: use together, or give pairs")
    sides = [encode_texts(tokenizer, [(str(text[side]), None) for text in texts], limit) for side in (0, 1)]
    return PairRows(*(Rows.of(rows) for rows, _, _ in sides)), sum(cut for _, _, cut in sides)


def cut_texts(tokenizer: Tokenizer, texts: Sequence[Text], limit: int, apart: bool = False) -> int:
    """How many of the texts (of pairs that are read apart, of both) are cut off at the limit."""
    return text_rows(tokenizer, [as_pair(text) for text in texts], limit, apart)[1]


def encode_texts(
    tokenizer: Tokenizer, texts: Sequence[tuple[str, str | None]], limit: int
) -> tuple[list[list[int]], list[list[int]], int]:
    """Rows and segments of texts and pairs, and how many were cut off at the limit."""
    firsts = tokenizer.encode([first for first, _ in texts])
    seconds = tokenizer.encode([second or "" for _, second in texts])
    rows, segments, cut = [], [], 0
    for (_, second), ids, others in zip(texts, firsts, seconds, strict=True):
        row, parts, shortened = framed(ids, None if second is None else others, tokenizer.specials, limit)
        rows.append(row)
        segments.append(parts)
        cut += shortened
    return rows, segments, cut


@torch.inference_mode()
def text_scores(model: nn.Module, rows: Rows | PairRows, device: torch.device) -> Floats:
    """What the model says of each row, (N, L), in the order of the rows."""
    model.eval()
    found: list[tuple[npt.NDArray[np.int64], Floats]] = []
    for chosen in length_batches(rows.lengths, np.zeros(len(rows), np.int64), TOKENS):
        words, segments = rows.batch(chosen)
        scores = model(words.to(device), None if segments is None else segments.to(device))
        found.append((chosen, scores.float().cpu().numpy()))
    if not found:
        return np.zeros((0, 1), np.float32)
    result = np.empty((len(rows), found[0][1].shape[1]), np.float32)
    for chosen, scores in found:
        result[chosen] = scores
    return result
