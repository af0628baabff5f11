"""Which parts a Vision Transformer has."""

from __future__ import annotations

from itertools import zip_longest

from torch import nn

from jumok.inspect.architecture import Architecture, Column, Part
from jumok.inspect.architecture_parts import Told, linear_sizes, norm_part, size, stack_parts
from jumok.layers.embedding import Patches
from jumok.layers.position import Grid
from jumok.models.recognizer_encoders import Stem
from jumok.models.vit import ImageLabeller, Vit

POOLED = {
    "class": "of the class token",
    "mean": "the mean over all patches",
    "sequence": "a mean over all patches, weighed by what they say of themselves",
}


def vision_architecture(model: ImageLabeller, told: Told, name: str, notes: tuple[str, ...] = ()) -> Architecture:
    reader, section = model.reader, model.section
    pooled = Part("pooling", "plain", POOLED[section.pooling], "", 0 if model.weigh is None else size(model.weigh))
    parts = [*patch_parts(reader, told), *stack_parts(reader.encoder, told), pooled]
    if not isinstance(model.norm, nn.Identity):
        parts.append(norm_part(model.norm, told))
    parts.append(Part("scores", "output", linear_sizes(model.scores), told.of(model.scores), size(model.scores)))
    kind = "Vision Transformer" if section.stem == "patch" else "Compact Convolutional Transformer"
    column = Column(kind, "images", told.input, tuple(parts), "the class")
    grid = section.grid
    letters = ("B images", f"{reader.added + grid[0] * grid[1]} tokens: {_tokens(reader)}")
    return Architecture(f"{name}: {kind}", (column,), (), size(model), letters, notes)


def _tokens(reader: Vit) -> str:
    section, grid = reader.section, reader.section.grid
    told = [f"{grid[0]} × {grid[1]} patches"]
    if section.registers:
        told.insert(0, f"{section.registers} register{'s' * (section.registers > 1)}")
    if section.pooling == "class":
        told.insert(0, "the class token")
    return ", ".join(told)


def patch_parts(reader: Vit, told: Told) -> list[Part]:
    """From the image to what the first block reads."""
    section, stem = reader.section, reader.stem
    if isinstance(stem, Stem):
        parts = [_stem_part(stem, told)]
    elif isinstance(stem, Patches):
        about = f"of {section.patch[0]} × {section.patch[1]} pixels, {linear_sizes(stem.map)}"
        parts = [Part("patches", "embedding", about, told.of(stem), size(stem))]
    else:
        count = len(stem.layers)
        each = "each" if stem.depth == 1 else f"every {stem.depth}"
        normed = ", a norm behind each" if section.stem_layer_norms else ""
        about = (
            f"{count} layer{'s' * (count > 1)} of 3 × 3{normed}, {each} with the largest of 3 × 3 at every second place"
        )
        parts = [Part("convolutions", "embedding", about, told.of(stem), size(stem))]
    if section.stem_norm:
        parts.append(norm_part(reader.stem_norm, told))
    if isinstance(reader.positions, Grid):
        about = f"learned, {section.grid[0]} × {section.grid[1]} places, added"
        parts.append(Part("positions", "plain", about, "", size(reader.positions)))
    elif reader.positions is not None:
        parts.append(Part("positions", "plain", "sines of row and column, added"))
    if reader.tokens is not None:
        parts.append(Part("tokens", "plain", f"{_tokens(reader)}, in this order", "", reader.tokens.numel()))
    return parts


def _stem_part(stem: Stem, told: Told) -> Part:
    layers = [layer for layer in stem.layers if isinstance(layer, nn.Conv2d)]
    inside = tuple(
        convolution_part(
            layer,
            norm,
            ["gelu"] * (norm is not None) + ["added to what came in"] * (number % stem.depth > 0),
            told.of(layer),
        )
        for number, (layer, norm) in enumerate(zip_longest(layers, stem.norms))
    )
    return Part("patches by convolutions", "embedding", "", told.of(stem), size(stem), inside)


def convolution_part(layer: nn.Conv2d, norm: nn.Module | None, after: list[str], shape: str) -> Part:
    """A convolution, and what follows it before the next."""
    about = [f"{layer.in_channels} → {layer.out_channels}"]
    if layer.stride != (1, 1):
        about.append(f"in steps of {layer.stride[0]} × {layer.stride[1]}")
    about += [*([] if norm is None else [type(norm).__name__]), *after]
    name = f"convolution of {layer.kernel_size[0]} × {layer.kernel_size[1]}"
    return Part(name, "embedding", ", ".join(about), shape, size(layer, norm))
