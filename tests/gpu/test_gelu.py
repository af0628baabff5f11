"""GELU with the sums of its bias on a GPU: the kernel is the mathematics, compiled is eager.

On a machine with a GPU: make gpu-check
"""

from __future__ import annotations

import pytest
import torch
from seeded import seed  # noqa: F401  fresh inputs in every run
from torch import Tensor
from torch.nn import functional as F

from jumok.layers import gelu as gelus
from jumok.models.vit import ImageLabeller
from jumok.recipe import VitSection

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")


@pytest.mark.parametrize("shape", [(1, 8), (3, 5, 24), (700, 1536), (1024, 65, 1536), (4000, 300), (3, 4096)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_the_kernel_is_the_mathematics(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x, dy = (torch.randn(shape, device="cuda") * 2).to(dtype), torch.randn(shape, device="cuda").to(dtype)
    leaf = x.double().requires_grad_()
    (expected,) = torch.autograd.grad(F.gelu(leaf), leaf, dy.double())
    dx, sums = gelus.gradient_with_sums(dy, x, torch.float32)
    close = {"atol": 1e-5, "rtol": 1e-5} if dtype == torch.float32 else {"atol": 2e-3, "rtol": 1e-2}
    torch.testing.assert_close(dx.double(), expected, **close)
    total = dx.double().flatten(0, -2).sum(0)
    torch.testing.assert_close(sums.double(), total, atol=1e-5 * float(total.abs().max()) + 1e-4, rtol=1e-4)
    again = gelus.gradient_with_sums(dy, x, torch.float32)
    assert torch.equal(dx, again[0])
    assert torch.equal(sums, again[1])


@pytest.mark.parametrize("autocast", [False, True])
def test_a_compiled_model_has_the_gradient_of_an_eager_one(autocast: bool) -> None:
    model = ImageLabeller(VitSection(width=128, heads=4, layers=3, feed_forward=256), 5).cuda().train()
    images, labels = torch.randint(0, 256, (16, 3, 32, 32), device="cuda"), torch.randint(0, 5, (16,), device="cuda")

    def learn(compiled: bool) -> Tensor:
        model.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            scores = (torch.compile(model) if compiled else model)(images)
        F.cross_entropy(scores.float(), labels).backward()
        return torch.cat([each.grad.flatten() for each in model.parameters() if each.grad is not None])

    expected = learn(False)
    assert float((learn(True) - expected).norm()) < (0.05 if autocast else 5e-3) * float(expected.norm())
