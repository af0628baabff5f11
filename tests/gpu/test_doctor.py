"""The doctor and the meter on a GPU: what fits is found by running out of memory, MFU is against a measured peak."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from jumok import api
from jumok import recipe as recipes
from jumok.training.doctor.examine import examine
from jumok.training.memory import in_words
from jumok.training.peak import matmul_peak

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU (make gpu-check)")
KEYS = ["data.train.pairs=4000", "data.valid.pairs=50", "training.updates=50", "training.validate_sentences=20"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUMOK_CACHE", str(tmp_path / "cache"))


def test_the_largest_batch_is_found_under_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    recipe = recipes.read("transformer-small", [*KEYS, "training.batch_tokens=1000000", "device=cuda"])
    report = examine(recipe, memory=2_000_000_000)
    memory = report.facts["memory"]
    print(memory, report.findings)
    assert memory["fits"] is False
    assert 500 < memory["largest"] < 1_000_000
    peaks = [tried["peak"] for tried in memory["tried"].values() if tried["fits"]]
    assert max(peaks) <= 2_000_000_000
    (finding,) = [finding for finding in report.findings if finding.topic == "memory"]
    assert finding.level == "warning"  # it would be done in pieces
    with capsys.disabled():
        print(f"\nlargest batch_tokens in 2 GB: {memory['largest']:,} ({in_words(max(peaks))})")


def test_a_run_is_predicted(capsys: pytest.CaptureFixture[str]) -> None:
    report = examine(recipes.read("transformer-small", [*KEYS, "training.batch_tokens=4096", "device=cuda"]))
    assert not report.would_fail
    memory, time = report.facts["memory"], report.facts["time"]
    assert report.facts["machine"]["precision"] in ("bfloat16", "float32")
    assert 0.5 * memory["measured"] < memory["predicted"] < 2 * memory["measured"]
    assert 0 < time["mfu"] < 1
    with capsys.disabled():
        print(
            f"\nmemory predicted {in_words(memory['predicted'])}, measured {in_words(memory['measured'])}; "
            f"{time['tokens_per_second']:,.0f} tokens/s, MFU {time['mfu']:.1%}; fits up to {memory['largest']:,}"
        )


def test_progress_has_mfu_and_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    api.train(recipes.read("transformer-tiny", [*KEYS, "training.log_every=10", "device=cuda"]), run, quiet=True)
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    last = [event for event in events if event["event"] == "train"][-1]
    assert 0 < last["mfu"] < 1
    assert 1e6 < last["memory"] < torch.cuda.get_device_properties(0).total_memory
    peak = matmul_peak(torch.device("cuda"), torch.bfloat16)
    assert peak is not None
    with capsys.disabled():
        print(f"\nbfloat16 matmul peak {peak / 1e12:.0f} TFLOP/s; transformer-tiny: MFU {last['mfu']:.2%}")
