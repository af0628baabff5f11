"""The report that every training run ends with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jumok import recipe as recipes
from jumok.inspect.forced import forced_attention
from jumok.inspect.report import Translated, write_report
from jumok.recipe import Recipe
from jumok.tasks.translator import Translator
from jumok.training.run import RunFolder

SHOWN, DRAWN = 10, 3


def write_run_report(
    translator: Translator, recipe: Recipe, run: RunFolder, sources: Sequence[str], references: Sequence[str]
) -> Path:
    """Curves, some translations of the validation set beside their references, and what the model looked at."""
    sources = list(sources[:SHOWN])
    found = [best[0] for best in translator.nbest(sources, too_long="truncate")]
    pictures = []
    if translator.model.attends:
        drawn = [n for n, best in enumerate(found) if best.ids][:DRAWN]
        texts, ids = [sources[n] for n in drawn], [found[n].ids for n in drawn]
        pictures = forced_attention(translator, texts, ids, ended=[found[n].finished for n in drawn])
    rows = [
        Translated(source, best.text, reference)
        for source, best, reference in zip(sources, found, references, strict=False)
    ]
    write_report(run.report, f"jumok: {run.path.name}", recipes.dump(recipe), run.events(), rows, pictures)
    return run.report
