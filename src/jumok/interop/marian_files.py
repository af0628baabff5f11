"""What a run keeps of the Marian checkpoint that it was imported from, in its folder `marian/`: the files beside the
weights as they were, and `layout.json`, which says how the weights lay in theirs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from jumok.errors import BadInput
from jumok.files import replace_file
from jumok.interop.export_folder import save_weights
from jumok.interop.json_file import MOST_BYTES
from jumok.interop.marian import ImportedMarian, Layout
from jumok.interop.tensors import is_inside
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


def check_files(folder: Path) -> None:
    """They are copied as they are: none may be a link to something of its reader's that is none of the model's."""
    for name in FILES:
        file = folder / name
        if not file.is_file():
            continue
        if not is_inside(folder, file):
            raise BadInput(f"{file}: a link that leads out of the folder; put the file itself there")
        if file.stat().st_size > MOST_BYTES:
            raise BadInput(f"{file}: more than {MOST_BYTES:,} bytes, which no such file has; fetch the file again")


def keep_originals(folder: Path, run: RunFolder, found: ImportedMarian) -> None:
    place = run.path / FOLDER
    place.mkdir()
    for name in FILES:
        if (folder / name).is_file():
            shutil.copyfile(folder / name, place / name)
    if found.kept:
        save_weights({name: tensor.contiguous() for name, tensor in found.kept.items()}, place / TABLES)
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
