"""A test set translated and scored."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jumok.api import TrainedTranslator
from jumok.data.pharaoh import read_pharaoh
from jumok.data.readers import read_pairs
from jumok.errors import BadInput
from jumok.inspect.alignment import AlignmentScore, alignment_error_rate, check_range
from jumok.inspect.forced import word_links
from jumok.recipe import Corpus
from jumok.tasks.metrics import Score, corpus_scores


@dataclass(frozen=True)
class Evaluation:
    sentences: int
    outputs: list[str]
    scores: list[Score]
    alignment: AlignmentScore | None = None
    tutorial: list[Score] = field(default_factory=list)
    cut: int = 0  # sentences over the model's limit, translated only as far as it

    def to_json(self) -> dict[str, Any]:
        result: dict[str, Any] = {
            "sentences": self.sentences,
            "cut": self.cut,
            "scores": [score.to_json() for score in self.scores],
        }
        if self.tutorial:
            result["tutorial"] = [score.to_json() for score in self.tutorial]
        if self.alignment is not None:
            result["alignment"] = self.alignment.to_json()
        return result

    def summary(self) -> str:
        cut = f" ({self.cut} cut at the model's limit)" if self.cut else ""
        lines = [f"{self.sentences} sentences{cut}", *map(str, self.scores)]
        lines += [f"{score} (lower-cased, tokenised)" for score in self.tutorial]
        if self.alignment is not None:
            lines.append(str(self.alignment))
        return "\n".join(lines)


def evaluate(
    model: TrainedTranslator,
    source: Path,
    reference: Path,
    gold: Path | None = None,
    *,
    one_based: bool = False,
    beam: int | None = None,
    tutorial: bool = False,
) -> Evaluation:
    """BLEU and chrF of the model's translations; with gold alignments, the error rate of its attention.

    The attention is that of the reference translation (the one that the gold alignments speak of).
    """
    if gold is not None and not model.model.attends:
        raise BadInput("--alignments: this model has no attention to compare. Leave the option out to score it.")
    pairs = list(read_pairs(Corpus(source=[str(source)], target=[str(reference)])))
    sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    # first, because a gold file that does not fit should be refused before the long work of translating
    alignment = None if gold is None else evaluate_alignments(model, sources, references, gold, one_based)
    outputs = model.translate(sources, beam=beam, too_long="truncate")
    return Evaluation(
        len(pairs),
        outputs,
        corpus_scores(outputs, references),
        alignment,
        corpus_scores(outputs, references, lowercase_tokenised=True)[:1] if tutorial else [],
        sum(len(row) > model.max_length for row in model.source.encode(sources)),
    )


def evaluate_alignments(
    model: TrainedTranslator, sources: list[str], references: list[str], gold: Path, one_based: bool = False
) -> AlignmentScore:
    """Each reference word linked to the source word it attends to most, against the gold links."""
    truth = read_pharaoh(gold, one_based)
    if len(truth) != len(sources):
        raise BadInput(f"{gold} has {len(truth)} lines, but there are {len(sources)} sentences: they must pair up")
    for number, ((sure, possible), source, reference) in enumerate(zip(truth, sources, references, strict=True), 1):
        check_range(sure | possible, len(source.split()), len(reference.split()), f"{gold}, line {number}")
    predicted = word_links(model, sources, references)
    return alignment_error_rate(predicted, [sure for sure, _ in truth], [possible for _, possible in truth])
