"""The layer norm with its residual connection on a GPU: the kernel is the mathematics, compiled is eager.

On a machine with a GPU: make gpu-check
"""

from __future__ import annotations

import pytest
import torch
from seeded import seed  # noqa: F401  fresh inputs in every run
from torch import Tensor

from jumok.layers import norm as norms
from jumok.layers.norm import written_out
from jumok.models.vit import ImageLabeller
from jumok.recipe import VitSection

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")


def inputs_of(shape: tuple[int, ...], dtype: torch.dtype) -> list[Tensor]:
    x = torch.randn(shape, device="cuda") * 3 + 1
    mean = x.mean(-1, keepdim=True)
    rate = (x.var(-1, unbiased=False, keepdim=True) + 1e-6).rsqrt()
    dy = torch.randn(shape, device="cuda").to(dtype)
    return [dy, torch.randn(shape, device="cuda"), x, torch.randn(shape[-1], device="cuda"), mean, rate]


@pytest.mark.parametrize("shape", [(1, 8), (3, 5, 24), (700, 384), (1024, 65, 384), (4000, 1536), (3, 4096)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_the_kernel_is_the_mathematics(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    inputs = inputs_of(shape, dtype)
    (dx, ds, *others), expected = norms.gradient(*inputs, dtype), written_out(*[each.double() for each in inputs])
    assert len(others) == 3  # dg, db and the sum of ds
    assert ds is not None
    assert ds.dtype == dtype
    assert torch.equal(ds, dx.to(dtype))
    for one, other in zip((dx, *others), expected, strict=True):
        scale = float(other.abs().max())
        torch.testing.assert_close(one.float(), other.float(), atol=2e-5 * scale, rtol=1e-5)


def test_equal_inputs_give_equal_bits() -> None:
    inputs = inputs_of((513, 65, 192), torch.bfloat16)
    for one, other in zip(norms.gradient(*inputs, None), norms.gradient(*inputs, None), strict=True):
        assert one is other is None or torch.equal(one, other)


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("width", [128, 192])
def test_a_compiled_model_has_the_gradient_of_an_eager_one(width: int, autocast: bool) -> None:
    model = ImageLabeller(VitSection(width=width, heads=4, layers=3, feed_forward=2 * width), 5).cuda().train()
    images, labels = torch.randint(0, 256, (16, 3, 32, 32), device="cuda"), torch.randint(0, 5, (16,), device="cuda")

    def learn(compiled: bool) -> Tensor:
        model.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            scores = (torch.compile(model) if compiled else model)(images)
        torch.nn.functional.cross_entropy(scores.float(), labels).backward()
        return torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None])

    expected = learn(False)
    assert float((learn(True) - expected).norm()) < (0.05 if autocast else 5e-3) * float(expected.norm())


def test_the_kernel_is_part_of_a_compiled_program() -> None:
    norm = torch.nn.LayerNorm(64).cuda()
    x = torch.randn(8, 5, 64, device="cuda", requires_grad=True)

    def work(x: Tensor) -> Tensor:
        kept, y = norms.norm_beside(norm, x)
        return (kept * y.sin()).sum()

    compiled = torch.compile(work)
    compiled(x).backward()
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        compiled(x).backward()
        torch.cuda.synchronize()
    assert any(event.key == "_kernel" for event in seen.key_averages())
