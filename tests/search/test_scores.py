import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.search.shortlist import Shortlist


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.integers(1, 200), st.integers(1, 12), st.integers(1, 5))
def test_exact_is_the_stable_sort(seed, vocabulary, width, distinct):
    generator = torch.Generator().manual_seed(seed)
    log_probs = -torch.randint(0, distinct, (6, vocabulary), generator=generator).float()
    values, tokens = log_probs.sort(dim=1, descending=True, stable=True)
    found = Shortlist.of(log_probs, 0, width, exact=True)
    np.testing.assert_array_equal(found.tokens, tokens[:, :width].numpy())
    np.testing.assert_array_equal(found.values, values[:, :width].numpy())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_values_and_wanted_arrive_unchanged(dtype):
    log_probs = torch.randn(5, 50_000, dtype=torch.float64).log_softmax(-1).to(dtype)
    found = Shortlist.of(log_probs, 49_999, 4)
    wanted = torch.tensor([0, 7, 49_999, 3, 3])
    np.testing.assert_array_equal(found.wanted, log_probs[:, -1].double().numpy())
    np.testing.assert_array_equal(found.values, log_probs.double().topk(4).values.numpy())
    picked = log_probs.double().gather(1, torch.from_numpy(found.tokens)).numpy()
    np.testing.assert_array_equal(found.values, picked)
    each = Shortlist.of(log_probs, wanted, 4)
    np.testing.assert_array_equal(each.wanted, log_probs.double()[torch.arange(5), wanted].numpy())


def test_an_end_token_outside_the_vocabulary_does_not_pass():
    with pytest.raises(IndexError):
        Shortlist.of(torch.zeros(2, 3), 3, 2)
