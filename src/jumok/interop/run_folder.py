"""An imported checkpoint as a run folder: from there on it is a run like any other."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from jumok import recipe as recipes
from jumok.errors import BadInput
from jumok.files import disk_errors_named, replace_file
from jumok.interop.growing import check_not_here, growing
from jumok.interop.huggingface import kind_of, read_checkpoint
from jumok.interop.marian import read_marian
from jumok.interop.marian_files import check_files, keep_originals
from jumok.interop.origin import write_origin
from jumok.interop.vit import ImportedVit, product
from jumok.interop.vit_huggingface import read_vit
from jumok.interop.vit_timm import read_timm
from jumok.models.bert import Bert, HiddenWords
from jumok.models.transformer import Transformer
from jumok.models.vit import ImageLabeller
from jumok.recipe import Recipe
from jumok.tasks.example_task import LABELS
from jumok.tasks.labelling import Classes
from jumok.tasks.vocabulary import save_tokenizers
from jumok.training import checkpoint
from jumok.training.run import RunFolder
from jumok.training.state import TrainState

HEADLESS = "without a head that guesses words"  # in `imported` of a run whose head is fresh

NO_CLASSIFIER = "it has no classifier"


def import_huggingface(folder: Path, run: Path) -> list[str]:
    """A BERT, a Vision Transformer or a Marian model as Hugging Face keeps it. Gives what its user should know, in
    sentences."""
    _check_place(run)
    kind = kind_of(folder)
    if kind == "marian":
        return import_marian(folder, run)
    if kind == "vit":
        return _import_vit(read_vit(folder), folder, "Hugging Face", run)
    return import_bert(folder, run)


def import_timm(path: Path, run: Path, heads: int | None = None) -> list[str]:
    """A Vision Transformer as timm keeps it: a folder, or a safetensors file, of which `heads` may have to be told."""
    _check_place(run)
    return _import_vit(read_timm(path, heads), path, "timm", run)


def import_bert(folder: Path, run: Path) -> list[str]:
    """A BERT as Hugging Face keeps it, as a pretrained run. Gives what its user should know, in sentences."""
    _check_place(run)
    found = read_checkpoint(folder)
    torch.manual_seed(1)  # for what the checkpoint does not have
    model = HiddenWords(Bert(found.section, found.tokenizer.size))
    given = {f"reader.{name}": tensor for name, tensor in found.encoder.items()} | found.hidden_words
    _put_in(model, given, folder)
    raw = {
        "task": "pretraining",
        "imported": f"{folder.absolute()} (Hugging Face{'' if found.hidden_words else f', {HEADLESS}'})",
        "data": {"window": found.section.max_positions},
        "tokenizer": {"kind": "wordpiece", "vocabulary": found.tokenizer.size, "lowercase": found.tokenizer.lowercase},
        "model": found.section.model_dump(mode="json"),
        "training": {"label_smoothing": 0.0},
    }

    def keep(made: RunFolder) -> None:
        save_tokenizers(made.tokenizer, {"text": found.tokenizer})
        write_origin(made, {"has_pooler": found.has_pooler})

    _write(run, recipes.check(raw, str(folder)), model, folder, keep)
    parameters = sum(tensor.numel() for tensor in given.values())
    layers = f"{found.section.layers} layer{'s' * (found.section.layers != 1)}"
    notes = [
        f"{parameters:,} parameters: {layers}, {found.section.width} wide, {found.section.heads} heads; "
        f"{found.tokenizer.size:,} tokens",
        *found.notes,
    ]
    if not found.hidden_words:
        notes.append("it has no head that guesses words: `jumok fill` would guess at random until one is trained")
    return notes


def import_marian(folder: Path, run: Path) -> list[str]:
    """A MarianMT or OPUS-MT model as Hugging Face keeps it, as a run that translates."""
    _check_place(run)
    check_files(folder)
    found = read_marian(folder)
    section = found.section
    source, target = found.source.tokenizer, found.target.tokenizer
    model = Transformer(section, source.size, target.size)
    _put_in(model, found.weights, folder)
    raw = {
        "task": "translation",
        "imported": f"{folder.absolute()} (Hugging Face)",
        "data": {"max_length": max(1, section.max_positions - 1)},  # a source has <eos> besides its tokens
        "tokenizer": {"kind": source.kind, "vocabulary": max(source.size, target.size)},
        "model": section.model_dump(mode="json"),
        "search": found.search,
    }

    def keep(made: RunFolder) -> None:
        save_tokenizers(made.tokenizer, {"source": source, "target": target})
        keep_originals(folder, made, found)

    _write(run, recipes.check(raw, str(folder)), model, folder, keep)
    parameters = sum(tensor.numel() for tensor in found.weights.values())
    return [
        f"{parameters:,} parameters: {section.encoder_layers} and {section.decoder_layers} layers, "
        f"{section.width} wide, {section.heads} heads; {source.size:,} and {target.size:,} tokens",
        *found.notes,
    ]


def _import_vit(found: ImportedVit, source: Path, whose: str, run: Path) -> list[str]:
    section, classes = found.section, Classes(found.classes)
    torch.manual_seed(1)  # for a classifier, if there is none
    model = ImageLabeller(section, classes.size)
    _put_in(model, found.weights, source)
    raw = {
        "task": "vision",
        "imported": f"{source.absolute()} ({whose})",
        "data": {"resize": found.resize},
        "model": section.model_dump(mode="json"),
    }

    def keep(made: RunFolder) -> None:
        replace_file(made.path / LABELS, json.dumps(classes.to_json(), ensure_ascii=False, indent=1) + "\n")
        write_origin(made, {**found.origin, "has_classifier": found.has_classifier})

    _write(run, recipes.check(raw, str(source)), model, source, keep)
    parameters = sum(tensor.numel() for tensor in found.weights.values())
    layers = f"{section.layers} layer{'s' * (section.layers != 1)}"
    notes = [
        f"{parameters:,} parameters: {layers}, {section.width} wide, {section.heads} heads; images of "
        f"{product(section.image)} in patches of {product(section.patch)}",
        *found.notes,
    ]
    if found.has_classifier:
        notes.append(f"{classes.size:,} class{'es' * (classes.size != 1)}")
    else:
        notes.append(
            f"{NO_CLASSIFIER}: one of {classes.size:,} classes stands there that says things at random until it "
            "is trained (jumok train … --start)"
        )
    return notes


def _check_place(run: Path) -> None:
    if RunFolder(run).recipe_file.exists():
        raise BadInput(f"{run} holds a run already: choose another --run")
    RunFolder.check_free(run)
    check_not_here(run, "--run")
    if run.is_dir() and any(run.iterdir()):
        raise BadInput(f"{run} is not empty: choose another --run")


def _put_in(model: nn.Module, given: Mapping[str, Tensor], source: Path) -> None:
    for name, tensor in given.items():
        if not bool(torch.isfinite(tensor).all()):
            name = name.removeprefix("reader.")
            raise BadInput(f"{source}: some of the weights are not numbers ({name}): fetch the checkpoint again")
    _, unexpected = model.load_state_dict(given, strict=False)
    if unexpected:
        raise BadInput(f"{source}: {unexpected[0]} has no place in the model that its config.json describes")


def _write(run: Path, recipe: Recipe, model: nn.Module, source: Path, keep: Callable[[RunFolder], None]) -> None:
    """The run, whole or not at all; `keep` writes what belongs to it besides."""
    state = TrainState(total=0, stopped=f"it was imported from {source.absolute()}")
    place = run.resolve()
    with (
        disk_errors_named("writing the run", run, "Free some space, or choose another --run."),
        growing(place, "importing") as folder,
    ):
        temporary = RunFolder.create(folder, recipe)
        keep(temporary)
        checkpoint.write(temporary.checkpoints / "step-0", checkpoint.stored_tensors(model), None, state)
        for name in ("last", "best"):
            temporary.point(name, 0)
        if place.is_dir():
            place.rmdir()
        folder.rename(place)
