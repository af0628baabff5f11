"""All readers of words in pictures, trained on one card in one go: the table of five, and Hangul as jamo and syllables.

    python benchmarks/scene_text_card.py --latin FOLDER --english FILE --hangul FOLDER --korean FILE --out FOLDER \\
        permuted=17 crnn=3 attn-lstm=3 vit-ctc=3 vit-decoder=3 hangul-jamo=5 hangul-syllables=5

Each is a scene_text_train.py of so many minutes, begun in this order, `--beside` of them at once: while one compiles,
or waits for the CPU to launch its kernels, others use the card. A run plans its updates from the speed of its first
hundred; for these few seconds the others are held (SIGSTOP), so what is planned is what the card does for it alone, and
no run has more of the card than its minutes. Beside others it takes longer by the clock. How each stands is told every
ten seconds.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOOK, TELL = 0.2, 10.0  # seconds
WIDE = 100  # characters of a line that is told
COMPILED = ["training.compile=true"]
RECIPES: dict[str, list[str]] = {  # compiling takes two minutes: worth it for those that learn for more
    "permuted": ["permuted", *COMPILED],
    "crnn": ["crnn"],
    "attn-lstm": ["attn-lstm"],
    "vit-ctc": ["vit-ctc"],
    "vit-decoder": ["vit-decoder"],
    "hangul-jamo": ["permuted-hangul", "charset.hangul=jamo", *COMPILED],
    "hangul-syllables": ["permuted-hangul", "charset.hangul=syllables", *COMPILED],
}
RARELY = ["training.checkpoint_every=4000", "training.validate_every=4000"]


@dataclass
class Learner:
    """A training, and what its log tells."""

    name: str
    minutes: float
    log: Path
    command: list[str]
    process: subprocess.Popen[bytes] | None = None
    measures: bool = False  # its first updates, from whose speed it will plan
    planned: bool = False
    held: bool = False
    ended: bool = False

    def begin(self) -> None:
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT)

    def look(self) -> None:
        assert self.process is not None
        said = self.log.read_text(encoding="utf-8", errors="replace")
        self.planned = self.planned or "plan:" in said or self.minutes == 0
        self.ended = self.process.poll() is not None
        compiles = "training.compile=true" in self.command
        self.measures = ("compiled in" if compiles else "parameters on") in said and not (self.planned or self.ended)

    def hold(self, held: bool) -> None:
        if self.process is None or self.ended or held == self.held:
            return
        self.process.send_signal(signal.SIGSTOP if held else signal.SIGCONT)
        self.held = held

    def stands(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines() if self.process else []
        stands = "ended" if self.ended else lines[-1][:WIDE] if lines else "not begun"
        return f"{self.name}: {stands}{' (held)' * self.held}"


def learners(arguments: argparse.Namespace) -> list[Learner]:
    made = []
    for one in arguments.readers:
        name, _, minutes = one.partition("=")
        if name not in RECIPES:
            sys.exit(f"{name}: there are {', '.join(RECIPES)}")
        korean = name.startswith("hangul")
        fonts, words = (arguments.hangul, arguments.korean) if korean else (arguments.latin, arguments.english)
        if fonts is None or words is None:
            sys.exit(f"{name}: give {'--hangul and --korean' if korean else '--latin and --english'}")
        recipe = [key for key in RECIPES[name] if not (arguments.eager and key in COMPILED)]
        keys = [*recipe, "training.precision=bfloat16", *RARELY, *arguments.key]
        place = [f"--minutes={minutes or 3}", f"--work={arguments.work}", f"--out={arguments.out / name}.tar"]
        script = str(ROOT / "benchmarks" / "scene_text_train.py")
        command = [sys.executable, script, *keys, *place, f"--fonts={fonts}", f"--words={words}"]
        made.append(Learner(name, float(minutes or 3), arguments.out / f"{name}.log", command))
    return made


def turn(all_of_them: list[Learner], beside: int) -> None:
    """One look at all: who begins, and who is held while another measures."""
    running = [one for one in all_of_them if one.process is not None and not one.ended]
    for one in running:
        if not one.held:
            one.look()
    running = [one for one in running if not one.ended]
    measuring = [one for one in running if one.measures]
    # the first that measures goes on; whoever comes to it meanwhile has hardly begun, and is held until it is his turn
    first = next((one for one in measuring if not one.held), measuring[0] if measuring else None)
    for one in running:
        one.hold(first is not None and one is not first and (one.planned or one.measures))
    waiting = [one for one in all_of_them if one.process is None]
    if waiting and len(running) < beside:
        waiting[0].begin()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readers", nargs="+", metavar="NAME=MINUTES", help=", ".join(RECIPES))
    parser.add_argument("--latin", type=Path, help="fonts for Latin (scene_text_fonts.py)")
    parser.add_argument("--english", type=Path, help="words for Latin (scene_text_words.py)")
    parser.add_argument("--hangul", type=Path, help="fonts for Hangul")
    parser.add_argument("--korean", type=Path, help="words for Hangul")
    parser.add_argument("--key", action="append", default=[], help="a key of all recipes, as in device=cpu")
    parser.add_argument("--eager", action="store_true", help="compile nothing")
    parser.add_argument("--beside", type=int, default=3, help="how many learn at once")
    parser.add_argument("--work", type=Path, default=Path("/tmp/readers"))
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    all_of_them = learners(arguments)
    began = told = time.time()
    try:
        while not all(one.ended for one in all_of_them):
            turn(all_of_them, arguments.beside)
            if time.time() - told >= TELL:
                told = time.time()
                print(f"{told - began:.0f} s", *(one.stands() for one in all_of_them), sep="\n  ", flush=True)
            time.sleep(LOOK)
    finally:
        for one in all_of_them:
            one.hold(False)
            if one.process is not None and one.process.poll() is None:
                one.process.terminate()
    failed = [one for one in all_of_them if one.process is None or one.process.returncode]
    for one in failed:
        print(f"{one.name} ended with {one.process.returncode if one.process else 'nothing'}: {one.log}")
    minutes = (time.time() - began) / 60
    print(f"{len(all_of_them) - len(failed)} of {len(all_of_them)} in {minutes:.1f} minutes: {arguments.out}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
