"""Pairs in, log-probabilities out: how likely a model finds translations that somebody else made."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from jumok.api import TrainedTranslator
from jumok.data.readers import first_line, read_pairs
from jumok.errors import BadInput
from jumok.recipe import Corpus
from jumok.tasks.scoring import Scored

CHUNK = 1024  # pairs that are sorted by length together


def corpus_of(source: Path | None, target: Path | None, file: Path | None) -> Corpus:
    """What the options of the command name."""
    if file is not None and source is None and target is None:
        return Corpus(file=[str(file)])
    if file is None and source is not None and target is not None:
        return Corpus(source=[str(source)], target=[str(target)])
    raise BadInput("give --source and --target (line by line), or --file with both sides (TSV or JSONL)")


class Scores:
    """The scores of a corpus as they come, and what they add up to."""

    def __init__(self, model: TrainedTranslator, corpus: Corpus, skip: bool = False) -> None:
        """`skip`: pairs that cannot be scored (an empty side, too long) are passed over instead of ending it all."""
        self.model, self.corpus, self.skip = model, corpus, skip
        self.pairs = self.tokens = self.skipped = 0
        self.log_probability = 0.0

    @property
    def perplexity(self) -> float:
        """exp(−1/N Σ log p) over all tokens."""
        return math.exp(-self.log_probability / self.tokens) if self.tokens else math.nan

    def __iter__(self) -> Iterator[Scored | None]:
        """Each pair's score in order; None for one that was passed over."""
        numbered = enumerate(read_pairs(self.corpus), first_line(self.corpus))
        while chunk := list(islice(numbered, CHUNK)):
            good, problem = self._good(chunk)
            scored = iter(self.model.score(*zip(*good.values(), strict=True)) if good else ())
            for line, _ in chunk:
                if line in good:
                    yield self._counted(next(scored))
                elif problem is not None:
                    raise problem
                else:
                    self.skipped += 1
                    yield None

    def _good(self, chunk: Iterable[tuple[int, tuple[str, str]]]) -> tuple[dict[int, tuple[str, str]], BadInput | None]:
        """The pairs that can be scored, by their line; up to the first that cannot, with the reason, unless skipped."""
        good: dict[int, tuple[str, str]] = {}
        for line, (source, target) in chunk:
            wrong = self._wrong(source, target)
            if wrong is None:
                good[line] = source, target
            elif not self.skip:
                files = self.corpus.file or [*self.corpus.source, *self.corpus.target]
                hint = "Take the pair out, or pass over such pairs with --skip"
                return good, BadInput(f"{' and '.join(files)}, line {line}: {wrong}. {hint}")
        return good, None

    def _wrong(self, source: str, target: str) -> str | None:
        for side, text, tokenizer in (("source", source, self.model.source), ("target", target, self.model.target)):
            if not text.strip():
                return f"the {side} is empty: there is nothing to score"
            length = len(tokenizer.encode([text.strip()])[0]) + (len(self.model.before) if side == "source" else 0)
            if length > self.model.max_length:
                return f"the {side} has {length} tokens, the model's limit is {self.model.max_length}"
        return None

    def _counted(self, one: Scored) -> Scored:
        self.pairs += 1
        self.tokens += len(one.log_probabilities)
        self.log_probability += one.log_probability
        return one

    def summary(self) -> str:
        passed = f" ({self.skipped} passed over)" if self.skipped else ""
        return (
            f"{self.pairs} pair{'s' * (self.pairs != 1)}{passed}, {self.tokens} tokens with <eos>: "
            f"log-probability {self.log_probability:.4f}, perplexity {self.perplexity:.4f}"
        )


def line_of(one: Scored | None, words: bool) -> str:
    """Log-probability, the same per token, number of tokens; with `words`, each token's own. Empty if passed over."""
    if one is None:
        return ""
    cells = [f"{one.log_probability:.4f}", f"{one.average:.4f}", str(len(one.tokens))]
    if words:
        each = zip(one.tokens, one.log_probabilities, strict=True)
        cells.append(" ".join(f"{token}:{value:.4f}" for token, value in each))
    return "\t".join(cells)
