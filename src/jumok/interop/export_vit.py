"""A Vision Transformer's run as `transformers` keeps such models: ViTForImageClassification, under the names of files,
which all of its versions read.

Only the class token has a position there besides the patches. Here there is one of each, added up once and for all, so
that the token is c + P_0 there with P_0 = 0 (or both as they came, see origin.py).
"""

from __future__ import annotations

import json
from typing import Any

import torch
from torch import Tensor

from jumok.errors import BadInput
from jumok.interop.bert import COUNTED
from jumok.interop.origin import class_token, has
from jumok.interop.outgoing import ROWS, Compared, Outgoing, labels, load_run, refuse
from jumok.interop.vit import BLOCK, LAST_NORM, POOLED_NORM, SCORES, STEM, with_kinds
from jumok.interop.vit_huggingface import BICUBIC, LAYER, PREPROCESSOR
from jumok.layers.position import SinusoidalGrid
from jumok.models.vit import ImageLabeller
from jumok.recipe import Recipe, VitSection
from jumok.tasks.example_task import LABELS
from jumok.tasks.labelling import classes_of, read_labels
from jumok.training.run import RunFolder

PREFIX = "vit."
NAMES = with_kinds(
    {
        LAST_NORM: "layernorm",
        POOLED_NORM: "layernorm",  # of the class token alone; the same, since a norm looks at one token at a time
        **{f"{BLOCK}.{ours}": f"encoder.layer.{{}}.{theirs}" for ours, (theirs, _) in LAYER.items()},
    }
)


def outgoing_vit(run: RunFolder, recipe: Recipe) -> Outgoing:
    """The run's best checkpoint, under their names."""
    section, file = recipe.model, run.path / LABELS
    assert isinstance(section, VitSection)
    _refuse(section)
    classes = classes_of(read_labels(file), file)
    model = ImageLabeller(section, classes.size)
    step, notes = load_run(run, model)
    architecture = "ViTForImageClassification" if has(run, "has_classifier") else "ViTModel"
    biased = has(run, "qkv_bias") or _has_biases(model)
    config = _config(section, architecture, biased)
    if architecture == "ViTModel":
        notes.append("it has no classifier: written as ViTModel, whose pooler is fresh there and means nothing")
    else:
        config |= labels(classes.names)
    if section.position == "sinusoidal":
        notes.append("its sines of row and column are written as learned positions")
    return Outgoing(
        architecture,
        config,
        _weights(run, model, architecture, biased),
        {PREPROCESSOR: json.dumps(_preprocessor(section, recipe.data.resize, notes), indent=1) + "\n"},
        lambda theirs: _compared(model, architecture, theirs),
        "image-classification" if architecture != "ViTModel" else "image-feature-extraction",
        _usage(architecture),
        step,
        notes,
    )


def _refuse(section: VitSection) -> None:
    if section.registers:
        raise BadInput(f"model.registers: {section.registers} cannot be written for transformers, whose ViT has none")
    if section.layer_scale:
        raise BadInput(
            f"model.layer_scale: {section.layer_scale} cannot be written for transformers, whose ViT has no factors"
        )
    allowed: dict[str, tuple[Any, ...]] = {
        "stem": ("patch",), "stem_norm": (False,), "pooling": ("class",), "norm": ("pre",), "norm_kind": ("layer",),
        "final_norm": (None, True), "activation": ("gelu", "relu", "silu"), "key_value_heads": (None, section.heads),
    }  # fmt: skip
    refuse(section, allowed, "ViT")


def _config(section: VitSection, architecture: str, biased: bool) -> dict[str, Any]:
    return {
        "model_type": "vit", "architectures": [architecture], "dtype": "float32", "hidden_size": section.width,
        "num_hidden_layers": section.layers, "num_attention_heads": section.heads,
        "intermediate_size": section.feed_forward, "hidden_act": section.activation,
        "hidden_dropout_prob": section.dropout, "attention_probs_dropout_prob": section.attention_dropout,
        "initializer_range": 0.02, "layer_norm_eps": section.norm_epsilon, "image_size": _sides(section.image),
        "patch_size": _sides(section.patch), "num_channels": section.channels, "qkv_bias": biased,
    }  # fmt: skip


def _sides(both: tuple[int, int]) -> int | list[int]:
    return both[0] if both[0] == both[1] else list(both)


def _has_biases(model: ImageLabeller) -> bool:
    """Whether any bias of queries, keys and values has learned something."""
    return any(
        bool(tensor.any())
        for name, tensor in model.state_dict().items()
        if name.endswith((".query.bias", ".key.bias", ".value.bias"))
    )


def _weights(run: RunFolder, model: ImageLabeller, architecture: str, biased: bool) -> dict[str, Tensor]:
    section, state = model.section, dict(model.state_dict())
    prefix = "" if architecture == "ViTModel" else PREFIX
    tokens_TD = state.pop("reader.tokens")
    places_HWD = state.pop("reader.positions.weight", None)
    if places_HWD is None:
        places_HWD = torch.zeros(*section.grid, section.width)
        if section.position == "sinusoidal":
            places_HWD = SinusoidalGrid(section.width).formula(section.grid)
    token_D, position_D = class_token(run, tokens_TD[0])
    stem = f"{prefix}embeddings.patch_embeddings.projection"
    matrix = state.pop(f"{STEM}.weight")
    found = {
        f"{prefix}embeddings.cls_token": token_D[None, None],
        f"{prefix}embeddings.position_embeddings": torch.cat([position_D[None], places_HWD.flatten(0, 1)])[None],
        f"{stem}.weight": matrix.reshape(section.width, section.channels, *section.patch),
        f"{stem}.bias": state.pop(f"{STEM}.bias"),
    }
    for kind in ("weight", "bias"):
        scores = state.pop(f"{SCORES}.{kind}")
        if architecture != "ViTModel":
            found[f"classifier.{kind}"] = scores
    for name, tensor in state.items():
        if biased or not name.endswith((".query.bias", ".key.bias", ".value.bias")):
            theirs = NAMES[COUNTED.sub(".{}.", name)].format(*COUNTED.findall(name))
            found[f"{prefix}{theirs}"] = tensor
    return {name: tensor.detach().clone().contiguous() for name, tensor in found.items()}


def _preprocessor(section: VitSection, resize: str, notes: list[str]) -> dict[str, Any]:
    height, width = section.image
    told: dict[str, Any] = {
        "image_processor_type": "ViTImageProcessor", "do_resize": True, "size": {"height": height, "width": width},
        "resample": BICUBIC, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
        "image_mean": list(section.mean[: section.channels]), "image_std": list(section.deviation[: section.channels]),
        "do_convert_rgb": section.channels == 3,
    }  # fmt: skip
    if resize == "crop" and height == width:
        middle = {"height": height, "width": width}
        return {**told, "size": {"shortest_edge": height}, "do_center_crop": True, "crop_size": middle}
    if resize != "squash":
        notes.append(
            f"data.resize: {resize}: {PREPROCESSOR} cannot say how images of other sizes are brought to "
            f"{height} × {width}; do it before"
        )
        return {**told, "do_resize": False}
    return told


def _compared(model: ImageLabeller, architecture: str, theirs: Any) -> Compared:
    section = model.section
    images = torch.randint(256, (ROWS, section.channels, *section.image), dtype=torch.uint8)
    mean, deviation = (
        torch.tensor(level[: section.channels])[:, None, None] for level in (section.mean, section.deviation)
    )
    said = theirs(pixel_values=(images / 255 - mean) / deviation)
    if architecture != "ViTModel":
        return model(images), said.logits, f"the scores of {ROWS} random images"
    return model.norm(model.reader(images)), said.last_hidden_state, f"the hidden states of {ROWS} random images"


def _usage(architecture: str) -> str:
    lines = [
        f"from transformers import AutoImageProcessor, {architecture}",
        "",
        'processor = AutoImageProcessor.from_pretrained("FOLDER")',
        f'model = {architecture}.from_pretrained("FOLDER").eval()',
        'output = model(**processor(image, return_tensors="pt"))  # an image of Pillow',
    ]
    if architecture != "ViTModel":
        lines.append("label = model.config.id2label[int(output.logits.argmax())]")
    return "\n".join(lines)
