"""Packed linear maps are the linear maps they were packed from."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from jumok.errors import BadInput
from jumok.layers import packed
from jumok.layers.packed import PRECISIONS, Plain, check_precision, pack

TOLERANCE = {"float32": 1e-5, "bfloat16": 0.02, "int8": 0.03}  # of the largest number in the product


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (7, 5), (64, 200), (130, 33)])
@pytest.mark.parametrize("rows", [1, 5, 33])
def test_the_product(precision: str, inputs: int, outputs: int, rows: int) -> None:
    weight, bias, x = torch.randn(outputs, inputs), torch.randn(outputs), torch.randn(rows, inputs)
    residual = torch.randn(rows, outputs)
    found, expected = pack(weight, bias, check_precision(precision)), F.linear(x, weight, bias)
    close = {"atol": TOLERANCE[precision] * float(expected.abs().max() + 1), "rtol": 0.0}
    torch.testing.assert_close(found(x), expected, **close)
    torch.testing.assert_close(found.relu(x), expected.relu(), **close)
    torch.testing.assert_close(found.plus(x, residual), expected + residual, **close)
    torch.testing.assert_close(pack(weight, None, check_precision(precision))(x), expected - bias, **close)


def test_later_changes_do_not_show() -> None:
    for precision in PRECISIONS:
        weight, x = torch.randn(8, 8), torch.randn(3, 8)
        found = pack(weight, None, precision)
        before = found(x)
        weight.zero_()
        torch.testing.assert_close(found(x), before)


def test_where_there_is_no_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "has_onednn", lambda: False)
    weight, bias, x = torch.randn(6, 4), torch.randn(6), torch.randn(3, 4)
    found = pack(weight, bias)
    assert isinstance(found, Plain)
    expected = F.linear(x, weight, bias)
    torch.testing.assert_close(found.relu(x), expected.relu())
    torch.testing.assert_close(found.plus(x, expected), 2 * expected)


def test_what_a_processor_cannot_do_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match="give float32, bfloat16 or int8"):
        check_precision("int4")
    monkeypatch.setattr(packed, "has_bfloat16", lambda: False)
    monkeypatch.setattr(packed, "has_int8", lambda: False)
    with pytest.raises(BadInput, match=r"no fast bfloat16\. Use float32 or int8"):
        check_precision("bfloat16")
    with pytest.raises(BadInput, match="no 8-bit"):
        check_precision("int8")
    assert check_precision("float32") == "float32"
