"""Word lists to render from: English words by how often they come in WikiText-2, then the rest of Debian's wamerican,
and among them now and then one as the address of a web site, as they stand on signs; Korean ones from the shared list.
The test set of scene text is not opened: opening it is made impossible first.

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
ADDRESSES = ("www.{}.com", "www.{}.com", "{}.com", "www.{}.co.uk", "www.{}.org", "www.{}.net", "www.{}.de", "{}.org")
EVERY = 40  # words: one of so many comes as an address, too
FORBIDDEN = "shared/data/scene-text"


def refuse_test_data() -> None:
    """From here on this process cannot open a file of the test set. Those that it starts draw glyphs of fonts, and are
    given nothing else."""

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes):
            name = arguments[0].decode(errors="replace") if isinstance(arguments[0], bytes) else arguments[0]
            if any(FORBIDDEN in each or "iiit5k" in each.lower() for each in (name, os.path.realpath(name))):
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
    words = list(dict.fromkeys([*frequent, *(word.lower() for word in rest if not word.endswith("'s"))]))
    return [each for number, word in enumerate(words) for each in (word, *address(number, word))]


def address(number: int, word: str) -> list[str]:
    """Of every so many words the address of a web site of that name."""
    made = ADDRESSES[number // EVERY % len(ADDRESSES)].format(word)
    return [made] if number % EVERY == EVERY - 1 and word.isalpha() and len(made) <= LONGEST else []


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
