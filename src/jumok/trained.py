"""Runs, loaded: what each task's run is good for, how it is put together from its folder, how its report is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file
from torch import nn

from jumok.data.series import Column, Series, read_series
from jumok.errors import BadInput
from jumok.inspect.attention import Attention
from jumok.inspect.forced import forced_attention
from jumok.inspect.view import View
from jumok.models.bert import Bert, HiddenWords
from jumok.models.build import build
from jumok.models.forecaster import Forecaster
from jumok.models.language import build_language_model
from jumok.models.reader import TextLabeller, WordLabeller
from jumok.models.recognizer import build_recognizer
from jumok.models.vit import ImageLabeller
from jumok.recipe import (
    BertSection,
    ForecasterSection,
    Recipe,
    RecognizerSection,
    RecurrentReaderSection,
    VitSection,
)
from jumok.recipe.whole import LABELLED
from jumok.tasks.answerer import Answerer, AnswerLimits
from jumok.tasks.classifier import Classifier, Text
from jumok.tasks.embedder import Pooling, embed
from jumok.tasks.engine import Engine
from jumok.tasks.example_task import LABELS
from jumok.tasks.filler import Filler
from jumok.tasks.forecasting import ForecastingTask
from jumok.tasks.generator import Generator
from jumok.tasks.image_classifier import ImageClassifier
from jumok.tasks.labelling import Numbers, answers_of, classes_of, numbers_of, read_labels
from jumok.tasks.language import LanguageTask
from jumok.tasks.recognition import CHARSET, RecognitionTask, read_charset
from jumok.tasks.series_forecaster import SeriesForecaster, load_series
from jumok.tasks.tagger import Tagger
from jumok.tasks.text_reader import TextReader
from jumok.tasks.translation import TranslationTask
from jumok.tasks.translator import Translator
from jumok.tasks.vision import VisionTask
from jumok.tasks.vocabulary import load_tokenizers
from jumok.text.tokenizer import Tokenizer
from jumok.training import checkpoint
from jumok.training.run import RunFolder

Say = Callable[[str], None]


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


class TrainedReader:
    """What all loaded runs that read texts have in common."""

    recipe: Recipe
    run: RunFolder
    model: Any
    tokenizer: Tokenizer
    device: torch.device

    @property
    def reader(self) -> nn.Module:
        found: nn.Module = self.model.reader
        return found

    def embed(
        self, texts: Sequence[Text], pooling: Pooling = "mean", normalise: bool = True
    ) -> npt.NDArray[np.float32]:
        """(N, D): a vector for each text (see `tasks.embedder.embed`)."""
        return embed(self.reader, self.tokenizer, texts, self.limit, self.device, pooling, normalise)

    @property
    def limit(self) -> int:
        """Tokens that it reads at once."""
        return self.recipe.data.window if self.recipe.task == "pretraining" else self.recipe.data.max_length


class TrainedFiller(TrainedReader, Filler):
    """A pretrained run, loaded: it guesses hidden words, and turns texts into vectors."""


class TrainedClassifier(TrainedReader, Classifier):
    """A run that tells labels or numbers of texts, loaded."""


class TrainedTagger(TrainedReader, Tagger):
    """A run that tags words, loaded."""


class TrainedAnswerer(TrainedReader, Answerer):
    """A run that answers questions, loaded."""


class TrainedImageClassifier(ImageClassifier):
    """A run that tells images apart, loaded."""

    recipe: Recipe
    run: RunFolder


class TrainedTextReader(TextReader):
    """A run that reads words in pictures, loaded."""

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


def load_weights(
    run: RunFolder, model: nn.Module, device: torch.device, say: Say, vocabularies: Mapping[str, int] | None = None
) -> None:
    """The best (or newest good) checkpoint into a model, ready to be used on the device.

    `vocabularies` are the sizes of the run's tokenizers, for a word about those that do not belong to the weights.
    """
    found = checkpoint.newest_good(run, say, prefer="best")
    if found is None:
        raise BadInput(checkpoint.why_none(run))
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


def _load_reader(run: RunFolder, recipe: Recipe, device: torch.device, say: Say) -> TrainedReader:
    """All runs with a model that reads texts."""
    section, data, file = recipe.model, recipe.data, run.path / LABELS
    assert isinstance(section, BertSection | RecurrentReaderSection)
    tokenizer = Tokenizer.load(run.tokenizer / "text")
    size = {"text": tokenizer.size}
    loaded: TrainedReader
    if recipe.task == "pretraining":
        assert isinstance(section, BertSection)
        hidden = HiddenWords(Bert(section, tokenizer.size), order=recipe.masking.sentences != "none")
        load_weights(run, hidden, device, say, size)
        loaded = TrainedFiller(hidden, tokenizer, data.window, device)
    elif recipe.task == "tagging":
        tags = classes_of(read_labels(file), file)
        words = WordLabeller(section, tokenizer.size, tags.size)
        load_weights(run, words, device, say, size)
        loaded = TrainedTagger(words, tokenizer, tags, data.max_length, data.stride, device)
    elif recipe.task == "answering":
        longest, unanswerable = answers_of(read_labels(file), file)
        limits = AnswerLimits(data.max_length, data.stride, longest, unanswerable)
        spans = WordLabeller(section, tokenizer.size, 2)
        load_weights(run, spans, device, say, size)
        loaded = TrainedAnswerer(spans, tokenizer, limits, device)
    else:
        raw = read_labels(file)
        labelling = numbers_of(raw, file) if recipe.task == "regression" else classes_of(raw, file)
        texts = TextLabeller(section, tokenizer.size, 1 if isinstance(labelling, Numbers) else labelling.size)
        load_weights(run, texts, device, say, size)
        loaded = TrainedClassifier(texts, tokenizer, labelling, data.max_length, device, raw.get("pairs"))
    loaded.recipe, loaded.run = recipe, run
    return loaded


def _report_reader(model: TrainedReader, recipe: Recipe, folder: RunFolder, task: Any) -> None:
    from jumok.inspect.reader_report import write_reader_report

    write_reader_report(model, recipe, folder, task)


def _load_image_classifier(run: RunFolder, recipe: Recipe, device: torch.device, say: Say) -> TrainedImageClassifier:
    assert isinstance(recipe.model, VitSection)
    file = run.path / LABELS
    classes = classes_of(read_labels(file), file)
    model = ImageLabeller(recipe.model, classes.size)
    load_weights(run, model, device, say)
    classifier = TrainedImageClassifier(model, classes, recipe.data.resize, device)
    classifier.recipe, classifier.run = recipe, run
    return classifier


def _report_images(model: TrainedImageClassifier, recipe: Recipe, folder: RunFolder, task: VisionTask) -> None:
    from jumok.inspect.vision_report import write_vision_report

    write_vision_report(model, recipe, folder, task)


def _load_text_reader(run: RunFolder, recipe: Recipe, device: torch.device, say: Say) -> TrainedTextReader:
    assert isinstance(recipe.model, RecognizerSection)
    charset = read_charset(run.path / CHARSET)
    model = build_recognizer(recipe.model, charset)
    load_weights(run, model, device, say)
    reader = TrainedTextReader(model, charset, recipe.data.resize, device)
    reader.recipe, reader.run = recipe, run
    return reader


def _report_words(model: TrainedTextReader, recipe: Recipe, folder: RunFolder, task: RecognitionTask) -> None:
    from jumok.inspect.reading_report import write_reading_report

    write_reading_report(model, recipe, folder, task)


READING = ("pretraining", *LABELLED)
# By task: how a run is loaded, and how its report is written
LOADERS: dict[str, Callable[[RunFolder, Recipe, torch.device, Say], Any]] = {
    "translation": _load_translator,
    "language": _load_language_model,
    "forecasting": _load_forecaster,
    "vision": _load_image_classifier,
    "recognition": _load_text_reader,
    **dict.fromkeys(READING, _load_reader),
}
REPORTS: dict[str, Callable[[Any, Recipe, RunFolder, Any], None]] = {
    "translation": _report_translation,
    "language": _report_language,
    "forecasting": _report_forecast,
    "vision": _report_images,
    "recognition": _report_words,
    **dict.fromkeys(READING, _report_reader),
}
