"""Messages for who sits at a shell: options by the names that are typed there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from jumok.errors import BadInput


@contextmanager
def options_as_typed(*names: str, kind: type[BadInput] = BadInput) -> Iterator[None]:
    """What is wrong with these parameters (Python's names) is told with the names of the options."""
    try:
        yield
    except kind as error:
        raise BadInput(typed(str(error), names)) from None


def typed(message: str, names: tuple[str, ...]) -> str:
    """`top_k` becomes `--top-k`, `sample=True` becomes `--sample`.

    Names that are also plain words (beam, prefix) are options where a message begins with them, and only there.
    """
    for name in names:
        option = f"--{name.replace('_', '-')}"
        spelled = re.escape(name).replace("_", "[-_]")
        message = re.sub(rf"^{spelled}(?![\w-])", option, message)
        message = re.sub(rf"(?<![\w-]){spelled}=True\b", option, message)
        if "_" in name:
            message = re.sub(rf"(?<![\w-]){spelled}(?![\w-])", option, message)
    return message
