"""What timm keeps beside the weights of a Vision Transformer: the `config.json` of its repositories.

Most sizes follow from the tensors. Some things do not, above all the number of heads: `model_args` may name them (the
arguments of timm's VisionTransformer), else they follow from the name of the architecture. What a model may have that
none here has is refused by its key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jumok.errors import BadInput, shortly
from jumok.interop.json_file import read_object_if_there
from jumok.interop.vit import sides, three

# of model_args: those that only matter for learning, or for images of sizes that are refused here anyhow
HARMLESS = {
    "drop_rate", "pos_drop_rate", "patch_drop_rate", "proj_drop_rate", "attn_drop_rate", "drop_path_rate",
    "weight_init", "fix_init", "dynamic_img_size", "dynamic_img_pad",
}  # fmt: skip
# those that say how large something is, or where; each is held against the weights
DESCRIBING = {
    "img_size", "patch_size", "in_chans", "num_classes", "global_pool", "embed_dim", "depth", "num_heads", "mlp_ratio",
    "qkv_bias", "init_values", "class_token", "no_embed_class", "reg_tokens", "final_norm", "fc_norm", "act_layer",
    "pos_embed",
}  # fmt: skip
# those that may be named as long as they say what a model here has, too
ONLY: dict[str, tuple[Any, ...]] = {
    "norm_layer": (None, "layernorm"),
    "attn_layer": (None, "", "attn"),
    "block_fn": (None,),
    "mlp_layer": (None,),
    "embed_layer": (None,),
    "embed_norm_layer": (None,),
    "qk_norm": (False,),
    "pre_norm": (False,),
    "proj_bias": (True,),
    "scale_attn_norm": (False,),
    "scale_mlp_norm": (False,),
    "pool_include_prefix": (False,),
}
ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "silu": "silu", "swish": "silu"}
# parts of the names of architectures whose weights look like the others', but are computed with in another way
OTHERWISE = {
    "_rpn_": "its norms come after attention and feed-forward network",
    "quickgelu": "its activation is quick_gelu",
    "vit_base_patch32_siglip_gap": "its activation is gelu_tanh",
    "vit_large_patch16_siglip_gap_512": "its activation is gelu_tanh",
    "vit_so400m_patch16_siglip": "its activation is gelu_tanh",
    "vit_giantopt_": "its activation is gelu_tanh",
}
FAMILIES = ("vit_", "deit_", "deit3_", "flexivit_", "eva_large_", "test_vit")  # those whose heads are known:
HEAD_WIDTH = 64  # but for
HEADS_OF_WIDTH = {1152: 16, 1280: 16, 1408: 16, 1664: 16}
HEADS_OF_NAME = {"vit_base_patch16_gap_224": 16, "test_vit": 2, "test_vit2": 2}
WITHOUT_LAST_NORM = ("vit_intern300m_",)
POOLINGS = {"token": "class", "avg": "mean"}
FITTING = {"center": "crop", "squash": "squash", "border": "pad"}


@dataclass(frozen=True)
class Told:
    """What config.json says; nothing, where there is none."""

    where: str = ""
    architecture: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)  # model_args
    picture: dict[str, Any] = field(default_factory=dict)  # pretrained_cfg: what images must be like
    root: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.architecture)

    def number(self, key: str, least: int = 1) -> int | None:
        """A whole number of model_args, or of the root."""
        value = self.arguments.get(key, self.root.get(key))
        if value is not None and (type(value) is not int or value < least):
            raise BadInput(f"{self.where}: {key} is {shortly(value)}; it must be a whole number from {least} on")
        return value

    def flag(self, key: str) -> bool | None:
        value = self.arguments.get(key)
        if value is not None and not isinstance(value, bool):
            raise BadInput(f"{self.where}: model_args.{key} is {shortly(value)}; it must be true or false")
        return value

    @property
    def image(self) -> tuple[int, int] | None:
        """Height and width."""
        if self.arguments.get("img_size") is not None:
            return sides(self.arguments["img_size"], f"{self.where}: model_args.img_size")
        size = self.picture.get("input_size")
        if size is None:
            return None
        if not isinstance(size, list) or len(size) != 3:
            raise BadInput(f"{self.where}: input_size is {shortly(size)}; it must be channels, height and width")
        return sides(size[1:], f"{self.where}: input_size")

    @property
    def activation(self) -> str:
        named = self.arguments.get("act_layer") or "gelu"
        if not isinstance(named, str) or named not in ACTIVATIONS:
            raise BadInput(
                f"{self.where}: model_args.act_layer {shortly(named)} is not one of {', '.join(ACTIVATIONS)}"
            )
        return ACTIVATIONS[named]

    @property
    def pooling(self) -> str | None:
        named = self.arguments.get("global_pool", self.root.get("global_pool"))
        if named is not None and (not isinstance(named, str) or named not in POOLINGS):
            raise BadInput(f"{self.where}: global_pool {shortly(named)} is not one of {', '.join(POOLINGS)}")
        return None if named is None else POOLINGS[named]

    @property
    def has_positions(self) -> bool:
        return self.arguments.get("pos_embed", "learn") not in ("", "none")

    @property
    def has_last_norm(self) -> bool:
        return self.flag("final_norm") is not False and not self.architecture.startswith(WITHOUT_LAST_NORM)

    @property
    def resize(self) -> str:
        return FITTING.get(str(self.picture.get("crop_mode")), "crop")

    def levels(self, notes: list[str]) -> dict[str, tuple[float, float, float]]:
        """Mean and deviation."""
        if "mean" not in self.picture or "std" not in self.picture:
            notes.append("nobody says how values are normalised: mean and deviation are taken to be 0.5")
            return {"mean": (0.5, 0.5, 0.5), "deviation": (0.5, 0.5, 0.5)}
        return {
            ours: three(self.picture[theirs], f"{self.where}: {theirs}")
            for ours, theirs in (("mean", "mean"), ("deviation", "std"))
        }

    def heads(self, width: int, given: int | None, notes: list[str]) -> int:
        """`given`: by who imports. The weights are the same for any number of heads, so this must be known."""
        told = self.number("num_heads")
        if given is not None and told is not None and given != told:
            raise BadInput(f"{self.where}: model_args.num_heads is {told}, and --heads is {given}")
        if given is not None or told is not None:
            return given or told or 1
        base = self.architecture.split(".")[0]
        if base in HEADS_OF_NAME:
            return HEADS_OF_NAME[base]
        heads = HEADS_OF_WIDTH.get(width, width // HEAD_WIDTH if width % HEAD_WIDTH == 0 else None)
        if heads is None:
            raise BadInput(
                f"{self.where or 'config.json is missing'}: how many heads there are follows from no tensor, and width "
                f"{width} is none of the usual ones; say it with --heads"
            )
        if not base.startswith(FAMILIES):
            notes.append(f"taken to have {heads} heads, as models of width {width} have; another number: --heads")
        return heads


def told_beside(path: Path) -> Told:
    """config.json in the folder, or beside the file, if it is timm's."""
    where = (path if path.is_dir() else path.parent) / "config.json"
    root = read_object_if_there(where)
    if not isinstance(root.get("architecture"), str):
        if path.is_dir() and root:
            other = root.get("model_type")
            hint = f"; model_type {other} is Hugging Face's: jumok import hf" if isinstance(other, str) else ""
            raise BadInput(f"{where}: there is no architecture, so it is not timm's{hint}")
        return Told()
    arguments, picture = root.get("model_args") or {}, root.get("pretrained_cfg", root)
    for key, table in (("model_args", arguments), ("pretrained_cfg", picture)):
        if not isinstance(table, dict):
            raise BadInput(f"{where}: {key} is {shortly(table)}; it must be a table")
    told = Told(str(where), root["architecture"], arguments, picture, root)
    _check(told, arguments)
    return told


def _check(told: Told, arguments: Mapping[str, Any]) -> None:
    for part, reason in OTHERWISE.items():
        if part in told.architecture and "act_layer" not in arguments:
            raise BadInput(f"{told.where}: architecture {told.architecture} cannot be computed here: {reason}")
    for key, value in arguments.items():
        if key in ONLY and value not in ONLY[key]:
            raise BadInput(f"{told.where}: model_args.{key} is {shortly(value)}, and no model here has that")
        if key not in ONLY and key not in DESCRIBING | HARMLESS:
            raise BadInput(f"{told.where}: model_args.{key} is not known here, and may change what is computed")
