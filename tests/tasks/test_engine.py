"""Which search a translator is given, and that it is the same search: here the one for GPUs runs on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from translators import sentences, translator

from jumok.search import on_device
from jumok.search.on_device import generate_on_device
from jumok.tasks import engine
from jumok.tasks.engine import Engine
from jumok.tasks.translator import Translator

CPU = torch.device("cpu")


class Calls(list[dict[str, Any]]):
    """`generate_on_device` as it was called, and what it raised."""

    error: RuntimeError | None = None

    def __call__(self, *given: Any, **options: Any) -> Any:
        self.append(options)
        if self.error is not None:
            raise self.error
        return generate_on_device(*given, **options)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Every search of a Transformer is taken for one that fits a GPU."""
    found = Calls()
    monkeypatch.setattr(engine, "device_search_fits", lambda *given: True)
    monkeypatch.setattr(engine, "generate_on_device", found)
    return found


def written(model: Translator) -> list[tuple[int, ...]]:
    return [ranks[0].ids for ranks in model.nbest(sentences(9), batch=4, min_length=2)]  # one word at least


def host(model: Translator, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    with monkeypatch.context() as patched:
        patched.setattr(engine, "device_search_fits", lambda *given: False)
        return written(model)


def test_while_weights_change_nothing_is_captured_or_kept(
    calls: Calls, monkeypatch: pytest.MonkeyPatch, is_tie: Callable[..., bool]
) -> None:
    def as_on_the_host(found: list[tuple[int, ...]]) -> bool:
        rows = zip(sentences(9), found, host(model, monkeypatch), strict=True)
        return all(one == other or is_tie(model, text, min_length=2) for text, one, other in rows)

    model = translator()
    before = written(model)
    assert [options["graphs"] for options in calls] == [False] * 3
    assert model.model not in on_device._SEARCHES
    assert as_on_the_host(before)
    with torch.no_grad():
        model.model.bias[before[0][0]] -= 9.0
    after = written(model)
    assert as_on_the_host(after)
    assert after != before


def test_what_is_prepared_once_stays(calls: Calls) -> None:
    model = translator()
    model.engine = Engine(model.models, CPU, fast=True)
    written(model)
    assert [options["graphs"] for options in calls] == [None] * 3
    assert model.model in on_device._SEARCHES
    on_device.forget(model.model)


@pytest.mark.parametrize(
    "error",
    [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("x does not have a deterministic implementation")],
    ids=["memory", "exact"],
)
def test_where_it_cannot_the_host_searches(calls: Calls, monkeypatch: pytest.MonkeyPatch, error: RuntimeError) -> None:
    model = translator()
    calls.error = error
    assert written(model) == host(model, monkeypatch)
    assert len(calls) == 3


def test_what_is_wrong_is_not_hidden(calls: Calls) -> None:
    calls.error = RuntimeError("shapes do not fit")
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        written(translator())
