"""A checkpoint that people use, read by us and by transformers: the same ids of every line, and the same embeddings.

    python benchmarks/minilm.py FOLDER --out benchmarks/results/minilm.json

FOLDER holds config.json, model.safetensors and the tokenizer's files, as all-MiniLM-L6-v2 does. The embedding of a text
is the mean of the vectors of its tokens, [CLS] and [SEP] included, as that model is used. Half of the lines are from
the grammar, half are of everything that a tokenizer may meet.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sys
import time
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

import varied_lines  # noqa: E402

from jumok.data import grammar  # noqa: E402
from jumok.data.batch import Sequences  # noqa: E402
from jumok.files import sha256  # noqa: E402
from jumok.interop.huggingface import Imported, read_checkpoint  # noqa: E402
from jumok.models.bert import Bert  # noqa: E402

CLOSE = 1e-4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the checkpoint's folder")
    parser.add_argument("--lines", type=int, default=10_000, help="lines to tokenize")
    parser.add_argument("--sentences", type=int, default=200, help="texts to embed")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    began = time.perf_counter()
    found = read_checkpoint(arguments.folder)
    seconds = time.perf_counter() - began
    for note in found.notes:
        print(note)
    lines = some_lines(arguments.lines, arguments.seed)
    tokens, unequal = compare_ids(found, arguments.folder, lines)
    print(f"ids: {len(lines) - len(unequal)} of {len(lines)} lines identical ({tokens:,} tokens)")
    for line in unequal[:5]:
        print("  differs:", ascii(line))
    texts = some_lines(arguments.sentences, arguments.seed + 1)
    difference, largest = compare_embeddings(found, arguments.folder, texts, arguments.batch)
    print(f"embeddings of {len(texts)} texts: largest difference {difference:.2e}, largest value {largest:.2f}")
    good = not unequal and difference < CLOSE
    result: dict[str, Any] = {
        "folder": arguments.folder.name,
        "sha256": sha256(next(iter(sorted(arguments.folder.glob("*.safetensors"))))),
        "section": found.section.model_dump(),
        "vocabulary": found.vocabulary,
        "parameters": sum(tensor.numel() for tensor in found.encoder.values()),
        "read in seconds": round(seconds, 2),
        "notes": found.notes,
        "lines": len(lines),
        "tokens": tokens,
        "lines with identical ids": len(lines) - len(unequal),
        "texts embedded": len(texts),
        "largest difference of embeddings": difference,
        "largest value of embeddings": largest,
        "allowed": CLOSE,
        "good": good,
        "seed": arguments.seed,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    raise SystemExit(not good)


def some_lines(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    sentences = [pair.source for pair in grammar.pairs("en", "fr", "train", count - count // 2, seed)]
    return [*sentences, *varied_lines.lines(count // 2, draw)]


def compare_ids(found: Imported, folder: Path, lines: list[str]) -> tuple[int, list[str]]:
    """How many tokens there are, and the lines whose ids differ."""
    theirs = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    expected = theirs(lines, add_special_tokens=False, truncation=False, padding=False)["input_ids"]
    ours = found.tokenizer.encode(lines)
    return sum(map(len, ours)), [line for line, a, b in zip(lines, ours, expected, strict=True) if a != b]


@torch.inference_mode()
def compare_embeddings(found: Imported, folder: Path, texts: list[str], batch: int) -> tuple[float, float]:
    """The largest difference in any number of any embedding, and the largest number of theirs."""
    bert = Bert(found.section, found.vocabulary).eval()
    bert.load_state_dict(found.encoder, strict=found.has_pooler)
    theirs = transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval()
    specials, room = found.tokenizer.specials, found.section.max_positions - 2
    rows = [[specials.start, *row[:room], specials.end] for row in found.tokenizer.encode(texts)]
    difference = largest = 0.0
    for first in range(0, len(rows), batch):
        words = Sequences.pad(rows[first : first + batch])
        expected = theirs(input_ids=words.ids, attention_mask=words.mask.long()).last_hidden_state
        expected_BD = mean(expected, words.mask)
        difference = max(difference, float((mean(bert(words), words.mask) - expected_BD).abs().max()))
        largest = max(largest, float(expected_BD.abs().max()))
    return difference, largest


def mean(hidden_BTD: Tensor, mask_BT: Tensor) -> Tensor:
    """Over the tokens that are there."""
    weights_BT1 = mask_BT[..., None].to(hidden_BTD.dtype)
    return (hidden_BTD * weights_BT1).sum(1) / weights_BT1.sum(1)


if __name__ == "__main__":
    main()
