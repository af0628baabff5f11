"""From a recipe to the task it describes: one door for every task."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from jumok.errors import BadInput
from jumok.layers.stack import compute_again
from jumok.models.bert import Bert, freeze
from jumok.recipe import (
    BertSection,
    ForecasterSection,
    Recipe,
    RecognizerSection,
    RecurrentLanguageSection,
    RecurrentReaderSection,
    Section,
    Seq2SeqSection,
    TransformerLanguageSection,
    TransformerSection,
    VitSection,
)
from jumok.recipe.whole import LABELLED
from jumok.tasks.answering import AnsweringTask
from jumok.tasks.classification import ClassificationTask
from jumok.tasks.example_task import ExampleTask
from jumok.tasks.forecasting import ForecastingTask
from jumok.tasks.language import LanguageTask, text_tokenizer
from jumok.tasks.objective import Task
from jumok.tasks.pretraining import PretrainingTask
from jumok.tasks.recognition import RecognitionTask
from jumok.tasks.tagging import TaggingTask
from jumok.tasks.translation import TranslationTask
from jumok.tasks.vision import VisionTask
from jumok.tasks.vocabulary import load_tokenizers, train_tokenizers
from jumok.text.tokenizer import Tokenizer

Say = Callable[[str], None]
KINDS: dict[str, tuple[type[Section], ...]] = {  # the models that can learn each task
    "translation": (Seq2SeqSection, TransformerSection),
    "language": (RecurrentLanguageSection, TransformerLanguageSection),
    "forecasting": (ForecasterSection,),
    "pretraining": (BertSection,),
    "vision": (VitSection,),
    "recognition": (RecognizerSection,),
    **dict.fromkeys(LABELLED, (BertSection, RecurrentReaderSection)),
}
EXAMPLES: dict[str, type[ExampleTask]] = {
    "classification": ClassificationTask,
    "regression": ClassificationTask,
    "tagging": TaggingTask,
    "answering": AnsweringTask,
}


def build_task(recipe: Recipe, device: torch.device, say: Say, saved: Path | None = None) -> Task:
    """What `recipe.task` names. `saved`: the tokenizer folder of a run that goes on; without it they are trained."""
    task = _build(recipe, device, say, saved)
    if recipe.training.checkpoint_activations:
        compute_again(task.objective.model)
        setattr(task.objective.model, "replays", False)  # noqa: B010  dropout is drawn twice there, which a recording cannot
    leave_unused(recipe, task.objective.model)
    if recipe.training.freeze and isinstance(recipe.model, BertSection | VitSection):
        freeze(task.objective.model, recipe.training.freeze, recipe.model.layers)
    return task


def leave_unused(recipe: Recipe, model: nn.Module) -> None:
    """A BERT's pooler that nothing stands on has no gradient: weight decay would shrink it, but not on every path."""
    pools = (
        recipe.masking.sentences != "none"
        if recipe.task == "pretraining"
        else recipe.task in ("classification", "regression") and getattr(recipe.model, "pooling", "") == "first"
    )
    reader = getattr(model, "reader", None)
    if isinstance(reader, Bert) and not pools:
        reader.pooler.requires_grad_(False)


def check_model(recipe: Recipe) -> None:
    """The model can learn the task."""
    if not isinstance(recipe.model, KINDS[recipe.task]):
        kinds = " or ".join(section.model_fields["kind"].default for section in KINDS[recipe.task])
        raise BadInput(f"model.kind: {recipe.model.kind} cannot learn task: {recipe.task}; use {kinds}")


def _build(recipe: Recipe, device: torch.device, say: Say, saved: Path | None) -> Task:
    check_model(recipe)
    if recipe.task == "forecasting":
        return ForecastingTask(recipe, device, say)
    if recipe.task == "vision":
        return VisionTask(recipe, device, say)
    if recipe.task == "recognition":
        return RecognitionTask(recipe, device, say)
    if recipe.task in EXAMPLES:
        return EXAMPLES[recipe.task](recipe, device, say, saved)
    if recipe.task in ("language", "pretraining"):
        tokenizer = Tokenizer.load(saved / "text") if saved is not None else text_tokenizer(recipe, say)
        if recipe.task == "pretraining":
            return PretrainingTask(recipe, tokenizer, device, say)
        return LanguageTask(recipe, tokenizer, device, say)
    joint = recipe.tokenizer.joint
    tokenizers = load_tokenizers(saved, joint) if saved is not None else train_tokenizers(recipe, say)
    return TranslationTask(recipe, tokenizers, device, say)
