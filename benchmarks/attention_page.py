"""How long a browser takes to draw all heads of a long sentence: 512 tokens, 12 layers of 12 heads.

    python benchmarks/attention_page.py [--tokens 512] [--layers 12] [--heads 12] [--rounds 5] [--keep x.html]

The weights are softmax(q·k/√d) of random queries and keys with a pull towards near words, some heads sharp and some
soft, as those of trained models are. Times are Chromium's own clock: from the first line of the page's script, and from
the moment the file was asked for (reading and parsing it included), to the last map drawn; and what the page's main
thread computed in all that time, which says more while the machine does other things.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from jumok.inspect.all_heads import AllHeads, Kind, Place
from jumok.inspect.canvas import Kept, write_heads
from jumok.inspect.forced import Side

NAMES = ("script start to drawn", "file asked for to drawn", "computed by the main thread")


def sample(tokens: int, layers: int, heads: int, seed: int = 0) -> AllHeads:
    """All heads of a text that looks at itself, made up."""
    random = np.random.default_rng(seed)
    words = [f"word{number}" for number in range(tokens)]
    distance = np.abs(np.arange(tokens)[:, None] - np.arange(tokens)).astype(np.float32)
    places, maps = [], []
    for layer in range(layers):
        own = []
        for _ in range(heads):
            query, key = random.standard_normal((2, tokens, 64), dtype=np.float32)
            scores = query @ key.T / 8 * random.uniform(0.5, 4) - distance * random.choice([0, 0.02, 0.2, 1.0])
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            own.append(weights / weights.sum(axis=1, keepdims=True))
        places += [Place(layer), *(Place(layer, head) for head in range(heads))]
        maps += [np.mean(own, axis=0), *own]
    side = Side(words, list(range(tokens)), words)
    return AllHeads((Kind("self", side, side, tuple(places), np.stack(maps).astype(np.float32)),))


def drawn(path: Path, rounds: int) -> list[tuple[float, float, float]]:
    """Milliseconds from the script's start, from asking for the file, and of computing, each round in a fresh page."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    times = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(rounds):
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            page.route(
                "**/*", lambda route: route.continue_() if route.request.url.startswith("file:") else route.abort()
            )
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable")
            page.goto(path.absolute().as_uri())
            page.wait_for_selector("#heads[data-drawn]", timeout=60_000)
            began, end = (float(page.locator("#heads").get_attribute(f"data-{name}")) for name in ("began", "drawn"))
            metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
            times.append((end - began, end, metrics["ThreadTime"] * 1000))
            page.context.close()
        browser.close()
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("tokens", 512), ("layers", 12), ("heads", 12), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--keep", type=Path, help="Leave the page here.")
    options = parser.parse_args()
    shown = sample(options.tokens, options.layers, options.heads)
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or Path(folder) / "heads.html"
        start = time.process_time()
        kept: Kept = write_heads(path, shown)
        print(f"{kept.maps} of {kept.all_maps} maps, {kept.size / 1e6:.1f} MB, written in "
              f"{time.process_time() - start:.1f} s of one core")  # fmt: skip
        times = drawn(path, options.rounds)
    for name, values in zip(NAMES, zip(*times, strict=True), strict=True):
        print(
            f"{name}: median {statistics.median(values):.0f} ms of {len(values)} ({min(values):.0f}–{max(values):.0f})"
        )


if __name__ == "__main__":
    main()
