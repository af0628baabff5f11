"""A trained model that translates: sentences in, n-best translations out, in order."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self

import torch

from jumok.data.batch import source_batch
from jumok.errors import BadInput
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.recipe import Search
from jumok.search import SearchOptions, generate, max_length_for
from jumok.text.tags import find_tag
from jumok.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Translation:
    text: str
    score: float  # log-probability divided by length ** length_penalty
    log_probability: float
    ids: tuple[int, ...]


EMPTY = Translation("", 0.0, 0.0, ())


class TooLong(BadInput):
    """A sentence over the model's limit. `index` is its place in the input."""

    def __init__(self, index: int, length: int, limit: int) -> None:
        super().__init__(
            f"sentence {index + 1} has {length} tokens, the model's limit is {limit}. Split it; or `jumok translate` "
            f"with --too-long truncate (cuts it) or --too-long skip (an empty line)"
        )
        self.index, self.length, self.limit = index, length, limit


class Translator:
    def __init__(
        self,
        model: EncoderDecoder,
        source: Tokenizer,
        target: Tokenizer,
        search: Search,
        max_length: int,
        device: torch.device,
    ) -> None:
        self.model, self.source, self.target = model, source, target
        self.search, self.max_length, self.device = search, max_length, device
        self.tag: str | None = None

    def tagged(self, tag: str | None) -> Self:
        """The same model, which writes the language that a tag (2de, or just de) stands for."""
        chosen = copy(self)
        chosen.tag = tag
        return chosen

    @property
    def before(self) -> tuple[int, ...]:
        """What opens every source: the id of the chosen language's tag, where the model has tags."""
        return find_tag(self.source, self.tag)

    def translate(
        self, sentences: Sequence[str], beam: int | None = None, too_long: str = "error", tag: str | None = None
    ) -> list[str]:
        """The best translation of each sentence, in order."""
        if isinstance(sentences, str):
            raise BadInput("translate() takes a list of sentences: write translate([sentence])")
        writer = self if tag is None else self.tagged(tag)
        return [found[0].text for found in writer.nbest(sentences, beam=beam, too_long=too_long)]

    @torch.inference_mode()
    def nbest(
        self,
        sentences: Sequence[str],
        nbest: int = 1,
        *,
        beam: int | None = None,
        length_penalty: float | None = None,
        batch: int | None = None,
        too_long: str = "error",
    ) -> list[list[Translation]]:
        """For each sentence its `nbest` translations, best first. An empty sentence translates to an empty one."""
        beam = self.search.beam if beam is None else beam
        if beam < 1 or nbest < 1:
            raise BadInput(f"beam {beam}, nbest {nbest}: give 1 or more")
        if nbest > beam:
            raise BadInput(f"nbest {nbest} needs a beam at least as wide (the beam is {beam})")
        penalty = self.search.length_penalty if length_penalty is None else length_penalty
        rows = self._encode(sentences, too_long)
        results: list[list[Translation]] = [[EMPTY] * nbest for _ in sentences]
        # like lengths together: less padding, and rows that finish together
        order = sorted((index for index, row in enumerate(rows) if row), key=lambda index: -len(rows[index]))
        size = batch or self.search.batch
        self.model.eval()
        for start in range(0, len(order), size):
            chosen = order[start : start + size]
            group = source_batch([rows[index] for index in chosen]).to(self.device)
            options = [
                SearchOptions(
                    beam=beam,
                    length_penalty=penalty,
                    max_length=max_length_for(len(rows[index]), self.search.max_ratio, self.search.max_extra),
                    nbest=nbest,
                    patience=self.search.patience,
                )
                for index in chosen
            ]
            found = generate(self.model, group, options)
            flat = [hypothesis for hypotheses in found for hypothesis in hypotheses]
            texts = iter(self.target.decode([hypothesis.tokens for hypothesis in flat]))
            for index, hypotheses in zip(chosen, found, strict=True):
                results[index] = [
                    Translation(next(texts), h.score, h.log_probability, tuple(h.tokens)) for h in hypotheses
                ]
        return results

    def _encode(self, sentences: Sequence[str], too_long: str) -> list[list[int]]:
        before = self.before
        rows = self.source.encode([sentence.strip() for sentence in sentences])
        rows = [[*before, *row] if row else row for row in rows]
        for index, row in enumerate(rows):
            if len(row) > self.max_length:
                if too_long == "error":
                    raise TooLong(index, len(row), self.max_length)
                rows[index] = row[: self.max_length] if too_long == "truncate" else []
        return rows
