"""The ladder on Multi30k de→en: RNN, LSTM, GRU, Bahdanau, Luong and Transformer under one budget on one GPU.

    python benchmarks/ladder.py --data ../shared/data --out benchmarks/results/ladder-multi30k-h200.json

It calls `jumok ladder` with all runs side by side on the card and scores test_2016_flickr: sacreBLEU, cased and
detokenised, and beside it lower-cased and tokenised, the form in which a well-known tutorial ladder reports 13.8
(LSTM), 20.6 (GRU), 28.3 (Bahdanau) and 36.5 (Transformer). At the end it says what must show, and whether it does:
every rung with attention above every rung without, the Transformer on top, every rung ahead of the tutorial's.

The keys of each rung are those of multi30k.py and multi30k_transformer.py, chosen on val there (what was tried is in
results/multi30k-h200.md), and rotary positions for the Transformer, 2 points better on val after 1,100 updates
(multi30k_transformer.py --try rotary). The ladder's rule is one tokenizer and one search for all: a joint vocabulary
(Luong's own choice there were two), and a beam of 5 with length penalty 1, which is nobody's best: recurrent models
were best with 10 and 0.8, the Transformer with penalties of 1.5 to 2.5.

The budget is time. The Transformer has batches of 8192 tokens where the others have 4096, and R-Drop, which reads each
of them twice: both cost it updates, so they are its own choice of how to spend the same minutes. With --updates larger
batches would be a gift, and it has 4096 as all others. Killed, the same command goes on; the exit code is 1 where
something that must show does not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from multi30k import files
from quality import machine

SHARED = [
    "tokenizer.kind=bpe", "tokenizer.vocabulary=8000", "data.max_length=100", "training.batch_tokens=4096",
    "training.label_smoothing=0.1", "training.metric=bleu", "training.validate_every=400",
    "training.validate_sentences=1014", "training.checkpoint_every=2000", "training.keep=1",
    "search.length_penalty=1.0", "search.batch=256", "threads=1", "exact=false",
]  # fmt: skip
RECURRENT = ["model.width=1024", "model.embedding=512", "model.dropout=0.5", "training.learning_rate=0.001"]
OWN = {
    "rnn": [*RECURRENT, "model.layers=1", "model.dropout=0.3", "training.learning_rate=0.0005"],
    "lstm": [*RECURRENT, "model.layers=2"],
    "gru": [*RECURRENT, "model.layers=1"],
    "bahdanau": [*RECURRENT, "model.layers=1"],
    "luong": [*RECURRENT, "model.layers=2"],
    "transformer": [
        "model.width=256", "model.heads=4", "model.feed_forward=1024", "model.encoder_layers=3",
        "model.decoder_layers=3", "model.tie_embeddings=all", "model.dropout=0.3", "model.attention_dropout=0.1",
        "model.activation_dropout=0.1", "model.position=rotary", "training.learning_rate=0.002",
        "training.warmup=400", "training.r_drop=1.0", "training.ema=0.999", "training.batch_tokens=8192",
        "training.validate_every=1000",
    ],
}  # fmt: skip
ATTENDING = ("bahdanau", "luong", "transformer")
TUTORIAL = {"lstm": 13.8, "gru": 20.6, "bahdanau": 28.3, "transformer": 36.5}


def command(chosen: argparse.Namespace, rungs: list[str]) -> list[str]:
    """`jumok ladder …` in full: anybody can type it."""
    own = [
        f"{rung}:{key}"
        for rung in rungs
        for key in OWN[rung]
        if not (chosen.updates and key.startswith("training.batch_tokens="))  # under --updates these are the budget
    ]
    corpus = files(chosen.data, "de", "en")
    for side, language in (("source", "de"), ("target", "en")):
        corpus += [f"--test-{side}", str(chosen.data / "multi30k" / f"test_2016_flickr.{language}.gz")]
    budget = ["--updates", str(chosen.updates)] if chosen.updates else ["--minutes", str(chosen.minutes)]
    return [
        "ladder", *corpus, "--rungs", ",".join(rungs), "--seeds", str(chosen.seeds), *budget, "--size", "full",
        "--beam", "5", "--jobs", str(chosen.jobs or len(rungs) * chosen.seeds), "--lowercase-tokenized",
        "--device", chosen.device, "--out", str(chosen.runs), *SHARED, *own, *chosen.set,
    ]  # fmt: skip


def verdicts(rows: dict[str, dict[str, Any]]) -> dict[str, bool]:
    """What the ladder must show, of the rungs that were climbed."""
    bleu = {rung: row["bleu"]["score"] for rung, row in rows.items()}
    found = {}
    with_attention = [score for rung, score in bleu.items() if rung in ATTENDING]
    without = [score for rung, score in bleu.items() if rung not in ATTENDING]
    if with_attention and without:
        found["every rung with attention is above every rung without"] = min(with_attention) > max(without)
    if "transformer" in bleu:
        found["the Transformer is on top"] = bleu["transformer"] == max(bleu.values())
    for rung, bar in TUTORIAL.items():
        if rung in rows:
            found[f"{rung} is ahead of the tutorial's {bar}"] = rows[rung]["tutorial"] > bar
    return found


def changed(file: Path) -> int | None:
    """When it was written; None where there is none."""
    return file.stat().st_mtime_ns if file.is_file() else None


def read_results(file: Path, rungs: list[str], seeds: int, before: int | None) -> dict[str, Any]:
    """What this ladder has found: a file from before, or one without all rungs and seeds, is no answer."""
    if changed(file) in (None, before):
        sys.exit(f"{file} was not written by this ladder")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    there = {row["rung"]: len(row["each"]) for row in found["rungs"]}
    missing = [rung for rung in rungs if there.get(rung, 0) < seeds]
    if missing:
        sys.exit(f"{file} has not all seeds of {', '.join(missing)}: what must show cannot be judged")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rungs", nargs="*", help=f"some of {', '.join(OWN)}; without names, all")
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared/data")
    parser.add_argument("--runs", type=Path, default=Path("runs/ladder-multi30k"), help="the ladder's folder")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=6.0, help="for each run, all side by side on one card")
    parser.add_argument("--updates", type=int, help="the budget in updates instead")
    parser.add_argument("--jobs", type=int, help="runs side by side (default: all)")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--set", action="append", default=[], help="a further key=value for every rung")
    parser.add_argument("--out", type=Path, help="write the results here, as JSON")
    chosen = parser.parse_args()
    unknown = [rung for rung in chosen.rungs if rung not in OWN]
    if unknown:
        parser.error(f"no rung {', '.join(unknown)}; there are {', '.join(OWN)}")
    rungs = [rung for rung in OWN if not chosen.rungs or rung in chosen.rungs]
    arguments = command(chosen, rungs)
    results = chosen.runs / "results.json"
    before, began = changed(results), time.monotonic()
    ended = subprocess.run([sys.executable, "-m", "jumok", *arguments], check=False)
    if ended.returncode:
        sys.exit(ended.returncode)
    found = read_results(results, rungs, chosen.seeds, before)
    shown = verdicts({row["rung"]: row for row in found["rungs"]})
    print("\nwhat must show:")
    for claim, holds in shown.items():
        print(f"  {'yes' if holds else 'NO '}  {claim}")
    if chosen.out is not None:
        minutes = round((time.monotonic() - began) / 60, 2)
        about = {"machine": machine(), "minutes": minutes, "command": ["jumok", *arguments], "shows": shown}
        chosen.out.write_text(json.dumps({**about, **found}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"written: {chosen.out}")
    sys.exit(0 if all(shown.values()) else 1)


if __name__ == "__main__":
    main()
