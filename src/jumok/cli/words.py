"""`--words` and `--trust`: lists of words that pictures of words are read with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jumok.cli.typed import options_as_typed
from jumok.errors import BadInput

if TYPE_CHECKING:
    from jumok.tasks.known_words import KnownWords

WORDS = typer.Option(
    None,
    "--words",
    help="Words in pictures: a list of words, or running text (also .gz). A reading that few letters part from one of "
    "them becomes that, where it is likely enough (--trust). May be given several times.",
)
TRUST = typer.Option(
    None, help="--words: how many times likelier one of them is than another text that looks the same. (default: 50)"
)


def known_words(words: list[Path] | None, trust: float | None) -> KnownWords | None:
    """The lists that were given, where there are any."""
    from jumok.tasks import known_words as reading

    if not words:
        if trust is not None:
            raise BadInput(f"--trust {trust:g} says how much the words of --words are trusted: give that too")
        return None
    trust = reading.TRUST if trust is None else trust
    with options_as_typed("trust"):
        reading.check_trust(trust)
    return reading.KnownWords.of_files(words, trust)
