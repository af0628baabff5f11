"""Attention of rows that are short and all of one length, such as the patches of small images: each token sees its
whole row, and nothing is masked.

    a_i = Σ_j softmax_j(scale · q_i · k_j) v_j

Queries, keys and values come as the one product they are computed in, and on a GPU its gradient comes back as one: the
kernel of layers/short_triton.py has a whole row at hand, where flash attention would fill tiles of 128 with 65 tokens,
and three gradients would have to be put together. The gradient of the product's bias, Σ dqkv over all tokens, comes
with it, so that nobody has to read dqkv again for it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from jumok.layers.packed_attention import HAS_TRITON, INTERPRETED

ON_A_GPU = True
LONGEST = 128  # tokens of a row
WIDEST = 128  # numbers of a head


def short_attention(qkv_BT3HD: Tensor, scale: float, bias_3HD: Tensor | None = None) -> Tensor:
    """(B, T, H, D), by the kernel where it can. `bias_3HD` is in qkv already: it is given for its gradient."""
    if suits(qkv_BT3HD, qkv_BT3HD.size(-1)):
        from jumok.layers import short_triton

        return short_triton.short_attention(qkv_BT3HD, scale, bias_3HD)
    if bias_3HD is not None:
        qkv_BT3HD = qkv_BT3HD + (bias_3HD - bias_3HD.detach()).to(qkv_BT3HD.dtype)
    return written_out(qkv_BT3HD, scale)


def written_out(qkv_BT3HD: Tensor, scale: float) -> Tensor:
    query_BHTD, key_BHTD, value_BHTD = (part.transpose(1, 2) for part in qkv_BT3HD.unbind(2))
    weights_BHTT = torch.softmax(query_BHTD @ key_BHTD.transpose(2, 3) * scale, dim=-1)
    return (weights_BHTT @ value_BHTD).transpose(1, 2)


def suits(x_BT: Tensor, head_width: int) -> bool:
    """Whether the kernel can take rows of x, whatever stands in them, with heads of this width. Not float32 on a GPU:
    a row's tiles would leave its registers."""
    if not HAS_TRITON or not 1 <= x_BT.size(1) <= LONGEST or head_width > WIDEST:
        return False
    if x_BT.is_cuda:
        return ON_A_GPU and x_BT.dtype in (torch.bfloat16, torch.float16)
    return INTERPRETED and x_BT.dtype in (torch.float16, torch.float32)  # which has no products in bfloat16
