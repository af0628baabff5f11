"""A test set translated and scored."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jumok.api import TrainedTranslator
from jumok.data.readers import read_pairs
from jumok.errors import BadInput
from jumok.inspect.alignment import AlignmentScore, read_gold
from jumok.inspect.heads import score_views
from jumok.inspect.view import View, every_view
from jumok.recipe import Corpus
from jumok.tasks.metrics import Score, corpus_scores


@dataclass(frozen=True)
class Aligned:
    """How good the word alignments of one view of a model's attention are, and of the best one it has."""

    score: AlignmentScore
    name: str  # of the view; empty where the model has only one
    best: View
    best_name: str
    best_score: AlignmentScore

    def to_json(self) -> dict[str, Any]:
        best = {"layer": self.best.layer, "head": self.best.head, "view": self.best_name, **self.best_score.to_json()}
        return {"view": self.name, "best": best}

    def lines(self) -> list[str]:
        options = f"--alignment-layer {self.best.layer}"
        if self.best.head is not None:
            options += f" --alignment-head {self.best.head}"
        return [
            f"    of {self.name}",
            f"    best on these very alignments: {self.best_name}, AER {self.best_score.error_rate:.4f} ({options})",
        ]


@dataclass(frozen=True)
class Evaluation:
    sentences: int
    outputs: list[str]
    scores: list[Score]
    alignment: AlignmentScore | None = None
    tutorial: list[Score] = field(default_factory=list)
    cut: int = 0  # sentences over the model's limit, translated only as far as it
    aligned: Aligned | None = None  # where the links were read from, and where they would have been better

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
        if self.aligned is not None:
            result["alignment"] |= self.aligned.to_json()
        return result

    def summary(self) -> str:
        cut = f" ({self.cut} cut at the model's limit)" if self.cut else ""
        lines = [f"{self.sentences} sentences{cut}", *map(str, self.scores)]
        lines += [f"{score} (lower-cased, tokenised)" for score in self.tutorial]
        if self.alignment is not None:
            lines.append(str(self.alignment))
        if self.aligned is not None:
            lines += self.aligned.lines()
        return "\n".join(lines)


def evaluate(
    model: TrainedTranslator,
    source: Path,
    reference: Path,
    gold: Path | None = None,
    *,
    one_based: bool = False,
    tutorial: bool = False,
    layer: int | None = None,
    head: int | None = None,
    **wishes: Any,
) -> Evaluation:
    """BLEU and chrF of the model's translations; with gold alignments, the error rate of its attention.

    `wishes` say how to translate, as for `Translator.translate`.

    The attention is that of the reference translation (the one that the gold alignments speak of). Of a Transformer it
    is one layer's, and one head's if asked for; which of them would have been best on these alignments is told too.
    """
    if gold is not None and not model.model.attends:
        raise BadInput("--alignments: this model has no attention to compare. Leave the option out to score it.")
    pairs = list(read_pairs(Corpus(source=[str(source)], target=[str(reference)])))
    sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    # first, because a gold file that does not fit should be refused before the long work of translating
    aligned = None if gold is None else evaluate_alignments(model, sources, references, gold, one_based, layer, head)
    outputs = model.translate(sources, **{"too_long": "truncate", **wishes})
    return Evaluation(
        len(pairs),
        outputs,
        corpus_scores(outputs, references),
        None if aligned is None else aligned.score,
        corpus_scores(outputs, references, lowercase_tokenised=True)[:1] if tutorial else [],
        sum(len(row) > model.max_length for row in model.source.encode(sources)),
        aligned if aligned is not None and aligned.name else None,
    )


def evaluate_alignments(
    model: TrainedTranslator,
    sources: list[str],
    references: list[str],
    gold: Path,
    one_based: bool = False,
    layer: int | None = None,
    head: int | None = None,
) -> Aligned:
    """Each reference word linked to the source word it attends to most, against the gold links."""
    truth = read_gold(gold, sources, references, one_based)
    views = [View(layer, head), *every_view(model.model)]
    score, *others = score_views(model, sources, references, truth, views)
    best = min(range(len(others)), key=lambda place: others[place].error_rate)
    return Aligned(score, views[0].name(model.model), views[1 + best], views[1 + best].name(model.model), others[best])
