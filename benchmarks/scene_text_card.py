"""All readers of words in pictures, trained on one card: the table of five, and Hangul as jamo and as syllables.

    python benchmarks/scene_text_card.py --latin FOLDER --english FILE --hangul FOLDER --korean FILE --out FOLDER \\
        [--until SECONDS] permuted=15 hangul-jamo=3.5 hangul-syllables=3.5 crnn=3 attn-lstm=3 vit-ctc=3 vit-decoder=3

Each is a scene_text_train.py of so many minutes, in this order, one after the other: a reader has the card for itself,
so what it plans from its first hundred updates is what it gets, and its minutes are those of the clock. The only thing
beside it is that the others are compiled once by processes of the lowest priority, which begin when the first has made
its plan; when their turn comes what they need lies in the cache.

After --until seconds nothing is begun and what learns is asked to end: it packs what it has come to. How each stands is
told every ten seconds, if anybody listens; a machine that is lent goes on when nobody does:

    setsid python3 benchmarks/scene_text_card.py … </dev/null >card.log 2>&1 &
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1]
LOOK, TELL = 0.2, 10.0  # seconds
ENDING = 60.0  # seconds that a training which is asked to end has for it
ASIDE = 0.7  # minutes of each that are not its training: starting, drawing its letters, packing
WIDE = 100  # characters of a line that is told
COMPILED = ["training.compile=true"]
RECIPES: dict[str, list[str]] = {  # compiling takes a minute or two, of the processor
    "permuted": ["permuted", *COMPILED],
    "crnn": ["crnn"],
    "attn-lstm": ["attn-lstm"],
    "vit-ctc": ["vit-ctc", *COMPILED],
    "vit-decoder": ["vit-decoder", *COMPILED],
    "hangul-jamo": ["permuted-hangul", "charset.hangul=jamo", *COMPILED],
    "hangul-syllables": ["permuted-hangul", "charset.hangul=syllables", *COMPILED],
}
RARELY = ["training.checkpoint_every=2000", "training.validate_every=4000"]
TRIED = ["training.updates=4", "training.validate_every=4", "data.valid.pairs=32"]  # enough to be compiled


@dataclass
class Learner:
    """A training, and what its log tells."""

    name: str
    minutes: float
    command: list[str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    cut: bool = False  # asked to end before it was done

    def begin(self, kindly: bool = False) -> None:
        with self.log.open("wb") as log:
            command = ["nice", "-n", "19", *self.command] if kindly else self.command
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    @property
    def goes_on(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def said(self) -> str:
        try:
            return self.log.read_text(encoding="utf-8", errors="replace")
        except OSError:  # somebody tidies up
            return ""

    def stands(self) -> str:
        if self.process is None:
            return f"{self.name}: not begun"
        lines = self.said.strip().splitlines() or [""]
        ended = "" if self.goes_on else f"{'cut' if self.cut else 'ended'} with {self.process.returncode}; "
        return f"{self.name}: {ended}{lines[-1][:WIDE]}"

    def end(self) -> None:
        """As Ctrl-C would: everything is saved first."""
        if self.process is None or not self.goes_on:
            return
        self.cut = True
        self.process.terminate()
        try:
            self.process.wait(ENDING)
        except subprocess.TimeoutExpired:
            self.process.kill()


def learner(arguments: argparse.Namespace, one: str, tried: bool = False) -> Learner:
    name, _, given = one.partition("=")
    if name not in RECIPES:
        sys.exit(f"{name}: there are {', '.join(RECIPES)}")
    korean = name.startswith("hangul")
    fonts, words = (arguments.hangul, arguments.korean) if korean else (arguments.latin, arguments.english)
    if fonts is None or words is None or not (fonts.exists() and words.exists()):
        sys.exit(f"{name}: give {'--hangul and --korean' if korean else '--latin and --english'} that are there")
    recipe = [key for key in RECIPES[name] if not (arguments.eager and key in COMPILED)]
    minutes, out = float(given or 3), arguments.out / f"{name}.tar"
    work, keys = arguments.work, [*RARELY, *arguments.key]
    if tried:
        minutes, out, work = 0.0, arguments.work / "tried" / f"{name}.tar", arguments.work / "tried"
        keys = [*arguments.key, *TRIED]
    out.parent.mkdir(parents=True, exist_ok=True)
    script = str(ROOT / "benchmarks" / "scene_text_train.py")
    asked = [*recipe, "training.precision=bfloat16", *keys, f"--minutes={minutes:g}", f"--work={work}", f"--out={out}"]
    command = [sys.executable, script, *asked, f"--fonts={fonts.absolute()}", f"--words={words.absolute()}"]
    return Learner(name, minutes, command, out.with_suffix(".log"))


def tell(*lines: object) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more: no reason to stop
        print(*lines, sep="\n  ", flush=True)


def train(learners: list[Learner], tried: list[Learner], until: float) -> None:
    """One after the other. `tried` begin when the first has planned."""
    began = told = time.monotonic()
    for one in learners:
        if time.monotonic() - began >= until:
            return
        one.begin()
        while one.goes_on:
            time.sleep(LOOK)
            if tried and tried[0].process is None and "plan:" in one.said:
                for other in tried:
                    other.begin(kindly=True)
            now = time.monotonic()
            if now - began >= until:
                tell(f"{now - began:.0f} s: {one.name} is asked to end")
                one.end()
            if now - told >= TELL:
                told = now
                tell(f"{now - began:.0f} s", *(each.stands() for each in learners))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readers", nargs="+", metavar="NAME=MINUTES", help=", ".join(RECIPES))
    parser.add_argument("--latin", type=Path, help="fonts for Latin (scene_text_fonts.py)")
    parser.add_argument("--english", type=Path, help="words for Latin (scene_text_words.py)")
    parser.add_argument("--hangul", type=Path, help="fonts for Hangul")
    parser.add_argument("--korean", type=Path, help="words for Hangul")
    parser.add_argument("--key", action="append", default=[], help="a key of all recipes, as in device=cpu")
    parser.add_argument("--eager", action="store_true", help="compile nothing")
    parser.add_argument("--until", type=float, default=float("inf"), help="seconds after which all of it ends")
    parser.add_argument("--work", type=Path, default=Path("/tmp/readers"))
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.out, arguments.work = arguments.out.absolute(), arguments.work.absolute()
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    learners = [learner(arguments, one) for one in arguments.readers]
    tried = [learner(arguments, one, tried=True) for one in arguments.readers[1:]]
    tried = [one for one in tried if COMPILED[0] in one.command]
    needed = sum(one.minutes + ASIDE for one in learners)
    if 60 * needed > arguments.until:
        sys.exit(f"about {needed:.1f} minutes are needed, and --until leaves {arguments.until / 60:.1f}: ask for less")

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    began = time.monotonic()
    try:
        train(learners, tried, arguments.until)
    finally:
        for one in (*learners, *tried):
            one.end()
    failed = [one for one in learners if one.process is None or one.process.returncode or one.cut]
    for one in failed:
        tell(f"{one.stands()}: {one.log}")
    minutes = (time.monotonic() - began) / 60
    tell(f"{len(learners) - len(failed)} of {len(learners)} in {minutes:.1f} minutes: {arguments.out}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
