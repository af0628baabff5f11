"""A ladder climbed, stopped and gone on with."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jumok.ladder import climb as climbing
from jumok.ladder import folder as folders
from jumok.tasks.metrics import corpus_scores
from jumok.training.events import MetricsFile
from jumok.training.run import RunFolder
from jumok.training.verify import differences

Command = Callable[..., "subprocess.CompletedProcess[str]"]
RUNS = ["gru-1", "gru-2", "luong-1", "luong-2", "transformer-1", "transformer-2"]


def results(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "results.json").read_text(encoding="utf-8"))
    return found


def test_every_attempt_is_an_ordinary_run_with_the_same_tokenizer(climbed: Path) -> None:
    assert sorted(path.name for path in climbed.iterdir() if (path / "recipe.yaml").is_file()) == RUNS
    shared = (climbed / "tokenizer" / "source" / "tokenizer.json").read_bytes()
    for name in RUNS:
        run = RunFolder(climbed / name)
        assert (run.tokenizer / "source" / "tokenizer.json").read_bytes() == shared
        assert run.pointed("last") == 6
        recipe = run.recipe()
        assert recipe.seed == int(name[-1])
        assert (recipe.search.beam, recipe.model.width, recipe.tokenizer.joint) == (2, 16, True)
    weights = {(climbed / name / "checkpoints/step-6/model.safetensors").read_bytes() for name in RUNS}
    assert len(weights) == len(RUNS)


def test_the_results_are_those_of_the_translations(climbed: Path, files: list[str]) -> None:
    references = Path(files[-1]).read_text(encoding="utf-8").splitlines()
    found = results(climbed)
    assert [row["rung"] for row in found["rungs"]] == ["gru", "luong", "transformer"]  # from the bottom up
    for row in found["rungs"]:
        scores, tutorial = [], []
        for seed in (1, 2):
            outputs = (climbed / f"{row['rung']}-{seed}" / "test.txt").read_text(encoding="utf-8").splitlines()
            bleu, chrf = corpus_scores(outputs, references)
            scores.append((bleu.score, chrf.score))
            assert row["each"][str(seed)] == pytest.approx(bleu.score)
            tutorial.append(corpus_scores(outputs, references, lowercase_tokenised=True)[0].score)
        assert row["bleu"]["score"] == pytest.approx(sum(score[0] for score in scores) / 2)
        assert row["chrf"]["score"] == pytest.approx(sum(score[1] for score in scores) / 2)
        assert row["tutorial"] == pytest.approx(sum(tutorial) / 2)
        assert row["updates"] == 6
        assert row["parameters"] > 1000
        assert row["sentences_per_second"] > 0
    gains = [row["gain"] for row in found["rungs"]]
    means = [row["bleu"]["score"] for row in found["rungs"]]
    assert gains == [None, pytest.approx(means[1] - means[0]), pytest.approx(means[2] - means[1])]
    assert found["rungs"][0]["p"] is None
    assert all(0 < row["p"] <= 1 for row in found["rungs"][1:])
    assert sum(group["sentences"] for group in found["by_length"]) == len(references)


def test_what_differs_is_said_and_what_must_not_differ_does_not(climbed: Path) -> None:
    differing = results(climbed)["differences"]
    assert differing["model.attention"] == {"gru": "none", "luong": "luong", "transformer": None}
    assert not [key for key in differing if key.split(".")[0] in ("data", "tokenizer", "search", "seed")]
    assert "training.batch_tokens" not in differing
    table = (climbed / "table.md").read_text(encoding="utf-8")
    for words in ("Budget: 6 updates", "2 seeds", "| Luong |", "beam 2", "rate 0.001", "paired bootstrap", "tok:13a"):
        assert words in table


def test_a_finished_ladder_only_prints_its_table_again(
    climbed: Path, asked: list[str], jumok: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*anything: object, **more: object) -> None:
        raise AssertionError("there is nothing left to do")

    monkeypatch.setattr(climbing, "train_here", never)
    monkeypatch.setattr(climbing, "score", never)
    before = results(climbed)
    told = jumok(*asked, "--seeds", 2, "--out", climbed, "--lowercase-tokenized")
    assert told.returncode == 0, told.stderr
    assert results(climbed) == before
    rows = {line.split()[0]: line for line in told.stdout.splitlines() if line}
    for row in before["rungs"]:
        line = rows[{"gru": "GRU", "luong": "Luong", "transformer": "Transformer"}[row["rung"]]]
        for number in (f"{row['bleu']['score']:.2f}", f"{row['tutorial']:.2f}", f"{row['parameters']:,}"):
            assert number in line
    assert str(climbed / "report.html") in told.stdout
    fewer = jumok(*asked, "--rungs", "luong", "--seeds", 1, "--out", climbed, "--json")
    assert [row["each"].keys() for row in json.loads(fewer.stdout)["rungs"]] == [{"1"}]
    assert jumok(*asked, "--seeds", 2, "--out", climbed).returncode == 0  # as the other tests expect it


def test_another_ladder_in_the_folder_is_refused(
    climbed: Path, asked: list[str], files: list[str], jumok: Command
) -> None:
    for change, words in (
        (["training.learning_rate=0.5"], "training.learning_rate (0.001 there, 0.5 now)"),
        (["--updates", "7"], "--updates (6 there, 7 now)"),
        (["--beam", "3"], "search.beam (2 there, 3 now)"),
        (["--rungs", "rnn", "--beam", "3"], "search.beam (2 there, 3 now)"),  # a rung that is new shares it too
        (["--rungs", "rnn", "training.batch_tokens=256"], "training.batch_tokens (512 there, 256 now)"),
        (["--test-source", files[1], "--test-target", files[3]], "the test data"),
    ):
        told = jumok(*asked, *change, "--out", climbed)
        assert told.returncode == 2
        assert "holds another ladder" in told.stderr
        assert words in told.stderr


def test_stopped_in_the_middle_it_goes_on_to_the_same_end(
    climbed: Path, asked: list[str], tmp_path: Path, jumok: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C while the second rung trains: the first is kept, the second goes on where it was, bit for bit."""
    out = tmp_path / "ladder"
    rungs = ["--rungs", "gru,luong", "--out", str(out)]
    tell = MetricsFile.event

    def interrupt(self: MetricsFile, event: str, update: int, values: dict[str, Any]) -> None:
        tell(self, event, update, values)
        if self.path.parent.name == "luong-1" and event == "train" and update == 3:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(MetricsFile, "event", interrupt)
        stopped = jumok(*asked, *rungs)
    assert stopped.returncode == 130
    assert "The same command goes on" in stopped.stderr
    assert not (out / "results.json").exists()
    assert 0 < (RunFolder(out / "luong-1").pointed("last") or 0) < 6
    before = (out / "gru-1" / "metrics.jsonl").read_bytes()

    told = jumok(*asked, *rungs)
    assert told.returncode == 0, told.stderr
    assert "(before)" in told.stderr
    assert (out / "gru-1" / "metrics.jsonl").read_bytes() == before
    for name in ("gru-1", "luong-1"):
        assert differences(RunFolder(out / name), RunFolder(climbed / name)) == []
        assert (out / name / "test.txt").read_bytes() == (climbed / name / "test.txt").read_bytes()


def test_a_budget_in_minutes_is_told_once(asked: list[str], tmp_path: Path, jumok: Command) -> None:
    """The time becomes a number of updates, which is the run's own from then on."""
    budget = asked.index("--updates")
    timed = [
        *asked[:budget],
        *asked[budget + 2 :],
        "--rungs",
        "gru",
        "--minutes",
        "0.02",
        "--out",
        str(tmp_path / "out"),
    ]
    first = jumok(*timed)
    assert first.returncode == 0, first.stderr
    assert "1 run to train, each 0.02 minutes of training: about 0.02 minutes" in first.stderr
    assert "Budget: 0.02 minutes of training" in first.stdout
    updates = results(tmp_path / "out")["rungs"][0]["updates"]
    assert updates > 10
    (tmp_path / "out" / "gru-1" / "test.json").unlink()
    again = jumok(*timed)
    assert (again.returncode, "ignored" in again.stderr) == (0, False), again.stderr
    assert results(tmp_path / "out")["rungs"][0]["updates"] == updates
    with_two = jumok(*timed, "--jobs", 2, "--json")  # nothing is left to train, so nothing trained beside anything
    assert json.loads(with_two.stdout)["side_by_side"] == {"gru-1": 1}
    for wrong in (["--seeds", 2, "--jobs", 2], ["--rungs", "gru,luong", "--jobs", 6]):
        told = jumok(*timed, *wrong)
        assert (told.returncode, "trained 1 side by side" in told.stderr) == (2, True), told.stderr


def test_waves_that_are_not_full_are_told_beforehand(
    asked: list[str], tmp_path: Path, jumok: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at a time, then one alone: a minute is worth more to that one."""

    def stop(*anything: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(climbing, "train_side_by_side", stop)
    budget = asked.index("--updates")
    command = [*asked[:budget], *asked[budget + 2 :], "--minutes", "0.1", "--out", tmp_path / "out"]
    told = jumok(*command, "--jobs", 2)
    assert told.returncode == 130
    assert "2 at a time, fewer for Transformer, seed 1 (1)" in told.stderr
    kept = json.loads((tmp_path / "out" / "ladder.json").read_text(encoding="utf-8"))["side_by_side"]
    assert kept == {"gru-1": 2, "luong-1": 2, "transformer-1": 1}
    told = jumok(*command, "--jobs", 3)  # nothing has been trained, so there is nothing to differ from
    assert (told.returncode, "fewer for" in told.stderr) == (130, False)


def test_a_kill_before_the_tokenizer_is_saved(
    climbed: Path, asked: list[str], tmp_path: Path, jumok: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"

    def stop(*anything: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(folders, "save_tokenizers", stop)
        assert jumok(*asked, "--rungs", "gru", "--out", out).returncode == 130
        (out / "ladder.json").rename(out / ".ladder.json.1.tmp")  # as of one that was killed even earlier
        assert jumok(*asked, "--rungs", "gru", "--out", out).returncode == 130
    told = jumok(*asked, "--rungs", "gru", "--out", out)
    assert told.returncode == 0, told.stderr
    assert (out / "gru-1" / "test.txt").read_bytes() == (climbed / "gru-1" / "test.txt").read_bytes()


def test_translations_that_are_gone_are_made_again(
    climbed: Path, asked: list[str], tmp_path: Path, jumok: Command
) -> None:
    out = tmp_path / "ladder"
    shutil.copytree(climbed, out)
    (out / "gru-1" / "test.txt").unlink()
    (out / "gru-2" / "test.txt").write_text("one line\n")
    told = jumok(*asked, "--rungs", "gru", "--seeds", 2, "--out", out)
    assert told.returncode == 0, told.stderr
    for name in ("gru-1", "gru-2"):
        assert (out / name / "test.txt").read_bytes() == (climbed / name / "test.txt").read_bytes()


def test_one_rung_that_fails_does_not_take_the_others_with_it(
    climbed: Path, asked: list[str], tmp_path: Path, jumok: Command
) -> None:
    """Its checkpoints are damaged; the others are in the table, and the exit code says that something is missing."""
    out = tmp_path / "ladder"
    shutil.copytree(climbed, out)
    (out / "luong-1" / "test.json").unlink()
    (out / "luong-1" / "checkpoints" / "step-6" / "model.safetensors").write_bytes(b"nothing")
    for folder in (out / "luong-1" / "checkpoints").glob("step-[0-5]"):
        shutil.rmtree(folder)
    told = jumok(*asked, "--out", out)
    assert told.returncode == 1
    assert "1 run failed" in told.stderr
    assert "Luong, seed 1: no checkpoint" in told.stderr
    assert "Traceback" not in told.stderr
    assert [row["rung"] for row in results(out)["rungs"]] == ["gru", "transformer"]
    assert results(out)["rungs"][1]["gain"] is not None
    assert "Luong 0 of 1" in (out / "table.md").read_text(encoding="utf-8")


def test_a_folder_with_something_else_and_a_busy_one_are_refused(
    climbed: Path, asked: list[str], tmp_path: Path, jumok: Command
) -> None:
    from filelock import FileLock

    (tmp_path / "mine.txt").write_text("mine")
    told = jumok(*asked, "--out", tmp_path)
    assert (told.returncode, "no ladder" in told.stderr) == (2, True)
    told = jumok(*asked, "--out", tmp_path / "mine.txt")
    assert (told.returncode, "is a file" in told.stderr) == (2, True)
    with FileLock(climbed / ".lock"):
        told = jumok(*asked, "--seeds", 2, "--out", climbed)
    assert (told.returncode, "another ladder" in told.stderr) == (2, True)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "ladder.json").write_text("[")
    told = jumok(*asked, "--out", tmp_path / "damaged")
    assert (told.returncode, "cannot be read" in told.stderr) == (2, True)
