"""Training speed on the CPU: the Luong model through jumok's own loop, beside a plain `nn.LSTM` loop.

    python benchmarks/train_cpu.py [--threads 2] [--updates 6] [--rounds 5]

Both: 2 layers, width 512, word vectors 512, general attention, no input feeding, dropout 0.3, label smoothing 0.1,
AdamW, clipping, float32, the same batches of at most 4096 tokens (Multi30k de→en from ../shared, 8k BPE each),
interleaved round by round; the figure is non-padding target tokens a second, median over the rounds.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import statistics
import tempfile
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok import recipe as recipes
from jumok.data.batch import PAD, PairBatch
from jumok.tasks.translation import TranslationTask
from jumok.tasks.vocabulary import train_tokenizers
from jumok.training.events import Events
from jumok.training.loop import Loop
from jumok.training.run import RunFolder
from jumok.training.state import TrainState

MULTI30K = Path(__file__).resolve().parents[2] / "shared" / "data" / "multi30k"


class PlainSeq2Seq(nn.Module):
    """What a tutorial writes: nn.LSTM encoder and decoder, Luong's general attention, one output layer."""

    def __init__(self, source_size: int, target_size: int, width: int = 512, layers: int = 2, dropout: float = 0.3):
        super().__init__()
        self.source_embedding = nn.Embedding(source_size, width, padding_idx=PAD)
        self.target_embedding = nn.Embedding(target_size, width, padding_idx=PAD)
        self.encoder = nn.LSTM(width, width, layers, batch_first=True, dropout=dropout)
        self.decoder = nn.LSTM(width, width, layers, batch_first=True, dropout=dropout)
        self.attention = nn.Linear(width, width, bias=False)
        self.combine = nn.Linear(2 * width, width)
        self.output = nn.Linear(width, target_size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: PairBatch, packed: bool) -> Tensor:
        embedded = self.dropout(self.source_embedding(batch.source.ids))
        if packed:
            rows = nn.utils.rnn.pack_padded_sequence(
                embedded, batch.source.lengths, batch_first=True, enforce_sorted=False
            )
            memory, state = self.encoder(rows)
            memory, _ = nn.utils.rnn.pad_packed_sequence(memory, batch_first=True)
        else:
            memory, state = self.encoder(embedded)
        hidden, _ = self.decoder(self.dropout(self.target_embedding(batch.target.ids[:, :-1])), state)
        scores = torch.bmm(self.attention(hidden), memory.transpose(1, 2))
        scores = scores.masked_fill(~batch.source.mask[:, None, :], float("-inf"))
        context = torch.bmm(scores.softmax(dim=-1), memory)
        attended = torch.tanh(self.combine(torch.cat([context, hidden], dim=-1)))
        return self.output(self.dropout(attended))


class PlainLoop:
    def __init__(self, task: TranslationTask, packed: bool) -> None:
        torch.manual_seed(1)
        self.task, self.packed = task, packed
        self.model = PlainSeq2Seq(task.source.size, task.target.size)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def update(self, number: int) -> int:
        (batch,) = self.task.batches(number)
        self.optimizer.zero_grad()
        logits = self.model(batch, self.packed)
        loss = F.cross_entropy(
            logits.flatten(0, 1), batch.target.ids[:, 1:].flatten(), ignore_index=PAD, label_smoothing=0.1
        )
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        loss.item()
        return batch.tokens


class OurLoop:
    def __init__(self, task: TranslationTask, recipe: recipes.Recipe, place: Path) -> None:
        self.loop = Loop(task, recipe, RunFolder(place), torch.device("cpu"), TrainState(total=10_000), Events([]))

    def update(self, number: int) -> int:
        self.loop.state.update = number
        return int(self.loop._update()["tokens"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--updates", type=int, default=6, help="updates in each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as place:
        files = {}
        for side in ("de", "en"):
            files[side] = Path(place) / f"train.{side}"
            files[side].write_bytes(gzip.decompress((MULTI30K / f"train.{side}.gz").read_bytes()))
        recipe = recipes.read(
            "lstm-luong",
            [
                f"data.train.source={files['de']}", f"data.train.target={files['en']}", "data.valid=null",
                "model.bidirectional=false", "model.tie_embeddings=false", "model.embedding=512",
                "tokenizer.vocabulary=8000",
            ],
        )  # fmt: skip
        tokenizers = train_tokenizers(recipe, print)
        task = TranslationTask(recipe, tokenizers, torch.device("cpu"), print, Path(place) / "cache")
        loops = {
            "jumok": OurLoop(task, recipe, Path(place)),
            "nn.LSTM, padded": PlainLoop(task, packed=False),
            "nn.LSTM, packed": PlainLoop(task, packed=True),
        }
        speeds: dict[str, list[float]] = {name: [] for name in loops}
        for loop in loops.values():
            loop.update(0)  # warm up: memory is claimed, kernels are chosen
        for number in range(options.rounds):
            updates = range(number * options.updates, (number + 1) * options.updates)
            for name, loop in loops.items():
                began = time.perf_counter()
                tokens = sum(loop.update(update) for update in updates)
                speeds[name].append(tokens / (time.perf_counter() - began))
            print(f"round {number + 1}: " + "  ".join(f"{name} {speed[-1]:,.0f}" for name, speed in speeds.items()))
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    ours = medians["jumok"]
    for name, value in medians.items():
        print(f"{name:18} {value:8,.0f} target tokens/s   jumok is {ours / value:.2f}×")
    if options.out:
        machine = {
            "cpu": platform.processor() or platform.machine(),
            "threads": options.threads,
            "torch": torch.__version__,
        }
        options.out.write_text(json.dumps({"machine": machine, "median": medians, "rounds": speeds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
