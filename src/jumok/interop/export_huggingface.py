"""A BERT or a Vision Transformer written as a folder of `transformers`: `from_pretrained(FOLDER)` loads it.

    config.json · model.safetensors · the tokenizer's files or preprocessor_config.json · README.md, a model card

Before it is called done, their library reads the folder and computes with it, and the largest difference from what is
computed here is told. A larger one than rounding makes is a failure, and nothing is left.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import torch

from jumok.errors import BadInput, Failure, JumokError
from jumok.files import sha256
from jumok.interop.export_bert import outgoing_bert
from jumok.interop.export_folder import check_out, new_folder, save_weights
from jumok.interop.export_vit import outgoing_vit
from jumok.interop.model_card import CARD, model_card
from jumok.interop.outgoing import Outgoing
from jumok.recipe import BertSection, Recipe, VitSection
from jumok.training import checkpoint
from jumok.training.run import RunFolder

LARGEST = 1e-5  # of what differs, in parts of the largest value (at least 1)
WEIGHTS = "model.safetensors"


def export_huggingface(run: RunFolder, out: Path) -> list[str]:
    """The run as a folder that `transformers` loads. Gives what its user should know; the last is the check."""
    check_out(out, "hf")
    recipe = run.recipe()
    if isinstance(recipe.model, VitSection) and recipe.task == "vision":
        made = outgoing_vit(run, recipe)
    elif isinstance(recipe.model, BertSection):
        made = outgoing_bert(run, recipe)
    else:
        raise BadInput(
            f"{run.path}: a model of kind {recipe.model.kind} (task {recipe.task}) has no counterpart in transformers; "
            "translators (Transformer), BERTs and Vision Transformers can be written"
        )
    with new_folder(out, "hf") as folder:
        _write(made, folder)
        told = _checked(made, folder)
        notes = [f"{_count(made)} parameters as {made.architecture}", *made.notes, told]
        (folder / CARD).write_text(_card(run, recipe, made, folder, notes), encoding="utf-8", newline="\n")
    return notes


def _count(made: Outgoing) -> str:
    return f"{sum(tensor.numel() for tensor in made.weights.values()):,}"


def _write(made: Outgoing, folder: Path) -> None:
    save_weights(made.weights, folder / WEIGHTS)
    config = json.dumps(made.config, ensure_ascii=False, indent=2) + "\n"
    for name, content in {"config.json": config, **made.files}.items():
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(content, encoding="utf-8", newline="\n")


def _card(run: RunFolder, recipe: Recipe, made: Outgoing, folder: Path, notes: list[str]) -> str:
    stored = run.checkpoints / f"step-{made.step}" / checkpoint.MODEL
    return model_card(
        run,
        recipe,
        architecture=made.architecture,
        purpose=made.purpose,
        usage=made.usage,
        step=made.step,
        signatures={WEIGHTS: sha256(folder / WEIGHTS), "the run's checkpoint": sha256(stored)},
        notes=notes,
    )


def _checked(made: Outgoing, folder: Path) -> str:
    """A sentence about the difference; `Failure` where it is more than rounding."""
    try:
        theirs: Any = importlib.import_module("transformers")
    except Exception as error:  # one that does not fit the installed torch raises whatever it likes
        return f"not checked: transformers is not installed here ({error}); pip install 'jumok[hf]'"
    try:
        theirs.utils.logging.disable_progress_bar()
        theirs.utils.logging.set_verbosity_error()
        kind = getattr(theirs, made.architecture)
        loaded, about = kind.from_pretrained(folder, local_files_only=True, output_loading_info=True)
        with torch.no_grad():
            found, expected, what = made.compare(loaded.float().eval())
        difference, value = float((found - expected).abs().max()), max(1.0, float(expected.abs().max()))
        agreement = float((found.argmax(-1) == expected.argmax(-1)).float().mean())
        otherwise = None
        if made.same_words is not None:
            otherwise = made.same_words(theirs.AutoTokenizer.from_pretrained(folder, local_files_only=True))
    except JumokError:
        raise
    except Exception as error:
        raise Failure(f"transformers cannot compute with what was written ({error}); nothing is left of it") from None
    lacking = [name for name in about["missing_keys"] if "pooler." not in name]
    if lacking:
        raise Failure(f"transformers misses {lacking[0]} in what was written; nothing is left of it")
    told = f"the largest difference from transformers {theirs.__version__} in {what} is {difference:.1e}"
    if not difference <= LARGEST * value:
        raise Failure(f"{told}, more than {LARGEST * value:.0e}; nothing is left of it")
    if otherwise is not None:
        raise Failure(f"transformers cuts {otherwise} into other tokens than jumok; nothing is left of it")
    cuts = "" if made.same_words is None else "; texts are cut alike"
    return f"checked: {told} (allowed: {LARGEST * value:.0e}); {agreement:.1%} of the largest scores are the same{cuts}"
