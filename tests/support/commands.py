"""A sub-command run in this process, so that its error is the exception itself."""

from __future__ import annotations

import typer
from typer.testing import CliRunner, Result


def invoke(app: typer.Typer, *arguments: str) -> Result:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
