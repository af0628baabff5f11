"""What was learned about words, used: a tag for each word of a sentence, however long the sentence is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F

from jumok.data.plan import length_batches
from jumok.data.rows import Rows
from jumok.errors import BadInput
from jumok.models.reader import WordLabeller
from jumok.tasks.classifier import TOKENS
from jumok.tasks.labelling import Classes
from jumok.text.tokenizer import Tokenizer

Words = Sequence[str]


@dataclass(frozen=True)
class Window:
    """Some words of a sentence as tokens: word `words[n]` begins at token `places[n]`."""

    ids: list[int]
    words: list[int]
    places: list[int]


def windows(tokenizer: Tokenizer, sentences: Sequence[Words], room: int, stride: int) -> list[list[Window]]:
    """Each sentence in windows of at most `room` tokens, neighbours with about `stride` tokens in common."""
    if room < 1:
        raise BadInput(f"data.max_length {room + 2} leaves no room for words")
    flat = tokenizer.encode([word for sentence in sentences for word in sentence])
    cut, at = [], 0
    for sentence in sentences:
        # a word of nothing that the vocabulary knows is still a word; one that fills a window is cut off
        pieces = [(ids or [tokenizer.specials.unknown])[:room] for ids in flat[at : at + len(sentence)]]
        cut.append(_windows(pieces, room, min(stride, room // 2)))
        at += len(sentence)
    return cut


def _windows(pieces: Sequence[list[int]], room: int, stride: int) -> list[Window]:
    found: list[Window] = []
    first = 0
    while first < len(pieces):
        window = Window([], [], [])
        last = first
        while last < len(pieces) and len(window.ids) + len(pieces[last]) <= room:
            window.words.append(last)
            window.places.append(len(window.ids))
            window.ids.extend(pieces[last])
            last += 1
        found.append(window)
        if last == len(pieces):
            break
        shared, back = 0, last
        while back > first + 1 and shared + len(pieces[back - 1]) <= stride:
            back -= 1
            shared += len(pieces[back])
        first = back
    return found


class Tagger:
    """Tags the words of sentences."""

    def __init__(
        self,
        model: WordLabeller,
        tokenizer: Tokenizer,
        labelling: Classes,
        max_length: int,
        stride: int,
        device: torch.device,
    ) -> None:
        self.model, self.tokenizer, self.labelling = model, tokenizer, labelling
        self.max_length, self.stride, self.device = max_length, stride, device

    @property
    def labels(self) -> tuple[str, ...]:
        return self.labelling.names

    def predict(self, sentences: Sequence[Words | str]) -> list[list[str]]:
        """A tag for each word; a sentence that is one text is cut at its spaces."""
        words = [sentence.split() if isinstance(sentence, str) else list(sentence) for sentence in sentences]
        return self._tags(words, None)[0]

    def predict_with_loss(
        self, sentences: Sequence[Words], tags: Sequence[Sequence[str]]
    ) -> tuple[list[list[str]], float]:
        """The same, and −log p of a true tag on the average."""
        return self._tags(sentences, tags)

    @torch.inference_mode()
    def _tags(self, sentences: Sequence[Words], truth: Sequence[Sequence[str]] | None) -> tuple[list[list[str]], float]:
        self.model.eval()
        cut = windows(self.tokenizer, sentences, self.max_length - 2, self.stride)
        flat = [(number, window) for number, found in enumerate(cut) for window in found]
        specials, names = self.tokenizer.specials, self.labelling.names
        rows = Rows.of([[specials.start, *window.ids, specials.end] for _, window in flat])
        best = [np.full(len(sentence), -1) for sentence in sentences]
        margins = [np.full(len(sentence), -1) for sentence in sentences]  # how much a word saw on its narrower side
        losses = [np.zeros(len(sentence)) for sentence in sentences]
        known = {name: number for number, name in enumerate(names)}
        for chosen in length_batches(rows.lengths, np.zeros(len(rows), np.int64), TOKENS):
            words, _ = rows.batch(chosen)
            scores = F.log_softmax(self.model(words.to(self.device)).float(), dim=-1).cpu().numpy()
            for row, index in enumerate(chosen.tolist()):
                number, window = flat[index]
                places = np.array(window.places)
                # at the sentence's own ends nothing is missing
                left = places if window.words[0] else np.full(len(places), len(window.ids))
                ends = window.words[-1] == len(sentences[number]) - 1
                right = np.full(len(places), len(window.ids)) if ends else len(window.ids) - 1 - places
                margin = np.minimum(left, right)
                better = margin > margins[number][window.words]
                here = np.array(window.words)[better]
                said = scores[row, places[better] + 1]
                best[number][here], margins[number][here] = said.argmax(axis=-1), margin[better]
                if truth is not None:
                    gold = [known[truth[number][word]] for word in here.tolist()]
                    losses[number][here] = -said[np.arange(len(here)), gold]
        total = max(1, sum(len(sentence) for sentence in sentences))
        tags = [[names[label] for label in row.tolist()] for row in best]
        return tags, float(sum(loss.sum() for loss in losses)) / total
