"""Training speed of the Transformer on the CPU: jumok's own objective, step and optimiser beside two peers.

    python benchmarks/train_transformer_cpu.py [--threads 2] [--updates 4] [--rounds 9] [--out FILE]

All: 256 wide, 4 heads, 1024 inner, 3 + 3 layers, pre-norm (MarianMT: post-norm, it has no other), ReLU, one vocabulary
of 8k shared by both languages and the output layer, dropout 0.1 on sublayers and embeddings, label smoothing 0.1, fused
AdamW, clipping; the same batches of at most 4096 tokens with sentences of one length together (Multi30k de→en from
../shared). Peers: a plain loop over `nn.Transformer`, and Hugging Face's MarianMT, both in float32. Each trains in a
process of its own; they take turns, round by round, so that only one computes at a time. The figure is non-padding
target tokens a second, the median over the rounds; what other processes of the machine used meanwhile is told.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok import recipe as recipes
from jumok.data.batch import END, PAD, START, PairBatch
from jumok.layers.position import Sinusoidal
from jumok.tasks.translation import TranslationTask
from jumok.tasks.vocabulary import train_tokenizers
from jumok.text.tokenizer import Tokenizer
from jumok.training.device import repeatable
from jumok.training.optimizer import build_optimizer
from jumok.training.precision import Precision
from jumok.training.step import Step

MULTI30K = Path(__file__).resolve().parents[2] / "shared" / "data" / "multi30k"
WIDTH, HEADS, INNER, LAYERS, DROPOUT, SMOOTHING = 256, 4, 1024, 3, 0.1, 0.1
NAMES = ("nn.Transformer", "HF MarianMT", "jumok float32", "jumok bfloat16")
CPU = torch.device("cpu")
Update = Callable[[PairBatch, int], None]


class PlainTransformer(nn.Module):
    """What a tutorial writes around nn.Transformer, with dropout where jumok has it and nowhere else."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, WIDTH, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=WIDTH**-0.5)
        self.positions = Sinusoidal(WIDTH)
        self.dropout = nn.Dropout(DROPOUT)
        self.transformer = nn.Transformer(
            WIDTH, HEADS, LAYERS, LAYERS, INNER, DROPOUT, batch_first=True, norm_first=True
        )
        for layer in [*self.transformer.encoder.layers, *self.transformer.decoder.layers]:
            layer.dropout.p = layer.self_attn.dropout = 0.0
            if hasattr(layer, "multihead_attn"):
                layer.multihead_attn.dropout = 0.0
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.embedding(ids) * WIDTH**0.5 + self.positions.rows[: ids.size(1)])

    def forward(self, batch: PairBatch) -> Tensor:
        target, padding = batch.target.ids[:, :-1], ~batch.source.mask
        hidden = self.transformer(
            self.embed(batch.source.ids),
            self.embed(target),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.size(1)),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return F.linear(hidden, self.embedding.weight, self.bias)


class Marian(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        from transformers import MarianConfig, MarianMTModel

        super().__init__()
        config = MarianConfig(
            vocab_size=vocabulary, d_model=WIDTH, encoder_layers=LAYERS, decoder_layers=LAYERS,
            encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=INNER, decoder_ffn_dim=INNER,
            activation_function="relu", dropout=DROPOUT, attention_dropout=0.0, activation_dropout=0.0,
            scale_embedding=True, pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=START,
            bos_token_id=START, use_cache=False,
        )  # fmt: skip
        self.model = MarianMTModel(config)

    def forward(self, batch: PairBatch) -> Tensor:
        mask = batch.source.mask.long()
        target = batch.target.ids[:, :-1]
        return self.model(input_ids=batch.source.ids, attention_mask=mask, decoder_input_ids=target).logits


def peer(model: nn.Module) -> Update:
    """An update as anyone writes it."""
    optimizer = torch.optim.AdamW(model.train().parameters(), lr=1e-3, fused=True)

    def update(batch: PairBatch, number: int) -> None:
        optimizer.zero_grad()
        logits = model(batch)
        loss = F.cross_entropy(
            logits.flatten(0, 1), batch.target.ids[:, 1:].flatten(), ignore_index=PAD, label_smoothing=SMOOTHING
        )
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()

    return update


def ours(task: TranslationTask, precision: torch.dtype) -> Update:
    training = task.recipe.training
    optimizer = build_optimizer(task.objective, training)
    step = Step(task.objective, optimizer, training, 1, Precision(precision, CPU), print)

    def update(batch: PairBatch, number: int) -> None:
        step([batch], number, 1e-3).values()

    return update


def build(name: str, task: TranslationTask) -> Update:
    if name == "nn.Transformer":
        return peer(PlainTransformer(task.target.size))
    if name == "HF MarianMT":
        return peer(Marian(task.target.size))
    return ours(task, getattr(torch, name.split()[1]))


def task_of(place: Path) -> TranslationTask:
    files = (place / f"train.{side}" for side in ("de", "en"))
    changes = [f"data.train.{side}={file}" for side, file in zip(("source", "target"), files, strict=True)]
    recipe = recipes.read("transformer-small", [*changes, "data.valid=null"])
    tokenizer = Tokenizer.load(place / "tokenizer") if (place / "tokenizer").exists() else None
    if tokenizer is None:
        tokenizer, _ = train_tokenizers(recipe, print)
        tokenizer.save(place / "tokenizer")
    return TranslationTask(recipe, (tokenizer, tokenizer), CPU, lambda _: None, place / "cache")


def work(calls: Connection, name: str, place: Path, threads: int) -> None:
    """A process that trains whenever it is called: first update and number of updates in; tokens, seconds of wall
    time and seconds of processors out."""
    with repeatable(threads, CPU, exact=False):
        task = task_of(place)
        update = build(name, task)
        while (call := calls.recv()) is not None:
            first, count = call
            batches = [task.batches(number)[0] for number in range(first, first + count)]
            began, used = time.perf_counter(), time.process_time()
            for number, batch in enumerate(batches, first):
                update(batch, number)
            spent = time.perf_counter() - began, time.process_time() - used
            calls.send((sum(batch.tokens for batch in batches), *spent))


def all_processes() -> float:
    """Seconds that all processes of this machine have computed so far."""
    try:
        with open("/proc/stat") as file:
            return sum(map(int, file.readline().split()[1:4])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--updates", type=int, default=4, help="updates in each round")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", nargs="*", default=NAMES, choices=NAMES, help="who takes part; all without it")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    speeds: dict[str, list[float]] = {name: [] for name in options.only}
    cycles: dict[str, list[float]] = {name: [] for name in options.only}
    busy: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for side in ("de", "en"):
            (place / f"train.{side}").write_bytes(gzip.decompress((MULTI30K / f"train.{side}.gz").read_bytes()))
        task_of(place)
        spawn = multiprocessing.get_context("spawn")
        calls = {}
        for name in options.only:
            calls[name], theirs = spawn.Pipe()
            spawn.Process(target=work, args=(theirs, name, place, options.threads), daemon=True).start()
        for number in range(-1, options.rounds):  # the first round only claims memory and chooses kernels
            before, began, own = all_processes(), time.perf_counter(), 0.0
            for name, call in calls.items():
                call.send((max(0, number) * options.updates, options.updates if number >= 0 else 1))
                tokens, seconds, used = call.recv()
                own += used
                if number >= 0:
                    speeds[name].append(tokens / seconds)
                    cycles[name].append(tokens / used)
            if number >= 0:
                busy.append((all_processes() - before - own) / (time.perf_counter() - began))
                told = "  ".join(f"{name} {speed[-1]:,.0f}" for name, speed in speeds.items())
                print(f"round {number + 1}: {told}   (others: {busy[-1]:.2f} cores)", flush=True)
        for call in calls.values():
            call.send(None)
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    per_processor = {name: statistics.median(values) for name, values in cycles.items()}
    peers = [name for name in medians if not name.startswith("jumok")]
    for name, value in medians.items():
        told = f"{name:16} {value:7,.0f} target tokens/s, {per_processor[name]:7,.0f} per second of a processor"
        if peers:
            best, busiest = (max(figures[peer] for peer in peers) for figures in (medians, per_processor))
            told += f"   {value / best:.2f}× the best peer ({per_processor[name] / busiest:.2f}×)"
        print(told)
    if options.out:
        machine = {
            "cpu": platform.processor() or platform.machine(), "threads": options.threads, "torch": torch.__version__,
            "others_cores": busy,
        }  # fmt: skip
        result = {"machine": machine, "median": medians, "per_processor_second": per_processor, "rounds": speeds}
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
