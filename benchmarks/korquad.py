"""KorQuAD 1.0: questions about Korean Wikipedia, a pretrained BERT beside the same network without.

    python benchmarks/korquad.py [--pretrain 3] [--out FILE]

Only the dev file is there (5,774 questions about 140 articles). It is split by article: a fifth of the questions is the
test set, and no article is on both sides. Pretrained on Korean text: the contexts of the training articles, NSMC's
training reviews and the Korean sides of mt-ko-en, where they are. EM and F1 as KorQuAD's own script computes them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

from jumok import api  # noqa: E402
from jumok import recipe as recipes  # noqa: E402
from jumok.data.examples import Question  # noqa: E402
from jumok.data.labelled import read_examples  # noqa: E402
from jumok.data.squad import read_questions, split_by_article  # noqa: E402
from jumok.inspect.judging import judge  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
MODEL: dict[str, Any] = {
    "kind": "bert", "width": 384, "heads": 6, "layers": 6, "feed_forward": 1024, "norm": "pre", "norm_epsilon": 1e-5,
    "position": "rotary", "activation": "swiglu", "attention_dropout": 0.0,
}  # fmt: skip


def write(questions: list[Question], file: Path) -> str:
    rows = [
        {
            "id": one.identity, "question": one.question, "context": one.context, "title": one.title,
            "answers": [{"text": answer.text, "answer_start": answer.start} for answer in one.answers],
        }
        for one in questions
    ]  # fmt: skip
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return str(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, default=Path("/tmp/korquad"))
    parser.add_argument("--pretrain", type=float, default=3.0, help="minutes")
    parser.add_argument("--pretrain-updates", type=int, default=0, help="instead of minutes")
    parser.add_argument("--updates", type=int, default=3000)
    parser.add_argument("--vocabulary", type=int, default=16_000)
    parser.add_argument("--model", nargs="*", default=[], help="KEY=VALUE of the network")
    parser.add_argument("--sample", type=int, default=0, help="so many questions only: for a try")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    shutil.rmtree(chosen.work, ignore_errors=True)
    chosen.work.mkdir(parents=True)
    began = time.perf_counter()
    questions = read_questions([chosen.data / "korquad" / "KorQuAD_v1.0_dev.json.gz"])
    learned, tested = split_by_article(questions, 0.2, 1)
    if chosen.sample:
        learned, tested = learned[: chosen.sample], tested[: chosen.sample]
    files = [write(part, chosen.work / f"{name}.jsonl") for part, name in ((learned, "train"), (tested, "test"))]
    text = chosen.work / "text.txt"
    with text.open("w", encoding="utf-8") as out:
        for context in dict.fromkeys(one.context for one in learned):
            out.write("\n".join(context.split("\n")) + "\n\n")
        reviews = read_examples([chosen.data / "nsmc" / "ratings_train.txt.gz"])
        for number, review in enumerate(reviews):
            if review.text.strip() and (not chosen.sample or number < 10 * chosen.sample):
                out.write(review.text + "\n\n")
        for pairs in sorted((chosen.data / "mt-ko-en").glob("*train*.gz")):
            with gzip.open(pairs, "rt", encoding="utf-8") as lines:
                for line in lines:
                    out.write(line.split("\t")[0].strip() + "\n\n")
    section = MODEL | {key: json.loads(value) for key, _, value in (one.partition("=") for one in chosen.model)}
    tokenizer = {"kind": "wordpiece", "vocabulary": chosen.vocabulary}
    pretraining = {
        "task": "pretraining",
        "data": {"train": {"text": [str(text)]}, "window": 256, "documents": "blank"},
        "tokenizer": tokenizer, "model": section, "masking": {"rate": 0.2, "whole_words": True},
        "training": {
            "batch_tokens": 32768, "learning_rate": 1e-3, "warmup": 1000, "schedule": "cosine", "weight_decay": 0.01,
            "label_smoothing": 0.0, "validate_every": 2000, "checkpoint_every": 2000, "keep": 1,
            "updates": chosen.pretrain_updates or 1,
        },
    }  # fmt: skip
    minutes = None if chosen.pretrain_updates else chosen.pretrain
    api.train(recipes.check(pretraining, "pretraining"), chosen.work / "pretrained", minutes=minutes, report=False)
    results: dict[str, Any] = {"options": {k: str(v) for k, v in vars(chosen).items()}}
    results |= {"questions": [len(learned), len(tested)], "pretraining_seconds": round(time.perf_counter() - began, 1)}
    for name in ("pretrained", "scratch"):
        fine: dict[str, Any] = {
            "task": "answering",
            "data": {"train": {"examples": [files[0]]}, "max_length": 384, "stride": 128, "hold_out": 200},
            "tokenizer": tokenizer | {"source": str(chosen.work / "pretrained" / "tokenizer" / "text")},
            "model": section,
            "training": {
                "batch_tokens": 12288, "learning_rate": 3e-4, "warmup": 200, "schedule": "linear", "weight_decay": 0.01,
                "label_smoothing": 0.0, "metric": "f1", "updates": chosen.updates, "validate_every": 500,
                "checkpoint_every": 500, "keep": 1,
            },
        }  # fmt: skip
        if name == "pretrained":
            fine["start"] = str(chosen.work / "pretrained")
        model = api.train(recipes.check(fine, name), chosen.work / f"{name}-answers", report=False)
        found = judge(model, [files[1]])
        results[name] = found.scores.to_json()
        print(f"{name}:\n{found.scores.summary()}", flush=True)
        results["device"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
        results["seconds"] = round(time.perf_counter() - began, 1)
        if chosen.out:
            chosen.out.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
