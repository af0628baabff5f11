"""What every model that predicts words ends in: p(y) = softmax(W h + b)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F


class Predictor(nn.Module):
    def output(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """h (…, D), W (V, D) and b (V) of the last layer. A loss that has them need not hold all logits."""
        raise NotImplementedError

    def head(self, hidden: Tensor) -> Tensor:
        """Logits over the vocabulary: W h + b."""
        return F.linear(*self.output(hidden))
