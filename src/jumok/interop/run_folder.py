"""An imported checkpoint as a run folder: from there on it is a run like any other."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from jumok import recipe as recipes
from jumok.errors import BadInput
from jumok.files import disk_errors_named, remove_folder
from jumok.interop.huggingface import read_checkpoint
from jumok.models.bert import Bert, HiddenWords
from jumok.tasks.vocabulary import save_tokenizers
from jumok.training import checkpoint
from jumok.training.run import RunFolder
from jumok.training.state import TrainState


def import_bert(folder: Path, run: Path) -> list[str]:
    """A BERT as Hugging Face keeps it, as a pretrained run. Gives what its user should know, in sentences."""
    RunFolder.check_free(run)
    if run.is_dir() and any(run.iterdir()):
        raise BadInput(f"{run} is not empty: choose another --run")
    found = read_checkpoint(folder)
    for name, tensor in (*found.encoder.items(), *found.hidden_words.items()):
        if not bool(torch.isfinite(tensor).all()):
            raise BadInput(f"{folder}: some of the weights are not numbers ({name}): fetch the checkpoint again")
    torch.manual_seed(1)  # for what the checkpoint does not have
    model = HiddenWords(Bert(found.section, found.tokenizer.size))
    given = {f"reader.{name}": tensor for name, tensor in found.encoder.items()} | found.hidden_words
    _, unexpected = model.load_state_dict(given, strict=False)
    if unexpected:
        raise BadInput(f"{folder}: {unexpected[0]} has no place in the model that its config.json describes")
    raw = {
        "task": "pretraining",
        "imported": f"{folder.absolute()} (Hugging Face)",
        "data": {"window": found.section.max_positions},
        "tokenizer": {"kind": "wordpiece", "vocabulary": found.tokenizer.size, "lowercase": found.tokenizer.lowercase},
        "model": found.section.model_dump(mode="json"),
        "training": {"label_smoothing": 0.0},
    }
    recipe = recipes.check(raw, str(folder))
    state = TrainState(total=0, stopped=f"it was imported from {folder.absolute()}")
    temporary = RunFolder(run.with_name(f".importing-{run.name}-{os.getpid()}"))
    with disk_errors_named("writing the run", run, "Free some space, or choose another --run."):
        try:
            RunFolder.create(temporary.path, recipe)
            save_tokenizers(temporary.tokenizer, {"text": found.tokenizer})
            checkpoint.write(temporary.checkpoints / "step-0", dict(model.state_dict()), None, state)
            for name in ("last", "best"):
                temporary.point(name, 0)
            if run.is_dir():
                run.rmdir()
            run.parent.mkdir(parents=True, exist_ok=True)
            temporary.path.rename(run)
        finally:
            remove_folder(temporary.path)
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
