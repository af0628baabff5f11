"""How large everything in a Vision Transformer of timm's is: read from the tensors, held against config.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from jumok.errors import BadInput, shortly
from jumok.interop.bert import COUNTED
from jumok.interop.timm_config import Told
from jumok.interop.timm_names import CLASS, POSITIONS, REGISTERS, TOGETHER
from jumok.interop.vit import BLOCK, ONE, POOLED_NORM, SCORES, STEM, Size, check_shape, expected_sizes, product
from jumok.recipe import VitSection

# of the tensors that sizes are read from: how many sizes each has
MANY = {
    f"{STEM}.weight": 4, f"{BLOCK.format(0)}.feed_forward.inner.weight": 2, f"{SCORES}.weight": 2, CLASS: 3,
    REGISTERS: 3, POSITIONS: 3,
}  # fmt: skip
LAYER_SCALE = 1e-5  # where factors begin, if nobody says
EPSILON = 1e-6


class Sizes:
    """How large everything is, by the tensors; what config.json says about it must be the same."""

    def __init__(self, tensors: Mapping[str, Tensor], names: Mapping[str, str], told: Told) -> None:
        self.tensors, self.names, self.told = tensors, names, told
        for ours, count in MANY.items():
            if ours in tensors and tensors[ours].dim() != count:
                raise BadInput(f"{names[ours]} is {product(tensors[ours].shape)}; it must have {count} sizes")
        self.width, self.channels, *patch = tensors[f"{STEM}.weight"].shape
        self.patch = (patch[0], patch[1])
        self.layers = 1 + max(int(COUNTED.findall(name)[0]) for name in tensors if name.startswith(BLOCK[:-2]))
        self.inner = tensors[f"{BLOCK.format(0)}.feed_forward.inner.weight"].size(0)
        self.biased = f"{TOGETHER.format(0)}.bias" in tensors
        self.scaled = f"{BLOCK.format(0)}.attention_norm.scale" in tensors
        scores = tensors.get(f"{SCORES}.weight")
        self.classes = 0 if scores is None else len(scores)
        self._check_told()
        self.tokens = [tensors[name][0] for name in (CLASS, REGISTERS) if name in tensors]
        self.before = sum(map(len, self.tokens))
        self.image = told.image or self._square()

    def _check_told(self) -> None:
        """What model_args and the root say of sizes that the tensors have."""
        told, tensors = self.told, self.tensors
        registers = tensors[REGISTERS].size(1) if REGISTERS in tensors else 0
        found: list[tuple[str, int, str]] = [
            ("embed_dim", self.width, "patch_embed.proj.weight"),
            ("num_features", self.width, "patch_embed.proj.weight"),
            ("in_chans", self.channels, "patch_embed.proj.weight"),
            ("depth", self.layers, "blocks"),
            ("reg_tokens", registers, REGISTERS),
        ]
        if f"{SCORES}.weight" in tensors:
            found.append(("num_classes", self.classes, "head.weight"))
        for key, size, tensor in found:
            said = told.number(key, 0)
            if said is not None and said != size:
                self._disagree(key, said, tensor, size)
        ratio, patch, whole = (
            told.arguments.get("mlp_ratio"),
            told.arguments.get("patch_size"),
            told.picture.get("input_size"),
        )
        if isinstance(ratio, int | float) and int(self.width * ratio) != self.inner:
            self._disagree("mlp_ratio", ratio, "blocks.0.mlp.fc1.weight", self.inner)
        if patch is not None and tuple(patch if isinstance(patch, list) else [patch] * 2) != self.patch:
            self._disagree("patch_size", patch, "patch_embed.proj.weight", product(self.patch))
        if isinstance(whole, list) and whole and whole[0] != self.channels and "in_chans" not in told.arguments:
            self._disagree("input_size", whole, "patch_embed.proj.weight", f"{self.channels} channels")
        for key, has, tensor in (
            ("class_token", CLASS in tensors, CLASS),
            ("qkv_bias", self.biased, "blocks.0.attn.qkv.bias"),
            ("fc_norm", f"{POOLED_NORM}.weight" in tensors, "fc_norm.weight"),
        ):
            flag = told.flag(key)
            if flag is not None and flag != has and (key != "fc_norm" or told.has_last_norm):
                self._disagree(key, flag, tensor, "there" if has else "not there")

    def _disagree(self, key: str, said: Any, tensor: str, found: Any) -> None:
        raise BadInput(
            f"{self.told.where}: {key} is {shortly(said)}, but in the weights {tensor} says {found}; "
            "one of the two files is of another model"
        )

    def _square(self) -> tuple[int, int]:
        """The image, where nobody says: the positions are taken to be a square."""
        if POSITIONS not in self.tensors:
            raise BadInput(
                "nobody says how large images are: a config.json with input_size is needed beside the weights"
            )
        places = self.tensors[POSITIONS].size(1)
        known = self.told.flag("no_embed_class")
        counts = {places - self.before} if known is False else {places} if known else {places, places - self.before}
        roots = {round(count**0.5) for count in counts if count > 0 and round(count**0.5) ** 2 == count}
        if len(roots) != 1:
            fit = "may be two squares" if roots else "is no square"
            raise BadInput(
                f"pos_embed has {places} positions, which {fit} of patches: a config.json with input_size is needed "
                "beside the weights"
            )
        (root,) = roots
        return root * self.patch[0], root * self.patch[1]

    def values(self, heads: int | None, notes: list[str]) -> dict[str, Any]:
        """Of the section."""
        told, pooled_norm = self.told, f"{POOLED_NORM}.weight" in self.tensors
        pooling = told.pooling or ("class" if CLASS in self.tensors and not pooled_norm else "mean")
        if pooling == "class" and CLASS not in self.tensors:
            raise BadInput(f"{told.where}: global_pool is token, but in the weights there is no cls_token")
        begin = told.arguments.get("init_values")
        return {
            "image": self.image, "channels": self.channels, **told.levels(notes), "patch": self.patch,
            "width": self.width, "heads": told.heads(self.width, heads, notes), "layers": self.layers,
            "feed_forward": self.inner, "activation": told.activation, "norm_epsilon": EPSILON,
            "final_norm": None if told.has_last_norm else False, "pooled_norm": pooled_norm, "pooling": pooling,
            "position": "learned" if told.has_positions else "none", "antialias": True,
            "registers": self.before - (pooling == "class"),
            "layer_scale": (begin or LAYER_SCALE) if self.scaled else 0.0,
        }  # fmt: skip

    def check(self, section: VitSection) -> None:
        """Every tensor against the section."""
        told_by = "config.json" if self.told else "the rest"
        width: Size = ("width", self.width)
        for ours, tensor in self.tensors.items():
            theirs = self.names[ours]
            if ours.endswith("feed_forward.outer.weight") and tuple(tensor.shape) == (self.width, self.inner // 2):
                fed = theirs.replace("fc2", "fc1")
                raise BadInput(f"{theirs} reads half of what {fed} writes: its feed-forward network is gated (SwiGLU)")
            check_shape(tensor, self._expected(ours, section, width), theirs, told_by)

    def _expected(self, ours: str, section: VitSection, width: Size) -> Sequence[Size]:
        if ours in (CLASS, REGISTERS):
            return ONE, ("", 1 if ours == CLASS else self.tensors[ours].size(1)), width
        if ours == POSITIONS:
            image, grid = "×".join(map(str, section.image)), section.max_positions
            own = self.told.flag("no_embed_class")
            with_all = own is False or (own is None and self.tensors[ours].size(1) != grid)
            return ONE, (f"places of input_size {image}:", grid + self.before * with_all), width
        if ours == f"{STEM}.weight":
            return width, ("channels", self.channels), ("patch", self.patch[0]), ("patch", self.patch[1])
        if ours.startswith(f"{SCORES}."):
            return (("num_classes", self.classes), width)[: 2 if ours.endswith("weight") else 1]
        if ".together." in ours:
            return (("three times the width", 3 * self.width), width)[: 2 if ours.endswith("weight") else 1]
        return expected_sizes(ours, width, ("mlp.fc1", self.inner))
