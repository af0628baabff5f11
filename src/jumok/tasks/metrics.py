"""Scores that others can compare: sacreBLEU's, with their signatures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    name: str
    score: float
    signature: str
    detail: str

    def to_json(self) -> dict[str, object]:
        return {"name": self.name, "score": self.score, "signature": self.signature, "detail": self.detail}

    def __str__(self) -> str:
        return f"{self.name} {self.score:.2f}   {self.signature}"


def corpus_scores(outputs: Sequence[str], references: Sequence[str], lowercase_tokenised: bool = False) -> list[Score]:
    """BLEU and chrF of a corpus. `lowercase_tokenised`: text as the tutorials score it (see `tutorial_form`)."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    if lowercase_tokenised:
        outputs, references = [tutorial_form(o) for o in outputs], [tutorial_form(r) for r in references]
    scores = []
    for name, metric in (("BLEU", BLEU(tokenize="none" if lowercase_tokenised else "13a")), ("chrF", CHRF())):
        result = metric.corpus_score(list(outputs), [list(references)])
        scores.append(Score(name, float(result.score), str(metric.get_signature()), str(result)))
    return scores


def tutorial_form(text: str) -> str:
    """Lower-cased and cut into words and punctuation, the form in which the well-known tutorials compute BLEU."""
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    return str(Tokenizer13a()(text.lower()))  # type: ignore[no-untyped-call]
