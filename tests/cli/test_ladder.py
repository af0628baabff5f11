"""`jumok ladder` as it is typed wrongly: what is said, and the exit code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from journey import write_corpus

from jumok.cli.main import run as run_command


@pytest.fixture
def corpus(tmp_path: Path) -> dict[str, str]:
    files = {split: write_corpus(tmp_path, 8, split)[:2] for split in ("train", "valid", "test")}
    (tmp_path / "short.fr").write_text("un\ndeux\n", encoding="utf-8")
    named = {"source": files["train"][0], "target": files["train"][1]}
    named |= {
        f"{split}-{side}": files[split][n] for split in ("valid", "test") for n, side in enumerate(("source", "target"))
    }
    return {f"--{name}": str(path) for name, path in named.items()}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"--target": "short.fr"}, ("train.en has 8 lines", "short.fr has 2")),
        ({"--valid-target": "short.fr"}, ("valid.en has 8 lines", "short.fr has 2")),
        ({"--test-target": "short.fr"}, ("test.en has 8 lines", "short.fr has 2")),
        ({"--test-source": None, "--test-target": None}, ("no test data", "--test-source and --test-target")),
        ({"--test-source": "nowhere.en"}, ("nowhere.en",)),
        ({"--rungs": "rnn,transfomer"}, ('no rung "transfomer"', 'Did you mean "transformer"')),
        ({"--rungs": ","}, ("name some of",)),
        ({"--seeds": "0"}, ("--seeds 0",)),
        ({"--jobs": "0"}, ("--jobs 0",)),
        ({"--minutes": "0"}, ("--minutes 0",)),
        ({"--minutes": "1", "--updates": "5"}, ("--minutes and --updates",)),
        ({"--data": "en-de"}, ('Did you mean "en-ko"',)),
        ({"--data": "grammar"}, ("--data names the embedded corpus",)),
        ({"--device": "tpu"}, ("device",)),
    ],
)
def test_bad_input_is_told_and_nothing_begins(
    corpus: dict[str, str],
    change: dict[str, str | None],
    words: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours = (".fr", ".en")  # files lie in the folder of the test
    local = {key: str(tmp_path / value) if value and value.endswith(ours) else value for key, value in change.items()}
    options = {key: value for key, value in {**corpus, **local}.items() if value is not None}
    out = tmp_path / "ladder"
    code = run_command(["ladder", *(word for pair in options.items() for word in pair), "--out", str(out)])
    said = capsys.readouterr().err
    assert code == 2, said
    for word in words:
        assert word in said
    assert "Traceback" not in said
    assert not list(out.glob("*-1"))


def test_a_place_that_cannot_be_written_to_is_told_before_anything_begins(
    corpus: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["ladder", *(word for pair in corpus.items() for word in pair)]
    may = os.access
    monkeypatch.setattr(os, "access", lambda place, mode: str(place) != str(tmp_path) and may(place, mode))
    for out, words in (("ladder", f"{tmp_path} cannot be written to"), ("short.fr/ladder", "short.fr is a file")):
        assert run_command([*asked, "--out", str(tmp_path / out)]) == 2
        assert words in capsys.readouterr().err
        assert not (tmp_path / out).exists()
