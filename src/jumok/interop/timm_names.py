"""What timm calls the weights of a Vision Transformer, and how to tell those of models that have no like here."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jumok.errors import BadInput
from jumok.interop.bert import COUNTED
from jumok.interop.vit import BLOCK, LAST_NORM, POOLED_NORM, SCORES, STEM, place_of, with_kinds

CLASS, REGISTERS, POSITIONS = "cls_token", "reg_token", "pos_embed"
TOGETHER = f"{BLOCK}.attention.together"  # queries, keys and values, before they are taken apart
NAMES = {
    **{name: name for name in (CLASS, REGISTERS, POSITIONS)},
    **with_kinds(
        {
            "patch_embed.proj": STEM,
            "blocks.{}.norm1": f"{BLOCK}.attention_norm.norm",
            "blocks.{}.attn.qkv": TOGETHER,
            "blocks.{}.attn.proj": f"{BLOCK}.attention.output",
            "blocks.{}.norm2": f"{BLOCK}.feed_forward_norm.norm",
            "blocks.{}.mlp.fc1": f"{BLOCK}.feed_forward.inner",
            "blocks.{}.mlp.fc2": f"{BLOCK}.feed_forward.outer",
            "norm": LAST_NORM,
            "fc_norm": POOLED_NORM,
            "head": SCORES,
        }
    ),
    "blocks.{}.ls1.gamma": f"{BLOCK}.attention_norm.scale",
    "blocks.{}.ls2.gamma": f"{BLOCK}.feed_forward_norm.scale",
}
THEIRS = {ours: theirs for theirs, ours in NAMES.items()}
ONLY_FOR_PRETRAINING = ("mask_token",)
# what models have that none here has, by a part of the names of its tensors
FOREIGN = {
    r"\.[qk]_norm\.": "its queries and keys are normalised (qk_norm)",
    r"^norm_pre\.": "it normalises the patches before the first block (pre_norm)",
    r"^dist_token|^head_dist\.": "it has a token that learned by distillation",
    r"\.mlp\.(fc1_[gx]|w\d+)\.": "its feed-forward network is gated (SwiGLU)",
    r"\.mlp\.norm\.|\.attn\.norm\.": "it has more norms in its blocks (scale_norm)",
    r"\.attn\.gate\.": "its attention is gated",
    r"rope|freqs": "its positions are rotary",
    r"\.attn\.([qkv]_bias|[qkv]_proj\.)": "its queries, keys and values are EVA's or BEiT's",
    r"\.gamma_[12]$": "it is of the kind of EVA or BEiT",
    r"rel_pos|relative_position": "its positions are relative",
    r"lambda|sub_norm": "its attention is differential",
    r"\.in_proj\.|\.attns\.|\.ffns\.": "attention and feed-forward network work side by side",
    r"^attn_pool\.": "attention pools the patches",
    r"^patch_embed\.(backbone|norm|conv)": "it has another way to read patches",
    r"^pre_logits\.": "it has a layer more before the classifier (pre_logits)",
}


def names_of(files: Iterable[str], has_positions: bool, has_last_norm: bool) -> dict[str, str]:
    """Ours → theirs. What nothing here is made for is refused; what is missing is named."""
    found: dict[str, str] = {}
    for name in files:
        ours = place_of(name, NAMES)
        if ours is not None:
            found[ours] = name
        elif name not in ONLY_FOR_PRETRAINING:
            reasons = [said for part, said in FOREIGN.items() if re.search(part, name)]
            raise BadInput(f"{name}: {(reasons or ['nothing here is made for it'])[0]}; it cannot be computed here")
    layers = {int(COUNTED.findall(ours)[0]) for ours in found if COUNTED.search(ours)}
    wanted = [f"{STEM}.weight", f"{STEM}.bias"] + [POSITIONS] * has_positions
    # either all blocks have these, or none
    lacking = tuple(part for part in (".together.bias", ".scale") if not any(ours.endswith(part) for ours in found))
    block = [ours for ours in NAMES.values() if ours.startswith(BLOCK) and not ours.endswith(lacking)]
    for layer in range(min(1 + max(layers, default=0), len(found) + 1)):
        wanted += [ours.format(layer) for ours in block]
    norms = [norm for norm in (LAST_NORM, POOLED_NORM) if f"{norm}.weight" in found or f"{norm}.bias" in found]
    if len(norms) == 2:
        raise BadInput("norm.weight and fc_norm.weight are both there, and a model has one of them")
    if norms and not has_last_norm:
        raise BadInput(f"{found[f'{norms[0]}.weight']} is there, and the model has no last norm (final_norm)")
    if not norms and has_last_norm:
        norms = [LAST_NORM]
    modules = norms + [SCORES] * any(ours.startswith(f"{SCORES}.") for ours in found)
    wanted += [f"{module}.{kind}" for module in modules for kind in ("weight", "bias")]
    missing = [ours for ours in wanted if ours not in found]
    if missing:
        theirs = THEIRS[COUNTED.sub(".{}.", missing[0])].format(*COUNTED.findall(missing[0]))
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise BadInput(f"there is no tensor {theirs}{more}, so this is no Vision Transformer of timm's that is whole")
    return found
