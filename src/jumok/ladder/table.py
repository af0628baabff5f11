"""The one table, and what must be known to read it: for the terminal, as Markdown, and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from jumok.data.readers import files_of
from jumok.ladder import statistics
from jumok.ladder.plan import Plan
from jumok.ladder.results import Results, Row
from jumok.ladder.statistics import Estimate
from jumok.recipe import Recipe, TransformerSection

SMALLEST_P = 0.001
INTERVAL = "95 % of draws"  # of the score before it


def columns(results: Results, tutorial: bool) -> list[str]:
    names = ["rung", "model", "parameters", "updates", "minutes", "tokens/s", "sentences/s", "BLEU", INTERVAL]
    names += ["± seeds"] if any(row.spread is not None for row in results.rows) else []
    names += ["over the rung below"]
    names += ["BLEU lower-cased, tokenised"] if tutorial else []
    return [*names, "chrF", INTERVAL]


def cells(row: Row, names: Sequence[str]) -> list[str]:
    """A row in the order of `columns`."""
    known = {
        "rung": row.rung.title,
        "model": row.model,
        "parameters": f"{row.parameters:,}",
        "updates": f"{row.updates:,.0f}",
        "minutes": "" if row.minutes is None else f"{row.minutes:.1f}",
        "tokens/s": "" if row.tokens_per_second is None else f"{row.tokens_per_second:,.0f}",
        "sentences/s": f"{row.sentences_per_second:,.1f}",
        "BLEU": f"{row.bleu.score:.2f}",
        "± seeds": "" if row.spread is None else f"{row.spread:.2f}",
        "over the rung below": gained(row),
        "BLEU lower-cased, tokenised": f"{row.tutorial:.2f}",
        "chrF": f"{row.chrf.score:.2f}",
    }
    intervals = iter((row.bleu, row.chrf))
    return [_interval(next(intervals)) if name == INTERVAL else known[name] for name in names]


def gained(row: Row) -> str:
    """As in "+3.21, p 0.004"."""
    if row.gain is None or row.p is None:
        return ""
    p = f"p < {SMALLEST_P:g}" if row.p < SMALLEST_P else f"p {row.p:.3f}"
    return f"{row.gain:+.2f}, {p}".replace("-", "−")


def _interval(estimate: Estimate) -> str:
    return f"{estimate.low:.1f}–{estimate.high:.1f}"


def caption(plan: Plan, results: Results) -> list[str]:
    """What is the same for all, what differs, and what the numbers are, each in a sentence or two."""
    seeds = f"{plan.seeds} seed{'s' * (plan.seeds > 1)}"
    recipes = list(plan.recipes.values())
    lines = [f"Budget: {plan.budget} for every rung and seed{_beside(plan, results)}; {seeds}, on {results.device}."]
    lines += _missing(plan, results)
    same = [*_shared(plan.common), *_shared_training(recipes)]
    lines.append(f"The same for all: {'; '.join(same)}.")
    lines.append(
        "What differs: "
        + "; ".join(
            f"{rung.title}: recipe {rung.recipe}, {_own(plan.recipes[rung.name], recipes)}" for rung in plan.rungs
        )
        + "."
    )
    lines.append(
        f"BLEU and chrF on {results.sentences:,} test sentences ("
        + "; ".join(f"{name} {signature}" for name, signature in results.signatures.items())
        + f"). Intervals: {statistics.CONFIDENCE:.0%} of {statistics.SAMPLES:,} bootstrap draws of the test sentences, "
        "the same draws for all. p: two-sided paired bootstrap against the rung below (Koehn 2004); it speaks of other "
        "test sentences, "
        + ("± of other seeds." if plan.seeds > 1 else "and with one seed nothing speaks of other seeds.")
    )
    lines.append(
        "tokens/s: target words and pieces learned from, in training; sentences/s: translating the test set, after a "
        "warm-up, with nothing else of the ladder running."
    )
    return lines


def _beside(plan: Plan, results: Results) -> str:
    """How many trained side by side, and which had fewer beside them: a minute was worth more to these."""
    counts = [(one.attempt, results.side_by_side.get(one.attempt.name, 1)) for one in results.scored]
    most = max((count for _, count in counts), default=1)
    if most == 1:
        return ""
    fewer = "; ".join(f"{count} for {attempt}" for attempt, count in counts if count < most)
    worth = f" ({fewer}: a minute was worth more to them)" if fewer and plan.budget.minutes is not None else ""
    return f", up to {most} runs side by side on one machine{worth}"


def _missing(plan: Plan, results: Results) -> list[str]:
    """Rungs without all their seeds."""
    seeds = dict.fromkeys(plan.rungs, 0) | {row.rung: len(row.each) for row in results.rows}
    missing = [f"{rung.title} {count} of {plan.seeds}" for rung, count in seeds.items() if count < plan.seeds]
    if not missing:
        return []
    return [
        f"Seeds are missing, because their runs failed: {', '.join(missing)}. A mean is over the seeds that there are; "
        "a rung is compared with the one below it in the table on the seeds that both have."
    ]


def _shared(recipe: Recipe) -> list[str]:
    tokenizer, search, data = recipe.tokenizer, recipe.search, recipe.data
    corpora = ", ".join(
        f"{corpus.pairs:,} pairs of the embedded grammar ({corpus.grammar})"
        if corpus.grammar
        else " + ".join(" → ".join(Path(file).name for file in side_by_side) for side_by_side in files_of(corpus))
        for corpus in data.train
    )
    joint = "one vocabulary for both languages" if tokenizer.joint else "a vocabulary for each language"
    return [
        f"data ({corpora})",
        f"tokenizer ({tokenizer.kind}, {joint}, at most {tokenizer.vocabulary:,} tokens)",
        f"search (beam {search.beam}, length penalty {search.length_penalty:g})",
    ]


_TRAINING = {  # keys that are worth a word in a caption, where all agree on them
    "batch_tokens": "batches of {:,} tokens",
    "label_smoothing": "label smoothing {:g}",
    "metric": "checkpoint chosen by {} on held-out data",
}


def _shared_training(recipes: Sequence[Recipe]) -> list[str]:
    found = {key: [getattr(recipe.training, key) for recipe in recipes] for key in _TRAINING}
    return [_TRAINING[key].format(values[0]) for key, values in found.items() if len(set(values)) == 1]


def _own(recipe: Recipe, recipes: Sequence[Recipe]) -> str:
    training, model = recipe.training, recipe.model
    parts = [f"width {model.width}", _layers(recipe)]
    parts += [f"positions {model.position}"] if isinstance(model, TransformerSection) else []
    parts += [f"dropout {getattr(model, 'dropout', 0):g}", f"rate {training.learning_rate:g}"]
    if len({one.training.schedule for one in recipes}) > 1:
        parts.append(training.schedule)
    if len({one.training.batch_tokens for one in recipes}) > 1:
        parts.append(f"batches of {training.batch_tokens:,}")
    parts += [f"R-Drop {training.r_drop:g}"] if training.r_drop else []
    parts += [f"averaged weights (EMA {training.ema:g})"] if training.ema else []
    return ", ".join(parts)


def _layers(recipe: Recipe) -> str:
    """As in "2 layers", in encoder and decoder each, or "6 + 3 layers"."""
    model = recipe.model
    if isinstance(model, TransformerSection):
        return f"{model.encoder_layers} + {model.decoder_layers} layers"
    return f"{model.layers} layer{'s' * (model.layers > 1)}"


def as_rich(results: Results, tutorial: bool) -> Table:
    """For the terminal."""
    names = columns(results, tutorial)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in names:
        table.add_column(Text(name), justify="left" if name in ("rung", "model") else "right")
    for row in results.rows:
        table.add_row(*(Text(cell) for cell in cells(row, names)))
    return table


def as_markdown(plan: Plan, results: Results, tutorial: bool) -> str:
    """As a file that others can paste."""
    names = columns(results, tutorial)
    rules = ["---" if name in ("rung", "model") else "---:" for name in names]
    rows = [names, rules, *(cells(row, names) for row in results.rows)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, "", *(f"- {line}" for line in caption(plan, results))]) + "\n"
