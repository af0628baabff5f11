"""Starting from a pretrained run (`start`): its network, its vocabulary, its weights; a task adds its own head.

What is read of it is resolved when a run begins and kept in the new run: to go on, or to load it, the old one is not
needed any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from safetensors.torch import load_file
from torch import nn

from jumok import recipe as recipes
from jumok.errors import BadInput
from jumok.layers.position import Grid, resampled
from jumok.models.bert import HiddenWords
from jumok.models.vit import ImageLabeller
from jumok.recipe import BertSection, Recipe, TransformerSection, VitSection
from jumok.recipe.whole import LABELLED
from jumok.text.special import END, PAD, START
from jumok.text.tokenizer import Tokenizer
from jumok.training import checkpoint
from jumok.training.run import RunFolder

READER = "reader."
GRID = "reader.positions.weight"
OWN = ("dropout", "attention_dropout", "activation_dropout", "pooling", "pairs")  # may differ from the pretrained run's
OWN_OF_IMAGES = (*OWN[:3], "stochastic_depth", "image", "mean", "deviation")
HEAD = "scores."  # of an image model: about classes that the new run may not have


def with_start(recipe: Recipe) -> Recipe:
    """The recipe with what its `start` brings. Dropouts (and how a text is pooled) that the
    recipe itself names stay as they are."""
    if recipe.start is None:
        return recipe
    if recipe.task not in ("pretraining", "translation", "vision", *LABELLED):
        raise BadInput(f"start: task {recipe.task} cannot start from a pretrained run")
    folder = RunFolder.open(Path(recipe.start).absolute())
    theirs = folder.recipe()
    if recipe.task == "vision":
        return _with_vision(recipe, folder, theirs)
    if not isinstance(theirs.model, BertSection):
        raise BadInput(
            f"start: {recipe.start} is a run of model.kind {theirs.model.kind}; start from a BERT (task: pretraining)"
        )
    raw = recipe.model_dump(mode="json")
    raw["start"] = str(folder.path)
    raw["tokenizer"]["source"] = str(folder.tokenizer / "text")
    section: dict[str, Any] = theirs.model.model_dump(mode="json")
    if recipe.task == "translation":
        _check_specials(folder)
        if recipe.model.kind != "transformer":
            raise BadInput(f"start: a pretrained encoder needs model.kind transformer, not {recipe.model.kind}")
        given = recipe.model.reader if isinstance(recipe.model, TransformerSection) else None
        named = {} if given is None else {key: getattr(given, key) for key in OWN if key in given.model_fields_set}
        raw["model"] |= {"reader": section | named, "width": section["width"], "heads": section["heads"]}
        raw["tokenizer"]["joint"] = False
        if raw["model"]["tie_embeddings"] == "all":
            raw["model"]["tie_embeddings"] = "target"
    else:
        ours = recipe.model.model_fields_set if isinstance(recipe.model, BertSection) else set()
        raw["model"] = section | {key: raw["model"][key] for key in OWN if key in ours and key in raw["model"]}
        raw["tokenizer"] |= {key: getattr(theirs.tokenizer, key) for key in ("kind", "vocabulary", "lowercase")}
    return _checked(raw, recipe)


def _with_vision(recipe: Recipe, folder: RunFolder, theirs: Recipe) -> Recipe:
    """Images may be of another size than those that were learned from: positions are brought to the new grid."""
    if not isinstance(theirs.model, VitSection):
        raise BadInput(f"start: {recipe.start} is a run of model.kind {theirs.model.kind}; start from a ViT")
    raw, section = recipe.model_dump(mode="json"), theirs.model.model_dump(mode="json")
    named = recipe.model.model_fields_set
    raw["model"] = section | {key: raw["model"][key] for key in OWN_OF_IMAGES if key in named}
    raw["start"] = str(folder.path)
    return _checked(raw, recipe)


def _checked(raw: dict[str, Any], recipe: Recipe) -> Recipe:
    """What a recipe asks for is held against the model that it gets now, which is no longer to come."""
    found = recipes.check({**raw, "start": None}, f"start: {recipe.start}")
    return found.model_copy(update={"start": raw["start"]})


def refuse_named(recipe: Recipe, overrides: Sequence[str]) -> None:
    """Keys that somebody names (`model.width=64`), but the run to start from decides otherwise. Those that only stand
    in a recipe give way to it."""
    named = [key for override in overrides for key in _leaves(override) if key.startswith(("model.", "tokenizer."))]
    if recipe.start is None or not named or not RunFolder(Path(recipe.start)).recipe_file.exists():
        return
    given, brought = (one.model_dump(mode="json") for one in (recipe, with_start(recipe)))
    for key in named:
        ours, theirs = (_value_at(raw, key.split(".")) for raw in (given, brought))
        if key == "model.encoder_layers" and recipe.task == "translation":
            raise BadInput(f"{key}: with --start {recipe.start} that run reads the source, in place of encoder layers")
        if ours != theirs:
            has = "has no such key" if theirs is None else f"has {theirs}"
            raise BadInput(
                f"{key}={ours}: --start {recipe.start} {has}, and network and vocabulary are that run's. "
                f"Leave the key out, or train without --start"
            )


def _leaves(override: str) -> list[str]:
    """The keys that an override names; a mapping (`model={kind: recurrent}`) names those in it."""
    key, _, text = override.partition("=")
    value = yaml.safe_load(text)  # it was read before
    return [f"{key}.{name}" for name in value] if isinstance(value, dict) else [key]


def _value_at(raw: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        raw = raw.get(key) if isinstance(raw, dict) else None
    return raw


def _check_specials(folder: RunFolder) -> None:
    """A translator's rows end in <eos>: its vocabularies all have it at the same place."""
    specials = Tokenizer.load(folder.tokenizer / "text").specials
    found = specials.pad, specials.start, specials.end
    if found != (PAD, START, END):
        raise BadInput(
            f"start: the vocabulary of {folder.path} has [PAD], [CLS] and [SEP] at {found[0]}, {found[1]} and "
            f"{found[2]}: a translator can start only from one that has them at {PAD}, {START} and {END}, as those "
            "that are pretrained here"
        )


def put_weights(model: nn.Module, start: str) -> int:
    """The reader's weights of a run (its best checkpoint, or the newest good one) into a model that has one; where both
    guess hidden words, what they guess with too; of an image model, what pools. How many tensors that were."""
    folder = RunFolder.open(Path(start))
    found = checkpoint.newest_good(folder, lambda message: None, prefer="best")
    if found is None:
        raise BadInput(f"start: {checkpoint.why_none(folder)}")
    theirs, ours = load_file(found / checkpoint.MODEL), model.state_dict()
    readers = [{name for name in state if name.startswith(READER)} for state in (theirs, ours)]
    if readers[0] != readers[1]:
        different = sorted(readers[0] ^ readers[1])
        raise BadInput(f"start: {found} does not fit the model: {different[0]} is only in one of them")
    if isinstance(model, ImageLabeller) and isinstance(model.reader.positions, Grid) and GRID in theirs:
        grid = tuple(model.reader.positions.weight.shape[:2])
        theirs[GRID] = resampled(theirs[GRID].float(), (grid[0], grid[1]), model.section.antialias)
    for name in readers[0]:
        if theirs[name].shape != ours[name].shape:
            shapes = f"{tuple(theirs[name].shape)} there, {tuple(ours[name].shape)} here"
            raise BadInput(f"start: {found} does not fit the model: {name} is {shapes}")
    heads = theirs.keys() & ours.keys() - readers[0] if isinstance(model, HiddenWords | ImageLabeller) else set()
    heads = {name for name in heads if not (isinstance(model, ImageLabeller) and name.startswith(HEAD))}
    taken = readers[0] | {name for name in heads if theirs[name].shape == ours[name].shape}
    model.load_state_dict({name: theirs[name].float() for name in sorted(taken)}, strict=False)
    return len(taken)
