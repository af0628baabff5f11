"""`jumok serve` under load: a real process on loopback, asked by a light client (serve_client.py).

    python benchmarks/serve_load.py [--run DIR] [--file FILE] [--lines 2000] [--seconds 60] [--threads N] [--out NAME]

1. Throughput beside `jumok translate` of the same sentences (loading not counted), in turns, medians of three: with one
   sentence in a request, and with sixteen; how long requests take (p50, p99).
2. Ten times as many requests as can be answered, for `--seconds`: which codes come, the server's memory over time, and
   how soon it is itself again.
3. SIGTERM under load: what was sent before it, what came of it, the exit code.
4. Clients that hang up: how soon their places are free.

The client runs beside the service on the same cores; what it takes of them is told.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from serve_client import Address, Flood, ask_all, request

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 3
TIMES = 10  # the capacity
GROUP = 16  # sentences of a request
LINES, GROUP_LINES, FLOOD_LINES = 160, 8, 800  # connections: so many that the queue (256) is never full, but in a flood
# As `jumok translate --input F --output G` does it; told is the time without loading. Again for each line of stdin
OFFLINE = """
import sys, time
from pathlib import Path
from jumok import api
from jumok.streaming import Columns, Source, translate_stream
from jumok.tasks.wishes import Wishes
import torch
run, file, output, threads = sys.argv[1:]
if int(threads):
    torch.set_num_threads(int(threads))
model = api.load_translator([run] if run else [], "cpu", lambda message: None)
print("ready", flush=True)
for _ in sys.stdin:
    began = time.perf_counter()
    translate_stream(model, Source((), Path(file), None, None), Wishes(), Columns(), Path(output), False)
    print(time.perf_counter() - began, flush=True)
    Path(output).unlink()
"""


def sentences(file: Path | None, count: int) -> list[str]:
    from jumok.data import grammar

    if file is not None:
        return [line for line in file.read_text(encoding="utf-8").split("\n") if line.strip()][:count]
    return [pair.source for pair in grammar.pairs("en", "fr", "test", count)]


def processor_seconds(process: int) -> float:
    """Of processor time that a process has taken: what others do on the machine does not change it much."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Service:
    def __init__(self, run: str, threads: int) -> None:
        options = (["--run", run] if run else []) + (["--threads", str(threads)] if threads else [])
        command = [sys.executable, "-m", "jumok", "serve", "--port", "0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r"http://([\d.]+):(\d+)", line)
        if found is None:
            raise SystemExit(f"the service did not begin: {line}")
        self.address: Address = (found[1], int(found[2]))

    def memory(self) -> float:
        """MiB that it holds now."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]

    def processor(self) -> float:
        return processor_seconds(self.process.pid)

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(f"http://{self.address[0]}:{self.address[1]}/metrics", timeout=30) as answer:
            found = re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", answer.read().decode(), re.MULTILINE)
        return sum(map(float, found))

    def end(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(90)


class Offline:
    def __init__(self, run: str, lines: list[str], threads: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        file = Path(self.folder.name, "source.txt")
        file.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        output = Path(self.folder.name, "output.txt")
        command = [sys.executable, "-c", OFFLINE, run, str(file), str(output), str(threads)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def seconds(self) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return float(self._line())

    def close(self) -> None:
        self.process.communicate()
        self.folder.cleanup()


# ---------------------------------------------------------------- 1. throughput


async def throughput(service: Service, offline: Offline, lines: list[str]) -> dict[str, Any]:
    single = [request("/v1/translate", {"text": line}) for line in lines]
    groups = [lines[start : start + GROUP] for start in range(0, len(lines), GROUP)]
    several = [request("/v1/translate", {"text": group}) for group in groups]
    offline.seconds()  # the first of each is not counted
    await ask_all(service.address, single[: len(single) // 4], LINES)
    rounds: list[dict[str, Any]] = []
    for number in range(ROUNDS):
        taken = processor_seconds(offline.process.pid)
        found: dict[str, Any] = {"offline": len(lines) / offline.seconds()}
        taken = processor_seconds(offline.process.pid) - taken
        found["offline_processor_ms"] = 1000 * taken / len(lines)
        for name, requests, connections in (("one", single, LINES), ("sixteen", several, GROUP_LINES)):
            own, theirs = time.process_time(), service.processor()
            tally, seconds = await ask_all(service.address, requests, connections)
            assert set(tally.codes) == {200}, (tally.codes, tally.wrong)
            found[name] = {
                "sentences_per_second": len(lines) / seconds,
                "beside_offline": len(lines) / seconds / found["offline"],
                "p50_ms": 1000 * tally.quantile(0.5),
                "p99_ms": 1000 * tally.quantile(0.99),
                "client_share": (time.process_time() - own) / seconds,  # of one core
                "processor_ms": 1000 * (service.processor() - theirs) / len(lines),  # of the service, a sentence
            }
        rounds.append(found)
        print(f"round {number + 1}: {json.dumps(rounded(found))}", flush=True)
    keys = rounds[0]["one"]
    median = {
        name: {key: statistics.median(one[name][key] for one in rounds) for key in keys} for name in ("one", "sixteen")
    }
    offlines = {key: statistics.median(one[key] for one in rounds) for key in ("offline", "offline_processor_ms")}
    return {**offlines, **median, "rounds": rounds}


async def idle_latency(service: Service, lines: list[str]) -> float:
    """Milliseconds of a request when nobody else asks."""
    tally, _ = await ask_all(service.address, [request("/v1/translate", {"text": line}) for line in lines[:50]], 1)
    return 1000 * tally.quantile(0.5)


# ---------------------------------------------------------------- 2. overload


async def overload(service: Service, lines: list[str], capacity: float, seconds: float) -> dict[str, Any]:
    idle = await idle_latency(service, lines)
    flood = Flood(
        service.address, [request("/v1/translate", {"text": line}) for line in lines], TIMES * capacity, FLOOD_LINES
    )
    memory: list[float] = []
    own, theirs = time.process_time(), service.processor()

    async def watch() -> None:
        while True:
            memory.append(service.memory())
            await asyncio.sleep(0.5)

    watching = asyncio.create_task(watch())
    await flood.run(seconds)
    ended = time.perf_counter()
    shares = (time.process_time() - own) / seconds, (service.processor() - theirs) / seconds
    await flood.settled()
    recovered = await recovery(service, lines, idle, ended)
    watching.cancel()
    flood.close()
    tally, third = flood.tally, max(1, len(memory) // 3)
    return {
        "seconds": seconds,
        "capacity": capacity,
        "offered_per_second": (tally.sent + flood.missed) / seconds,
        "sent_per_second": tally.sent / seconds,
        "no_connection_free": flood.missed,
        "codes": {str(code): count for code, count in sorted(tally.codes.items())},
        "answered_per_second": tally.codes[200] / seconds,
        "p50_ms": 1000 * tally.quantile(0.5),
        "p99_ms": 1000 * tally.quantile(0.99),
        "memory_mib": [round(value, 1) for value in memory],
        "memory_growth_mib": statistics.median(memory[-third:])
        - statistics.median(memory[third : 2 * third] or memory),
        "recovery_seconds": recovered,
        "idle_p50_ms": idle,
        "client_share": shares[0],
        "service_share": shares[1],
    }


async def recovery(service: Service, lines: list[str], idle: float, ended: float) -> float:
    """Seconds after the flood until ten requests in a row are answered about as quickly as before it."""
    row, place = 0, 0
    while row < 10 and time.perf_counter() - ended < 60:
        tally, _ = await ask_all(service.address, [request("/v1/translate", {"text": lines[place % len(lines)]})], 1)
        is_well = set(tally.codes) == {200} and 1000 * tally.quantile(0.5) < 3 * idle + 5
        row, place = (row + 1 if is_well else 0), place + 1
    return time.perf_counter() - ended


# ---------------------------------------------------------------- 3. the end


async def ending(service: Service, lines: list[str], capacity: float) -> dict[str, Any]:
    requests = [request("/v1/translate", {"text": line}) for line in lines]
    flood = Flood(service.address, requests, 1.5 * capacity, FLOOD_LINES)
    running = asyncio.create_task(flood.run(60))
    await asyncio.sleep(2)
    told = time.perf_counter()
    open_before = flood.tally.sent - sum(flood.tally.codes.values())
    service.process.send_signal(signal.SIGTERM)
    while service.process.poll() is None and time.perf_counter() - told < 60:
        await asyncio.sleep(0.01)
    gone = time.perf_counter() - told
    flood.ends = True
    await running
    await flood.settled(5)
    flood.close()
    codes = {str(code): count for code, count in sorted(flood.tally.codes.items())}
    before = sum(asked < told for asked in flood.tally.unanswered)
    return {
        "open_when_told": open_before,
        "codes": codes,
        "unanswered_of_before": before,
        "unanswered_of_after": len(flood.tally.unanswered) - before,
        "seconds_to_end": gone,
        "exit_code": service.process.returncode,
    }


# ---------------------------------------------------------------- 4. clients that leave


async def leaving(service: Service, lines: list[str]) -> dict[str, Any]:
    """Long searches that fill the queue; then all of their clients hang up."""
    asked = {"beam": 32, "min_length": 400, "max_length": 400}
    loop = asyncio.get_running_loop()
    transports = []
    for line in lines[:200]:
        transport, _ = await loop.create_connection(lambda: _Silent(), *service.address)
        transport.write(request("/v1/translate", {"text": line, **asked}))
        transports.append(transport)
    held, limit = 0.0, time.perf_counter() + 20
    while held < len(transports) and time.perf_counter() < limit:
        held = await asyncio.to_thread(_held, service)
    began = time.perf_counter()
    for transport in transports:
        transport.abort()
    while (left := await asyncio.to_thread(_held, service)) and time.perf_counter() - began < 60:
        await asyncio.sleep(0.01)
    freed = time.perf_counter() - began
    return {"held": held, "left": left, "seconds_until_free": freed, "idle_p50_ms": await idle_latency(service, lines)}


class _Silent(asyncio.Protocol):
    """Asks, and does not listen."""


def _held(service: Service) -> float:
    return service.metric("jumok_queue_waiting") + service.metric("jumok_queue_running")


# ---------------------------------------------------------------- what is told


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return value


def table(found: dict[str, Any]) -> str:
    speed, flood, end, left = (found[key] for key in ("throughput", "overload", "ending", "leaving"))
    rows = [
        "| what | figure |",
        "| --- | --- |",
        f"| offline: sentences/s; processor time | {speed['offline']:.0f}; {speed['offline_processor_ms']:.2f} ms |",
    ]
    for name in ("one", "sixteen"):
        one = speed[name]
        rows.append(
            f"| {name} in a request: sentences/s; beside offline; processor time; p50, p99 | "
            f"{one['sentences_per_second']:.0f}; {one['beside_offline']:.2f}; {one['processor_ms']:.2f} ms; "
            f"{one['p50_ms']:.0f} ms, {one['p99_ms']:.0f} ms |"
        )
    codes = ", ".join(f"{count:,} × {code}" for code, count in flood["codes"].items())
    rows += [
        f"| {flood['sent_per_second']:.0f} requests/s for {flood['seconds']:.0f} s: codes | {codes} |",
        f"| … answered a second; p50, p99 of those | {flood['answered_per_second']:.0f}; {flood['p50_ms']:.0f} ms, "
        f"{flood['p99_ms']:.0f} ms |",
        f"| … growth of memory; seconds until it is itself again | {flood['memory_growth_mib']:+.1f} MiB; "
        f"{flood['recovery_seconds']:.1f} |",
        f"| SIGTERM with {end['open_when_told']} requests open: of those without an answer; exit code; seconds | "
        f"{end['unanswered_of_before']}; {end['exit_code']}; {end['seconds_to_end']:.1f} |",
        f"| … sent after it: without an answer, as the door was closed | {end['unanswered_of_after']} |",
        f"| {left['held']:.0f} clients that hang up: seconds until their places are free | "
        f"{left['seconds_until_free']:.2f} |",
    ]
    return "\n".join(rows) + "\n"


def failures(found: dict[str, Any]) -> list[str]:
    flood, end, left = found["overload"], found["ending"], found["leaving"]
    wrong = {
        "other codes than 200 and 429 in the flood": not set(flood["codes"]) <= {"200", "429"},
        "not itself again within 5 s": flood["recovery_seconds"] > 5,
        "accepted requests without an answer": end["unanswered_of_before"] > 0,
        "an exit code that is not 0": end["exit_code"] != 0,
        "places that were not given back": left["left"] > 0,
    }
    return [what for what, is_so in wrong.items() if is_so]


async def measured(arguments: argparse.Namespace) -> dict[str, Any]:
    lines = sentences(arguments.file, arguments.lines)
    offline = Offline(arguments.run, lines, arguments.threads)
    service = Service(arguments.run, arguments.threads)
    try:
        found: dict[str, Any] = {"run": arguments.run or "packaged", "lines": len(lines), "threads": arguments.threads}
        found["throughput"] = await throughput(service, offline, lines)
        offline.close()
        capacity = found["throughput"]["one"]["sentences_per_second"]
        found["overload"] = await overload(service, lines, capacity, arguments.seconds)
        print(json.dumps(rounded({**found["overload"], "memory_mib": "…"})), flush=True)
        found["leaving"] = await leaving(service, lines)
        print(json.dumps(rounded(found["leaving"])), flush=True)
        found["ending"] = await ending(service, lines, capacity)
        print(json.dumps(rounded(found["ending"])), flush=True)
    finally:
        service.end()
        if offline.process.poll() is None:
            offline.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", default="", help="a run folder (default: the run in the package)")
    parser.add_argument("--file", type=Path, help="sentences (default: those of the embedded grammar)")
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=0, help="of both (default: as they are by themselves)")
    parser.add_argument("--out", help="write benchmarks/results/NAME.json and .md")
    arguments = parser.parse_args()
    import uvloop

    found = rounded(uvloop.run(measured(arguments)))
    print(table(found))
    if arguments.out:
        results = ROOT / "benchmarks" / "results"
        (results / f"{arguments.out}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        (results / f"{arguments.out}.md").write_text(table(found), encoding="utf-8")
    if wrong := failures(found):
        raise SystemExit("; ".join(wrong))


if __name__ == "__main__":
    main()
