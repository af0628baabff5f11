"""Attention: each query looks at the keys, its scores become weights that sum to 1, and the values are averaged.

    e_ts = score(s_t, h_s)        α_t = softmax(e_t)        a_t = Σ_s α_ts v_s

`attention()` is a pure function; who wants the weights computes them with `attention_weights()` from the same queries
and keys. Scorers are looked up by name: `@register_scorer("my-name")` adds one (docs/extend.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from jumok.errors import BadInput, did_you_mean
from jumok.layers.attention_native import native_attention, suits
from jumok.layers.linear import linear


class Scorer(nn.Module):
    """How well query and key fit: `scorer(query_BTD, scorer.prepare(key_BSD)) -> scores_BTS`.

    `prepare` is called once for each source and does whatever does not depend on the query.
    """

    inner_scale: float | None = None  # set: the score is this times query · prepared key, so a fused kernel may do it

    def __init__(self, query_width: int, key_width: int, hidden_width: int, max_source: int) -> None:
        super().__init__()

    def prepare(self, key_BSD: Tensor) -> Tensor:
        return key_BSD

    def forward(self, query_BTD: Tensor, prepared_BSD: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define forward(query, prepared) -> scores")


def attention_weights(
    query: Tensor,
    key: Tensor,
    mask: Tensor | None,
    scorer: Scorer,
    bias: Tensor | None = None,
    causal: bool = False,
) -> Tensor:
    """α = softmax over s of score(s_t, h_s) + bias, where the mask is True and, if causal, s ≤ t.

    Without heads query_BTD and key_BSD give α_BTS, with heads query_BHTD and key_BHSD give α_BHTS. The mask is (B,S),
    (B,T,S) or as large as α. `key` is what `scorer.prepare` made of the keys. A query that may look nowhere has
    weights 0, not NaN.
    """
    scores = scorer(query, key)
    if bias is not None:
        scores = scores + bias
    open_ = _open(query, key, mask, causal)
    if open_ is None:
        return torch.softmax(scores, dim=-1)
    nowhere = ~open_.any(dim=-1, keepdim=True)
    scores = scores.masked_fill(~(open_ | nowhere), float("-inf"))
    return torch.softmax(scores, dim=-1).masked_fill(nowhere, 0.0)


def _open(query: Tensor, key: Tensor, mask: Tensor | None, causal: bool) -> Tensor | None:
    """Where a query may look: the mask spread over heads and queries, and nothing after the query itself."""
    if mask is not None and mask.dim() == 2:
        mask = mask[:, None, :]
    if mask is not None and mask.dim() < query.dim():
        mask = mask[:, None]
    if not causal:
        return mask
    lower_TS = causal_mask(query.size(-2), key.size(-2), query.device)
    return lower_TS if mask is None else mask & lower_TS


def causal_mask(queries: int, keys: int, device: torch.device) -> Tensor:
    """(T, S) True where s ≤ t; the last query is the last key's, so that T < S means that the first were seen before"""
    ahead = keys - queries
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(ahead)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    scorer: Scorer,
    fused: bool = True,
    bias: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """a_t = Σ_s α_ts v_s, in one kernel where the score is an inner product. `key` is a prepared key."""
    scale = scorer.inner_scale
    if fused and scale is not None and bias is None and not dropout and suits(query, key, value, mask):
        return native_attention(query, key, value, mask, scale, causal)
    if not fused or scorer.inner_scale is None or _suits_products(query):
        weights = attention_weights(query, key, mask, scorer, bias, causal)
        return torch.matmul(F.dropout(weights, dropout) if dropout else weights, value)
    without_heads = query.dim() == 3
    triangle = causal and mask is None and bias is None and query.size(-2) == key.size(-2)  # the kernel knows this one
    where = None if triangle else _open(query, key, mask, causal)
    if without_heads:
        query, key, value, where = (
            query[:, None],
            key[:, None],
            value[:, None],
            None if where is None else where.unsqueeze(-3),
        )
    if bias is not None:
        where = bias if where is None else torch.where(where, bias, float("-inf"))
    output = F.scaled_dot_product_attention(
        query, key, value, attn_mask=where, dropout_p=dropout, is_causal=triangle, scale=scorer.inner_scale
    )
    return output[:, 0] if without_heads else output


def _suits_products(query: Tensor) -> bool:
    """Whether the fused kernel is no help: on a GPU its gradient is not repeatable."""
    return slow_when_fused(query) or (query.is_cuda and torch.are_deterministic_algorithms_enabled())


def slow_when_fused(query: Tensor) -> bool:
    """On a CPU the fused kernel's gradient in low precision takes some five times as long as plain products."""
    if query.device.type != "cpu":
        return False
    low = query.dtype in (torch.bfloat16, torch.float16) or torch.is_autocast_enabled("cpu")
    return low and query.requires_grad and torch.is_grad_enabled()


# ---------------------------------------------------------------- the registry

SCORERS: dict[str, type[Scorer]] = {}
SomeScorer = TypeVar("SomeScorer", bound=type[Scorer])


def register_scorer(name: str) -> Callable[[SomeScorer], SomeScorer]:
    """Class decorator: from now on a recipe may say `model.scorer: name`. The same class again replaces itself."""

    def register(scorer: SomeScorer) -> SomeScorer:
        taken = SCORERS.get(name)
        if taken is not None and taken.__qualname__ != scorer.__qualname__:
            raise BadInput(f'the scorer name "{name}" already belongs to {taken.__qualname__}: choose another')
        SCORERS[name] = scorer
        return scorer

    return register


def build_scorer(name: str, query_width: int, key_width: int, hidden_width: int, max_source: int) -> Scorer:
    if name not in SCORERS:
        hint = did_you_mean(name, SCORERS)
        raise BadInput(f'model.scorer: no scorer "{name}".{hint} (One of your own: import the file that registers it.)')
    return SCORERS[name](query_width, key_width, hidden_width, max_source)


# ---------------------------------------------------------------- the scorers


@register_scorer("dot")
class Dot(Scorer):
    """score = s · h (Luong et al. 2015)"""

    inner_scale = 1.0

    def __init__(self, query_width: int, key_width: int, hidden_width: int, max_source: int) -> None:
        super().__init__(query_width, key_width, hidden_width, max_source)
        if query_width != key_width:
            raise BadInput(
                f"model.scorer: dot and scaled-dot need queries and keys of one width, these have {query_width} and "
                f"{key_width}; general bridges them"
            )

    def forward(self, query_BTD: Tensor, prepared_BSD: Tensor) -> Tensor:
        assert self.inner_scale is not None
        return torch.matmul(query_BTD * self.inner_scale, prepared_BSD.transpose(-1, -2))


@register_scorer("scaled-dot")
class ScaledDot(Dot):
    """score = s · h / √d (Vaswani et al. 2017)"""

    def __init__(self, query_width: int, key_width: int, hidden_width: int, max_source: int) -> None:
        super().__init__(query_width, key_width, hidden_width, max_source)
        self.inner_scale = key_width**-0.5


@register_scorer("general")
class General(Dot):
    """score = s · W h (Luong et al. 2015); W h is computed once for each source."""

    def __init__(self, query_width: int, key_width: int, hidden_width: int, max_source: int) -> None:
        super().__init__(query_width, query_width, hidden_width, max_source)
        self.weight = linear(key_width, query_width, bias=False)

    def prepare(self, key_BSD: Tensor) -> Tensor:
        return self.weight(key_BSD)


@register_scorer("additive")
class Additive(Scorer):
    """score = v · tanh(W s + U h): Bahdanau et al. 2015; the same as v · tanh([W U] [s; h]), Luong's "concat".

    U h is computed once for each source. The tanh has T x S vectors: beyond `limit` numbers the queries are taken in
    pieces whose tanh is computed again in the backward pass instead of being kept.
    """

    limit = 2**26

    def __init__(self, query_width: int, key_width: int, hidden_width: int, max_source: int) -> None:
        super().__init__(query_width, key_width, hidden_width, max_source)
        self.query = linear(query_width, hidden_width)
        self.key = linear(key_width, hidden_width, bias=False)
        self.score = linear(hidden_width, 1, bias=False)

    def prepare(self, key_BSD: Tensor) -> Tensor:
        return self.key(key_BSD)

    def forward(self, query_BTD: Tensor, prepared_BSD: Tensor) -> Tensor:
        query_BTD = self.query(query_BTD)
        fits = max(1, self.limit // max(1, prepared_BSD.numel()))
        if query_BTD.size(1) <= fits:
            return self._scores(query_BTD, prepared_BSD)
        pieces = [
            checkpoint(self._scores, piece, prepared_BSD, use_reentrant=False, preserve_rng_state=False)
            for piece in torch.split(query_BTD, fits, dim=1)
        ]
        return torch.cat(pieces, dim=1)

    def _scores(self, query_BTD: Tensor, prepared_BSD: Tensor) -> Tensor:
        return self.score(torch.tanh(query_BTD[:, :, None] + prepared_BSD[:, None])).squeeze(-1)


@register_scorer("location")
class Location(Scorer):
    """α_t = softmax(W_a s_t) (Luong et al. 2015): where to look follows from the query alone, up to `max_source`."""

    def __init__(self, query_width: int, key_width: int, hidden_width: int, max_source: int) -> None:
        super().__init__(query_width, key_width, hidden_width, max_source)
        self.weight = linear(query_width, max_source, bias=False)

    def forward(self, query_BTD: Tensor, prepared_BSD: Tensor) -> Tensor:
        length, longest = prepared_BSD.size(1), self.weight.out_features
        if length > longest:
            raise BadInput(
                f"the location scorer addresses sources of at most {longest} tokens (model.max_source), this one has "
                f"{length}: shorten it, train with a larger model.max_source, or use another scorer"
            )
        return F.linear(query_BTD, self.weight.weight[:length])
