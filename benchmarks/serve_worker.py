"""The worker of `jumok serve` beside the same sentences translated offline, with one model in one process.

    python benchmarks/serve_worker.py [--run DIR] [--file FILE] [--lines 1000] [--rounds 5] [--threads 1]

Offline is `TrainedTranslator.found` over all sentences, which sorts them by length and keeps a batch full (`refill`).
At once: all sentences are submitted together, and the worker decides who joins whom. At a steady rate: they come one
by one, slower than they could be translated; told is how long each waits for its answer. In turns, medians of the
rounds; loading is not counted. Where others use the machine, the CPU time of the process says more than the clock.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from pathlib import Path
from typing import Any

RATES = (0.25, 0.5, 0.8)  # of what it translates when all are there at once


def sentences(file: Path | None, count: int) -> list[str]:
    from jumok.data import grammar

    if file is not None:
        return [line for line in file.read_text(encoding="utf-8").split("\n") if line.strip()][:count]
    return [pair.source for pair in grammar.pairs("en", "fr", "test", count)]


async def at_once(worker: Any, lines: list[str], wishes: Any) -> float:
    began = time.perf_counter()
    await asyncio.gather(*worker.accept(lines, wishes))
    return time.perf_counter() - began


async def one_by_one(worker: Any, lines: list[str], wishes: Any) -> float:
    """As many requests as sentences, all at the same time."""
    began = time.perf_counter()
    await asyncio.gather(*(worker.accept([line], wishes)[0] for line in lines))
    return time.perf_counter() - began


async def steadily(worker: Any, lines: list[str], wishes: Any, rate: float) -> list[float]:
    """The seconds until each has its answer."""
    began, times = time.perf_counter(), list[float]()

    async def ask(number: int, line: str) -> None:
        await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
        asked = time.perf_counter()
        await worker.accept([line], wishes)[0]
        times.append(time.perf_counter() - asked)

    await asyncio.gather(*(ask(number, line) for number, line in enumerate(lines)))
    return times


def ratios(times: dict[str, list[tuple[float, float]]], clock: int) -> dict[str, float]:
    """The median over the rounds, each beside its own offline."""
    offline = times["offline"]
    return {
        name: round(statistics.median(a[clock] / b[clock] for a, b in zip(offline, kept, strict=True)), 3)
        for name, kept in times.items()
        if kept is not offline
    }


async def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    import torch

    from jumok import api
    from jumok.serve.translating import TranslationWorker
    from jumok.serve.waiting import Room
    from jumok.tasks.wishes import Wishes

    torch.set_num_threads(arguments.threads)
    model = api.load_translator(arguments.run, precision=arguments.precision)
    lines, wishes = sentences(arguments.file, arguments.lines), Wishes(beam=arguments.beam, too_long="truncate")
    worker = TranslationWorker("measured", model, Room(waiting=10 * len(lines), seconds=600))
    if arguments.share is not None:
        worker.share = arguments.share
    worker.start(asyncio.get_running_loop())
    times: dict[str, list[tuple[float, float]]] = {"offline": [], "at once": [], "one by one": []}
    for number in range(arguments.rounds + 1):
        for name, kept in times.items():
            began = time.perf_counter(), time.process_time()
            if name == "offline":
                expected = model.found(lines, wishes)
            else:
                await (at_once if name == "at once" else one_by_one)(worker, lines, wishes)
            if number:  # the first is for getting warm
                kept.append((time.perf_counter() - began[0], time.process_time() - began[1]))
    answers = await asyncio.gather(*worker.accept(lines, wishes))
    same = sum(a[0].text == b[0].text for a, b in zip(expected, answers, strict=True))
    seconds = {name: [statistics.median(part) for part in zip(*kept, strict=True)] for name, kept in times.items()}
    speed = len(lines) / seconds["at once"][0]
    told: dict[str, Any] = {
        "sentences": len(lines),
        "the same text": same,
        "sentences/s": {name: round(len(lines) / each[0], 1) for name, each in seconds.items()},
        "speed beside offline": ratios(times, 0),
        "by CPU time": ratios(times, 1),
    }
    for share in RATES:
        rate = share * speed
        each = await steadily(worker, lines[: max(50, int(rate * 4))], wishes, rate)
        each.sort()
        told[f"at {share:.0%} of the speed, ms"] = {
            "median": round(1e3 * each[len(each) // 2], 1),
            "95 %": round(1e3 * each[int(0.95 * len(each))], 1),
            "longest": round(1e3 * each[-1], 1),
        }
    await worker.drain()
    worker.close()
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a translation run (default: the one in the package)")
    parser.add_argument("--file", type=Path, help="sentences, one a line (default: the embedded grammar's, English)")
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--share", type=float, help="of the places that are free when others join (default: its own)")
    print(json.dumps(asyncio.run(measured(parser.parse_args())), indent=1))


if __name__ == "__main__":
    main()
