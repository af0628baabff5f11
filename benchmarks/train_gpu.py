"""Training speed on one GPU: jumok beside `transformers`' MarianMT, the same sentences, in turns.

    python benchmarks/train_gpu.py [--sizes base big] [--engines "jumok compiled" "hf compiled" …] [--out results]
    python benchmarks/train_gpu.py --scaling        tokens a batch from 16k to 64k, sentences from 128 to 8,192 tokens
    python benchmarks/train_gpu.py --profile        the kernels of a step and what each takes

WMT-like lengths (log-normal around 23 source tokens), 25k-token batches, vocabulary 32k, dropout 0.1, label smoothing
0.1, AdamW, clipping, bfloat16. Figures: target tokens a second without padding (median of the rounds; all engines take
turns), the share of the measured peak of a bfloat16 product that useful operations make up (padding counts nothing),
peak memory of an update (of a peer that of its smallest batch), and how much of a step jumok waited for its batches.
jumok trains through its own plan, preparation, `Step`, CUDA graphs and optimiser; a peer gets padded batches of similar
lengths that are on the GPU already.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from gpu_turns import Trains, in_turns, kernels_of, memory, synchronize  # noqa: E402
from jumok.data.batch import END, PAD, START, PairBatch, Sequences  # noqa: E402
from jumok.data.dealing import Deal  # noqa: E402
from jumok.data.packing import PackedPairs  # noqa: E402
from jumok.data.plan import Plan, length_batches  # noqa: E402
from jumok.models.transformer import Transformer  # noqa: E402
from jumok.recipe import Training  # noqa: E402
from jumok.tasks.translation import TranslationObjective  # noqa: E402
from jumok.training.ahead import Ahead  # noqa: E402
from jumok.training.flops import flops_of  # noqa: E402
from jumok.training.optimizer import build_optimizer  # noqa: E402
from jumok.training.peak import matmul_peak  # noqa: E402
from jumok.training.precision import Precision  # noqa: E402
from jumok.training.step import Step  # noqa: E402
from marian import section, to_marian  # noqa: E402

SIZES = {"tiny": (64, 4, 128, 2), "small": (256, 4, 1024, 3), "base": (512, 8, 2048, 6), "big": (1024, 16, 4096, 6)}
ENGINES = ("jumok compiled", "jumok", "jumok eager", "hf compiled", "hf", "nn compiled")
DROPOUT = SMOOTHING = 0.1


class Corpus:
    """Random sentences with the lengths of news: a store as the plan sees it."""

    def __init__(self, pairs: int, vocabulary: int, seed: int, around: float = 23.0, spread: float = 0.6) -> None:
        generator = np.random.default_rng(seed)
        source = np.clip(generator.lognormal(math.log(around), spread, pairs), 1, 250)
        target = np.clip(source * generator.normal(1.05, 0.15, pairs), 1, 250)
        self.source_lengths, self.target_lengths = source.astype(np.int32), target.astype(np.int32)
        self.vocabulary = vocabulary

    def __len__(self) -> int:
        return len(self.source_lengths)

    def kept(self, name: str, make: Callable[[], Any]) -> list[Any]:
        columns = make()
        arrays = [np.empty(count, np.int64) for count, _ in columns]
        for array, (_, write) in zip(arrays, columns, strict=True):
            write(array)
        return arrays

    def batch(self, indices: Any) -> PairBatch:
        """Source `tokens <eos>`, target `<sos> tokens <eos>`, the tokens drawn from the pair's number."""
        sides = []
        for lengths, first in ((self.source_lengths, 0), (self.target_lengths, 1)):
            sizes = lengths[indices].astype(np.int64) + 1 + first
            ends = np.cumsum(sizes)
            words = np.random.default_rng(int(indices[0])).integers(END + 1, self.vocabulary, int(ends[-1]))
            words[ends - 1] = END
            if first:
                words[ends - sizes] = START
            sides.append(Sequences.of_flat(words, sizes))
        return PairBatch(sides[0], sides[1], tuple(indices.tolist()))


class Ours(Trains):
    """jumok's own way from the plan to the update."""

    def __init__(self, model: Transformer, corpus: Corpus, tokens: int, device: torch.device, name: str) -> None:
        fast = name != "jumok eager"
        training = Training(
            batch_tokens=tokens, compile=name == "jumok compiled", graphs="auto" if fast else False, clip=1.0
        )
        self.objective = TranslationObjective(model, SMOOTHING).to(device)
        self.plan = Plan([corpus], [1], tokens, 1, packed=True)  # type: ignore[list-item]
        layout = self.plan.layouts[0]
        assert isinstance(layout, Deal)
        self.budget, self.corpus = layout.budget, corpus
        precision = Precision(torch.bfloat16, device)
        optimizer = build_optimizer(self.objective, training)
        self.step = Step(self.objective, optimizer, training, 1, precision, lambda text: print(f"  {name}: {text}"))
        self.ahead = Ahead(self._batches, thread=device.type == "cuda")
        self.flops = flops_of(self.objective)

    def _batches(self, update: int) -> list[PackedPairs]:
        return [PackedPairs.of(self.corpus.batch(micro.indices), self.budget) for micro in self.plan.at(update)]


class Peer:
    """A plain loop over padded batches of similar lengths."""

    def __init__(self, model: nn.Module, logits: Callable[..., Any], corpus: Corpus, tokens: int, name: str) -> None:
        device = next(model.parameters()).device
        self.model, self.device = model.train(), device
        compute = torch.compile(logits, dynamic=True) if "compiled" in name else logits
        self.logits = compute
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
        groups = length_batches(corpus.source_lengths, corpus.target_lengths, tokens)
        chosen = np.random.default_rng(1).permutation(len(groups))[:24]
        self.batches = [corpus.batch(groups[number]).to(device) for number in chosen]
        self.tokens = [batch.tokens for batch in self.batches]
        self.update = 0

    def __call__(self, updates: int) -> tuple[int, int]:
        tokens = 0
        for _ in range(updates):
            number = self.update % len(self.batches)
            batch = self.batches[number]
            self.optimizer.zero_grad(set_to_none=True)
            with torch.autocast(self.device.type, torch.bfloat16):
                logits = self.logits(batch.source.ids, batch.source.mask, batch.target.ids[:, :-1])
                wanted = batch.target.ids[:, 1:]
                loss = F.cross_entropy(
                    logits.flatten(0, 1), wanted.flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
                )
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            tokens += self.tokens[number]
            self.update += 1
        return tokens, 0


class Plain(nn.Module):
    """torch.nn.Transformer with tied word vectors, as its tutorial has it."""

    def __init__(self, size: tuple[int, int, int, int], vocabulary: int) -> None:
        super().__init__()
        width, heads, feed_forward, layers = size
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(512, width)
        self.body = nn.Transformer(width, heads, layers, layers, feed_forward, DROPOUT, batch_first=True)

    def forward(self, source: Any, real: Any, target: Any) -> Any:
        def read(ids: Any) -> Any:
            return self.words(ids) + self.places(torch.arange(ids.size(1), device=ids.device))

        causal = nn.Transformer.generate_square_subsequent_mask(target.size(1), device=target.device)
        hidden = self.body(
            read(source), read(target), tgt_mask=causal, src_key_padding_mask=torch.where(real, 0.0, -torch.inf),
            memory_key_padding_mask=torch.where(real, 0.0, -torch.inf), tgt_is_causal=True,
        )  # fmt: skip
        return F.linear(hidden, self.words.weight)


def build(name: str, size: tuple[int, int, int, int], corpus: Corpus, tokens: int, device: torch.device) -> Ours | Peer:
    torch.manual_seed(0)
    if name == "nn compiled":
        plain = Plain(size, corpus.vocabulary).to(device)
        return Peer(plain, plain, corpus, tokens, name)
    asked = section(*size).model_copy(update={"dropout": DROPOUT})
    model = Transformer(asked, corpus.vocabulary, corpus.vocabulary)
    if name.startswith("jumok"):
        return Ours(model, corpus, tokens, device, name)
    marian = to_marian(model).to(device)
    marian.config.dropout = DROPOUT
    for module in marian.modules():
        if hasattr(module, "dropout") and isinstance(module.dropout, float) and hasattr(module, "activation_dropout"):
            module.dropout = DROPOUT
    marian.model.encoder.dropout = marian.model.decoder.dropout = DROPOUT

    def logits(source: Any, real: Any, target: Any) -> Any:
        return marian(input_ids=source, attention_mask=real.long(), decoder_input_ids=target, use_cache=False).logits

    return Peer(marian, logits, corpus, tokens, name)


def peaks(engine: Peer, device: torch.device) -> list[int]:
    """The most memory that each of its batches takes."""
    found = []
    for _ in engine.batches:
        memory(device)
        engine(1)
        synchronize(device)
        found.append(memory(device)[1])
    return found


def measure(size: str, names: list[str], chosen: argparse.Namespace, device: torch.device) -> dict[str, Any]:
    corpus = Corpus(chosen.pairs, chosen.vocabulary, 1)
    engines: dict[str, Ours | Peer] = {}
    rows: dict[str, dict[str, Any]] = {}
    for name in names:
        gc.collect()
        before, _ = memory(device)
        began = time.perf_counter()
        engine = engines[name] = build(name, SIZES[size], corpus, chosen.tokens, device)
        # a peer compiles anew when a batch of another shape comes: all of them twice before it is timed
        engine(chosen.warm if isinstance(engine, Ours) else 2 * len(engine.batches))
        synchronize(device)
        memory(device)
        if isinstance(engine, Ours):
            engine(4)
            synchronize(device)
            most = memory(device)[1]
        else:  # its batches differ in shape: the one that takes the least memory is held against ours, which are alike
            most = min(peaks(engine, device))
        seconds = time.perf_counter() - began
        rows[name] = {"peak_gib": (most - before) / 2**30, "start_seconds": seconds}
        print(f"{size} {name}: ready after {seconds:.0f} s, {(most - before) / 2**30:.2f} GiB at most", flush=True)
    in_turns(engines, rows, chosen.rounds, chosen.updates, device, "tokens")
    return rows


def flops_a_token(size: str, chosen: argparse.Namespace) -> float:
    """Useful operations per target token of this model on this corpus: the same for whoever computes them."""
    corpus = Corpus(chosen.pairs, chosen.vocabulary, 1)
    model = Transformer(section(*SIZES[size]), chosen.vocabulary, chosen.vocabulary)
    counter = flops_of(TranslationObjective(model))
    assert counter is not None
    batch = corpus.batch(np.arange(2000))
    return (counter(batch) or 0) / batch.tokens


def show(size: str, rows: dict[str, Any], a_token: float, peak: float | None, lines: list[str]) -> None:
    hf = rows.get("hf compiled", {}).get("tokens_per_second")
    hf_memory = rows.get("hf compiled", {}).get("peak_gib")
    for name, row in rows.items():
        mfu = f"{row['tokens_per_second'] * a_token / peak:.1%}" if peak else "–"
        ratio = f"{row['tokens_per_second'] / hf:.2f}" if hf else "–"
        room = f"{row['peak_gib'] / hf_memory:.2f}" if hf_memory else "–"
        waited = f"{row['waited']:.1%}" if "waited" in row else "–"
        lines.append(
            f"| {size} | {name} | {row['tokens_per_second']:,.0f} | {row['step_ms']:.1f} | {mfu} | {ratio} | "
            f"{row['peak_gib']:.2f} | {room} | {waited} | {row['start_seconds']:.0f} |"
        )


def scaling(chosen: argparse.Namespace, device: torch.device) -> list[str]:
    """Time a step against tokens a batch, and against the length of sentences."""
    name, lines = chosen.engines[0], []
    lines += ["| tokens a batch | step, ms | ms per 1,000 tokens | waiting |", "| ---: | ---: | ---: | ---: |"]
    for tokens in chosen.budgets:
        corpus = Corpus(chosen.pairs, chosen.vocabulary, 1)
        row = timed(build(name, SIZES[chosen.sizes[0]], corpus, tokens, device), chosen, device)
        lines.append(f"| {tokens:,} | {row[0]:.1f} | {1000 * row[0] / tokens:.3f} | {row[1]:.1%} |")
        print(lines[-1], flush=True)
    lines += ["", "| tokens a sentence | step, ms | useful TFLOP/s |", "| ---: | ---: | ---: |"]
    for length in chosen.lengths:
        corpus = Corpus(max(64, 40 * chosen.long_tokens // length), chosen.vocabulary, 1)
        corpus.source_lengths[:] = corpus.target_lengths[:] = length - 2
        engine = build(name, SIZES[chosen.sizes[0]], corpus, chosen.long_tokens, device)
        milliseconds, _, speed = timed(engine, chosen, device)
        lines.append(f"| {length:,} | {milliseconds:.1f} | {speed / 1e12:.0f} |")
        print(lines[-1], flush=True)
    return lines


def profile(chosen: argparse.Namespace, device: torch.device) -> list[str]:
    """Where the time of a step goes: kernels by their names, those that take longest first."""
    lines: list[str] = []
    for size, name in ((size, name) for size in chosen.sizes for name in chosen.engines):
        engine = build(name, SIZES[size], Corpus(chosen.pairs, chosen.vocabulary, 1), chosen.tokens, device)
        engine(chosen.warm)
        synchronize(device)
        lines += ["", f"{size} {name}:", *kernels_of(engine, chosen.updates, device, chosen.rows)]
        print("\n".join(lines), flush=True)
    return lines


def timed(engine: Ours | Peer, chosen: argparse.Namespace, device: torch.device) -> tuple[float, float, float]:
    """Milliseconds a step, share of it spent waiting for batches, useful operations a second."""
    engine(chosen.warm)
    found = []
    for _ in range(chosen.rounds):
        if isinstance(engine, Ours):
            engine.waited = 0.0
        synchronize(device)
        began = time.perf_counter()
        _, work = engine(chosen.updates)
        synchronize(device)
        seconds = time.perf_counter() - began
        waited = engine.waited / seconds if isinstance(engine, Ours) else 0.0
        found.append((1000 * seconds / chosen.updates, waited, work / seconds))
    return tuple(statistics.median(column) for column in zip(*found, strict=True))  # type: ignore[return-value]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", default=["base", "big"], choices=SIZES)
    parser.add_argument("--engines", nargs="*", default=["jumok compiled", "hf compiled"], choices=ENGINES)
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--rows", type=int, default=45, help="kernels that --profile names")
    parser.add_argument("--tokens", type=int, default=25_000)
    parser.add_argument("--budgets", type=int, nargs="*", default=[4096, 8192, 16384, 32768, 65536])
    parser.add_argument("--lengths", type=int, nargs="*", default=[128, 256, 512, 1024, 2048, 4096, 8192])
    parser.add_argument("--long-tokens", type=int, default=32_768, help="tokens a batch in the table of lengths")
    parser.add_argument("--vocabulary", type=int, default=32_000)
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--updates", type=int, default=20, help="of a round")
    parser.add_argument("--warm", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = True
    if hasattr(torch, "_dynamo"):
        torch._dynamo.config.cache_size_limit = 64
    peak = matmul_peak(device, torch.bfloat16)
    where = torch.cuda.get_device_name() if device.type == "cuda" else platform.processor()
    lines = [f"{where}, torch {torch.__version__}; measured bfloat16 product: {(peak or 0) / 1e12:.0f} TFLOP/s", ""]
    results: dict[str, Any] = {
        "machine": lines[0],
        "peak": peak,
        "options": {k: str(v) for k, v in vars(chosen).items()},
    }
    if chosen.scaling:
        lines += scaling(chosen, device)
    elif chosen.profile:
        lines += profile(chosen, device)
    else:
        heads = "size | engine | target tokens/s | step, ms | of peak | / hf compiled | GiB | / hf | waiting | start, s"
        lines += [f"| {heads} |", f"|{' --- |' * 10}"]
        for size in chosen.sizes:
            rows = measure(size, chosen.engines, chosen, device)
            results[size] = rows
            show(size, rows, flops_a_token(size, chosen), peak, lines)
            if chosen.out:  # what is known so far, should the time run out
                chosen.out.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    results["table"] = lines
    print("\n".join(lines))
    if chosen.out:
        chosen.out.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
        chosen.out.with_suffix(".md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
