"""What tests of the ladder share: the command in this process, a tiny corpus in files, and one ladder climbed on it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from journey import write_corpus

from jumok.cli.main import run as run_command

Command = Callable[..., "subprocess.CompletedProcess[str]"]
# so small that it learns next to nothing: what is tested is the way, not the height
TINY = [
    "tokenizer.vocabulary=300", "model.width=16", "model.dropout=0.1", "training.batch_tokens=512", "threads=1",
    "training.validate_sentences=3", "search.max_ratio=1", "search.max_extra=1",
    "gru:model.layers=1", "gru:model.embedding=8", "luong:model.layers=1", "luong:model.embedding=8",
    "transformer:model.heads=2", "transformer:model.feed_forward=16", "transformer:model.encoder_layers=1",
    "transformer:model.decoder_layers=1", "transformer:training.warmup=2",
]  # fmt: skip


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The options that name a corpus of 200 pairs to learn from and a few to be tested on."""
    place = tmp_path_factory.mktemp("corpus")
    train, held, test = (
        write_corpus(place, count, split) for count, split in ((200, "train"), (20, "valid"), (24, "test"))
    )
    named = {"source": train[0], "target": train[1], "valid-source": held[0], "valid-target": held[1]}
    named |= {"test-source": test[0], "test-target": test[1]}
    return [word for option, file in named.items() for word in (f"--{option}", str(file))]


@pytest.fixture(scope="session")
def asked(files: list[str]) -> list[str]:
    """The command of the ladder that the tests climb, but for its folder."""
    return ["ladder", *files, *TINY, "--rungs", "transformer,gru,luong", "--updates", "6", "--beam", "2"]


@pytest.fixture(scope="session")
def climbed(asked: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("ladders") / "small"
    assert run_command([*asked, "--seeds", "2", "--out", str(out)]) == 0
    return out


@pytest.fixture
def jumok(capfd: pytest.CaptureFixture[str]) -> Command:
    """The command as a user runs it, in this process: torch is there already."""

    def command(*arguments: object) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        code = run_command([str(argument) for argument in arguments])
        sys.stdout.flush()
        return subprocess.CompletedProcess(arguments, code, *capfd.readouterr())

    return command
