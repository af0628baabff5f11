"""An attempt on the test set: its translations, their scores, how fast they came, and what it looked at."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jumok.files import disk_errors_named, replace_file
from jumok.inspect.attention import Attention
from jumok.ladder.statistics import bleu, bleu_counts
from jumok.tasks.metrics import corpus_scores
from jumok.training.run import RunFolder

FORMAT = 2
WARM = 32  # sentences translated before the clock starts: memory is claimed, kernels are chosen
DRAWN = 2  # sentences whose attention is shown
READABLE = range(5, 13)  # words of a sentence that can be seen whole


def translations_file(run: RunFolder) -> Path:
    return run.path / "test.txt"


def score_file(run: RunFolder) -> Path:
    return run.path / "test.json"


def read_score(run: RunFolder) -> dict[str, Any] | None:
    """What was found, where all of it is there: a score without its translations is made again."""
    try:
        found = json.loads(score_file(run).read_text(encoding="utf-8"))
        whole = isinstance(found, dict) and found.get("format") == FORMAT
        return found if whole and len(read_translations(run)) == found.get("sentences") else None
    except (OSError, ValueError):
        return None


def read_translations(run: RunFolder) -> list[str]:
    return translations_file(run).read_text(encoding="utf-8").split("\n")[:-1]


def read_attention(found: dict[str, Any]) -> dict[int, Attention]:
    """By the place of the sentence in the test set: one that was translated by nothing has no picture."""
    return {one["sentence"]: Attention.from_json(json.dumps(one)) for one in found["attention"]}


def drawn_sentences(sources: Sequence[str], count: int = DRAWN) -> list[int]:
    """Which test sentences are shown: the first of a length that can be seen whole, else the shortest."""
    readable = [place for place, text in enumerate(sources) if len(text.split()) in READABLE]
    others = sorted(
        (place for place, text in enumerate(sources) if text.strip()), key=lambda p: len(sources[p].split())
    )
    return (readable or others)[:count]


def tutorial_bleu(outputs: Sequence[str], references: Sequence[str]) -> float:
    """BLEU of lower-cased, tokenised text, as the well-known tutorials compute it (`metrics.tutorial_form`)."""
    counts = bleu_counts([text.lower() for text in outputs], [text.lower() for text in references])
    return float(bleu(counts.sum(axis=0)))


def score(run: RunFolder, pairs: Sequence[tuple[str, str]], device: str) -> dict[str, Any]:
    """Translate the test set as the run's recipe searches; write test.txt and, last, test.json."""
    from jumok import api

    model = api.load_translator(run.path, device)
    sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    model.translate(sources[:WARM], too_long="truncate")
    began = time.perf_counter()
    found = [best[0] for best in model.nbest(sources, too_long="truncate")]
    seconds = time.perf_counter() - began
    outputs = [" ".join(best.text.splitlines()) for best in found]
    drawn = [place for place in drawn_sentences(sources) if found[place].ids]
    pictures: dict[int, Attention] = {}
    if model.model.attends and drawn:
        scores = [found[place].log_probability for place in drawn]
        ended = [found[place].finished for place in drawn]
        attentions = model.attentions(
            [sources[p] for p in drawn], [found[p].ids for p in drawn], scores=scores, ended=ended
        )
        pictures = dict(zip(drawn, attentions, strict=True))
    result = {
        "format": FORMAT,
        "sentences": len(pairs),
        "scores": [one.to_json() for one in corpus_scores(outputs, references)],
        "tutorial": tutorial_bleu(outputs, references),
        "sentences_per_second": len(pairs) / max(seconds, 1e-9),
        "device": str(model.device),
        "parameters": sum(parameter.numel() for parameter in model.model.parameters()),
        "attention": [{"sentence": place, **picture.as_dictionary()} for place, picture in pictures.items()],
    }
    with disk_errors_named("writing the scores", run.path, "Free some space and start again."):
        replace_file(translations_file(run), "".join(f"{line}\n" for line in outputs))
        replace_file(score_file(run), json.dumps(result, ensure_ascii=False) + "\n")
    return result
