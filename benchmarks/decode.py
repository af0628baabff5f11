"""Decoding on the CPU: jumok, `transformers` generate and CTranslate2 with the same weights and sentences, in turns.

    python benchmarks/decode.py [--run DIR] [--quick] [--threads 2] [--rounds 3] [--out benchmarks/results/decode-cpu]

Two models: a trained small one (256/4/1024, 3+3 layers; `--run`, or trained here on Multi30k en→de, once) and a random
base (512/8/2048, 6+6) whose outputs have a fixed length; vocabulary 8k. Greedy and beam 5, 32 sentences and 1 at a
time: eight cells. `packed` is jumok without a C compiler, which counts for nothing. Each engine lives in a process of
its own that sleeps while the others work; rounds go through all engines, the figure is the median over the rounds. What
other programs did to the machine meanwhile stands beside it. Token ids in, token ids out: no engine tokenises. All stop
a beam of b when b hypotheses have finished.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import multiprocessing
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MULTI30K = ROOT.parent / "shared" / "data" / "multi30k"
ENGINES = ("hf float32", "ct2 float32", "ct2 int8", "jumok float32", "jumok bfloat16", "jumok int8",
           "packed float32", "packed int8")  # fmt: skip
SIZES = {"small": (256, 4, 1024, 3), "base": (512, 8, 2048, 6)}  # width, heads, feed-forward, layers
VOCABULARY = 8000
LONGEST = 60  # tokens of an output of the small model; none needs so many
COUNTED = "seconds"  # or "processor"
QUIET = 0.1  # cores that others may use during a timing that counts as quiet


@dataclass(frozen=True)
class Cell:
    model: str
    beam: int
    batch: int

    @property
    def name(self) -> str:
        return f"{self.model} {'greedy' if self.beam == 1 else f'beam {self.beam}'} batch {self.batch}"


CELLS = [Cell(model, beam, batch) for model in SIZES for batch in (32, 1) for beam in (1, 5)]


@dataclass
class Timing:
    seconds: float
    processor: float  # seconds of all its threads together
    others: float  # cores that other programs used meanwhile
    load_before: float
    load_after: float


@dataclass
class Found:
    """What one engine did in one cell."""

    timings: list[Timing] = field(default_factory=list)
    outputs: list[list[int]] = field(default_factory=list)

    def counted(self) -> list[Timing]:
        """The quiet timings, if there are enough of them."""
        quiet = [timing for timing in self.timings if timing.others <= QUIET]
        return quiet if len(quiet) >= 3 else self.timings

    def seconds(self) -> float:
        return statistics.median(getattr(timing, COUNTED) for timing in self.counted())


# ---------------------------------------------------------------- the engines, each in its own process


class Jumok:
    def __init__(self, folder: Path, precision: str, threads: int) -> None:
        import torch

        from jumok.tasks.engine import Engine

        torch.set_num_threads(threads)
        self.engine = Engine([load(folder)], torch.device("cpu"), precision, fast=True)

    def translate(self, rows: list[list[int]], beam: int, batch: int, forced: int | None) -> list[list[int]]:
        from jumok.search import SearchOptions

        lengths = {"max_length": LONGEST} if forced is None else {"min_length": forced, "max_length": forced}
        options = SearchOptions(beam=beam, patience=1.0, **lengths)
        found = dict(self.engine.search([(row, options) for row in rows], batch))
        return [found[place][0].tokens for place in range(len(rows))]


class HuggingFace:
    def __init__(self, folder: Path, precision: str, threads: int) -> None:
        import torch

        from marian import to_marian

        torch.set_num_threads(threads)
        self.model = to_marian(load(folder))

    def translate(self, rows: list[list[int]], beam: int, batch: int, forced: int | None) -> list[list[int]]:
        import torch

        from jumok.data.batch import END, PAD, START, source_batch

        lengths = {"max_new_tokens": forced or LONGEST} | ({} if forced is None else {"min_new_tokens": forced})
        found: list[list[int]] = []
        for first in range(0, len(rows), batch):
            source = source_batch(rows[first : first + batch])
            with torch.inference_mode():
                ids = self.model.generate(
                    input_ids=source.ids,
                    attention_mask=source.mask.long(),
                    num_beams=beam,
                    do_sample=False,
                    early_stopping=beam > 1,
                    length_penalty=1.0,
                    suppress_tokens=[PAD, START],
                    **lengths,
                )
            found += [_until(row[1:], END) for row in ids.tolist()]
        return found


class CTranslate2:
    def __init__(self, folder: Path, precision: str, threads: int) -> None:
        import ctranslate2

        from marian import to_ctranslate2, to_marian

        with tempfile.TemporaryDirectory() as place:
            converted = to_ctranslate2(to_marian(load(folder)), Path(place), precision)
            self.translator = ctranslate2.Translator(
                str(converted), device="cpu", compute_type=precision, inter_threads=1, intra_threads=threads
            )

    def translate(self, rows: list[list[int]], beam: int, batch: int, forced: int | None) -> list[list[int]]:
        from jumok.data.batch import END, PAD, START, UNKNOWN
        from marian import token

        lengths = {"max_decoding_length": forced or LONGEST}
        if forced is not None:
            lengths["min_decoding_length"] = forced
        words = [[token(number) for number in [*row, END]] for row in rows]
        found = self.translator.translate_batch(
            words,
            max_batch_size=batch,
            beam_size=beam,
            length_penalty=1.0,
            suppress_sequences=[[token(PAD)], [token(START)]],
            **lengths,
        )
        return [[UNKNOWN if word == "<unk>" else int(word) for word in each.hypotheses[0]] for each in found]


KINDS: dict[str, type[Jumok] | type[HuggingFace] | type[CTranslate2]] = {
    "jumok": Jumok,
    "hf": HuggingFace,
    "ct2": CTranslate2,
    "packed": Jumok,
}


def _until(row: list[int], end: int) -> list[int]:
    return row[: row.index(end)] if end in row else row


def work(engine: str, folder: Path, threads: int, pipe: Connection) -> None:
    """The life of an engine's process: translate what is asked for; say what came out, how long it took, and how much
    processor time that was."""
    kind, precision = engine.split()
    if kind == "packed":
        os.environ["JUMOK_NATIVE"] = "0"
    if kind in ("jumok", "packed"):
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # as the jumok command does
    made = KINDS[kind](folder, precision, threads)
    pipe.send("ready")
    while (asked := pipe.recv()) is not None:
        before, start = time.process_time(), time.perf_counter()
        outputs = made.translate(*asked)
        pipe.send((outputs, time.perf_counter() - start, time.process_time() - before))


class Worker:
    def __init__(self, engine: str, folder: Path, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(engine, folder, threads, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.pipe.recv()

    def time(self, *asked: Any) -> tuple[list[list[int]], Timing]:
        time.sleep(0.3)  # threads of the one before stop spinning
        load, busy, start = os.getloadavg()[0], _busy(), time.perf_counter()
        self.pipe.send(asked)
        outputs, seconds, own = self.pipe.recv()
        whole, all_busy = time.perf_counter() - start, _busy() - busy
        others = max(0.0, all_busy - own) / whole
        return outputs, Timing(seconds, round(own, 4), round(others, 3), load, os.getloadavg()[0])

    def end(self) -> None:
        self.pipe.send(None)
        self.process.join()


def _busy() -> float:
    """Seconds that all processors together have worked since the machine started."""
    user, nice, system, _, _, irq, softirq, *_ = map(int, Path("/proc/stat").read_text().split("\n")[0].split()[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


# ---------------------------------------------------------------- the models and the sentences


def load(folder: Path) -> Any:
    """A run's model, or the random one that a folder stands for."""
    import torch

    from jumok import api
    from jumok.models.transformer import Transformer

    if (folder / "recipe.yaml").exists():
        return api.load_translator(folder, "cpu").model.eval()
    from marian import section

    torch.manual_seed(1)
    return Transformer(section(*SIZES[folder.name]), VOCABULARY, VOCABULARY).eval()


def train(folder: Path, minutes: float) -> None:
    """A small model that MarianMT can hold, good enough to write sentences of the usual lengths."""
    width, heads, feed_forward, layers = SIZES["small"]
    keys = {
        "tokenizer.kind": "bpe", "tokenizer.joint": "true", "tokenizer.vocabulary": VOCABULARY,
        "model.width": width, "model.heads": heads, "model.feed_forward": feed_forward, "model.encoder_layers": layers,
        "model.decoder_layers": layers, "model.norm": "post", "model.position": "sinusoidal-halves",
        "model.tie_embeddings": "all", "training.batch_tokens": 2048, "training.warmup": 400,
        "training.learning_rate": 0.001, "training.validate_sentences": 100, "training.keep": 1,
    }  # fmt: skip
    files = {"source": "train.en", "target": "train.de", "valid-source": "val.en", "valid-target": "val.de"}
    command = [sys.executable, "-m", "jumok", "train", "transformer-small", *(f"{key}={keys[key]}" for key in keys)]
    command += [part for name, file in files.items() for part in (f"--{name}", str(MULTI30K / f"{file}.gz"))]
    subprocess.run([*command, "--run", str(folder), "--minutes", str(minutes)], check=True)


def sentences(folder: Path, count: int) -> list[list[int]]:
    """Multi30k's test sentences as token ids; made-up ones of like lengths where there is no trained model."""
    from jumok import api

    with gzip.open(MULTI30K / "test_2016_flickr.en.gz", "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()[:count]
    if (folder / "recipe.yaml").exists():
        return api.load_translator(folder, "cpu").source.encode(lines)
    drawn = random.Random(1)
    return [[drawn.randrange(4, VOCABULARY) for _ in line.split()] for line in lines]


# ---------------------------------------------------------------- the comparison


def measure(
    cells: list[Cell], engines: list[str], folders: dict[str, Path], rows: list[list[int]], options: Any
) -> Any:
    table: dict[Cell, dict[str, Found]] = {cell: {engine: Found() for engine in engines} for cell in cells}
    for model in SIZES:
        workers: dict[str, Worker] = {}
        for cell in (cell for cell in cells if cell.model == model):
            for engine in engines:
                if engine not in workers:
                    workers[engine] = Worker(engine, folders[model], options.threads)
            asked = chosen_rows(rows, cell, options.quick)
            forced = None if (folders[model] / "recipe.yaml").exists() else options.forced
            for engine in engines:  # warm up
                workers[engine].time(asked[-cell.batch :], cell.beam, cell.batch, forced)
            enough, tries = 0, 0
            while enough < options.rounds and tries < options.rounds + options.extra:
                for engine in engines:
                    outputs, timing = workers[engine].time(asked, cell.beam, cell.batch, forced)
                    table[cell][engine].outputs = outputs
                    table[cell][engine].timings.append(timing)
                tries += 1
                enough += all(table[cell][engine].timings[-1].others <= QUIET for engine in engines)
            speeds = {engine: len(asked) / found.seconds() for engine, found in table[cell].items()}
            others = max(timing.others for found in table[cell].values() for timing in found.counted())
            print(f"{cell.name:24}", *(f"{engine} {speed:.1f}" for engine, speed in speeds.items()), sep="  ", end="")
            print(f"  (others used up to {others:.2f} cores)", flush=True)
        for worker in workers.values():
            worker.end()
    return table


def chosen_rows(rows: list[list[int]], cell: Cell, quick: bool) -> list[list[int]]:
    """As many sentences as a cell needs for a timing of some seconds, the longest first, spread over the test set."""
    count = {("small", 32): 256, ("small", 1): 48, ("base", 32): 64, ("base", 1): 10}[cell.model, cell.batch]
    count = max(cell.batch, count // 4) if quick else count
    some = rows[:: len(rows) // count][:count]
    return sorted(some, key=lambda row: -len(row))


def report(table: dict[Cell, dict[str, Found]], options: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"machine": machine(options.threads), "cells": {}}
    ratios: dict[str, list[float]] = {"float32 / hf": [], "best / best ct2": []}
    for cell, engines in table.items():
        count = len(next(iter(engines.values())).outputs)
        speed = {engine: count / found.seconds() for engine, found in engines.items()}
        best = {kind: max((speed[e] for e in speed if e.startswith(kind)), default=math.nan) for kind in KINDS}
        reference = engines.get("hf float32", next(iter(engines.values()))).outputs
        row = {
            "sentences": count,
            "sentences per second": {engine: round(value, 2) for engine, value in speed.items()},
            "same as hf": {engine: round(agreement(found.outputs, reference), 4) for engine, found in engines.items()},
            "timings": {engine: [vars(timing) for timing in found.timings] for engine, found in engines.items()},
        }
        if "hf float32" in speed and "jumok float32" in speed:
            row["float32 / hf"] = round(speed["jumok float32"] / speed["hf float32"], 3)
            ratios["float32 / hf"].append(row["float32 / hf"])
        if not math.isnan(best["ct2"] + best["jumok"]):
            row["best / best ct2"] = round(best["jumok"] / best["ct2"], 3)
            ratios["best / best ct2"].append(row["best / best ct2"])
        result["cells"][cell.name] = row
    result["geometric mean"] = {name: round(statistics.geometric_mean(r), 3) for name, r in ratios.items() if r}
    result["worst cell"] = {name: min(r) for name, r in ratios.items() if r}
    return result


def agreement(outputs: list[list[int]], reference: list[list[int]]) -> float:
    """Share of equal outputs; the last token of a forced length is <eos> with some and not with others."""
    same = [a == b or (abs(len(a) - len(b)) == 1 and all(x == y for x, y in zip(a, b, strict=False)))
            for a, b in zip(outputs, reference, strict=True)]  # fmt: skip
    return statistics.mean(same)


def machine(threads: int) -> dict[str, Any]:
    import ctranslate2
    import torch
    import transformers

    text = Path("/proc/cpuinfo").read_text()
    found = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    facts = {key.strip(): value.strip() for key, value in found.items()}
    wanted = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8")
    versions = {"torch": torch, "transformers": transformers, "ctranslate2": ctranslate2}
    return {
        "processor": f"{facts.get('model name', platform.processor())} "
        f"(family {facts.get('cpu family')}, model {facts.get('model')})",
        "cores": os.cpu_count(),
        "threads": threads,
        "instructions": [flag for flag in wanted if flag in facts.get("flags", "").split()],
        "python": platform.python_version(),
        **{name: module.__version__ for name, module in versions.items()},
    }


def as_markdown(result: dict[str, Any], engines: list[str]) -> str:
    about = result["machine"]
    lines = [
        "# Decoding on the CPU",
        "",
        f"{about['processor']}, {about['cores']} cores, {about['threads']} threads, "
        f"{', '.join(about['instructions'])}; torch {about['torch']}, transformers {about['transformers']}, "
        f"CTranslate2 {about['ctranslate2']}.",
        f"Sentences per second ({COUNTED}), median; `others`: how many cores other programs used during the timings.",
        "",
        "| cell | " + " | ".join(engines) + " | float32 / HF | best / best CT2 | others |",
        "| --- |" + " ---: |" * (len(engines) + 3),
    ]
    for name, row in result["cells"].items():
        speeds = [f"{row['sentences per second'][engine]:.1f}" for engine in engines]
        others = [timing["others"] for timings in row["timings"].values() for timing in timings]
        ratios = [f"{row.get(ratio, math.nan):.2f}" for ratio in ("float32 / hf", "best / best ct2")]
        lines.append(f"| {name} | {' | '.join([*speeds, *ratios])} | {min(others):.2f}–{max(others):.2f} |")
    means = result["geometric mean"]
    lines += ["", "Geometric means: " + ", ".join(f"{name} {value:.2f}" for name, value in means.items()) + "."]
    worst = result["worst cell"]
    lines += ["Worst cells: " + ", ".join(f"{name} {value:.2f}" for name, value in worst.items()) + ".", ""]
    lines += ["Outputs equal to those of HF, share of the sentences:", ""]
    lines += ["| cell | " + " | ".join(engines) + " |", "| --- |" + " ---: |" * len(engines)]
    for name, row in result["cells"].items():
        lines.append(f"| {name} | " + " | ".join(f"{row['same as hf'][engine]:.3f}" for engine in engines) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, default=ROOT / "runs" / "decode-small", help="the trained small model")
    parser.add_argument("--random", action="store_true", help="a random small model too, with forced lengths")
    parser.add_argument("--minutes", type=float, default=10, help="how long to train it, if it is not there")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "decode-cpu")
    parser.add_argument("--quick", action="store_true", help="a quarter of the sentences")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="quiet ones, if possible")
    parser.add_argument("--extra", type=int, default=4, help="more rounds to try where others disturb")
    parser.add_argument("--forced", type=int, default=20, help="tokens of each output of the random base model")
    parser.add_argument("--cells", default="", help="only cells whose name has this in it")
    parser.add_argument("--engines", nargs="*", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--processor-time", action="store_true", help="count it, not the clock's (with --threads 1)")
    options = parser.parse_args()
    global COUNTED
    COUNTED = "processor" if options.processor_time else "seconds"
    if options.random:
        options.run = Path("small")
    elif not (options.run / "recipe.yaml").exists():
        train(options.run, options.minutes)
    rows = sentences(options.run, 1000)
    cells = [cell for cell in CELLS if options.cells in cell.name]
    table = measure(cells, options.engines, {"small": options.run, "base": Path("base")}, rows, options)
    result = report(table, options)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    text = as_markdown(result, options.engines)
    options.out.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
