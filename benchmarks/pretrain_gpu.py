"""Pretraining speed on one GPU: jumok beside `transformers`' BertForMaskedLM, sequences of 128 tokens, in turns.

    python benchmarks/pretrain_gpu.py [--size base] [--engines "jumok compiled" "hf compiled" …] [--out results]

BERT base, vocabulary 32k, 15 % hidden, dropout 0.1 (on the attention too), AdamW, clipping, bfloat16. Figures: tokens
read a second (median of the rounds; all engines take turns) and peak memory. jumok trains through its plan, masking,
`Step`, CUDA graphs and optimiser; the peer gets batches that are on the GPU already, without padding or a mask, with
labels of −100 where nothing is hidden: all of its tokens go through the vocabulary, as the library does it. Ours is
compiled (training.compile) and recorded as CUDA graph, with exact: false; the peer is compiled as torch.compile does it
by itself, without graphs.
"""

from __future__ import annotations

import argparse
import gc
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from gpu_turns import Trains, in_turns, kernels_of, memory, synchronize, table, write  # noqa: E402
from jumok.data.masked_plan import MaskedPlan, MaskedTexts  # noqa: E402
from jumok.models.bert import Bert, HiddenWords  # noqa: E402
from jumok.recipe import BertSection, Masking, Training  # noqa: E402
from jumok.tasks.pretraining import PretrainingObjective  # noqa: E402
from jumok.text.special import Specials  # noqa: E402
from jumok.training.ahead import Ahead  # noqa: E402
from jumok.training.flops import flops_of  # noqa: E402
from jumok.training.optimizer import build_optimizer  # noqa: E402
from jumok.training.peak import matmul_peak  # noqa: E402
from jumok.training.precision import Precision  # noqa: E402
from jumok.training.step import Step  # noqa: E402

SIZES = {"tiny": (64, 4, 128, 2), "small": (512, 8, 2048, 4), "base": (768, 12, 3072, 12)}
ENGINES = ("jumok compiled", "jumok", "jumok eager", "hf compiled", "hf")
SPECIALS = Specials(mask=4)
FIRST = 5  # id that stands for text


class Text:
    """Random running text, each line as long as there is room for: a store and a tokenizer as the plan sees them."""

    kind, specials = "wordpiece", SPECIALS

    def __init__(self, lines: int, window: int, vocabulary: int) -> None:
        self.size, self.lines = vocabulary, lines
        self.ids = np.random.default_rng(1).integers(FIRST, vocabulary, lines * (window - 1)).astype(np.uint16)
        self.ids[window - 2 :: window - 1] = SPECIALS.end
        self.starts = np.arange(lines + 1, dtype=np.int64) * (window - 1)

    def kept(self, name: str, make: Any) -> list[Any]:
        columns = make()
        arrays = [np.empty(count, np.int64) for count, _ in columns]
        for array, (_, fill) in zip(arrays, columns, strict=True):
            fill(array)
        return arrays

    def is_special(self, id: int) -> bool:
        return id < FIRST

    def continues(self) -> Any:
        return np.zeros(self.size, bool)


class Ours(Trains):
    def __init__(self, section: BertSection, chosen: argparse.Namespace, device: torch.device, name: str) -> None:
        fast = name != "jumok eager"
        training = Training(
            batch_tokens=chosen.tokens, compile=name == "jumok compiled", graphs="auto" if fast else False, clip=1.0
        )
        text = Text(chosen.lines, chosen.window, chosen.vocabulary)
        texts = MaskedTexts(text, text, Masking(), chosen.window, "lines")  # type: ignore[arg-type]
        self.plan = MaskedPlan([texts], [1], chosen.tokens, 1, packed=True)
        torch.manual_seed(0)
        self.objective = PretrainingObjective(HiddenWords(Bert(section, chosen.vocabulary))).to(device)
        optimizer, precision = build_optimizer(self.objective, training), Precision(torch.bfloat16, device)
        self.step = Step(self.objective, optimizer, training, 1, precision, lambda text: print(f"  {name}: {text}"))
        self.ahead = Ahead(self.plan.at, thread=device.type == "cuda")
        self.flops = flops_of(self.objective)

    def counted(self, batch: Any) -> int:
        return int(batch.read)


class Peer:
    def __init__(self, section: BertSection, chosen: argparse.Namespace, device: torch.device, name: str) -> None:
        from transformers import BertConfig, BertForMaskedLM

        config = BertConfig(
            vocab_size=chosen.vocabulary, hidden_size=section.width, num_hidden_layers=section.layers,
            num_attention_heads=section.heads, intermediate_size=section.feed_forward, attn_implementation="sdpa",
        )  # fmt: skip
        torch.manual_seed(0)
        self.model = BertForMaskedLM(config).to(device).train()
        self.compute = torch.compile(self.model) if "compiled" in name else self.model
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        generator, rows = np.random.default_rng(1), chosen.tokens // chosen.window
        self.batches, self.device, self.update = [], device, 0
        for _ in range(8):
            ids = generator.integers(FIRST, chosen.vocabulary, (rows, chosen.window))
            labels = np.where(generator.random(ids.shape) < 0.15, ids, -100)
            read = np.where(labels >= 0, SPECIALS.mask or 0, ids)
            self.batches.append((torch.from_numpy(read).to(device), torch.from_numpy(labels).to(device)))

    def __call__(self, updates: int) -> tuple[int, int]:
        tokens = 0
        for _ in range(updates):
            ids, labels = self.batches[self.update % len(self.batches)]
            self.optimizer.zero_grad(set_to_none=True)
            with torch.autocast(self.device.type, torch.bfloat16):
                loss = self.compute(input_ids=ids, labels=labels).loss
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            tokens += ids.numel()
            self.update += 1
        return tokens, 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="base", choices=SIZES)
    parser.add_argument("--engines", nargs="*", default=["jumok compiled", "hf compiled", "hf"], choices=ENGINES)
    parser.add_argument("--tokens", type=int, default=32_768)
    parser.add_argument("--window", type=int, default=128)
    parser.add_argument("--vocabulary", type=int, default=32_000)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--updates", type=int, default=20, help="of a round")
    parser.add_argument("--warm", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="the kernels of a step of the first engine")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = True
    width, heads, feed_forward, layers = SIZES[chosen.size]
    section = BertSection(width=width, heads=heads, feed_forward=feed_forward, layers=layers)
    peak = matmul_peak(device, torch.bfloat16)
    where = torch.cuda.get_device_name() if device.type == "cuda" else platform.processor()
    lines = [f"{where}, torch {torch.__version__}; measured bfloat16 product: {(peak or 0) / 1e12:.0f} TFLOP/s", ""]
    if chosen.profile:
        engine = Ours(section, chosen, device, chosen.engines[0])
        engine(chosen.warm)
        synchronize(device)
        print("\n".join(kernels_of(engine, chosen.updates, device)))
        return
    engines: dict[str, Ours | Peer] = {}
    rows: dict[str, dict[str, Any]] = {}
    for name in chosen.engines:
        gc.collect()
        before, _ = memory(device)
        began = time.perf_counter()
        engine = engines[name] = (Ours if name.startswith("jumok") else Peer)(section, chosen, device, name)
        engine(chosen.warm)  # a recording keeps the memory that it was made in: its making counts
        engine(4)
        synchronize(device)
        most, seconds = memory(device)[1], time.perf_counter() - began
        rows[name] = {"peak_gib": (most - before) / 2**30, "start_seconds": seconds}
        print(f"{name}: ready after {seconds:.0f} s, {(most - before) / 2**30:.2f} GiB at most", flush=True)
    in_turns(engines, rows, chosen.rounds, chosen.updates, device, "tokens")
    write(chosen.out, [*lines, *table(rows, "hf compiled", "tokens", peak)], chosen, peak, rows)


if __name__ == "__main__":
    main()
