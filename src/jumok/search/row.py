"""One row of a search: what was asked for it, and the best of its finished hypotheses."""

from __future__ import annotations

from jumok.errors import BadInput
from jumok.search.constraints import Blocked, Required
from jumok.search.events import Hypothesis
from jumok.search.options import SearchOptions, normalised


class Row:
    """`name` is what the caller calls it; `limit` its longest output, `source` the length of its source (if known)."""

    def __init__(self, name: int, options: SearchOptions, limit: int, source: int | None, end: int) -> None:
        self.name, self.options, self.limit, self.source = name, options, limit, source
        self.pool: list[Hypothesis] = []  # the best finished so far
        # `transformers` holds a live hypothesis against the worst of a full beam, not of the n-best
        self.guesses = options.stopping == "transformers" and options.beam > 1
        self.kept = options.beam if self.guesses else options.nbest
        self.finished = 0  # how many have finished
        self.worst = -float("inf")  # score to beat, once the pool is full
        self.bound = limit**options.length_penalty  # log p / this is the best a live hypothesis can hope for
        # A beam of 1 is greedy: its first <eos> is its last word.
        self.enough = 1.0 if options.beam == 1 else float("inf")
        if options.patience is not None and options.beam > 1:
            self.enough = options.patience * options.beam
        self.required = Required.of(options)
        self.blocked = Blocked.of(options)
        self.ends = end not in options.forbidden  # else only where max_length says so
        singles = {phrase[0] for phrase in options.forbidden_phrases if len(phrase) == 1}
        self.banned = frozenset({*options.forbidden, *singles} - {end})
        self.always_special = bool(self.required or self.blocked or options.sample or not self.ends)
        phrases = (options.prefix, options.forbidden, *options.required, *options.forbidden_phrases)
        self.highest = max((token for phrase in phrases for token in phrase), default=0)
        self._check(end)

    def _check(self, end: int) -> None:
        options, limit, here = self.options, self.limit, f"row {self.name}"
        if len(options.prefix) >= limit:
            raise BadInput(
                f"{here}: a prefix of {len(options.prefix)} and <eos> exceed max_length {limit}: shorten it, or raise "
                "max_length"
            )
        if end in options.prefix:
            raise BadInput(f"{here}: the prefix holds <eos> (token {end}); leave it out")
        if any(end in phrase for phrase in (*options.required, *options.forbidden_phrases)):
            raise BadInput(f"{here}: a phrase holds <eos> (token {end}); leave it out")
        if options.min_length > limit:
            raise BadInput(
                f"{here}: min_length {options.min_length} exceeds its max_length {limit}: lower it, or raise that"
            )
        missing = self.required.missing(options.prefix) if self.required else 0
        if len(options.prefix) + missing + 1 > limit:
            raise BadInput(
                f"{here}: the required phrases ({missing} tokens), a prefix of {len(options.prefix)} and <eos> exceed "
                f"max_length {limit}: raise it, or require less"
            )

    def check_vocabulary(self, vocabulary: int) -> None:
        """Refuse to name tokens that the model does not have."""
        if self.highest < vocabulary:
            return
        options = self.options
        for what, tokens in (
            ("prefix", options.prefix),
            *(("required", phrase) for phrase in options.required),
            *(("forbidden", phrase) for phrase in options.forbidden_phrases),
            ("forbidden", options.forbidden),
        ):
            for token in tokens:
                if token >= vocabulary:
                    raise BadInput(
                        f"row {self.name}: {what} token {token} is outside the vocabulary of {vocabulary}: "
                        "use token ids of the model's own tokenizer"
                    )

    def calm(self, length: int) -> int:
        """For how many steps after `length` tokens only the plain rules hold: no prefix, no limit, no constraint."""
        options = self.options
        early = length < len(options.prefix) or length + 1 < options.min_length
        return 0 if self.always_special or early else max(0, self.limit - 1 - length)

    def score(self, total: float, length: int) -> float:
        return normalised(total, length, self.options.length_penalty)

    @property
    def best(self) -> list[Hypothesis]:
        return self.pool[: self.options.nbest]

    def add(self, tokens: list[int], total: float, length: int, finished: bool, covered: float) -> Hypothesis:
        """One more output; `covered` is Σ_s log min(Σ_t α_ts, 1)."""
        score = self.score(total, length)
        if self.options.coverage_penalty:
            score += self.options.coverage_penalty * covered
        output = Hypothesis(tokens, score, total, finished)
        self.pool.append(output)
        self.pool.sort(key=lambda hypothesis: -hypothesis.score)  # stable: the first to finish wins a tie
        del self.pool[self.kept :]
        self.finished += 1
        if len(self.pool) == self.kept:
            self.worst = self.pool[-1].score
        return output
