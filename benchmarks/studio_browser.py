"""How fast the studio's page "Attention" is in a browser: 12 layers of 12 heads over 512 tokens.

    python benchmarks/studio_browser.py [--tokens 512] [--layers 12] [--heads 12] [--rounds 5] [--out studio-browser]

A BERT with random weights is put into a run folder (nothing is learned), `jumok studio` serves it, and Chromium opens
the page. Times are milliseconds of Chromium's own clock (performance.now), medians of many, after the server has looked
at the text once: the model's own pass over the 512 tokens (`look_s`) is in none of them.

    grid         from asking the server for the 144 small maps to the frame in which all of them are drawn
    switch       from choosing a head that was not fetched before to the frame with its 512 × 512 map: the fetch of its
                 1 MiB of float32 over loopback is included
    switch_near  the same for a neighbour, which the page has fetched ahead
    hover        what the page computes for one move of the pointer: its handlers, and the drawing in the next frame
    hover_frame  from the move to the end of that frame's drawing, waiting for the frame included
    first_paint  from asking for the address to the first thing painted (first-contentful-paint): of the studio's first
                 page, and of this one
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from jumok import recipe as recipes
from jumok.data import grammar
from jumok.models.bert import Bert, HiddenWords
from jumok.text.tokenizer import train_tokenizer
from jumok.training import checkpoint
from jumok.training.run import RunFolder
from jumok.training.state import TrainState

ROOT = Path(__file__).resolve().parents[1]
LIMITS = {"grid": 200.0, "switch": 50.0, "hover": 16.0}
SHARPER = 5.0  # random weights look everywhere alike; so much larger queries make maps with something to see

HOVER = """async ([moves]) => {
  const frame = document.querySelector(".matrix .frame");
  const area = frame.getBoundingClientRect();
  const found = { hover: [], hover_frame: [] };
  for (let move = 0; move < moves; move += 1) {
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 20)));
    await new Promise((resolve) => {
      let begun = 0;
      requestAnimationFrame(() => { begun = performance.now(); });
      const start = performance.now();
      frame.dispatchEvent(new PointerEvent("pointermove", {
        bubbles: true, clientX: area.left + 60 + Math.random() * (Math.min(area.width, 480) - 80),
        clientY: area.top + 40 + Math.random() * (area.height - 60),
      }));
      const handled = performance.now() - start;
      requestAnimationFrame(() => {
        const end = performance.now();
        found.hover.push(handled + end - begun);
        found.hover_frame.push(end - start);
        resolve();
      });
    });
  }
  return found;
}"""
SWITCH = """async ([places]) => {
  const cells = [...document.querySelectorAll(".attention-grid button")];
  const times = [];
  for (const place of places) {
    performance.clearMeasures("attention-switch");
    cells[place].click();
    const ready = () => performance.getEntriesByName("attention-switch").length > 0;
    while (!ready()) await new Promise((resolve) => setTimeout(resolve, 5));
    times.push(performance.getEntriesByName("attention-switch")[0].duration);
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
  return times;
}"""
PAINT = """() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null"""


def build(folder: Path, tokens: int, layers: int, heads: int) -> str:
    """An untrained run that reads so many tokens; gives a text that fills them."""
    recipe = recipes.read(
        "bert-tiny",
        [f"model.width={heads * 32}", f"model.heads={heads}", f"model.layers={layers}", "device=cpu",
         f"model.feed_forward={heads * 64}", f"model.max_positions={tokens}", f"data.window={tokens}"],
    )  # fmt: skip
    lines = [pair.source for pair in grammar.pairs("en", "fr", "train", 2000)]
    tokenizer = train_tokenizer(lines, recipe.tokenizer.kind, 2000)
    run = RunFolder.create(folder, recipe)
    (run.tokenizer / "text").mkdir(parents=True)
    tokenizer.save(run.tokenizer / "text")
    torch.manual_seed(0)
    model = HiddenWords(Bert(recipe.model, tokenizer.size))  # type: ignore[arg-type]
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("query.weight", "key.weight")):
                parameter.mul_(SHARPER)
    state = TrainState(update=1, total=1)
    checkpoint.write(run.checkpoints / "step-1", checkpoint.stored_tensors(model), None, state)
    run.point("last", 1)
    words: list[str] = []
    for line in lines:
        for word in line.split():
            if len(tokenizer.encode([" ".join([*words, word])])[0]) > tokens - 2:
                return " ".join(words)
            words.append(word)
    raise AssertionError("too few words")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "jumok", "studio", "--no-open", "--no-first", "--port", "0", "--run", str(folder)]
    log = folder.parent / "studio.log"
    with log.open("w") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT, env={**os.environ})
        try:
            until = time.monotonic() + 60
            while not (found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text())):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                time.sleep(0.1)
            yield found.group()
        finally:
            process.terminate()
            process.wait(20)


def measured(url: str, run: str, text: str, rounds: int) -> dict[str, Any]:
    from urllib.parse import urlencode

    from playwright.sync_api import sync_playwright

    times: dict[str, list[float]] = {}
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    address = f"{url}/#/attention?" + urlencode({"run": run, "text": text, "unit": "tokens"})
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])

        def opened(where: str) -> Any:
            page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
            page.set_default_timeout(120_000)
            page.goto(where)
            page.wait_for_selector("#view:not([aria-busy])")
            return page

        begun = time.monotonic()
        opened(address).context.close()
        look = time.monotonic() - begun
        for number in range(rounds):
            page = opened(f"{url}/")
            times.setdefault("first_paint", []).append(page.evaluate(PAINT))
            page.context.close()
            page = opened(address)
            page.wait_for_function('performance.getEntriesByName("attention-grid").length > 0')
            page.wait_for_timeout(600)
            times.setdefault("first_paint_attention", []).append(page.evaluate(PAINT))
            grid = page.evaluate('performance.getEntriesByName("attention-grid")[0].duration')
            times.setdefault("grid", []).append(grid)
            maps = page.locator(".attention-grid button").count()
            heads = page.locator(".attention-grid > span").count() // 2  # about: only for jumps that are no neighbours
            far = [(number * 7 + place * (2 * heads + 3)) % maps for place in range(1, 9)]
            times.setdefault("switch", []).extend(page.evaluate(SWITCH, [far]))
            near = [far[-1] + 1 if (far[-1] + 1) < maps else far[-1] - 1]
            times.setdefault("switch_near", []).extend(page.evaluate(SWITCH, [near]))
            for name, found in page.evaluate(HOVER, [40]).items():
                times.setdefault(name, []).extend(found)
            page.context.close()
        version = browser.version
        browser.close()
    medians = {name: round(statistics.median(found), 1) for name, found in times.items()}
    worst = {name: round(sorted(found)[int(0.95 * (len(found) - 1))], 1) for name, found in times.items()}
    return {"medians_ms": medians, "p95_ms": worst, "look_s": round(look, 1), "chromium": version, "maps": maps}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("tokens", 512), ("layers", 12), ("heads", 12), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--out", help="Write benchmarks/results/NAME.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "bert"
        text = build(folder, options.tokens, options.layers, options.heads)
        with served(folder) as url:
            found = measured(url, "bert", text, options.rounds)
    sizes = {name: getattr(options, name) for name in ("tokens", "layers", "heads", "rounds")}
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, no GPU"
    result = {**sizes, **found, "limits_ms": LIMITS, "machine": machine}
    print(json.dumps(result, indent=1))
    if options.out:
        (ROOT / "benchmarks" / "results" / f"{options.out}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
