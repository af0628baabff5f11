"""A Marian model's folder (MarianMT, OPUS-MT) as Hugging Face keeps it, read whole, and its weights written back.

Its tensors go by other names, and their words stand in another order (see marian_tokenizer.py). `Layout` says how, so
that export gives every tensor back as it was, bit by bit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from jumok.errors import BadInput
from jumok.interop.json_file import read_object, read_object_if_there
from jumok.interop.marian_config import not_searched, search_of, section_of, shares, target_rows
from jumok.interop.marian_tokenizer import Vocabulary, read_vocabularies
from jumok.interop.tensors import not_read, read_tensors, tensor_files
from jumok.layers.position import Sinusoidal
from jumok.recipe import TransformerSection
from jumok.text.special import START

NEVER = -1e4  # the bias of <sos>, which their output layer does not have: e^-10000 is 0 in float32
BIAS, POSITIONS, KEPT = "final_logits_bias", "positions", "kept"
# in their checkpoints → here; {} is the number of a layer
ATTENTION = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}
PARTS = {
    **{f"self_attn.{theirs}": f"attention.{ours}" for theirs, ours in ATTENTION.items()},
    "self_attn_layer_norm": "attention_norm.norm",
    "fc1": "feed_forward.inner",
    "fc2": "feed_forward.outer",
    "final_layer_norm": "feed_forward_norm.norm",
}
CROSS = {
    **{f"encoder_attn.{theirs}": f"cross.{ours}" for theirs, ours in ATTENTION.items()},
    "encoder_attn_layer_norm": "cross_norm.norm",
}
SHARED = (
    "model.shared.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)
LAYER = re.compile(r"\.(\d+)\.")
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


@dataclass(frozen=True)
class Layout:
    """How a run's weights lie in the checkpoint that it came from."""

    source: list[int]  # for each row of our word vectors, theirs
    target: list[int]
    tensors: dict[str, tuple[str, str]]  # by their names: ours, and the type of the numbers
    positions: int  # rows of their table of positions

    def to_json(self) -> str:
        return json.dumps({"format": 1, **asdict(self)}) + "\n"

    @classmethod
    def read(cls, file: Path) -> Layout:
        raw = read_object(file)
        try:
            tensors = {str(name): (str(ours), str(dtype)) for name, (ours, dtype) in raw["tensors"].items()}
            return cls(list(raw["source"]), list(raw["target"]), tensors, int(raw["positions"]))
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"{file}: damaged ({error}); import the checkpoint again") from None


@dataclass(frozen=True)
class ImportedMarian:
    section: TransformerSection
    source: Vocabulary
    target: Vocabulary
    weights: dict[str, Tensor]  # of `models.transformer.Transformer`, in float32
    kept: dict[str, Tensor]  # tensors that follow from a formula, but not to the last bit; by their names
    search: dict[str, Any]  # as in a recipe
    layout: Layout
    notes: list[str]


def read_marian(folder: Path) -> ImportedMarian:
    """Everything in a folder; what does not fit together is named."""
    where = folder / "config.json"
    config = read_object(where)
    section = section_of(config, str(where))
    files = tensor_files(folder)
    notes: list[str] = []
    names = _places(files, section)
    _complete(names, files, section, folder)
    types = _types(files, names)
    tensors = read_tensors(files, names)
    rows = {"source": config["vocab_size"], "target": target_rows(config, str(where))}
    for theirs, ours in names.items():  # before anything is made as large as config.json says
        _check_shape(tensors[theirs], ours, section, rows, f"{files[theirs]}: {theirs}")
    source, target = read_vocabularies(folder, config)
    weights: dict[str, Tensor] = {}
    kept: dict[str, Tensor] = {}
    for theirs, ours in names.items():
        place = f"{files[theirs]}: {theirs}"
        if ours == POSITIONS:
            _check_positions(tensors[theirs], section, place)
            exact = positions(section.max_positions, section.width).to(DTYPES[types[theirs]]).float()
            if not torch.equal(tensors[theirs], exact):
                kept[theirs] = tensors[theirs]
            continue
        value = _ordered(tensors[theirs], ours, source, target)
        if ours in weights and not torch.equal(weights[ours], value):
            raise BadInput(f"{place} and {_first(names, ours)} should be the same numbers (config.json ties them)")
        weights[ours] = value
    if "bias" not in weights:
        notes.append(f"there is no {BIAS}: it is zero")
        weights["bias"] = _ordered(torch.zeros(1, rows["target"]), "bias", source, target)
    if any(ours == POSITIONS and types[theirs] != "F32" for theirs, ours in names.items()):
        notes.append("its table of positions is rounded to half precision; here it is computed anew in float32")
    notes += not_read([name for name in files if name not in names])
    if shares(config) is False:
        notes.append(f"separate vocabularies: {rows['source']:,} and {rows['target']:,} tokens")
    layout = Layout(
        source.rows,
        target.rows,
        {theirs: (KEPT if theirs in kept else ours, types[theirs]) for theirs, ours in names.items()},
        config["max_position_embeddings"],
    )
    generation = read_object_if_there(folder / "generation_config.json")
    search = search_of(config, generation)
    notes += not_searched(config, generation)
    return ImportedMarian(section, source, target, weights, kept, search, layout, notes)


def given_back(
    layout: Layout, weights: Mapping[str, Tensor], kept: Mapping[str, Tensor], section: TransformerSection
) -> dict[str, Tensor]:
    """Their tensors again, from ours."""
    found = {}
    for theirs, (ours, dtype) in layout.tensors.items():
        if ours == POSITIONS:
            value = positions(layout.positions, section.width)
        elif ours == KEPT:
            value = kept[theirs]
        else:
            value = _in_their_order(weights[ours], ours, layout)
        found[theirs] = value.to(DTYPES[dtype]).contiguous()
    return found


def plain_names(section: TransformerSection) -> dict[str, str]:
    """Their name of each weight of ours, for a model that never was theirs."""
    return dict(_layers(section)) | _embeddings(section) | {BIAS: "bias"}


def _embeddings(section: TransformerSection) -> dict[str, str]:
    if section.tie_embeddings == "all":
        return {SHARED[0]: "embedding.weight"}
    both = {SHARED[1]: "source_embedding.weight", SHARED[2]: "embedding.weight"}
    return both | ({SHARED[3]: "weight"} if section.tie_embeddings == "none" else {})


def positions(rows: int, width: int) -> Tensor:
    """Their table: all sines, then all cosines."""
    return Sinusoidal(width, halves=True).formula(torch.arange(rows, dtype=torch.float64)).float()


def _layers(section: TransformerSection, most: int | None = None) -> Iterator[tuple[str, str]]:
    """Theirs and ours; `most` keeps the number of layers that a file claims within bounds."""
    for half, layers, parts in (
        ("encoder", section.encoder_layers, PARTS),
        ("decoder", section.decoder_layers, {**PARTS, **CROSS}),
    ):
        for layer in range(layers if most is None else min(layers, most)):
            for theirs, ours in parts.items():
                for kind in ("weight", "bias"):
                    yield f"model.{half}.layers.{layer}.{theirs}.{kind}", f"{half}.blocks.{layer}.{ours}.{kind}"


def _places(files: Iterable[str], section: TransformerSection) -> dict[str, str]:
    """Of all tensors that are there, those that are read, and what they are here."""
    there = set(files)
    known = dict(_layers(section, len(there) + 1)) | {BIAS: "bias"}
    known |= {f"model.{half}.embed_positions.weight": POSITIONS for half in ("encoder", "decoder")}
    if section.tie_embeddings == "all":
        known |= dict.fromkeys(SHARED, "embedding.weight")
    else:
        known |= {SHARED[1]: "source_embedding.weight", SHARED[2]: "embedding.weight"}
        known[SHARED[3]] = "embedding.weight" if section.tie_embeddings == "target" else "weight"
    return {name: known[name] for name in sorted(there) if name in known}


def _complete(names: Mapping[str, str], files: Mapping[str, Path], section: TransformerSection, folder: Path) -> None:
    wanted = {ours: theirs for theirs, ours in _layers(section, len(files) + 1)}
    wanted |= {ours: theirs for theirs, ours in _embeddings(section).items()}
    have = set(names.values())
    missing = [theirs for ours, theirs in wanted.items() if ours not in have]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        layers = f"encoder_layers {section.encoder_layers}, decoder_layers {section.decoder_layers}"
        told = f" (config.json has {layers})" if LAYER.search(missing[0]) else ""
        raise BadInput(f"{folder}: there is no tensor {missing[0]}{more}{told}; fetch the weights again")


def _types(files: Mapping[str, Path], names: Iterable[str]) -> dict[str, str]:
    """How each tensor's numbers are kept."""
    found = {}
    wanted = set(names)
    for file in dict.fromkeys(files[name] for name in wanted):
        try:
            with safe_open(file, "pt") as stored:
                for name in wanted & {name for name in files if files[name] == file}:
                    found[name] = str(stored.get_slice(name).get_dtype())
        except (SafetensorError, OSError) as error:
            raise BadInput(f"{file}: damaged ({error}); fetch the file again") from None
    for name, dtype in found.items():
        if dtype not in DTYPES:
            raise BadInput(f"{files[name]}: {name}: its numbers are {dtype}; {', '.join(DTYPES)} can be read")
    return found


def _check_shape(tensor: Tensor, ours: str, section: TransformerSection, rows: Mapping[str, int], place: str) -> None:
    width, inner = ("d_model", section.width), ("encoder_ffn_dim", section.feed_forward)
    target = ("vocab_size" if section.tie_embeddings == "all" else "decoder_vocab_size", rows["target"])
    if ours in ("embedding.weight", "weight"):
        expected = [target, width]
    elif ours == "source_embedding.weight":
        expected = [("vocab_size", rows["source"]), width]
    elif ours == "bias":
        expected = [("", 1), target]
    elif ours == POSITIONS:
        expected = [("max_position_embeddings", section.max_positions), width]
    elif ours.endswith(".bias") or "_norm." in ours:
        expected = [inner if "inner" in ours else width]
    else:
        expected = [inner if "inner" in ours else width, inner if "outer" in ours else width]
    found, wanted = tuple(tensor.shape), tuple(size for _, size in expected)
    if found != wanted:
        unequal = [f"{key} {size}" for (key, size), have in zip(expected, found, strict=False) if have != size and key]
        keys = " and ".join(dict.fromkeys(unequal or [f"{key} {size}" for key, size in expected if key]))
        raise BadInput(
            f"{place} is {_product(found)}, but config.json asks for {_product(wanted)} ({keys}); one of the two files "
            "is of another model"
        )


def _check_positions(table: Tensor, section: TransformerSection, place: str) -> None:
    difference = float((table - positions(table.size(0), section.width)).abs().max())
    if not difference < 2e-3:  # of float16
        raise BadInput(f"{place}: these are not the sines and cosines of positions (they differ by {difference:.1e})")


def _product(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "one number"


def _first(names: Mapping[str, str], ours: str) -> str:
    return next(theirs for theirs, name in names.items() if name == ours)


def _ordered(tensor: Tensor, ours: str, source: Vocabulary, target: Vocabulary) -> Tensor:
    if ours == "bias":
        bias = tensor[0, target.rows]
        bias[START] = NEVER
        return bias
    if ours in ("embedding.weight", "weight"):
        return tensor[target.rows]
    return tensor[source.rows] if ours == "source_embedding.weight" else tensor


def _in_their_order(tensor: Tensor, ours: str, layout: Layout) -> Tensor:
    if ours not in ("embedding.weight", "weight", "source_embedding.weight", "bias"):
        return tensor
    rows = torch.tensor(layout.source if ours == "source_embedding.weight" else layout.target)
    chosen = torch.arange(len(rows)) != START  # its bias is ours alone; its vector is that of <pad>
    found = torch.zeros(len(rows) - 1, *tensor.shape[1:])
    found[rows[chosen]] = tensor[chosen]
    if ours == "embedding.weight":
        found[rows[START]] = tensor[START]  # which the decoder begins with
    return found[None] if ours == "bias" else found
