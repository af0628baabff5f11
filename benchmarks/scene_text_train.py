"""A reader of words in pictures, trained on rendered words alone, for so many minutes.

    python benchmarks/scene_text_train.py RECIPE --minutes 17 --fonts FOLDER --words FILE --out NAME.tar [KEY=VALUE …]

Where it is trained there is no test set; if there were, opening it is refused (scene_text_words.py). What was trained
comes back packed (packed_run.py) and is judged by scene_text.py. Beside it: NAME.json with what was seen and how fast.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import time
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from jumok import api  # noqa: E402
from jumok import recipe as recipes  # noqa: E402
from packed_run import pack  # noqa: E402
from scene_text_words import refuse_test_data  # noqa: E402


def sum_of(path: Path) -> str:
    """The sha256 of a file, or of all files of a folder with their names: what was trained with can be told by it."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


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
    run = arguments.work / arguments.out.stem
    if not arguments.resume:
        shutil.rmtree(run, ignore_errors=True)
    started = time.time()
    recipe = None if arguments.resume else recipes.read(arguments.recipe, keys)
    minutes = None if arguments.resume else arguments.minutes or None
    api.train(recipe, run, resume=arguments.resume, minutes=minutes, report=False)
    seconds = time.time() - started
    pack(run, arguments.out)
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    valid = [event for event in events if "accuracy" in event]
    about = {
        "recipe": arguments.recipe,
        "keys": arguments.keys,
        "seconds": round(seconds, 1),
        "updates": max((event.get("step", 0) for event in events), default=0),
        "validations": [[event.get("step"), round(event["accuracy"], 4)] for event in valid],
        "words_per_second": next(
            (event["tokens_per_second"] for event in reversed(events) if event.get("tokens_per_second")), None
        ),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "fonts": {str(path): sum_of(path) for path in arguments.fonts},
        "words": {str(path): sum_of(path) for path in arguments.words},
    }
    arguments.out.with_suffix(".json").write_text(json.dumps(about, ensure_ascii=False, indent=1) + "\n")
    print(json.dumps(about, ensure_ascii=False))


if __name__ == "__main__":
    main()
