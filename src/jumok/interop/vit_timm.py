"""A Vision Transformer as timm keeps it: a folder of its repositories, or a safetensors file alone.

Queries, keys and values lie in one matrix, [W_q; W_k; W_v]. A class token that stands for nothing in the end, because
the mean over patches does, is a register.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from jumok.errors import BadInput
from jumok.interop.tensors import not_read, read_tensors, tensor_files
from jumok.interop.timm_config import told_beside
from jumok.interop.timm_names import CLASS, POSITIONS, REGISTERS, names_of
from jumok.interop.timm_sizes import Sizes
from jumok.interop.vit import (
    SCORES,
    STEM,
    TOKENS,
    ImportedVit,
    class_names,
    flat,
    made_section,
    placed,
    without_biases,
)
from jumok.recipe import VitSection

# what a wrong value of the section is called there
KEYS = {
    "image": "input_size", "channels": "patch_embed.proj.weight", "patch": "patch_embed.proj.weight",
    "heads": "num_heads", "mean": "mean", "deviation": "std", "registers": "reg_token", "layer_scale": "init_values",
}  # fmt: skip


def read_timm(path: Path, heads: int | None = None) -> ImportedVit:
    """A folder with model.safetensors and config.json, or a safetensors file. `heads` is for who knows better."""
    if path.is_file() and path.suffix != ".safetensors":
        raise BadInput(f"{path}: only safetensors files can be read; files of other kinds can run programs")
    if not path.exists():
        raise BadInput(f"{path}: there is no such file or folder")
    told, files, notes = told_beside(path), tensor_files(path), list[str]()
    try:
        names = names_of(files, told.has_positions, told.has_last_norm)
        tensors = _read(files, names)
        sizes = Sizes(tensors, names, told)
        section = made_section(sizes.values(heads, notes), KEYS, told.where or str(path))
        sizes.check(section)
    except BadInput as error:
        named = str(error).startswith((str(path), told.where or str(path)))
        raise error if named else BadInput(f"{path}: {error}") from None
    notes += not_read([name for name in files if name not in names.values()])
    weights = _taken_apart(tensors, section)
    weights[f"{STEM}.weight"] = flat(weights[f"{STEM}.weight"])
    tokens = torch.cat([*sizes.tokens, torch.zeros(0, section.width)])
    if POSITIONS in tensors:
        weights |= placed(tokens, tensors[POSITIONS][0], section.grid)
    elif len(tokens):
        weights[TOKENS] = tokens
    if not sizes.biased:
        notes.append("its queries, keys and values have no bias (qkv_bias): zeros stand there")
        weights |= without_biases(weights, section.layers)
    if not told:
        notes.append("there is no config.json of timm: what the tensors do not say is taken to be as usual (gelu)")
    count = sizes.classes if f"{SCORES}.weight" in tensors else (told.number("num_classes", 0) or None)
    classes = class_names(told.root.get("label_names"), count, f"{told.where}: label_names")
    return ImportedVit(section, weights, classes, told.resize, notes)


def _read(files: Mapping[str, Path], names: Mapping[str, str]) -> dict[str, Tensor]:
    tensors = read_tensors(files, names.values())
    return {ours: tensors[theirs] for ours, theirs in names.items()}


def _taken_apart(tensors: Mapping[str, Tensor], section: VitSection) -> dict[str, Tensor]:
    """Queries, keys and values each by itself."""
    found = {}
    for ours, tensor in tensors.items():
        if ".together." in ours:
            for part, rows in zip(("query", "key", "value"), torch.split(tensor, section.width), strict=True):
                found[ours.replace("together", part)] = rows.clone()
        elif ours not in (CLASS, REGISTERS, POSITIONS):
            found[ours] = tensor
    return found
