"""What `--engine onnx` computes with: RUN/engines/onnx-float32, made at first use, and again for other weights."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import torch

from jumok.errors import BadInput
from jumok.interop.engine_files import Say, best_checkpoint, is_made, make_once, place_of, sum_of
from jumok.interop.onnx_export import write_config
from jumok.interop.onnx_graph import need_onnx
from jumok.interop.onnx_int8 import check_precision, quantise
from jumok.interop.onnx_translator import asked_of, best_of, held_rounded, known, verify_steps, write_translator
from jumok.interop.outgoing import load_run
from jumok.interop.probe import probe_rows
from jumok.models.build import build
from jumok.tasks.engine_onnx import VERSION, stepper_of
from jumok.tasks.vocabulary import load_tokenizers
from jumok.training.run import RunFolder

TRIED = 32  # sentences: what is rounded to int8 is held to


def engine_folder(run: RunFolder, precision: str, say: Say) -> Path:
    """Where the run's best checkpoint is as onnxruntime reads it, made here if it is not there."""
    check_precision(precision)
    need_onnx()
    recipe = run.recipe()
    if recipe.task != "translation":
        raise BadInput(f"{run.path} does not translate (task {recipe.task}); the onnx engine is for translators")
    parts = [VERSION, torch.__version__, precision, sum_of(best_checkpoint(run, say)), recipe.model.model_dump_json()]
    key, folder = hashlib.sha256(json.dumps(parts).encode()).hexdigest(), place_of(run, "onnx", precision)
    if is_made(folder, key):
        return folder
    source, target = load_tokenizers(run.tokenizer, recipe.tokenizer.joint)
    model = known(build(recipe.model, source.size, target.size))
    step, _ = load_run(run, model)

    def write(place: Path) -> None:
        config, _ = write_translator(model, place)
        write_config(place, {**config, "step": step, "precision": precision})
        verify_steps(model, stepper_of(place))
        if precision == "int8":
            quantise(place)
            asked = asked_of(model, probe_rows(recipe, source, (), TRIED))
            held_rounded(stepper_of(place), asked, best_of(model, asked), "Use --precision float32, or --engine torch")

    return make_once(folder, key, write, lambda: say(f"making {folder} from the checkpoint of update {step}, once"))
