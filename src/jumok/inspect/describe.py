"""From a recipe or a run to the drawing of its model: shapes and parameters are read off the model itself.

The model is built and run without any memory for its numbers (PyTorch's fake tensors), so that the largest recipe is
described in a second on a laptop; each part tells what came out of it, and how many parameters it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from jumok.data.batch import Sequences
from jumok.data.series_windows import lay_out
from jumok.inspect.architecture import Architecture
from jumok.inspect.architecture_parts import architecture
from jumok.inspect.architecture_reading import reading_architecture
from jumok.inspect.architecture_recognition import recognition_architecture
from jumok.inspect.architecture_vision import vision_architecture
from jumok.layers.recurrent import Recurrent
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
from jumok.tasks.build import check_model
from jumok.tasks.example_task import LABELS
from jumok.tasks.forecasting import open_series
from jumok.tasks.labelling import classes_of, read_labels
from jumok.tasks.recognition import CHARSET, read_charset
from jumok.tasks.series_forecaster import load_series
from jumok.tasks.vocabulary import load_tokenizers
from jumok.text.charset import Charset
from jumok.text.tokenizer import Tokenizer
from jumok.training.run import RunFolder

NAMED = ("classification", "tagging")  # tasks with as many labels as the data has
FIXED = {"regression": 1, "answering": 2}
READING = ("pretraining", *NAMED, *FIXED)


@dataclass(frozen=True)
class Sizes:
    """What a recipe's model section leaves to the data: vocabularies, or the window and horizon of a series."""

    first: int  # source vocabulary, the only vocabulary, or window
    second: int  # target vocabulary, the only vocabulary, or horizon
    labels: int = 0  # of a task that has some
    notes: tuple[str, ...] = ()
    charset: Charset | None = None  # of a reader of words


def describe_recipe(recipe: Recipe, name: str) -> Architecture:
    """The model that a recipe describes. Vocabularies are as large as the recipe lets them become."""
    return _described(recipe, name, _sizes_of_recipe(recipe))


def describe_run(folder: Path) -> Architecture:
    """The model of a run, with the vocabularies it was trained with."""
    run = RunFolder.open(folder)
    recipe = run.recipe()
    if recipe.task == "forecasting":
        _, layout = load_series(run.path)
        sizes = Sizes(layout.window, layout.horizon)
    elif recipe.task == "vision":
        file = run.path / LABELS
        sizes = Sizes(0, 0, classes_of(read_labels(file), file).size)
    elif recipe.task == "recognition":
        sizes = Sizes(0, 0, charset=read_charset(run.path / CHARSET))
    elif recipe.task == "language":
        vocabulary = Tokenizer.load(run.tokenizer / "text").size
        sizes = Sizes(vocabulary, vocabulary)
    elif recipe.task in READING:
        vocabulary = Tokenizer.load(run.tokenizer / "text").size
        sizes = Sizes(vocabulary, vocabulary, _labels_of_run(run, recipe))
    else:
        source, target = load_tokenizers(run.tokenizer, recipe.tokenizer.joint)
        sizes = Sizes(source.size, target.size)
    return _described(recipe, str(folder), sizes)


def _labels_of_run(run: RunFolder, recipe: Recipe) -> int:
    if recipe.task not in NAMED:
        return FIXED.get(recipe.task, 0)
    file = run.path / LABELS
    return classes_of(read_labels(file), file).size


def _sizes_of_recipe(recipe: Recipe) -> Sizes:
    if recipe.task == "forecasting":
        section = recipe.data.series
        assert section is not None
        if section.window:
            return Sizes(section.window, section.horizon)
        layout = lay_out(open_series(section), section)
        note = "The window was found in the data (data.series.window: 0)."
        return Sizes(layout.window, layout.horizon, notes=(note,))
    if recipe.task == "vision":
        return Sizes(0, 0, 10, ("Ten classes, until the data says how many there are.",))
    if recipe.task == "recognition":
        return Sizes(0, 0, charset=Charset.of(recipe.charset))
    largest = recipe.tokenizer.vocabulary
    notes = [f"Vocabularies as large as the recipe allows ({largest:,} tokens); training may find fewer."]
    if recipe.task in NAMED:
        notes.append("Two labels, until the data says how many there are.")
    return Sizes(largest, largest, FIXED.get(recipe.task, 2), tuple(notes))


def _described(recipe: Recipe, name: str, sizes: Sizes) -> Architecture:
    check_model(recipe)
    with FakeTensorMode(), torch.no_grad():
        if isinstance(recipe.model, VitSection):
            looking = ImageLabeller(recipe.model, sizes.labels)
            shapes = Shapes(looking.eval())
            shapes.look(recipe.model)
            return vision_architecture(looking, shapes, name, sizes.notes)
        if isinstance(recipe.model, RecognizerSection):
            assert sizes.charset is not None
            recognizer, section = build_recognizer(recipe.model, sizes.charset), recipe.model
            # more rows than pixels along a side, places in the grid or in a word: none is taken for their number
            most = max(*section.image, section.columns * section.image[0], section.max_length + 1)
            shapes = Shapes(recognizer.eval(), least=most + 1)
            shapes.spell(section)
            return recognition_architecture(recognizer, shapes, name, sizes.notes)
        if recipe.task in READING:
            reading = _reading_model(recipe, sizes)
            shapes = Shapes(reading.eval())
            shapes.read()
            return reading_architecture(reading, shapes, name, recipe.task, sizes.notes)
        if isinstance(recipe.model, ForecasterSection):
            model: nn.Module = Forecaster(recipe.model, sizes.first, sizes.second)
        elif recipe.task == "language":
            model = build_language_model(recipe.model, sizes.first)
        else:
            model = build(recipe.model, sizes.first, sizes.second)
        shapes = Shapes(model.eval(), sizes.first if recipe.task == "forecasting" else None)
        shapes.run(recipe.task)
        return architecture(model, shapes, name, sizes.notes)


def _reading_model(recipe: Recipe, sizes: Sizes) -> HiddenWords | TextLabeller | WordLabeller:
    section = recipe.model
    assert isinstance(section, BertSection | RecurrentReaderSection)
    if recipe.task == "pretraining":
        assert isinstance(section, BertSection)
        return HiddenWords(Bert(section, sizes.first), order=recipe.masking.sentences != "none")
    kind = TextLabeller if recipe.task in ("classification", "regression") else WordLabeller
    return kind(section, sizes.first, sizes.labels)


class Shapes:
    """What came out of each module, in letters: B rows, S tokens of the source, T of the target (or W values)."""

    logits = input = ""

    def __init__(self, model: nn.Module, window: int | None = None, least: int = 11) -> None:
        self.model, self.window = model, window
        taken = {size for parameter in model.parameters() for size in parameter.shape} | {1}
        # sizes that no layer has, so that each tells what it is wherever it turns up; nor what becomes of them
        free = (size for size in count(least | 1, 2) if not taken & {size, size + 1, 2 * size})
        rows, source, target = islice(free, 3)
        self.sizes = {"B": rows, "S": source, "T": target}
        self.letters = {rows: "B", source: "S", target: "T", source + 1: "(S + 1)", 2 * rows: "2B"}
        self.seen: dict[nn.Module, list[tuple[int, ...]]] = {}
        self.given: dict[nn.Module, tuple[int, ...]] = {}

    def run(self, task: str) -> None:
        rows, source, target = self.sizes.values()
        with self._watching():
            if task == "forecasting":
                self.model(torch.zeros(rows, self.window or 1))
                return
            ids = torch.zeros(rows, target, dtype=torch.long)
            read = Sequences(torch.zeros(rows, source, dtype=torch.long), torch.full((rows,), source))
            hidden = self.model(ids) if task == "language" else self.model(read, ids)
            self.logits = self._letters(self.model.head(hidden).shape)  # type: ignore[operator]

    def read(self) -> None:
        """The same for a model that reads texts."""
        model: Any = self.model
        rows, _, tokens = self.sizes.values()
        rows *= 2 if getattr(model, "apart", False) else 1  # two texts in rows of their own
        words = Sequences(torch.zeros(rows, tokens, dtype=torch.long), torch.full((rows,), tokens))
        self.input = self._letters(words.ids.shape)
        with self._watching():
            if not isinstance(model, HiddenWords):
                model(words)
                return
            hidden = model.reader(words)
            self.logits = self._letters(model.head(hidden).shape)
            if model.order is not None:
                model.order(model.reader.first(hidden, words))

    def look(self, section: VitSection) -> None:
        """The same for a model that looks at images."""
        images = torch.zeros(self.sizes["B"], section.channels, *section.image, dtype=torch.uint8)
        self.input = self._letters(images.shape)
        with self._watching():
            self.model(images)

    def spell(self, section: RecognizerSection) -> None:
        """The same for a model that reads words in pictures, with words given to it as in training."""
        model: Any = self.model
        rows, places = self.sizes["B"], section.max_length + 1
        images = torch.zeros(rows, section.channels, *section.image, dtype=torch.uint8)
        self.input = self._letters(images.shape)
        with self._watching():
            model.losses(images, torch.zeros(rows, places, dtype=torch.long), torch.full((rows,), places - 1))

    @contextmanager
    def _watching(self) -> Iterator[None]:
        handles = [module.register_forward_hook(self._see) for module in self.model.modules()]
        # all rows are full here, so nobody need look at the lengths, which have no values
        handles += [
            module.register_forward_pre_hook(lambda _module, given: (given[0], None, *given[2:]))
            for module in self.model.modules()
            if isinstance(module, Recurrent)
        ]
        yield
        for handle in handles:
            handle.remove()

    def _see(self, module: nn.Module, given: Any, output: Any) -> None:
        if given and isinstance(given[0], Tensor):
            self.given[module] = tuple(given[0].shape)
        first = output[0] if isinstance(output, tuple) else output
        if isinstance(first, Tensor):
            self.seen.setdefault(module, []).append(tuple(first.shape))

    def of(self, module: nn.Module, call: int = 0) -> str:
        """As in "B × S × 512"; empty where it was not run by itself. `call` is for what is used more than once."""
        return self._letters(self.seen[module][call]) if module in self.seen else ""

    def into(self, module: nn.Module) -> str:
        """What went in, the last time."""
        return self._letters(self.given[module]) if module in self.given else ""

    def _letters(self, shape: Iterable[int]) -> str:
        return " × ".join(self.letters.get(size, str(size)) for size in shape)
