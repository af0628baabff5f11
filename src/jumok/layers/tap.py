"""The one point where attention can be observed or altered.

Every attention of every model goes through a `Tap`. A forward hook on it gets exactly what the attention was computed
from, `(query, prepared key, value, mask, scorer, bias, causal, dropout)`, so a recorder can compute the weights again
and an ablation can change the output; without hooks it costs nothing and keeps nothing.
"""

from __future__ import annotations

from torch import Tensor, nn

from jumok.layers.attention import Scorer, attention


class Tap(nn.Module):
    """`kind` says who looks at whom ("cross": target at source; "self": a text at itself; "causal": at its own past),
    `name` tells the taps of one model apart ("decoder.0.cross"), `heads` is how many there are, if there are heads."""

    def __init__(self, kind: str, name: str, heads: int | None = None) -> None:
        super().__init__()
        self.kind = kind
        self.name = name
        self.heads = heads

    @property
    def layer(self) -> int:
        """The layer it belongs to, counted from 0 as in its name."""
        return next((int(part) for part in self.name.split(".") if part.isdigit()), 0)

    @property
    def watched(self) -> bool:
        """Whether anyone observes or alters it. A packed batch goes through it only then, with padded rows."""
        return bool(self._forward_hooks or self._forward_pre_hooks)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        scorer: Scorer,
        bias: Tensor | None = None,
        causal: bool = False,
        dropout: float = 0.0,
    ) -> Tensor:
        return attention(query, key, value, mask, scorer, bias=bias, causal=causal, dropout=dropout)
