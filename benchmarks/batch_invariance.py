"""A translation does not depend on its company: 1,000 sentences one by one, in one batch, shuffled, refilled as others
finish, without a cache, and on the faster implementation of the model. Every difference is printed with its score gap.

    python benchmarks/batch_invariance.py --run runs/m --source test.en --out benchmarks/results/batch-invariance.json
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

from invariance import TIE, Difference, differences, ways  # noqa: E402

from jumok import api  # noqa: E402
from jumok.data.readers import read_lines  # noqa: E402
from jumok.search import SearchOptions  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="a trained translation run")
    parser.add_argument("--source", type=Path, required=True, help="sentences, one a line")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--batch", type=int, default=32, help="rows of a batch where not all are in one")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    translator = api.load_translator(arguments.run, arguments.device)
    lines = [line for line in read_lines(arguments.source) if line.strip()][: arguments.sentences]
    encoded = translator.source.encode([line.strip() for line in lines])
    rows = [[*translator.before, *row][: translator.max_length] for row in encoded]
    model = translator.model.eval()
    tables = {}
    for beam in arguments.beams:
        search = translator.search
        options = SearchOptions(
            beam=beam, length_penalty=search.length_penalty, max_ratio=search.max_ratio, max_extra=search.max_extra
        )
        print(f"\n{'greedy' if beam == 1 else f'beam {beam}'}, {len(rows)} sentences, compared with one by one")
        with torch.inference_mode():
            tables[f"beam {beam}"] = compare(translator, rows, options, lines, arguments)
    result = {
        "run": str(arguments.run),
        "source": str(arguments.source),
        "sentences": len(rows),
        "trained on": [corpus.model_dump(exclude_defaults=True) for corpus in translator.recipe.data.train],
        "model": translator.recipe.model.model_dump(),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "device": arguments.device if arguments.device == "cpu" else torch.cuda.get_device_name(),
        "threads": arguments.threads,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
        "tie": TIE,
        "compared with one by one": tables,
    }
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    untied = sum(not one["tie"] for table in tables.values() for way in table.values() for one in way["differences"])
    print(f"\ndifferences that are no ties: {untied}")
    raise SystemExit(untied > 0)


def compare(
    translator: api.TrainedTranslator,
    rows: list[list[int]],
    options: SearchOptions,
    lines: list[str],
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    began = time.perf_counter()
    tried = ways(translator.model, rows, options, arguments.batch, arguments.device)
    _, expected = next(tried)
    print(f"  one by one: {len(set(expected))} different outputs, {time.perf_counter() - began:.0f} s", flush=True)
    table = {}
    began = time.perf_counter()
    for name, found in tried:
        seconds = time.perf_counter() - began
        unequal = differences(translator.model, rows, options, expected, found)
        same = len(rows) - len(unequal)
        print(f"  {name}: {same} of {len(rows)} identical, {seconds:.0f} s", flush=True)
        table[name] = {"identical": same, "differences": [_told(one, lines, translator) for one in unequal]}
        for one in table[name]["differences"]:
            print("   ", json.dumps(one, ensure_ascii=False), flush=True)
        began = time.perf_counter()
    return table


def _told(one: Difference, lines: list[str], translator: api.TrainedTranslator) -> dict[str, Any]:
    texts = translator.target.decode([list(one.expected), list(one.found)])
    return {
        "sentence": one.row + 1,
        "source": lines[one.row],
        "one by one": texts[0],
        "here": texts[1],
        "score gap": one.gap,
        "changed by moving each log-probability by less than 1e-5": one.flips,
        "tie": one.tie,
    }


if __name__ == "__main__":
    main()
