"""Whatever OpenAPI lets somebody ask, and much that it does not: an answer that is described there, and never 500.

A few cases of each operation in `make test`, ten thousand in `make test-full`.
"""

from __future__ import annotations

from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.generation import GenerationMode
from served import client as made
from served import models

from jumok.serve.app import create_app
from jumok.serve.settings import Settings
from jumok.serve.waiting import Room

SEARCHES = {"/v1/translate", "/translate", "/v1/attend"}  # a search of a thousand tokens takes its time
FEW, MANY = 8, 10_000
CODES = {200, 400, 404, 405, 413, 415, 422, 429, 504}
CONFIG = schemathesis.Config.from_dict({"generation": {"mode": "all"}})


@pytest.fixture(scope="module")
def schema() -> Any:
    return schemathesis.openapi.from_dict(create_app(None).openapi(), config=CONFIG)


def operations(schema: Any) -> list[Any]:
    return [found.ok() for found in schema.get_all_operations()]


def fuzz(schema: Any, cases: int) -> None:
    """Good requests and bad ones, by turns, through a client that keeps the application alive."""
    every = operations(schema)
    assert {operation.path for operation in every} > SEARCHES
    codes: set[int] = set()
    with made(Settings(seconds=5.0, text=500), models(Room(seconds=5.0))) as client:
        for operation in every:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                if mode is GenerationMode.POSITIVE or operation.body:  # without a body there is nothing to spoil
                    strategy = operation.as_strategy(generation_mode=mode)
                    _run(strategy, client, max(1, cases // (2 * len(every))), codes)
    assert {200, 422} <= codes


def _run(strategy: Any, client: Any, cases: int, codes: set[int]) -> None:
    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def run(case: Any) -> None:
        asked = case.as_transport_kwargs(base_url="http://localhost")
        whole = requests.Request(
            **{
                key: asked[key]
                for key in ("method", "url", "headers", "params", "data", "json", "files")
                if key in asked
            }
        ).prepare()  # the bytes, as they would go over the wire
        said = client.request(whole.method, whole.url, content=whole.body or b"", headers=dict(whole.headers))
        codes.add(said.status_code)
        assert said.status_code in CODES, (whole.method, whole.url, whole.headers, whole.body, said.text[:500])
        if said.status_code >= 400:
            assert said.json()["error"]

    run()


def test_a_few_cases(schema: Any) -> None:
    fuzz(schema, FEW * 2 * len(operations(schema)))


@pytest.mark.full
def test_ten_thousand_cases(schema: Any) -> None:
    fuzz(schema, MANY)
