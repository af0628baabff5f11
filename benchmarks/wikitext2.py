"""Perplexity on WikiText-2: the recurrent language models and the Transformer, trained side by side on one GPU.

    python benchmarks/wikitext2.py --data ../shared/data --out results.json [NAME …]
    python benchmarks/wikitext2.py transformer-cpu --limit 180 --out results.json    # a smaller one, without a GPU

Word vocabulary (33,277 words as the spaces cut them, `<unk>` one of them); every line's end is a token, blank lines
too: 245,569 tokens of test text, as is customary, so that the numbers compare with those of the papers. The recurrent
models carry their state through the whole text, the Transformer looks back at 192 to 256 tokens. Of the runs that share
the first word of their names only the best on the validation text sees the test text.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from quality import Failed, Run, machine, options, train

COMMON = [
    "tokenizer.kind=space", "tokenizer.vocabulary=50000", "exact=false", "threads=1",
    "training.batch_tokens=8192", "training.schedule=cosine", "training.warmup=300", "training.clip=0.5",
    "training.validate_every=500", "training.checkpoint_every=100000", "training.keep=1",
]  # fmt: skip
RECIPES: dict[str, list[str]] = {
    "rnn": [
        "rnn-lm", "data.window=100", "model.layers=1", "model.embedding=512", "model.width=1024", "model.dropout=0.4",
        "model.word_dropout=0.1", "training.learning_rate=0.0007", "training.weight_decay=0.05",
        "training.updates=5000",
    ],
    "lstm": [
        "lstm-lm", "data.window=100", "model.layers=2", "model.embedding=512", "model.width=1024", "model.dropout=0.5",
        "model.word_dropout=0.1", "training.learning_rate=0.002", "training.weight_decay=0.1", "training.updates=5000",
    ],
    "transformer": [
        "transformer-lm", "data.window=256", "model.layers=6", "model.width=512", "model.heads=8",
        "model.feed_forward=1024", "model.dropout=0.4", "model.attention_dropout=0.1", "model.word_dropout=0.1",
        "training.learning_rate=0.001", "training.weight_decay=0.1", "training.updates=6000",
    ],
    "transformer-cpu": [
        "transformer-lm", "data.window=128", "model.layers=4", "model.width=256", "model.heads=4",
        "model.feed_forward=1024", "model.dropout=0.15", "model.word_dropout=0.05", "training.batch_tokens=2048",
        "training.learning_rate=0.0015", "training.weight_decay=0.1", "training.updates=6500", "threads=2",
        "training.precision=bfloat16", "training.checkpoint_every=500",
    ],
}  # fmt: skip
STRIDE = 64  # tokens between two windows of the Transformer


def score(name: str, split: str, chosen: argparse.Namespace) -> dict[str, Any]:
    file = chosen.data / "wikitext2" / f"wiki.{split}.tokens.gz"
    command = [sys.executable, "-m", "jumok", "evaluate", "--run", str(chosen.runs / name), "--json"]
    command += ["--text", str(file), "--stride", str(STRIDE)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise Failed(f"{name} on {split}: {result.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(result.stdout)
    print(f"{name:18} {split:6} perplexity {found['perplexity_per_word']:8.2f}   {found['context']}", flush=True)
    return found


def parameters(run: Path) -> int:
    from safetensors import safe_open

    step = json.loads((run / "best.json").read_text())["step"]
    with safe_open(run / "checkpoints" / f"step-{step}" / "model.safetensors", "pt") as file:
        sizes = [file.get_slice(key).get_shape() for key in file.keys()]  # noqa: SIM118  it is no dictionary
    total = 0
    for shape in sizes:
        count = 1
        for side in shape:
            count *= side
        total += count
    return total


def main() -> None:
    parser = options()
    parser.add_argument("--limit", type=float, default=8.0, help="minutes after which a run is stopped")
    chosen = parser.parse_args()
    chosen.runs.mkdir(parents=True, exist_ok=True)
    table: dict[str, dict[str, Any]] = {}
    data = chosen.data / "wikitext2"
    files = ["--text", str(data / "wiki.train.tokens.gz"), "--valid-text", str(data / "wiki.valid.tokens.gz")]

    def trained(name: str) -> None:
        recipe, *keys = RECIPES[name]
        try:
            result = train(
                Run(name, [recipe, *COMMON, *keys, *chosen.set, *files], {}, minutes=chosen.limit), chosen.runs
            )
            result.pop("greedy_val_bleu")
            print(f"{name:18} {result['minutes']} minutes, {result['updates']} updates", flush=True)
            table[name] = {
                **result,
                "parameters": parameters(chosen.runs / name),
                "valid": score(name, "valid", chosen),
            }
        except Failed as error:
            print(error, flush=True)

    def tested(name: str) -> None:
        table[name]["test"] = score(name, "test", chosen)

    names = chosen.names or [name for name in RECIPES if not name.endswith("-cpu")]
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(trained, names))
        best: dict[str, str] = {}
        for name in sorted(table, key=lambda name: -table[name]["valid"]["perplexity_per_word"]):
            best[name.partition("-")[0]] = name
        list(pool.map(tested, best.values()))
    print(f"\n| model | parameters | minutes | tokens/s | valid | test | bits per character (test) |\n|{' --- |' * 7}")
    for name, row in ((name, table[name]) for name in names if name in table):
        test = row.get("test")
        told = f"{test['perplexity_per_word']:.2f} | {test['bits_per_character']:.4f}" if test else "– | –"
        valid, speed = row["valid"]["perplexity_per_word"], row["target_tokens_per_second"]
        print(f"| {name} | {row['parameters'] / 1e6:.1f} M | {row['minutes']} | {speed:,} | {valid:.2f} | {told} |")
    if chosen.out:
        chosen.out.write_text(json.dumps({"machine": machine(), "runs": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
