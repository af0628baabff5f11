"""Norm, GELU and sum in one pass: the numbers of PyTorch's calls, on fresh random pictures."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.layers.normed_native import library, normed

pytestmark = pytest.mark.skipif(library() is None, reason="needs a C compiler")


def pictures(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    made = 3 * torch.randn(shape, dtype=torch.float64) + 5 * torch.randn(shape[0], 1, 1, 1, dtype=torch.float64)
    return made.to(dtype).contiguous(memory_format=torch.channels_last)


def norm_of(channels: int) -> nn.GroupNorm:
    norm = nn.GroupNorm(1, channels)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    return norm


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("sums", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
@torch.no_grad()
def test_one_pass_is_the_calls_one_after_the_other(seed: int, dtype: torch.dtype, sums: bool, threads: int) -> None:
    torch.manual_seed(seed)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for channels in (1, 3, 8, 16, 24, 32, 40, 100):
            shape = (3, channels, int(torch.randint(1, 9, ())), int(torch.randint(1, 20, ())))
            x, added = pictures(*shape, dtype=dtype), pictures(*shape, dtype=dtype)
            norm = norm_of(channels)
            found = normed(norm, x, added if sums else None)
            assert found is not None
            assert found.dtype == dtype
            assert found.is_contiguous(memory_format=torch.channels_last)
            exact = norm.double()
            expected = F.gelu(exact(x.double())) + (added.double() if sums else 0)
            # a picture of few numbers that are nearly equal has a norm in which their rounding is large
            close = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 0.01, "atol": 0.01}
            torch.testing.assert_close(found.double(), expected, **close)
    finally:
        torch.set_num_threads(before)


@torch.no_grad()
def test_a_picture_is_the_same_whatever_is_beside_it(seed: int) -> None:
    torch.manual_seed(seed)
    x, norm = pictures(5, 24, 8, 32), norm_of(24)
    together = normed(norm, x)
    assert together is not None
    for number in range(5):
        alone = normed(norm, x[number : number + 1].contiguous(memory_format=torch.channels_last))
        assert alone is not None
        assert torch.equal(alone[0], together[number])


@torch.no_grad()
def test_what_is_no_number_stays_so() -> None:
    x = pictures(2, 16, 4, 4)
    x[0, 3, 2, 1] = float("nan")
    found = normed(norm_of(16), x)
    assert found is not None
    assert found[0].isnan().all()
    assert found[1].isfinite().all()


@torch.no_grad()
def test_what_it_is_not_made_for_is_left_to_others() -> None:
    x = pictures(2, 16, 4, 4)
    assert normed(nn.GroupNorm(2, 16), x) is None
    assert normed(nn.Identity(), x) is None
    assert normed(nn.GroupNorm(1, 16, affine=False), x) is None
    assert normed(norm_of(16), x.contiguous()) is None  # channel by channel
    assert normed(norm_of(16), x.double()) is None
    assert normed(norm_of(16), x[:0]) is None
    assert normed(norm_of(16), x, x.bfloat16()) is None
    assert normed(norm_of(16), x, x[:1]) is None
