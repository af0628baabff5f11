"""Vision Transformers in timm's layout, written from the equations: random weights under timm's names, and what a model
with them computes. `arguments` are those of timm's VisionTransformer, as far as they matter here.

    x = [c; r; E p_1 + P_1; …]    x ← x + λ_1 ⊙ attention(norm(x))    x ← x + λ_2 ⊙ mlp(norm(x))    y = W pool(norm(x))
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

USUAL: dict[str, Any] = {
    "img_size": (12, 12), "patch_size": (4, 4), "in_chans": 3, "num_classes": 5, "global_pool": "token",
    "embed_dim": 16, "depth": 2, "num_heads": 2, "mlp_ratio": 2.0, "qkv_bias": True, "init_values": None,
    "class_token": True,
    "no_embed_class": False, "reg_tokens": 0, "fc_norm": None, "final_norm": True,
}  # fmt: skip
EPSILON = 1e-6


def complete(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """With what is not named as it usually is; fc_norm: wherever patches are pooled."""
    whole = {**USUAL, **arguments}
    if whole["fc_norm"] is None:
        whole["fc_norm"] = whole["global_pool"] == "avg"
    return whole


def grid_of(whole: Mapping[str, Any]) -> tuple[int, int]:
    (height, width), (rows, columns) = whole["img_size"], whole["patch_size"]
    return height // rows, width // columns


def random_state(arguments: Mapping[str, Any]) -> dict[str, Tensor]:
    """All tensors of such a model, none of them zeros or ones."""
    whole = complete(arguments)
    width, inner = whole["embed_dim"], int(whole["embed_dim"] * whole["mlp_ratio"])
    before, places = whole["class_token"] + whole["reg_tokens"], math.prod(grid_of(whole))
    shapes: dict[str, tuple[int, ...]] = {
        "pos_embed": (1, places + (0 if whole["no_embed_class"] else before), width),
        "patch_embed.proj.weight": (width, whole["in_chans"], *whole["patch_size"]),
        "patch_embed.proj.bias": (width,),
    }
    if whole["class_token"]:
        shapes["cls_token"] = (1, 1, width)
    if whole["reg_tokens"]:
        shapes["reg_token"] = (1, whole["reg_tokens"], width)
    for number in range(whole["depth"]):
        block = f"blocks.{number}"
        for name, rows, columns in (("attn.qkv", 3 * width, width), ("attn.proj", width, width),
                                    ("mlp.fc1", inner, width), ("mlp.fc2", width, inner)):  # fmt: skip
            shapes |= {f"{block}.{name}.weight": (rows, columns), f"{block}.{name}.bias": (rows,)}
        if not whole["qkv_bias"]:
            del shapes[f"{block}.attn.qkv.bias"]
        for name in ("norm1", "norm2"):
            shapes |= {f"{block}.{name}.weight": (width,), f"{block}.{name}.bias": (width,)}
        if whole["init_values"]:
            shapes |= {f"{block}.ls1.gamma": (width,), f"{block}.ls2.gamma": (width,)}
    if whole["final_norm"]:
        norm = "fc_norm" if whole["fc_norm"] else "norm"
        shapes |= {f"{norm}.weight": (width,), f"{norm}.bias": (width,)}
    if whole["num_classes"]:
        shapes |= {"head.weight": (whole["num_classes"], width), "head.bias": (whole["num_classes"],)}
    return {
        name: 0.3 * torch.randn(shape) + 1.0 * ("norm" in name and "weight" in name) for name, shape in shapes.items()
    }


def _norm(state: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    """(x − μ) / √(σ² + ε) · g + b; nothing, where there is no such norm."""
    if f"{name}.weight" not in state:
        return x
    centred = x - x.mean(dim=-1, keepdim=True)
    spread = (centred.square().mean(dim=-1, keepdim=True) + EPSILON).sqrt()
    return centred / spread * state[f"{name}.weight"] + state[f"{name}.bias"]


def _map(state: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    y = x @ state[f"{name}.weight"].T
    return y + state[f"{name}.bias"] if f"{name}.bias" in state else y


def _attention(state: Mapping[str, Tensor], name: str, x_BTD: Tensor, heads: int) -> Tensor:
    query, key, value = (
        part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in _map(state, f"{name}.qkv", x_BTD).chunk(3, dim=-1)
    )
    weights_BHTT = torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(query.size(-1)), dim=-1)
    return _map(state, f"{name}.proj", (weights_BHTT @ value).transpose(1, 2).flatten(2))


def _embedded(state: Mapping[str, Tensor], whole: Mapping[str, Any], pixels_BCHW: Tensor) -> Tensor:
    """Every patch as one long row, times the kernel as one matrix; the positions of patches for whatever grid it is."""
    rows, columns = whole["patch_size"]
    cut = pixels_BCHW.unfold(2, rows, rows).unfold(3, columns, columns)  # (B, C, h, w, rows, columns)
    grid = (cut.size(2), cut.size(3))
    patches = cut.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2) @ state["patch_embed.proj.weight"].flatten(1).T
    tokens = [state[name] for name in ("cls_token", "reg_token") if name in state]
    before = 0 if whole["no_embed_class"] else sum(one.size(1) for one in tokens)
    own, places = state["pos_embed"][:, :before], state["pos_embed"][:, before:]
    if grid != grid_of(whole):
        square = places.unflatten(1, grid_of(whole)).permute(0, 3, 1, 2)
        places = F.interpolate(square, grid, mode="bicubic", antialias=True).permute(0, 2, 3, 1).flatten(1, 2)
    x = patches + state["patch_embed.proj.bias"] + places
    if not tokens:
        return x
    first = torch.cat(tokens, dim=1)
    return torch.cat([(first + own if before else first).expand(len(x), -1, -1), x], dim=1)


def forward(state: Mapping[str, Tensor], arguments: Mapping[str, Any], pixels_BCHW: Tensor) -> tuple[Tensor, Tensor]:
    """Hidden states after the last block (and norm, if that comes before the pooling), and scores."""
    whole = complete(arguments)
    x = _embedded(state, whole, pixels_BCHW)
    for number in range(whole["depth"]):
        block = f"blocks.{number}"
        y = _attention(state, f"{block}.attn", _norm(state, f"{block}.norm1", x), whole["num_heads"])
        x = x + y * state.get(f"{block}.ls1.gamma", torch.ones(()))
        inner = _map(state, f"{block}.mlp.fc1", _norm(state, f"{block}.norm2", x))
        y = _map(state, f"{block}.mlp.fc2", 0.5 * inner * (1 + torch.erf(inner / math.sqrt(2))))
        x = x + y * state.get(f"{block}.ls2.gamma", torch.ones(()))
    x = _norm(state, "norm", x)
    before = whole["class_token"] + whole["reg_tokens"]
    pooled = x[:, 0] if whole["global_pool"] == "token" else x[:, before:].mean(dim=1)
    scores = _map(state, "head", _norm(state, "fc_norm", pooled)) if "head.weight" in state else pooled
    return x, scores
