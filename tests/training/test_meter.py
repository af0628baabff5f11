"""A line of progress knows the machine: MFU from what was computed, memory from the system, the peak measured once."""

from __future__ import annotations

import json
import mmap
from pathlib import Path
from typing import Any

import pytest
import torch
from seeded import seed  # noqa: F401

from jumok.data.batch import PairBatch
from jumok.models.build import build
from jumok.recipe import Seq2SeqSection
from jumok.tasks.translation import TranslationObjective
from jumok.training import memory, peak
from jumok.training.meter import Meter

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path))
    monkeypatch.setattr(peak, "CPU_SIZES", {1000: 64})
    monkeypatch.setattr(peak, "CPU_SECONDS", 0.001)
    return tmp_path


def test_mfu_is_useful_operations_over_the_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.training.meter.matmul_peak", lambda device, dtype, again=False: 1e9)
    objective = TranslationObjective(build(Seq2SeqSection(width=16, embedding=8, layers=1), 20, 20))
    meter = Meter(objective, CPU, torch.float32)
    batches = [PairBatch.of([[5, 6]], [[7]]), PairBatch.of([[5]], [[7, 8, 9]])]
    work = meter.work(batches)
    assert work == sum(meter.flops(batch) for batch in batches)  # type: ignore[misc]
    values = meter.values(work, 2.0)
    assert values["mfu"] == round(work / 2.0 / 1e9, 4)
    assert values["memory"] > 1e6
    assert "mfu" not in meter.values(0, 2.0)
    assert "mfu" not in meter.values(3e9, 2.0)  # more than the machine can do: the peak is not to be believed


def test_a_peak_that_was_measured_on_a_busy_machine_is_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    speeds = iter([1e6, 5e6, 2e6])
    monkeypatch.setattr(peak, "_on_cpu", lambda dtype: next(speeds))
    objective = TranslationObjective(build(Seq2SeqSection(width=16, embedding=8, layers=1), 20, 20))
    meter = Meter(objective, CPU, torch.float32)
    assert meter.values(4e6, 1.0)["mfu"] == 0.8
    assert peak.matmul_peak(CPU, torch.float32) == 5e6
    assert peak.matmul_peak(CPU, torch.float32, again=True) == 5e6  # the better value stays


def test_the_peak_is_measured_once_and_does_not_touch_anyones_randomness(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = torch.get_rng_state()
    first = peak.matmul_peak(CPU, torch.float32)
    assert first is not None
    assert first > 1e6
    assert torch.equal(before, torch.get_rng_state())

    def again(dtype: torch.dtype) -> float:
        raise AssertionError("measured again")

    monkeypatch.setattr(peak, "_on_cpu", again)
    assert peak.matmul_peak(CPU, torch.float32) == first
    with pytest.raises(AssertionError):
        peak.matmul_peak(CPU, torch.bfloat16)  # other numbers, another speed


@pytest.mark.parametrize("content", ["{", "[]", '{"key": "fast"}', ""])
def test_a_damaged_memory_of_the_peak_is_measured_again(own_cache: Path, content: str) -> None:
    (own_cache / peak.FILE).write_text(content)
    speed = peak.matmul_peak(CPU, torch.float32)
    assert speed in json.loads((own_cache / peak.FILE).read_text()).values()


def test_where_nothing_can_be_kept_or_measured_training_goes_on(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_cache / "file").write_text("")
    monkeypatch.setenv("JUMOK_CACHE", str(own_cache / "file" / "below"))
    assert peak.matmul_peak(CPU, torch.float32) is not None

    def no_room(*sizes: Any) -> float:
        raise RuntimeError("can't allocate memory")

    monkeypatch.setattr(peak, "_on_cpu", no_room)
    monkeypatch.setenv("JUMOK_CACHE", str(own_cache / "other"))
    assert peak.matmul_peak(CPU, torch.float32) is None
    assert peak.matmul_peak(torch.device("meta"), torch.float32) is None


def test_memory_in_use_grows_with_what_is_held() -> None:
    before = memory.resident()
    memory.forget_peak()
    held = mmap.mmap(-1, 120_000_000)  # straight from the system: a heap may have as much to spare
    held.write(b"1" * 120_000_000)
    after, highest = memory.resident(), memory.peak_resident()
    assert before is not None
    assert after is not None
    assert highest is not None
    assert after - before > 100e6
    assert highest >= after - 1e6
    held.close()
    free = memory.available(CPU)
    assert free is not None
    assert 1e6 < free < 1e16


def test_a_container_s_limit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit, use = tmp_path / "max", tmp_path / "current"
    monkeypatch.setattr(memory, "GROUPS", ((limit, use),))
    without = memory.available(CPU)
    assert without is not None
    limit.write_text("max\n")
    use.write_text("1000000\n")
    assert memory.available(CPU) == pytest.approx(without, rel=0.2)
    limit.write_text("3000000\n")
    assert memory.available(CPU) == 2_000_000


def test_a_system_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STATUS", "MEMORY"):
        monkeypatch.setattr(memory, name, tmp_path / "nothing")
    monkeypatch.setattr(memory, "GROUPS", ())
    assert memory.resident()  # the most it ever had, from elsewhere
    assert memory.available(CPU)  # half of what is installed


@pytest.mark.parametrize(
    ("count", "words"), [(900, "0.9 kB"), (1.5e9, "1.5 GB"), (999_999_999, "1 GB"), (2e12, "2 TB")]
)
def test_bytes_in_words(count: float, words: str) -> None:
    assert memory.in_words(count) == words
