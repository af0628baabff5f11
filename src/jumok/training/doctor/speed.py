"""What will be slow, and why: told from what was measured where it can be, else from what the recipe says."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch

from jumok.layers.products import suits
from jumok.recipe import Recipe, Seq2SeqSection, TransformerSection
from jumok.training.doctor.findings import Report

LONG = 20 * 60.0  # seconds: a run for which a minute of compiling pays
VERY_LONG = 24 * 3600.0
MUCH_PADDING, MUCH_VALIDATING, MUCH_PREPARING = 0.15, 0.2, 0.1
LOW_MFU = 0.1
WORTH_THREADS = 0.1  # seconds of an update


@dataclass(frozen=True)
class Measured:
    """Seconds, and shares of them."""

    device: str
    precision: str
    threads: int
    update: float
    preparing: float
    validation: float | None
    mfu: float | None
    padding: float | None
    total: float


def check_speed(recipe: Recipe, measured: Measured, report: Report, fits: int | None) -> None:
    """`fits`: the largest batch that fits, where it is known."""
    training = recipe.training
    if measured.device == "cuda":
        _on_gpu(recipe, measured, report)
    else:
        _on_cpu(recipe, measured, report)

    def slow(what: str, where: str, todo: str, bad: bool = True) -> None:
        report.add("warning" if bad else "note", "speed", what, where, todo)

    if measured.padding is not None and measured.padding > MUCH_PADDING:
        slow(
            f"{measured.padding:.0%} of what is computed is padding",
            f"training.{recipe.batch_key}={recipe.batch_size}, data.max_length={recipe.data.max_length}",
            f"{'' if training.align else 'training.pack=true (Transformers), or '}smaller batches: their sentences are "
            "more alike",
        )
    if measured.validation is not None:
        share = measured.validation / (measured.validation + training.validate_every * measured.update)
        if share > MUCH_VALIDATING:
            slow(
                f"{share:.0%} of the time goes into validation (at most: a model that has learned stops earlier)",
                f"training.validate_every={training.validate_every}, "
                f"training.validate_sentences={training.validate_sentences}",
                "validate less often, or on fewer sentences",
            )
    if measured.preparing > MUCH_PREPARING and measured.device == "cpu":
        slow(
            f"{measured.preparing:.0%} of an update is spent on preparing its batch",
            "training.bpe_dropout" if training.bpe_dropout else "the token store",
            "put the cache on a faster disk (JUMOK_CACHE)" if not training.bpe_dropout else "turn it off, or accept it",
            bad=False,
        )
    if training.accumulate > 1 and fits is not None and fits >= training.accumulate * recipe.batch_size:
        slow(
            f"{training.accumulate} batches make an update, but one of their size fits into memory",
            f"training.accumulate={training.accumulate}",
            f"training.accumulate=1 training.{recipe.batch_key}={training.accumulate * recipe.batch_size}",
            bad=measured.device == "cuda",
        )
    if training.checkpoint_activations and fits is not None and fits >= 3 * recipe.batch_size:
        slow(
            "activations are computed twice, though there is memory for them",
            "training.checkpoint_activations=true",
            f"turn it off, or raise training.{recipe.batch_key}",
        )
    _model(recipe, slow)


def _model(recipe: Recipe, slow: object) -> None:
    assert callable(slow)
    model = recipe.model
    if getattr(model, "written_out", False):
        slow("the cells are computed from their equations", "model.written_out=true", "leave it out for real training")
    if isinstance(model, Seq2SeqSection) and (model.attention == "bahdanau" or model.input_feeding):
        which = "bahdanau attention" if model.attention == "bahdanau" else "input feeding"
        slow(
            f"{which} computes the target word by word: each step waits for the one before",
            f"model.attention={model.attention}, model.input_feeding={str(model.input_feeding).lower()}",
            "nothing, if that is what you want; luong attention without input feeding computes all words at once",
            bad=False,
        )
    if recipe.training.teacher_forcing < 1:
        slow(
            "scheduled sampling computes the target word by word",
            f"training.teacher_forcing={recipe.training.teacher_forcing:g}",
            "nothing, if that is what you want; 1 computes all words at once",
            bad=False,
        )


def _on_gpu(recipe: Recipe, measured: Measured, report: Report) -> None:
    training = recipe.training
    if measured.precision == "float32":
        has_it = torch.cuda.is_bf16_supported(including_emulation=False)
        todo = "training.precision=auto" if has_it else "this GPU has no bfloat16; training.precision=float16"
        what = "matrix products in float32: a GPU does several times as many in 16 bits"
        report.add("warning", "speed", what, f"training.precision={training.precision}", todo)
    if recipe.exact:
        what = "repeatable kernels, and attention without a fused one"
        report.add(
            "note", "speed", what, "exact=true", "exact=false is faster; a resumed run may differ in the last bits"
        )
    if training.align:
        what = "padded rows, launched one by one: with training.align batches are neither packed, recorded nor compiled"
        report.add("note", "speed", what, f"training.align={training.align:g}", "only as long as alignments are wanted")
    if not training.compile and not training.align and measured.total > LONG:
        what = f"a run of {duration(measured.total)} without torch.compile"
        report.add("note", "speed", what, "training.compile=false", "training.compile=true: a minute once, then faster")
    if measured.mfu is not None and measured.mfu < LOW_MFU:
        what = f"only {measured.mfu:.1%} of the GPU's speed is used: it waits for work to be launched"
        where = f"training.{recipe.batch_key}={recipe.batch_size}"
        todo = "larger batches" if training.align else "larger batches, training.compile=true, training.graphs=auto"
        report.add("warning", "speed", what, where, todo)


def _on_cpu(recipe: Recipe, measured: Measured, report: Report) -> None:
    cores = _cores()
    if recipe.device == "cpu" and torch.cuda.is_available():
        what = "there is a GPU, and it is not used"
        report.add("warning", "speed", what, "device=cpu", "device=auto")
    elif measured.total > VERY_LONG:
        what = f"this takes {duration(measured.total)} on the CPU"
        where = f"training.updates={recipe.training.updates}"
        report.add("warning", "speed", what, where, "a GPU, a smaller model, or fewer updates (--minutes sets them)")
    if measured.threads < cores and measured.update > WORTH_THREADS:
        named = "OMP_NUM_THREADS" if recipe.threads == 0 and "OMP_NUM_THREADS" in os.environ else "threads"
        what = f"{measured.threads} of {cores} cores are used"
        report.add(
            "warning", "speed", what, f"{named}={measured.threads}", "threads=0 takes all (unset OMP_NUM_THREADS)"
        )
    elif measured.threads > cores:
        what = f"{measured.threads} threads share {cores} cores and wait for each other"
        report.add("warning", "speed", what, f"threads={measured.threads}", f"threads={cores}")
    if measured.precision == "float32" and measured.total > LONG and _multiplies_bfloat16(recipe):
        what = "this processor multiplies bfloat16 numbers much faster than float32"
        where = f"training.precision={recipe.training.precision}"
        report.add("note", "speed", what, where, "training.precision=bfloat16; watch that the loss is as good")


def _multiplies_bfloat16(recipe: Recipe) -> bool:
    """Only Transformers gain from it: recurrent kernels have no such numbers here."""
    return isinstance(recipe.model, TransformerSection) and suits(torch.empty(0, dtype=torch.bfloat16))


def _cores() -> int:
    """Those that this process may use, where the system says."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable is not None else os.cpu_count() or 1


def duration(seconds: float) -> str:
    """Time for people: 23 ms, 40 s, 12 min, 3.5 h, 2.1 days."""
    if seconds < 0.95:
        return f"{1000 * seconds:.3g} ms"
    for size, unit in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} min" if unit == "min" else f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
