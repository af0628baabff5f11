"""A run in one small file, to bring it from the machine where it was trained: what is needed to use it, its weights in
16 bits, without the optimiser's state.

    python benchmarks/packed_run.py pack RUN FILE.tar        python benchmarks/packed_run.py unpack FILE.tar RUN
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

from jumok.training import checkpoint  # noqa: E402
from jumok.training.run import RunFolder  # noqa: E402
from jumok.training.state import TrainState  # noqa: E402

COPIED = ("recipe.yaml", "charset.json", "labels.json", "metrics.jsonl")


def pack(run: Path, file: Path, prefer: str = "last") -> None:
    """`prefer`: the last checkpoint, or the best one."""
    folder = RunFolder(run)
    found = checkpoint.newest_good(folder, print, prefer="best" if prefer == "best" else None)
    assert found is not None, f"{run} has no checkpoint"
    weights = load_file(found / checkpoint.MODEL)
    half = {
        name: tensor.to(torch.float16) if tensor.is_floating_point() else tensor for name, tensor in weights.items()
    }
    state = TrainState.from_json(json.loads((found / checkpoint.STATE).read_text(encoding="utf-8")))
    with tempfile.TemporaryDirectory() as place:
        small = RunFolder(Path(place) / "run")
        small.checkpoints.mkdir(parents=True)
        for name in COPIED:
            if (run / name).exists():
                shutil.copy(run / name, small.path / name)
        checkpoint.write(small.checkpoints / found.name, half, None, state)
        small.point("last", state.update)
        small.point("best", state.update, value=state.best)
        part = file.with_name(f"{file.name}.part")  # half a file is none, whoever looks meanwhile
        with tarfile.open(part, "w") as archive:
            archive.add(small.path, arcname="run")
        part.replace(file)


def unpack(file: Path, run: Path) -> Path:
    with tempfile.TemporaryDirectory(dir=run.parent) as place, tarfile.open(file) as archive:
        archive.extractall(place, filter="data")
        shutil.move(Path(place) / "run", run)
    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("pack", "unpack"))
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    if arguments.what == "pack":
        pack(arguments.source, arguments.target)
    else:
        unpack(arguments.source, arguments.target)
    print(f"{arguments.target}")


if __name__ == "__main__":
    main()
