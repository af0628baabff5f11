"""`--engine ct2` beside the bare CTranslate2 loop: the same files of one model, the same sentences, text in and out.

    python benchmarks/engines_cpu.py --run DIR [--file FILE] [--lines 10000] [--threads 2] [--rounds 3] [--out NAME]

Two bare programs, both tuned on a 25th of the lines over the size of a batch (16 to 128) and over whether the threads
share a batch (intra) or have one each (inter):

- loop: so many lines of the file are cut, translated by one `translate_batch`, put together; then the next;
- whole: the file is read into memory and given to one `translate_batch`, which sorts and cuts it (max_batch_size).

Ours is what `jumok translate --engine ct2` does, chunk after chunk. Beam 5, in turns, the median of the rounds; loading
is not counted. Without --run a small Transformer learns the embedded grammar first (two minutes).
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
BEAM = 5
SIZES = (16, 32, 64, 128)

Translate = Callable[[list[str]], list[str]]


class Kind(NamedTuple):
    whole: bool
    inter: bool
    size: int

    @property
    def name(self) -> str:
        return f"{'whole' if self.whole else 'loop'}, {'inter' if self.inter else 'intra'}, {self.size}"


def prepared(run: Path) -> Path:
    if not (run / "recipe.yaml").exists():
        command = [sys.executable, "-m", "jumok", "train", "demo-transformer", "tokenizer.kind=bpe"]
        subprocess.run([*command, "--run", str(run), "--minutes", "2"], check=True)
    return run


def sentences(file: Path | None, count: int) -> list[str]:
    from jumok.data import grammar

    if file is not None:
        return [line for line in file.read_text(encoding="utf-8").split("\n") if line.strip()][:count]
    return [pair.source for pair in grammar.pairs("en", "fr", "test", count)]


def ours(model: Any, folder: Path, precision: str, threads: int) -> Translate:
    from jumok.streaming.lines import Columns, chunk_size, stream
    from jumok.streaming.sources import Chunk
    from jumok.tasks.engine_ct2 import CTranslate2Engine
    from jumok.tasks.wishes import Sentence, Wishes

    model.engine = CTranslate2Engine(model.models, model.device, folder, precision, threads)
    wishes = Wishes(beam=BEAM, too_long="truncate")
    size, engine = chunk_size(model, wishes), model.engine

    def translate(lines: list[str]) -> list[str]:
        model.engine = engine
        sentences = [Sentence(line) for line in lines]
        chunks = (Chunk(start, sentences[start : start + size], size) for start in range(0, len(lines), size))
        return [written.lines[0] for written in stream(model, chunks, wishes, Columns(), count=engine.ahead)]

    return translate


def bare(model: Any, folder: Path, precision: str, threads: int, kind: Kind) -> Translate:
    import ctranslate2

    from jumok.tasks.engine_ct2 import vocabulary

    names, ids = vocabulary(folder, "source"), {name: id for id, name in enumerate(vocabulary(folder, "target"))}
    inter = {"inter_threads": threads, "intra_threads": 1}
    split = inter if kind.inter else {"inter_threads": 1, "intra_threads": threads}
    translator = ctranslate2.Translator(str(folder), device="cpu", compute_type=precision, **split)
    # a loop whose threads have a batch each takes as many lines at a time as fill them
    once = kind.size * (threads if kind.inter else 1)

    def translate(lines: list[str]) -> list[str]:
        step = len(lines) if kind.whole else once
        return [text for start in range(0, len(lines), step) for text in part(lines[start : start + step])]

    def part(lines: list[str]) -> list[str]:
        rows = [[names[id] for id in row] for row in model.source.encode(lines)]
        found = translator.translate_batch(rows, beam_size=BEAM, max_batch_size=kind.size)
        return model.target.decode([[ids[name] for name in one.hypotheses[0]] for one in found])

    return translate


def timed(translate: Translate, lines: list[str]) -> tuple[float, list[str]]:
    time.sleep(0.3)  # threads of the one before stop spinning
    start = time.perf_counter()
    found = translate(lines)
    return time.perf_counter() - start, found


def measure(model: Any, folder: Path, precision: str, lines: list[str], options: Any) -> dict[str, Any]:
    part = lines[: max(1, len(lines) // 25)]
    tuned = [Kind(whole, inter, size) for whole in (False, True) for inter in (False, True) for size in SIZES]
    programs = {kind: bare(model, folder, precision, options.threads, kind) for kind in tuned}
    speeds = {kind: min(timed(programs[kind], part)[0] for _ in range(2)) for kind in tuned}
    loop, whole = (min((k for k in tuned if k.whole == w), key=speeds.__getitem__) for w in (False, True))
    names = {
        "ours": ours(model, folder, precision, options.threads), "loop": programs[loop], "whole": programs[whole],
    }  # fmt: skip
    gc.collect()
    gc.freeze()  # as `jumok translate` does; the bare programs have it too
    timings: dict[str, list[float]] = {name: [] for name in names}
    outputs = {}
    for translate in names.values():
        timed(translate, part)  # warm up
    for _ in range(options.rounds):
        for name, translate in names.items():
            seconds, outputs[name] = timed(translate, lines)
            timings[name].append(round(seconds, 3))
    median = {name: statistics.median(values) for name, values in timings.items()}
    same = sum(a == b for a, b in zip(outputs["ours"], outputs["whole"], strict=True))
    return {
        "lines": len(lines), "timings": timings, "lines per second": {n: len(lines) / median[n] for n in median},
        "tuned": {"loop": loop.name, "whole": whole.name},
        "ratio": {name: median[name] / median["ours"] for name in ("loop", "whole")},
        "same text": same / len(lines), "searched here": len(model.engine.left), "load": os.getloadavg()[0],
    }  # fmt: skip


def as_markdown(result: dict[str, Any]) -> str:
    lines = [
        f"# `--engine ct2` and the bare loop: {result['threads']} threads, beam {BEAM}, medians in lines a second", "",
        "| precision | lines | ours | bare loop | ratio | whole file in one call | ratio | same text |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]  # fmt: skip
    for precision, one in result["precisions"].items():
        speed, cells = one["lines per second"], [f"{one['lines']:,}"]
        cells.append(f"{speed['ours']:.1f}")
        for name in ("loop", "whole"):
            cells += [f"{speed[name]:.1f} ({one['tuned'][name]})", f"{one['ratio'][name]:.2f}"]
        lines.append(f"| {precision} | {' | '.join([*cells, format(one['same text'], '.3f')])} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=ROOT / "runs" / "engines-cpu")
    parser.add_argument("--file", type=Path, default=None, help="sentences, one a line; else of the grammar")
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precisions", nargs="*", default=["float32", "int8"])
    parser.add_argument("--out", type=Path, default=None, help="benchmarks/results/engines-cpu: both .json and .md")
    options = parser.parse_args()
    import ctranslate2
    import torch

    from jumok import api
    from jumok.interop.ctranslate2 import engine_folder

    torch.set_num_threads(options.threads)
    model = api.load_translator(prepared(options.run), "cpu")
    lines = sentences(options.file, options.lines)
    result: dict[str, Any] = {"threads": options.threads, "ctranslate2": ctranslate2.__version__, "precisions": {}}
    for precision in options.precisions:
        folder = engine_folder(model.run, precision, print)
        result["precisions"][precision] = found = measure(model, folder, precision, lines, options)
        print(f"{precision}: {found['ratio']} {found['tuned']}, load {found['load']:.1f}", flush=True)
    text = as_markdown(result)
    print(text)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        options.out.with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
