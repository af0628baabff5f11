"""What a run keeps of the Marian checkpoint that it was imported from, in its folder `marian/`: the files beside the
weights as they were, and `layout.json`, which says how the weights lay in theirs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from jumok.errors import BadInput
from jumok.files import replace_file
from jumok.interop.marian import ImportedMarian, Layout
from jumok.training.run import RunFolder

FOLDER, LAYOUT, TABLES = "marian", "layout.json", "kept.safetensors"
FILES = (
    "config.json", "generation_config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.json", "target_vocab.json", "source.spm", "target.spm",
)  # fmt: skip


@dataclass(frozen=True)
class Originals:
    layout: Layout
    kept: dict[str, Tensor]
    files: dict[str, Path]


def keep_originals(folder: Path, run: RunFolder, found: ImportedMarian) -> None:
    place = run.path / FOLDER
    place.mkdir()
    for name in FILES:
        if (folder / name).is_file():
            shutil.copyfile(folder / name, place / name)
    if found.kept:
        save_file({name: tensor.contiguous() for name, tensor in found.kept.items()}, place / TABLES)
    replace_file(place / LAYOUT, found.layout.to_json())


def originals(run: RunFolder) -> Originals | None:
    """None: the run was not imported from Marian."""
    place = run.path / FOLDER
    if not (place / LAYOUT).is_file():
        return None
    try:
        kept = load_file(place / TABLES) if (place / TABLES).is_file() else {}
    except (SafetensorError, OSError, ValueError) as error:
        raise BadInput(f"{place / TABLES}: damaged ({error}); import the checkpoint again") from None
    files = {name: place / name for name in FILES if (place / name).is_file()}
    return Originals(Layout.read(place / LAYOUT), kept, files)
