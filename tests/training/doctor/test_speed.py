"""What will be slow is told, and what will not is not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from jumok import recipe as recipes
from jumok.training.doctor import speed
from jumok.training.doctor.findings import Report
from jumok.training.doctor.speed import Measured, check_speed, duration

QUIET = Measured(
    device="cpu", precision="float32", threads=4, update=0.5, preparing=0.01, validation=1.0, mfu=0.4, padding=0.05,
    total=600.0,
)  # fmt: skip


@pytest.fixture(autouse=True)
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "_cores", lambda: 4)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: True)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def told(
    measured: Measured, *keys: str, name: str = "lstm-luong", fits: int | None = None
) -> list[tuple[str, str, str]]:
    report = Report()
    check_speed(recipes.read(name, list(keys)), measured, report, fits)
    assert all(finding.topic == "speed" for finding in report.findings)
    return [(finding.what, finding.where, finding.todo) for finding in report.findings]


def test_a_run_without_fault() -> None:
    assert told(QUIET) == []
    gpu = replace(QUIET, device="cuda", precision="bfloat16")
    assert told(gpu, "exact=false", name="transformer-base") == []


@pytest.mark.parametrize(
    ("changed", "keys", "what", "todo"),
    [
        ({"padding": 0.3}, (), "30% of what is computed is padding", "training.pack=true"),
        ({"validation": 500.0}, (), "67% of the time goes into validation", "less often"),
        ({"preparing": 0.4}, (), "40% of an update is spent on preparing", "JUMOK_CACHE"),
        ({"threads": 2}, (), "2 of 4 cores are used", "threads=0"),
        ({"threads": 9}, (), "9 threads share 4 cores", "threads=4"),
        ({"total": 3e5}, (), "takes 3.5 days on the CPU", "a GPU"),
        ({}, ("model.written_out=true",), "from their equations", "leave it out"),
        ({}, ("model.input_feeding=true",), "word by word", "luong attention without"),
        ({}, ("training.teacher_forcing=0.5",), "word by word", "1 computes all"),
    ],
)
def test_on_the_cpu(changed: dict[str, float], keys: tuple[str, ...], what: str, todo: str) -> None:
    ((found, where, advice),) = told(replace(QUIET, **changed), *keys)
    assert what in found
    assert todo in advice
    assert where


@pytest.mark.parametrize(
    ("changed", "keys", "what", "todo"),
    [
        ({"precision": "float32"}, (), "in float32", "training.precision=auto"),
        ({"total": 7200.0}, (), "2.0 h without torch.compile", "training.compile=true"),
        ({"mfu": 0.03}, (), "only 3.0% of the GPU's speed", "larger batches"),
        ({}, ("exact=true",), "repeatable kernels", "exact=false"),
    ],
)
def test_on_a_gpu(changed: dict[str, float], keys: tuple[str, ...], what: str, todo: str) -> None:
    gpu = replace(QUIET, device="cuda", precision="bfloat16")
    ((found, _, advice),) = told(replace(gpu, **changed), "exact=false", *keys, name="transformer-tiny")
    assert what in found
    assert todo in advice


def test_nothing_is_advised_that_does_not_go_together_with_alignments() -> None:
    keys = "exact=false", "training.align=0.3", "data.train.alignments=somewhere.align"
    gpu = replace(QUIET, device="cuda", precision="bfloat16", mfu=0.03, total=7200.0, padding=0.3)
    found = told(gpu, *keys, name="transformer-tiny")
    assert ["neither packed, recorded nor compiled" in what for what, _, _ in found] == [True, False, False]
    assert all(key not in todo for _, _, todo in found for key in ("training.pack", "training.compile", "graphs"))


@pytest.mark.parametrize("has_it", [False, True])
def test_a_processor_with_bfloat16(monkeypatch: pytest.MonkeyPatch, has_it: bool) -> None:
    monkeypatch.setattr(speed, "suits", lambda x: has_it)
    long = replace(QUIET, total=7200.0)
    assert [todo[:27] for _, _, todo in told(long, name="transformer-small")] == [
        "training.precision=bfloat16"
    ] * has_it
    assert told(long) == []  # of a recurrent model
    assert told(replace(long, precision="bfloat16"), name="transformer-small") == []


def test_memory_that_is_there_could_be_used() -> None:
    keys = ("training.accumulate=4", "training.batch_tokens=1000")
    ((what, _, todo),) = told(QUIET, *keys, fits=5000)
    assert "one of their size fits" in what
    assert todo == "training.accumulate=1 training.batch_tokens=4000"
    assert told(QUIET, *keys, fits=3000) == []
    ((what, _, _),) = told(QUIET, "training.checkpoint_activations=true", fits=100_000)
    assert "computed twice" in what


def test_who_set_the_threads_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert told(replace(QUIET, threads=2))[0][1] == "OMP_NUM_THREADS=2"
    assert told(replace(QUIET, threads=2), "threads=2")[0][1] == "threads=2"


WORDS = [(0.0234, "23.4 ms"), (5, "5.0 s"), (40, "40 s"), (700, "12 min"), (9000, "2.5 h"), (2e5, "2.3 days")]


@pytest.mark.parametrize(("seconds", "words"), WORDS)
def test_time_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words
