"""A Vision Transformer's folder as Hugging Face keeps it: ViTForImageClassification or ViTModel.

The same weights go by two sets of names: the long-standing one, which is that of files
(`encoder.layer.0.attention.attention.query`), and the one that transformers 5 has inside
(`layers.0.attention.q_proj`) and can write, too. Either may have `vit.` before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from jumok.errors import BadInput, shortly
from jumok.interop.bert import ACTIVATIONS, COUNTED
from jumok.interop.json_file import read_object, read_object_if_there
from jumok.interop.origin import CLASS_POSITION, CLASS_TOKEN
from jumok.interop.tensors import not_read, read_tensors, tensor_files
from jumok.interop.vit import (
    BLOCK,
    LAST_NORM,
    ONE,
    SCORES,
    STEM,
    ImportedVit,
    Size,
    check_shape,
    class_names,
    expected_sizes,
    flat,
    made_section,
    place_of,
    placed,
    product,
    sides,
    three,
    with_kinds,
    without_biases,
)
from jumok.recipe import VitSection

CLASS, POSITIONS = "class token", "positions"  # two of theirs that become others here
AROUND = {
    "embeddings.cls_token": CLASS,
    "embeddings.position_embeddings": POSITIONS,
    **with_kinds(
        {"embeddings.patch_embeddings.projection": STEM, "layernorm": LAST_NORM, "classifier": SCORES},
    ),
}
# in a layer: ours → theirs in files, theirs inside of transformers 5
LAYER = {
    "attention_norm.norm": ("layernorm_before", "layernorm_before"),
    "attention.query": ("attention.attention.query", "attention.q_proj"),
    "attention.key": ("attention.attention.key", "attention.k_proj"),
    "attention.value": ("attention.attention.value", "attention.v_proj"),
    "attention.output": ("attention.output.dense", "attention.o_proj"),
    "feed_forward_norm.norm": ("layernorm_after", "layernorm_after"),
    "feed_forward.inner": ("intermediate.dense", "mlp.fc1"),
    "feed_forward.outer": ("output.dense", "mlp.fc2"),
}
LAYERS = ("encoder.layer.{}", "layers.{}")
NAMES = AROUND | with_kinds(
    {f"{layers}.{theirs}": f"{BLOCK}.{ours}" for layers in LAYERS for ours, both in LAYER.items() for theirs in both}
)
OF_THE_MODEL = ("embeddings.", "encoder.", "layers.", "layernorm.")  # all else stands on it and may be left out
ONLY_FOR_PRETRAINING = "embeddings.mask_token"
# as their configuration has it where a file does not say
USUAL: dict[str, Any] = {
    "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
    "layer_norm_eps": 1e-12, "image_size": 224, "patch_size": 16, "num_channels": 3, "qkv_bias": True,
    "hidden_act": "gelu", "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
KEYS = {
    "width": "hidden_size", "layers": "num_hidden_layers", "heads": "num_attention_heads",
    "feed_forward": "intermediate_size", "norm_epsilon": "layer_norm_eps", "image": "image_size", "patch": "patch_size",
    "channels": "num_channels", "dropout": "hidden_dropout_prob", "attention_dropout": "attention_probs_dropout_prob",
}  # fmt: skip
PREPROCESSOR = "preprocessor_config.json"
BICUBIC = 3  # Pillow's number for how images are brought to size here
BYTE = 1 / 255


def section_of(config: Mapping[str, Any], where: str, folder: Path, notes: list[str]) -> VitSection:
    """The model that a configuration describes; what cannot be computed here as it is there is refused."""
    values = {ours: config.get(theirs, USUAL[theirs]) for ours, theirs in KEYS.items()}
    for ours in ("image", "patch"):
        values[ours] = sides(values[ours], f"{where}: {KEYS[ours]}")
    activation = config.get("hidden_act", USUAL["hidden_act"])
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise BadInput(f"{where}: hidden_act {shortly(activation)} is not one of {', '.join(ACTIVATIONS)}")
    mean, deviation = _levels(folder / PREPROCESSOR, notes)
    given = {"activation": ACTIVATIONS[activation], "mean": mean, "deviation": deviation, "antialias": False}
    return made_section({**values, **given}, KEYS, where)


def read_vit(folder: Path) -> ImportedVit:
    """Everything in a folder with config.json and safetensors; what does not fit together is named."""
    where = folder / "config.json"
    config, notes = read_object(where), list[str]()
    section = section_of(config, str(where), folder, notes)
    files = tensor_files(folder)
    has_bias = bool(config.get("qkv_bias", USUAL["qkv_bias"]))
    try:
        names = _names(files, section, has_bias)
    except BadInput as error:
        raise BadInput(f"{folder}: {error}") from None
    if not has_bias:
        notes.append("its queries, keys and values have no bias (qkv_bias): zeros stand there")
    notes += not_read([name for name in files if name not in names.values()])
    stored = read_tensors(files, names.values())
    tensors = {ours: stored[theirs] for ours, theirs in names.items()}
    scores = tensors.get(f"{SCORES}.weight")
    count = None if scores is None else len(scores) if scores.dim() else 0
    for ours, tensor in tensors.items():
        check_shape(tensor, _sizes(ours, section, count or 0), f"{files[names[ours]]}: {names[ours]}", "config.json")
    classes = class_names(config.get("id2label"), count, f"{where}: id2label")
    token, positions = tensors.pop(CLASS), tensors.pop(POSITIONS)
    tensors[f"{STEM}.weight"] = flat(tensors[f"{STEM}.weight"])
    weights = tensors | placed(token[0], positions[0], section.grid)
    weights |= without_biases(weights, section.layers)
    origin = {CLASS_TOKEN: token[0, 0], CLASS_POSITION: positions[0, 0], "qkv_bias": has_bias}
    return ImportedVit(section, weights, classes, _resize(folder / PREPROCESSOR, section, notes), notes, origin)


def _names(files: Iterable[str], section: VitSection, has_bias: bool) -> dict[str, str]:
    """Ours → theirs."""
    found: dict[str, str] = {}
    unknown = []
    for name in files:
        bare = name.removeprefix("vit.")
        ours = place_of(bare, NAMES)
        if ours in found:
            raise BadInput(f"two tensors for one weight: {found[ours]} and {name}")
        if ours is not None:
            found[ours] = name
        elif bare.startswith(OF_THE_MODEL) and bare != ONLY_FOR_PRETRAINING:
            unknown.append(name)
    wanted = list(_wanted(section, has_bias, any(f"{SCORES}." in ours for ours in found), len(found) + 1))
    missing = [ours for ours in wanted if ours not in found]
    if missing:
        newer = any(name.removeprefix("vit.").startswith("layers.") for name in found.values())
        layers = f" (config.json has num_hidden_layers {section.layers})" if COUNTED.search(missing[0]) else ""
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise BadInput(f"there is no tensor {_theirs(missing[0], newer)}{more}{layers}; fetch the weights again")
    if unknown:
        raise BadInput(
            f"{unknown[0]}: nothing here computes with such a tensor; this Vision Transformer is of another kind"
        )
    return {ours: found[ours] for ours in wanted}


def _wanted(section: VitSection, has_bias: bool, has_classifier: bool, most: int) -> Iterator[str]:
    """The names of all weights; `most` keeps the number of layers that a file claims within bounds."""
    yield from (ours for ours in AROUND.values() if has_classifier or not ours.startswith(SCORES))
    for layer in range(min(section.layers, most)):
        for ours in LAYER:
            yield f"{BLOCK.format(layer)}.{ours}.weight"
            if has_bias or ours not in ("attention.query", "attention.key", "attention.value"):
                yield f"{BLOCK.format(layer)}.{ours}.bias"


def _theirs(ours: str, newer: bool) -> str:
    """What they call a weight of ours."""
    pattern = COUNTED.sub(".{}.", ours)
    names = [theirs for theirs, name in NAMES.items() if name == pattern]
    chosen = [theirs for theirs in names if theirs.startswith("layers.") == newer] or names
    return chosen[-1 if newer else 0].format(*COUNTED.findall(ours))


def _sizes(ours: str, section: VitSection, labels: int) -> tuple[Size, ...]:
    width, places = ("hidden_size", section.width), section.max_positions
    if ours.startswith(f"{SCORES}."):  # how many there are is held against their names
        rows = ("classes", labels)
        return (rows, width) if ours.endswith("weight") else (rows,)
    if ours == CLASS:
        return ONE, ONE, width
    if ours == POSITIONS:
        image, patch = ("×".join(map(str, both)) for both in (section.image, section.patch))
        return ONE, (f"image_size {image} in patches of patch_size {patch} and the class token:", places + 1), width
    if ours == f"{STEM}.weight":
        channels = ("num_channels", section.channels)
        return width, channels, ("patch_size", section.patch[0]), ("patch_size", section.patch[1])
    return expected_sizes(ours, width, ("intermediate_size", section.feed_forward))


def _levels(file: Path, notes: list[str]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of values from 0 to 1. There: (v · factor − mean) / std, where v goes from 0 to 255."""
    told = read_object_if_there(file)
    if not told:
        notes.append(f"there is no {PREPROCESSOR}: values are taken to be normalised with mean and deviation 0.5")
    mean = three(told.get("image_mean", 0.5), f"{file}: image_mean")
    deviation = three(told.get("image_std", 0.5), f"{file}: image_std")
    if told.get("do_normalize") is False:
        mean, deviation = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    (factor, _, _) = three(told.get("rescale_factor", BYTE), f"{file}: rescale_factor")
    factor = 1.0 if told.get("do_rescale") is False else factor
    if factor <= 0:
        raise BadInput(f"{file}: rescale_factor is {factor}; it must be more than 0")
    if abs(factor / BYTE - 1) < 1e-6:
        return mean, deviation
    return tuple(one * BYTE / factor for one in mean), tuple(one * BYTE / factor for one in deviation)


def _resize(file: Path, section: VitSection, notes: list[str]) -> str:
    """How images are brought to size: all of them out of shape, or what is in the middle."""
    told = read_object_if_there(file)
    size = told.get("crop_size") if told.get("do_center_crop") else told.get("size")
    if isinstance(size, dict):
        size = [size.get("height", size.get("shortest_edge")), size.get("width", size.get("shortest_edge"))]
    if size is not None and sides(size, f"{file}: size") != section.image:
        notes.append(
            f"{PREPROCESSOR} brings images to {product(sides(size, str(file)))}, config.json has image_size "
            f"{product(section.image)}: the latter it is here"
        )
    if told.get("do_resize", True) and told.get("resample", BICUBIC) != BICUBIC:
        notes.append(
            f"{PREPROCESSOR} brings images to size with resample {told['resample']}, jumok with {BICUBIC} (bicubic): "
            "scores of images of another size will differ a little"
        )
    return "crop" if told.get("do_center_crop") else "squash"
