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


def require_text(**given: str | None) -> None:
    """Refuse arguments whose bytes were no UTF-8: Python keeps such bytes as half characters that nothing can write."""
    for name, text in given.items():
        broken = next((character for character in text or "" if "\ud800" <= character <= "\udfff"), None)
        if broken is not None:
            byte = f" (byte 0x{ord(broken) - 0xDC00:02x})" if "\udc80" <= broken <= "\udcff" else ""
            raise BadInput(f"{name}: this is not UTF-8{byte}. Set the terminal to UTF-8, or convert the text")
