"""What `--engine onnx` computes with: RUN/engines/onnx-float32, made at first use, and again for other weights."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock

from jumok.errors import BadInput
from jumok.files import disk_errors_named, flush_file, flush_folder, remove_folder
from jumok.interop.onnx_export import write_config
from jumok.interop.onnx_graph import need_onnx
from jumok.interop.onnx_int8 import check_precision, quantise
from jumok.interop.onnx_translator import known, verify_steps, write_translator
from jumok.interop.outgoing import load_run
from jumok.models.build import build
from jumok.tasks.engine_onnx import CONFIG, VERSION, OnnxStepper
from jumok.tasks.vocabulary import load_tokenizers
from jumok.training import checkpoint
from jumok.training.run import RunFolder

ENGINES, KEY = "engines", "key.json"

Say = Callable[[str], None]


def engine_folder(run: RunFolder, precision: str, say: Say) -> Path:
    """Where the run's best checkpoint is as onnxruntime reads it, made here if it is not there or was made from
    something else. One that is there is whole: it got its name when it was."""
    check_precision(precision)
    need_onnx()
    recipe = run.recipe()
    if recipe.task != "translation":
        raise BadInput(f"task: {run.path} does not translate ({recipe.task}); the onnx engine is for translators")
    key, final = _key(run, precision, say), run.path / ENGINES / f"onnx-{precision}"
    if _is(final, key):
        return final
    source, target = load_tokenizers(run.tokenizer, recipe.tokenizer.joint)
    model = known(build(recipe.model, source.size, target.size))
    step, _ = load_run(run, model)
    with disk_errors_named("making the files for --engine onnx", final.parent, "Free some space, or --engine torch."):
        final.parent.mkdir(exist_ok=True)
        with FileLock(final.parent / f".{final.name}.lock"):
            if _is(final, key):  # somebody else was faster
                return final
            for abandoned in final.parent.glob(f".writing-{final.name}-*"):
                remove_folder(abandoned)
            say(f"making {final} from the checkpoint of update {step}, once")
            temporary = final.with_name(f".writing-{final.name}-{os.getpid()}")
            try:
                temporary.mkdir()
                config, _ = write_translator(model, temporary)
                write_config(temporary, {**config, "step": step, "precision": precision})
                verify_steps(model, OnnxStepper(temporary))
                if precision == "int8":
                    quantise(temporary)
                sizes = {path.name: path.stat().st_size for path in temporary.iterdir()}
                about = {"key": key, "sizes": sizes}
                (temporary / KEY).write_text(json.dumps(about) + "\n", encoding="utf-8")
                for path in temporary.iterdir():
                    flush_file(path)
                remove_folder(final)
                temporary.rename(final)
                flush_folder(final.parent)
            finally:
                remove_folder(temporary)
    return final


def _key(run: RunFolder, precision: str, say: Say) -> str:
    """Changes whenever the files would."""
    found = checkpoint.newest_good(run, say, prefer="best")
    if found is None:
        raise BadInput(f"{run.path} has no checkpoint yet. Go on with: jumok train --resume --run {run.path}")
    sums = json.loads((found / checkpoint.CHECKSUMS).read_text(encoding="utf-8"))
    parts = [VERSION, torch.__version__, precision, sums[checkpoint.MODEL], run.recipe().model.model_dump_json()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _is(folder: Path, key: str) -> bool:
    """Whether these are the files that would be made."""
    try:
        about: dict[str, Any] = json.loads((folder / KEY).read_text(encoding="utf-8"))
        whole = all((folder / name).stat().st_size == size for name, size in about["sizes"].items())
        return bool(about["key"] == key and whole and CONFIG in about["sizes"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
