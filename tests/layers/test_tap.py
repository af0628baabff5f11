"""A hook on the tap sees what the attention was computed from, and may change what comes out."""

from __future__ import annotations

from typing import Any

import torch

from jumok.layers.attention import attention, attention_weights, build_scorer
from jumok.layers.tap import Tap


def test_hooks_see_the_inputs_and_may_alter_the_output() -> None:
    tap, scorer = Tap("cross", "decoder"), build_scorer("general", 6, 6, 6, 9)
    query, value = torch.randn(2, 3, 6), torch.randn(2, 5, 6)
    key, mask = scorer.prepare(value), torch.tensor([[True] * 5, [True, True, False, False, False]])
    plain = tap(query, key, value, mask, scorer)
    torch.testing.assert_close(plain, attention(query, key, value, mask, scorer))
    seen: list[Any] = []

    def halve(module: Tap, inputs: tuple[Any, ...], output: torch.Tensor) -> torch.Tensor:
        seen.append((module.kind, module.name, inputs))
        return output / 2

    with tap.register_forward_hook(halve):
        torch.testing.assert_close(tap(query, key, value, mask, scorer), plain / 2)
    ((kind, name, inputs),) = seen
    assert (kind, name) == ("cross", "decoder")
    query, key, value, mask, scorer = inputs
    torch.testing.assert_close(attention_weights(query, key, mask, scorer) @ value, plain, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(tap(query, key, value, mask, scorer), plain)
