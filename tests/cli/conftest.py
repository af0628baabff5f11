"""What tests of commands share."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked import Ask, Asked
from word_runs import train_words

from jumok.cli.main import run as command


@pytest.fixture
def ask(capfd: pytest.CaptureFixture[str]) -> Ask:
    def run(*arguments: object) -> Asked:
        capfd.readouterr()
        code = command([str(argument) for argument in arguments])
        said = capfd.readouterr()
        assert "Traceback" not in said.err
        assert "bug of jumok" not in said.err, said.err
        return code, said.out, said.err

    return run


@pytest.fixture(scope="session")
def words_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a reader of words in pictures: a Vision Transformer with a permuted decoder."""
    return train_words(tmp_path_factory.mktemp("words") / "permuted")


@pytest.fixture(scope="session")
def columns_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, but convolutions, LSTMs and CTC."""
    return train_words(tmp_path_factory.mktemp("words") / "crnn", encoder="recurrent", decoder="ctc")
