"""What a user types in a notebook: `load()`, `train()`, and the object they give."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn

from jumok import recipe as recipes
from jumok.data.series import Column, Series, read_series
from jumok.errors import BadInput, Failure
from jumok.files import disk_errors_named
from jumok.inspect.attention import Attention
from jumok.inspect.forced import forced_attention
from jumok.inspect.view import View
from jumok.models.build import build
from jumok.models.forecaster import Forecaster
from jumok.models.language import build_language_model
from jumok.recipe import ForecasterSection, Recipe
from jumok.tasks.engine import Engine
from jumok.tasks.forecasting import ForecastingTask
from jumok.tasks.generator import Generator
from jumok.tasks.language import LanguageTask
from jumok.tasks.objective import Task
from jumok.tasks.series_forecaster import SeriesForecaster, has_series, load_series, save_series
from jumok.tasks.translation import TranslationTask
from jumok.tasks.translator import Translator
from jumok.tasks.vocabulary import load_tokenizers, save_tokenizers
from jumok.text.tokenizer import Tokenizer
from jumok.training import checkpoint, meeting
from jumok.training.building import build_together, check
from jumok.training.device import choose_device, repeatable
from jumok.training.distributed import Ranks
from jumok.training.events import ConsoleProgress, Events, MetricsFile, Sink, TensorBoard, WeightsAndBiases
from jumok.training.loop import Loop
from jumok.training.resuming import recipe_to_train, restored
from jumok.training.run import RunFolder
from jumok.training.state import TrainState

Say = Callable[[str], None]


def warn(message: str) -> None:
    print(message, file=sys.stderr)


class TrainedTranslator(Translator):
    """A run folder, loaded: it translates, and shows what it attended to."""

    recipe: Recipe
    run: RunFolder

    def together(self, others: Sequence[TrainedTranslator], precision: str = "float32") -> TrainedTranslator:
        """A translator that averages the probabilities of this run and others; attention is shown of this one alone."""
        chosen = copy(self)
        chosen.models = (*self.models, *(model for other in others for model in other.models))
        chosen.max_length = min(self.max_length, *(other.max_length for other in others)) if others else self.max_length
        chosen.engine = Engine(chosen.models, self.device, precision, fast=True)
        return chosen

    def attend(
        self,
        sentence: str,
        target: str | None = None,
        words: bool = True,
        *,
        layer: int | None = None,
        head: int | None = None,
        kind: str = "cross",
    ) -> Attention:
        """What the model looked at while writing its own translation, or the given one.

        Of a Transformer, a layer and a head (counted from 0) may be chosen, and `kind` "self" (the source at itself) or
        "causal" (the translation at its own past). Without them: the second to last layer, the mean over its heads.
        """
        if not isinstance(sentence, str) or not isinstance(target, str | None):
            raise BadInput("attend() takes one sentence, and at most one translation of it, as text")
        if not sentence.strip():
            raise BadInput("the sentence is empty: there is nothing to look at")
        view = View(layer, head, kind)
        view.tap(self.model)  # what does not exist is refused before any work
        self.refuse_long([sentence])
        if target is None:
            best = self.nbest([sentence])[0][0]
            return self.attentions([sentence], [best.ids], words, [best.log_probability], view, [best.finished])[0]
        return self.attentions([sentence], [target], words, view=view)[0]

    def attentions(
        self,
        sentences: Sequence[str],
        targets: Sequence[str] | Sequence[Sequence[int]],
        words: bool = True,
        scores: Sequence[float | None] | None = None,
        view: View | None = None,
        ended: Sequence[bool] | None = None,
    ) -> list[Attention]:
        """Attention for given translations (texts or token ids), by words or by tokens.

        `ended`: False for those that were cut where the model would have gone on; they have no `<eos>`.
        """
        return forced_attention(self, sentences, targets, words, scores, view, ended)


class TrainedLanguageModel(Generator):
    """A run folder of a language model, loaded: it writes, and measures texts."""

    recipe: Recipe
    run: RunFolder


class TrainedForecaster(SeriesForecaster):
    """A run folder of a forecaster, loaded: it continues series, and scores itself beside naive forecasts."""

    recipe: Recipe
    run: RunFolder

    def read(self, files: Sequence[str | Path], column: Column | None = None, time: Column | None = None) -> Series:
        """A series from CSV files; the columns are the recipe's where none are named."""
        section = self.recipe.data.series
        assert section is not None
        return read_series(files, section.column if column is None else column, section.time if time is None else time)


def load(folder: str | Path | None = None, device: str = "auto", say: Say = warn) -> Any:
    """A trained run: the best checkpoint, or the newest good one. Without a folder, the run in the package.

    What it gives follows from the run's task: a translation run gives a `TrainedTranslator`, a language
    model a `TrainedLanguageModel`, a forecaster a `TrainedForecaster`.
    """
    run = RunFolder.open(packaged_run() if folder is None else Path(folder))
    recipe = run.recipe()
    return LOADERS[recipe.task](run, recipe, choose_device(device), say)


def task_of(folder: str | Path) -> str:
    """What a run has learned, before anything of it is loaded."""
    return RunFolder.open(Path(folder)).recipe().task


def load_translator(
    folder: str | Path | Sequence[str | Path] | None = None,
    device: str = "auto",
    say: Say = warn,
    precision: str = "float32",
) -> TrainedTranslator:
    """As `load`, for who needs a translator; a run of another task is refused in words.

    Several folders give an ensemble: one translator that averages the probabilities of all of them.
    """
    folders = list(folder) if isinstance(folder, Sequence) and not isinstance(folder, str) else [folder]
    models = [load(one, device, say) for one in folders or [None]]
    for one, model in zip(folders, models, strict=False):
        if not isinstance(model, TrainedTranslator):
            raise BadInput(f"{one} is not a translation run but one of task: {model.recipe.task}")
        for side in ("source", "target"):
            if getattr(model, side).fingerprint != getattr(models[0], side).fingerprint:
                raise BadInput(
                    f"{folders[0]} and {one} have different {side} vocabularies, so they cannot translate together: "
                    "train them with the same tokenizer (tokenizer.source, tokenizer.target)"
                )
    first: TrainedTranslator = models[0]
    return first.together(models[1:], precision)


def load_language_model(folder: str | Path, device: str = "auto", say: Say = warn) -> TrainedLanguageModel:
    """As `load`, for who needs a language model."""
    model = load(folder, device, say)
    if not isinstance(model, TrainedLanguageModel):
        raise BadInput(f"{folder} is not a language model but a run of task: {model.recipe.task}")
    return model


def load_forecaster(folder: str | Path, device: str = "auto", say: Say = warn) -> TrainedForecaster:
    """As `load`, for who needs a forecaster."""
    model = load(folder, device, say)
    if not isinstance(model, TrainedForecaster):
        raise BadInput(f"{folder} is not a forecaster but a run of task: {model.recipe.task}")
    return model


def load_weights(
    run: RunFolder, model: nn.Module, device: torch.device, say: Say, vocabularies: Mapping[str, int] | None = None
) -> None:
    """The best (or newest good) checkpoint into a model, ready to be used on the device.

    `vocabularies` are the sizes of the run's tokenizers, for a word about those that do not belong to the weights.
    """
    found = checkpoint.newest_good(run, say, prefer="best")
    if found is None:
        raise BadInput(f"{run.path} has no checkpoint yet. Go on with: jumok train --resume --run {run.path}")
    weights = load_file(found / checkpoint.MODEL)
    _check_vocabularies(run, model, weights, vocabularies or {})
    checkpoint.load_weights(model, {name: tensor.float() for name, tensor in weights.items()}, str(found))
    model.to(device).eval()


def _check_vocabularies(
    run: RunFolder, model: nn.Module, weights: Mapping[str, torch.Tensor], sizes: Mapping[str, int]
) -> None:
    """Word vectors for another number of words: the tokenizer was exchanged."""
    for name, parameter in model.state_dict().items():
        rows = len(weights[name]) if name in weights and weights[name].dim() else 0
        for side, size in sizes.items():
            if rows and rows != size == len(parameter) and weights[name].shape[1:] == parameter.shape[1:]:
                raise BadInput(
                    f"{run.path}: the model has a vocabulary of {rows} tokens ({name}), but the tokenizer in "
                    f"{run.tokenizer / side} has {size}. They do not belong together: put the run's own tokenizer back"
                )


def _load_translator(run: RunFolder, recipe: Recipe, device: torch.device, say: Say) -> TrainedTranslator:
    source, target = load_tokenizers(run.tokenizer, recipe.tokenizer.joint)
    model = build(recipe.model, source.size, target.size)
    load_weights(run, model, device, say, {"source": source.size, "target": target.size})
    translator = TrainedTranslator(model, source, target, recipe.search, recipe.data.max_length, device)
    translator.recipe, translator.run = recipe, run
    return translator.together([])


def _report_translation(model: TrainedTranslator, recipe: Recipe, folder: RunFolder, task: TranslationTask) -> None:
    from jumok.inspect.run_report import write_run_report  # matplotlib: not for who only resumes

    write_run_report(model.tagged(task.held[0].corpus.tag), recipe, folder, *task.shown[0])


def _load_language_model(run: RunFolder, recipe: Recipe, device: torch.device, say: Say) -> TrainedLanguageModel:
    tokenizer = Tokenizer.load(run.tokenizer / "text")
    model = build_language_model(recipe.model, tokenizer.size)
    load_weights(run, model, device, say, {"text": tokenizer.size})
    loaded = TrainedLanguageModel(model, tokenizer, recipe.data.window, device)
    loaded.recipe, loaded.run = recipe, run
    return loaded


def _report_language(model: TrainedLanguageModel, recipe: Recipe, folder: RunFolder, task: LanguageTask) -> None:
    from jumok.inspect.language_report import write_language_report

    write_language_report(model, recipe, folder, task.opening())


def _load_forecaster(run: RunFolder, recipe: Recipe, device: torch.device, say: Say) -> TrainedForecaster:
    assert isinstance(recipe.model, ForecasterSection)
    series, layout = load_series(run.path)
    model = Forecaster(recipe.model, layout.window, layout.horizon)
    load_weights(run, model, device, say)
    forecaster = TrainedForecaster(model, series, layout, device)
    forecaster.recipe, forecaster.run = recipe, run
    return forecaster


def _report_forecast(model: TrainedForecaster, recipe: Recipe, folder: RunFolder, task: ForecastingTask) -> None:
    from jumok.inspect.forecast_report import write_forecast_report

    write_forecast_report(model, recipe, folder)


# By task: how a run is loaded, and how its report is written
LOADERS: dict[str, Callable[[RunFolder, Recipe, torch.device, Say], Any]] = {
    "translation": _load_translator,
    "language": _load_language_model,
    "forecasting": _load_forecaster,
}
REPORTS: dict[str, Callable[[Any, Recipe, RunFolder, Any], None]] = {
    "translation": _report_translation,
    "language": _report_language,
    "forecasting": _report_forecast,
}


def packaged_run() -> Path:
    """The small trained run that the package carries (English→French, the embedded grammar)."""
    path = Path(str(resources.files("jumok") / "pretrained" / "en-fr"))
    if not path.is_dir():
        raise Failure("this installation carries no trained run: give one with --run DIR")
    return path


def train(
    recipe: Recipe | str | None,
    run: str | Path,
    overrides: Sequence[str] = (),
    *,
    resume: bool = False,
    minutes: float | None = None,
    sinks: Sequence[Sink] = (),
    quiet: bool = False,
    report: bool = True,
) -> Any:
    """Train a recipe (or its name, with `key=value` overrides) into a run folder, or go on with one; then load it.

    Processes that torchrun has started train together: the first of them gets the model, the others None.
    """
    if minutes is not None and not 0 < minutes < math.inf:
        raise BadInput(f"--minutes {minutes:g}: give a time above zero")
    given = recipes.read(recipe, overrides) if isinstance(recipe, str) else recipe
    folder = RunFolder(Path(run))
    with meeting.joined() as ranks, ExitStack() as held:
        say = ranks.quiet((lambda message: None) if quiet else warn)
        ranks.same(recipe=given and given.model_dump(mode="json"), command=[resume, minutes])
        resume = resume or ranks.first(lambda: meeting.goes_on(folder.path, say))
        chosen = ranks.recipe(lambda: recipe_to_train(given, folder, resume))
        device = choose_device(chosen.device)
        meeting.check_devices(device)
        check(chosen, device, ranks, resume, say)
        threads = held.enter_context(repeatable(chosen.threads, device, chosen.exact))
        saved = folder.tokenizer if resume and folder.tokenizer.is_dir() else None
        task = build_together(chosen, device, say, saved, ranks)
        fresh = TrainState(
            total=None if minutes else chosen.training.updates,
            minutes=minutes,
            threads=threads,
            world=ranks.world,
            data=task.data_keys,
            device=device.type,
        )

        def begin() -> None:
            """Only now, when the data has been read and found good, does the run come into being."""
            held.enter_context(folder.locked(0 if ranks.alone else meeting.LINGERING))
            if not resume:
                RunFolder.create(folder.path, chosen)
                meeting.note_launch(folder.path)
            if saved is None and task.tokenizers:
                with disk_errors_named("saving the tokenizers", folder.path, "Free some space and start again."):
                    save_tokenizers(folder.tokenizer, dict(task.tokenizers))
            if isinstance(task, ForecastingTask) and not has_series(folder.path):
                save_series(folder.path, task.series, task.layout)

        ranks.first(begin)
        _run(task, chosen, folder, fresh, device, resume, sinks, say, quiet, ranks)
        if ranks.rank:
            return None
        model = load(folder.path, device.type, say)
        if report and not folder.report.exists():
            REPORTS[chosen.task](model, chosen, folder, task)
    return model


def _run(
    task: Task,
    recipe: Recipe,
    folder: RunFolder,
    fresh: TrainState,
    device: torch.device,
    resume: bool,
    sinks: Sequence[Sink],
    say: Say,
    quiet: bool,
    ranks: Ranks,
) -> None:
    """The training itself, from the newest good checkpoint or from the start. One process writes and tells."""
    with Events([]) as events:
        loop = Loop(task, recipe, folder, device, fresh, events, ranks)
        found = checkpoint.newest_good(folder, say, ranks=ranks) if resume else None
        if found is not None:
            loop.state = restored(loop.restore(found), fresh, say)
        if ranks.rank:
            if not loop.state.stopped:
                loop.go()
            return
        if found is not None:
            checkpoint.repair_pointers(folder, loop.state)
        checkpoint.discard_unfinished(folder)
        if loop.state.stopped:
            say(f"this run is complete: {loop.state.stopped}")
            return
        events.sinks.append(MetricsFile(folder.metrics, loop.state.metrics_bytes))
        if recipe.training.tensorboard:
            events.sinks.append(TensorBoard(folder.path / "tensorboard", loop.state.update))
        if recipe.training.wandb:
            events.sinks.append(WeightsAndBiases(folder.path, recipe.model_dump(mode="json")))
        if not quiet:
            parameters = sum(p.numel() for p in loop.objective.parameters())
            threads = f"{fresh.threads} thread{'s' * (fresh.threads > 1)}"
            together = "" if ranks.alone else f"{ranks.world} processes, each "
            say(f"{parameters:,} parameters on {together}{device} ({threads}), {task.sizes()}")
            events.sinks.append(ConsoleProgress(loop.state.total, loop.state.update, task.objective.counted))
        if loop.state.total is None:
            say("measuring the speed of the first updates …")
        events.sinks.extend(sinks)
        folder.report.unlink(missing_ok=True)  # an older one would speak of an earlier state
        state = loop.go()
        if state.total is None or state.update < state.total:
            say(f"stopped early after update {state.update}: {state.stopped}")
