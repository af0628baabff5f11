"""Engines that train beside each other on one GPU: in turns, round by round, so that what slows one slows all."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

from jumok.layers import gelu, norm, short_attention


class Engine(Protocol):
    """What trains: so many updates; how much went through (tokens, images), and the operations that were of use."""

    def __call__(self, updates: int) -> tuple[int, int]: ...


class Trains:
    """Updates as the loop makes them, for engines of ours: `ahead`, `step` and `flops` are theirs."""

    ahead: Any
    step: Any
    flops: Any
    update = 0
    waited = 0.0  # for batches, in seconds

    def counted(self, batch: Any) -> int:
        """What a batch has so many of."""
        return int(batch.tokens)

    def __call__(self, updates: int) -> tuple[int, int]:
        count = work = 0
        last: list[Any] = []
        for _ in range(updates):
            began = time.perf_counter()
            batches = self.ahead.at(self.update)
            self.waited += time.perf_counter() - began
            last.append(self.step(batches, self.update, 1e-4))
            if len(last) > 1:
                last.pop(0).values()  # as the loop reads them: one update late
            count += sum(self.counted(batch) for batch in batches)
            work += sum((self.flops(batch) or 0) for batch in batches) if self.flops else 0
            self.update += 1
        return count, work


KERNELS = {"short": short_attention, "norm": norm, "gelu": gelu}


def without_kernels(parser: argparse.ArgumentParser) -> None:
    """An option that turns kernels off, to see what they give."""
    parser.add_argument("--without", nargs="*", default=[], choices=KERNELS, help="turn these kernels off")


def turn_off(names: Sequence[str]) -> None:
    for name in names:
        KERNELS[name].ON_A_GPU = False


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def memory(device: torch.device) -> tuple[int, int]:
    """Allocated now, and at most since the last time this was asked."""
    if device.type != "cuda":
        return 0, 0
    found = torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    return found


def in_turns(
    engines: Mapping[str, Engine],
    rows: dict[str, dict[str, Any]],
    rounds: int,
    updates: int,
    device: torch.device,
    counted: str,
) -> None:
    """All rounds into `rows`, and the medians over them. An engine of ours also says how long it waited for batches."""
    for _ in range(rounds):
        for name, engine in engines.items():
            ours = hasattr(engine, "waited")
            if ours:
                setattr(engine, "waited", 0.0)  # noqa: B010
            synchronize(device)
            began = time.perf_counter()
            count, work = engine(updates)
            synchronize(device)
            seconds = time.perf_counter() - began
            row = {f"{counted}_per_second": count / seconds, "step_ms": 1000 * seconds / updates}
            if ours:
                row |= {"useful_flops_per_second": work / seconds, "waited": getattr(engine, "waited") / seconds}  # noqa: B009
            rows[name].setdefault("rounds", []).append(row)
    for row in rows.values():
        for key in row["rounds"][0]:
            row[key] = statistics.median(one[key] for one in row["rounds"])


def table(rows: Mapping[str, dict[str, Any]], peer: str, counted: str, peak: float | None) -> list[str]:
    """In Markdown: speed, share of the machine's peak, and how many times as fast as `peer`."""
    lines = [f"| engine | {counted}/s | step, ms | of peak | / {peer} | GiB | waiting | start, s |", f"|{' --- |' * 8}"]
    theirs = rows.get(peer, {}).get(f"{counted}_per_second")
    for name, row in rows.items():
        share = f"{row['useful_flops_per_second'] / peak:.1%}" if peak and "useful_flops_per_second" in row else "–"
        speed, waited = row[f"{counted}_per_second"], row.get("waited")
        ratio = f"{speed / theirs:.3f}" if theirs else "–"
        lines.append(
            f"| {name} | {speed:,.0f} | {row['step_ms']:.1f} | {share} | {ratio} | {row['peak_gib']:.2f} | "
            f"{'–' if waited is None else f'{waited:.1%}'} | {row['start_seconds']:.0f} |"
        )
    return lines


def write(out: Path | None, lines: list[str], chosen: argparse.Namespace, peak: float | None, rows: Any) -> None:
    """The table, and all rounds beside it."""
    print("\n".join(lines))
    if out is not None:
        options = {key: str(value) for key, value in vars(chosen).items()}
        about = {"machine": lines[0], "peak": peak, "options": options, "rows": rows}
        out.with_suffix(".json").write_text(json.dumps(about, indent=1) + "\n")
        out.with_suffix(".md").write_text("\n".join(lines) + "\n")


def kernels_of(engine: Engine, updates: int, device: torch.device, most: int = 24) -> list[str]:
    """Where the time of a step goes: kernels by their names, those that take longest first."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as watched

    with watched(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        engine(updates)
        synchronize(device)
    kernels = [event for event in seen.key_averages() if event.device_type.name == "CUDA"]
    total = sum(event.self_device_time_total for event in kernels) / 1000 / updates
    lines = [f"{total:.2f} ms of kernels a step"]
    for event in sorted(kernels, key=lambda event: -event.self_device_time_total)[:most]:
        spent, times = event.self_device_time_total / 1000 / updates, event.count / updates
        lines.append(f"{spent:8.3f} ms {spent / max(total, 1e-9):6.1%} {times:7.1f} × {event.key[:140]}")
    return lines
