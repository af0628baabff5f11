"""What tests of commands share."""

from __future__ import annotations

import pytest
from asked import Ask, Asked

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
