"""Messages name options as they are typed."""

from __future__ import annotations

import pytest

from jumok.cli.main import run
from jumok.cli.typed import typed


def test_names_become_options_and_words_stay_words() -> None:
    names = ("beam", "top_k", "sample", "max_length", "prefix")
    assert typed("top_k and temperature: say sample=True too", names) == "--top-k and temperature: say --sample too"
    assert typed("beam 0: a beam has a prefix", names) == "--beam 0: a beam has a prefix"
    assert typed("Raise it with max_length, not --max-length", names) == "Raise it with --max-length, not --max-length"
    assert typed("sampling, prefixes, my_max_length", names) == "sampling, prefixes, my_max_length"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("translate I --top-k 5", "--temperature, --top-k and --top-p are for sampling: say --sample too"),
        ("translate I --length-penalty -1", "jumok: --length-penalty: must be"),
        ("translate I --prefix 日本", 'jumok: --prefix "日本"'),
        ("translate I --beam 0", "jumok: --beam 0: give"),
        ("translate I --sample --beam 3", "jumok: --beam 3 searches for the best, --sample draws"),
        ("translate I --too-long x", "jumok: --too-long x"),
        ("generate I --run none --top-k 5", "--top-k and --top-p are for sampling: say --sample too"),
        ("generate I --run none --max-tokens 0", "jumok: --max-tokens 0: give"),
        ("translate I --max-length 2000000000", "jumok: --max-length 2000000000: give at most"),
        ("translate I --prefix Je --max-length 1", "with --max-length"),
        ("evaluate --source none --reference none --coverage-penalty -1", "jumok: --coverage-penalty: must be"),
        ("evaluate --source none --reference none --batch 0", "jumok: --batch 0: give"),
    ],
)
def test_commands_name_what_was_typed(line: str, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(line.split()) == 2
    assert words in capfd.readouterr().err
