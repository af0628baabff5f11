"""A model as an exporter can follow it: the same weights, and nothing that depends on the sizes of what it is shown.

Three things of ours do. Tables of positions grow when a longer text comes; here positions come from their formula, so
a graph knows no longest text. Attention has several ways, chosen by size and place; here it is written out:

    a_t = Σ_s softmax_s(q_t · k_s / √d + bias) v_s

And short rows are read by kernels of their own. Two more are written out because the exporter does not follow them:
RMSNorm, and axes that are counted from the end. All is changed in a copy; the model itself stays as it is.
"""

from __future__ import annotations

from copy import deepcopy
from itertools import accumulate
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.data.batch import Sequences
from jumok.layers.attention import Scorer
from jumok.layers.characters import LETTERS, CharacterEmbedding
from jumok.layers.position import Learned, RelativeBias, Table
from jumok.layers.stack import Stack
from jumok.layers.tap import Tap
from jumok.models.bert import Bert
from jumok.models.vit import Vit
from jumok.text.jamo import apart
from jumok.text.special import PAD

SomeModel = TypeVar("SomeModel", bound=nn.Module)


class Marked(Sequences):
    """Padded rows where a mask says what is real: graphs are given masks, not lengths."""

    def __init__(self, ids_BT: Tensor, mask_BT: Tensor) -> None:
        super().__init__(ids_BT, mask_BT.sum(dim=1))
        object.__setattr__(self, "_mask", mask_BT.bool())

    @property
    def mask(self) -> Tensor:
        found: Tensor = self.__dict__["_mask"]
        return found


class Formula(nn.Module):
    """Rows of a `Table`, computed when they are asked for, in float64 as the table is."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.formula = table.formula

    def reach(self, length: int) -> None:
        """Any position has a row."""

    def forward(self, positions: Tensor) -> Tensor:
        found: Tensor = self.formula(positions.double()).float()  # (P,), as a graph has them
        return found


class Looked(nn.Module):
    """Learned positions. Beyond the last there is no row, which the engine that runs the graph says."""

    def __init__(self, learned: Learned) -> None:
        super().__init__()
        self.weight = learned.weight

    def reach(self, length: int) -> None:
        """Not known while a graph is made."""

    def forward(self, positions: Tensor) -> Tensor:
        return F.embedding(positions, self.weight)


class Distances(nn.Module):
    """A `RelativeBias` whose axes are counted from the front, as the exporter counts them."""

    def __init__(self, relative: RelativeBias) -> None:
        super().__init__()
        self.relative = relative

    def reach(self, length: int) -> None:
        """Any distance has a bucket."""

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        bucket = self.relative.bucket(key_positions - query_positions[..., None])
        bias = self.relative.weight(bucket)
        return bias.permute(0, 3, 1, 2) if bias.dim() == 4 else bias.permute(2, 0, 1)[None]


class WrittenOut(nn.Module):
    """What a `Tap` computes, in plain products; with heads or, as recurrent models have it, without."""

    watched = True  # no kernel for short rows

    def forward(
        self,
        query_BHTD: Tensor,
        key_BHSD: Tensor,
        value_BHSD: Tensor,
        mask: Tensor | None,
        scorer: Scorer,
        bias: Tensor | None = None,
        causal: bool = False,
        dropout: float = 0.0,
    ) -> Tensor:
        assert not causal
        if scorer.inner_scale is None:
            scores_BHTS = scorer(query_BHTD, key_BHSD)
        else:
            scores_BHTS = torch.matmul(query_BHTD * scorer.inner_scale, key_BHSD.transpose(-1, -2))
        if bias is not None:
            scores_BHTS = scores_BHTS + bias
        if mask is not None:
            open_ = mask[:, None] if mask.dim() == 2 else mask
            scores_BHTS = masked(scores_BHTS, open_ if open_.dim() == scores_BHTS.dim() else open_[:, None])
        return torch.matmul(torch.softmax(scores_BHTS, dim=-1), value_BHSD)


class RootMeanSquare(nn.Module):
    """x / rms(x) · g"""

    def __init__(self, norm: nn.RMSNorm) -> None:
        super().__init__()
        assert norm.eps is not None
        self.weight, self.epsilon = norm.weight, norm.eps

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + self.epsilon) * self.weight


class OpenVit(Vit):
    """A Vit that does not ask how many images there are: the exporter would keep the number."""

    def embedded(self, images_BCHW: Tensor) -> Tensor:
        tokens, self.tokens = self.tokens, None
        patches_BTD = super().embedded(images_BCHW)
        self.tokens = tokens
        if tokens is None:
            return patches_BTD
        return torch.cat([tokens.expand(patches_BTD.size(0), -1, -1), patches_BTD], dim=1)


class OpenCharacters(CharacterEmbedding):
    """Characters as vectors, without tensors that are made as large as another: the exporter may keep their size."""

    def forward(self, ids: Tensor) -> Tensor:
        if self.first is None:
            return super().forward(ids)
        syllable, starts = ids >= self.first, accumulate(LETTERS[:-1], initial=self.first)
        letters = [letter + start for letter, start in zip(apart(ids - self.first), starts, strict=True)]
        rows = [torch.where(syllable, letters[0], ids), *(torch.where(syllable, one, PAD) for one in letters[1:])]
        return self.table(torch.stack(rows, dim=-1)).sum(dim=-2) * torch.where(syllable, 3**-0.5, 1.0)[..., None]


def masked(scores: Tensor, open_: Tensor) -> Tensor:
    """Scores of what must not be looked at are so low that nothing is left of them; finite, so that a row that may look
    nowhere has numbers, too."""
    return torch.where(open_, scores, torch.full((), torch.finfo(scores.dtype).min))


def plain(model: SomeModel) -> SomeModel:
    """A copy in float32 on the CPU, for an exporter."""
    copy = deepcopy(model).float().cpu().eval()
    for parameter in copy.parameters():
        parameter.requires_grad_(False)
    for module in list(copy.modules()):
        if isinstance(module, Stack):
            if isinstance(module.added, Table | Learned):
                module.added = _positions(module.added)  # type: ignore[assignment]
            if module.rotary is not None:
                module.rotary = Formula(module.rotary)  # type: ignore[assignment]
            if module.relative is not None:
                module.relative = Distances(module.relative)  # type: ignore[assignment]
        if isinstance(module, Vit):
            module.__class__ = OpenVit
        if isinstance(module, CharacterEmbedding):
            module.__class__ = OpenCharacters
        if isinstance(module, Bert) and module.positions is not None:
            module.positions = _positions(module.positions)  # type: ignore[assignment]
        for name, child in module.named_children():
            if isinstance(child, Tap):
                setattr(module, name, WrittenOut())
            elif isinstance(child, nn.RMSNorm):
                setattr(module, name, RootMeanSquare(child))
    return copy


def _positions(positions: Table | Learned) -> nn.Module:
    return Looked(positions) if isinstance(positions, Learned) else Formula(positions)
