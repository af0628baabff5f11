"""What a user's journeys share: a corpus in files and one small trained run."""

from __future__ import annotations

from pathlib import Path

import pytest
from journey import SMALL, jumok, write_corpus


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, corpus: tuple[Path, Path, Path]) -> Path:
    """A run trained for a moment on two files: bad at French, good for every command."""
    run = tmp_path_factory.mktemp("runs") / "small"
    source, target, _ = corpus
    keys = [*SMALL, "training.updates=40", "training.validate_every=20", "training.checkpoint_every=10"]
    result = jumok("train", "lstm-luong", "--source", source, "--target", target, *keys, "--run", run)
    assert result.returncode == 0, result.stderr
    return run
