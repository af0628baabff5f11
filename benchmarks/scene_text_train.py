"""A reader of words in pictures, trained on rendered words alone, for so many minutes.

    python benchmarks/scene_text_train.py RECIPE --minutes 17 --fonts FOLDER --words FILE --out NAME.tar [KEY=VALUE …]

Where it is trained there is no test set; if there were, opening it is refused (scene_text_words.py). What was trained
comes back packed (packed_run.py) and is judged by scene_text.py. Beside it: NAME.json with what it was trained with,
which is there before the training is, and with what was seen and how fast. Asked to end (SIGTERM, Ctrl-C) it packs what
it has come to, and says so; --resume goes on with it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from jumok import api  # noqa: E402
from jumok import recipe as recipes  # noqa: E402
from jumok.data.rendering.rendered import faces_of  # noqa: E402
from jumok.recipe import Recipe  # noqa: E402
from jumok.text.charset import Charset  # noqa: E402
from jumok.training.loop import Interrupted  # noqa: E402
from jumok.training.run import RunFolder  # noqa: E402
from packed_run import pack  # noqa: E402
from scene_text_words import refuse_test_data  # noqa: E402


def sum_of(path: Path) -> str:
    """The sha256 of a file, or of all files of a folder with their names: what was trained with can be told by it."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def families_of(recipe: Recipe) -> list[str]:
    """The families of fonts that are learned from. Where they are judged, none of these may be tested with."""
    faces = faces_of(recipe.render, Charset.of(recipe.charset), "train", lambda note: None)
    return sorted({face.family for face in faces})


def what_came_of_it(run: Path) -> dict[str, Any]:
    """What the run's events tell: its plan, its validations, its speed."""
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    valid = [event for event in events if event.get("accuracy") is not None]
    speeds = [event["tokens_per_second"] for event in events if event.get("tokens_per_second")]
    return {
        "updates": max((event.get("step", 0) for event in events), default=0),
        "plan": next((event for event in events if event.get("event") == "plan"), None),
        "validations": [[event.get("step"), round(event["accuracy"], 4)] for event in valid],
        "words_per_second": speeds[-1] if speeds else None,
    }


def put(file: Path, about: dict[str, Any]) -> None:
    beside = file.with_suffix(".json")
    beside.with_suffix(".json.part").write_text(json.dumps(about, ensure_ascii=False, indent=1) + "\n", "utf-8")
    beside.with_suffix(".json.part").replace(beside)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("keys", nargs="*", help="other keys of the recipe")
    parser.add_argument("--minutes", type=float, default=17.0, help="0: as many updates as the recipe says")
    parser.add_argument("--fonts", type=Path, nargs="+", default=[])
    parser.add_argument("--words", type=Path, nargs="+", default=[])
    parser.add_argument("--resume", action="store_true", help="go on with the run in --work")
    parser.add_argument("--work", type=Path, default=Path("/tmp/readers"))
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_intermixed_args()
    refuse_test_data()
    keys = list(arguments.keys)
    for key, paths in (("fonts", arguments.fonts), ("words", arguments.words)):
        if paths:
            keys.append(f"render.{key}={json.dumps([str(path.absolute()) for path in paths])}")
    run, out = arguments.work / arguments.out.stem, arguments.out.absolute()
    out.parent.mkdir(parents=True, exist_ok=True)
    if not arguments.resume:
        shutil.rmtree(run, ignore_errors=True)
    started = time.time()
    recipe = None if arguments.resume else recipes.read(arguments.recipe, keys)
    about: dict[str, Any] = {
        "recipe": arguments.recipe,
        "keys": arguments.keys,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "fonts": {str(path): sum_of(path) for path in arguments.fonts},
        "words": {str(path): sum_of(path) for path in arguments.words},
        "families": families_of(recipe or RunFolder.open(run).recipe()),
    }
    put(out, about)
    minutes = None if arguments.resume else arguments.minutes or None
    ended = "as planned"
    try:
        api.train(recipe, run, resume=arguments.resume, minutes=minutes, report=False)
    except Interrupted as stopped:
        ended = str(stopped)
    about |= {"seconds": round(time.time() - started, 1), "ended": ended, **what_came_of_it(run)}
    put(out, about)
    pack(run, out)
    print(json.dumps({key: value for key, value in about.items() if key != "families"}, ensure_ascii=False))


if __name__ == "__main__":
    main()
