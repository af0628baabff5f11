"""Runs that read texts: stopped anywhere and resumed, they are the same runs to the bit."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from jumok import api
from jumok import recipe as recipes
from jumok.recipe import Recipe
from jumok.tasks.example_task import ExampleTask
from jumok.tasks.pretraining import PretrainingTask
from jumok.training.run import RunFolder
from jumok.training.verify import differences

SMALL = [
    "tokenizer.vocabulary=80", "training.updates=9", "training.warmup=2", "training.validate_every=6",
    "training.checkpoint_every=3", "training.log_every=1", "training.batch_tokens=150", "training.accumulate=2",
    "training.learning_rate=0.01", "model.width=16", "model.layers=1", "model.dropout=0.2", "data.max_length=20",
    "training.ema=0.9",
]  # fmt: skip
BERT = ["model.heads=2", "model.feed_forward=24"]
WORDS = ["red", "blue", "old", "new", "cat", "dog", "sits", "runs", "here", "there"]
CASES: dict[str, tuple[str, list[str]]] = {
    "hidden words": ("bert-tiny", [*BERT, "masking.whole_words=true"]),
    "hidden words, packed, next": ("bert-tiny", [*BERT, "training.pack=true", "masking.sentences=next"]),
    "labels": (
        "classify",
        [*BERT, "training.r_drop=1.0", "training.class_weights=balanced", "training.layer_decay=0.8"],
    ),
    "labels, recurrent": ("classify-lstm", ["model.embedding=12"]),
    "numbers": ("similarity", [*BERT, "training.freeze=1"]),
    "tags": ("tag", BERT),
    "answers": ("answer", [*BERT, "data.stride=4"]),
}


class Stop(Exception):
    pass


def recipe_of(case: str, folder: Path) -> Recipe:
    chance = random.Random(3)
    rows = [chance.choices(WORDS, k=chance.randint(2, 25)) for _ in range(60)]
    name, keys = CASES[case]
    file = folder / "data.txt"
    if name == "bert-tiny":
        content, key = "\n".join(" ".join(row) + "\n" * (number % 3 == 0) for number, row in enumerate(rows)), "text"
        keys = [*keys, "data.window=24"]
    elif name == "tag":
        content, key = "\n\n".join("\n".join(f"{word} {word[0].upper()}" for word in row) for row in rows), "examples"
    elif name == "answer":
        lines = []
        for number, row in enumerate(rows):
            context, at = " ".join(row), chance.randrange(len(row))
            answer = {"text": row[at], "answer_start": len(" ".join([*row[:at], ""]))}
            lines.append(
                json.dumps({"id": str(number), "question": "which ?", "context": context, "answers": [answer]})
            )
        content, key, file = "\n".join(lines), "examples", folder / "data.jsonl"
    else:
        said = [row.count("cat") if name == "similarity" else row[0][0] for row in rows]
        content = "\n".join(["text\tlabel", *(f"{' '.join(row)}\t{one}" for row, one in zip(rows, said, strict=True))])
        key, file = "examples", folder / "data.tsv"
    file.write_text(content + "\n", encoding="utf-8")
    return recipes.read(name, [*SMALL, *keys, f"data.train.{key}={file}", "data.valid=null"])


@pytest.mark.parametrize("case", CASES)
def test_stopped_and_resumed_it_is_the_same_run(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = recipe_of(case, tmp_path)
    api.train(recipe, tmp_path / "plain", quiet=True, report=False)
    stop = random.randrange(1, 9)
    print(f"stopped at {stop}")
    with monkeypatch.context() as patched:
        for task in (ExampleTask, PretrainingTask):
            batches: Any = task.batches

            def stopping(self: Any, update: int, *rest: Any, batches: Any = batches) -> Any:
                if update == stop:
                    raise Stop
                return batches(self, update, *rest)

            patched.setattr(task, "batches", stopping)
        with pytest.raises(Stop):
            api.train(recipe, tmp_path / "stopped", quiet=True, report=False)
    api.train(None, tmp_path / "stopped", resume=True, quiet=True, report=False)
    assert differences(RunFolder(tmp_path / "plain"), RunFolder(tmp_path / "stopped")) == []
