"""Word lists to render from: English words by how often they come in WikiText-2, then the rest of Debian's wamerican;
Korean ones from the shared list. The test set of scene text is not opened: opening it is made impossible first.

    python benchmarks/scene_text_words.py --out .device-scene
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
WAMERICAN = Path("/usr/share/dict/american-english")
WORD = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
LONGEST = 25
FORBIDDEN = "shared/data/scene-text"


def refuse_test_data() -> None:
    """From here on this process cannot open a file of the test set. Those that it starts draw glyphs of fonts, and are
    given nothing else."""

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes):
            name = arguments[0].decode(errors="replace") if isinstance(arguments[0], bytes) else arguments[0]
            if FORBIDDEN in os.path.realpath(name) or "iiit5k" in name.lower():
                raise PermissionError(f"{name}: the test set, which training must not see")

    sys.addaudithook(refuse)
    try:
        open(DATA / "scene-text" / "iiit5k_test.gt.txt")  # noqa: SIM115
    except PermissionError:
        return
    except FileNotFoundError:
        return
    raise AssertionError("the test set could be opened")


def english() -> list[str]:
    """The most frequent first; what wamerican alone has, after them."""
    counts: Counter[str] = Counter()
    with gzip.open(DATA / "wikitext2" / "wiki.train.tokens.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            counts.update(
                word for word in WORD.findall(line.replace("@-@", " ").replace("<unk>", " ")) if len(word) <= LONGEST
            )
    lowered: Counter[str] = Counter()
    for word, count in counts.items():
        lowered[word.lower()] += count
    frequent = [word for word, count in lowered.most_common() if count >= 3]
    rest = [word for word in WAMERICAN.read_text(encoding="utf-8").split() if WORD.fullmatch(word)]
    return list(dict.fromkeys([*frequent, *(word.lower() for word in rest if not word.endswith("'s"))]))


def korean() -> list[str]:
    with gzip.open(DATA / "words" / "words-ko.txt.gz", "rt", encoding="utf-8") as lines:
        return [line.strip() for line in lines if line.strip()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / ".device-scene")
    arguments = parser.parse_args()
    refuse_test_data()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, words in (("words-en.txt", english()), ("words-ko.txt", korean())):
        (arguments.out / name).write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
        print(f"{arguments.out / name}: {len(words):,} words")


if __name__ == "__main__":
    main()
