"""Runs of small Transformers that end their sentences, for engines that load them from a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F
from translators import tokenizers

from jumok import recipe as recipes
from jumok.data.batch import END, PAD, START, Sequences, source_batch
from jumok.models.build import build
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.models.transformer import Transformer
from jumok.recipe import TransformerSection
from jumok.tasks.vocabulary import save_tokenizers
from jumok.training import checkpoint
from jumok.training.run import RunFolder
from jumok.training.state import TrainState

SIZES = {"width": 32, "heads": 4, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 64}
UPDATES = 60


def ending(model: EncoderDecoder, seed: int, ends: bool = True) -> EncoderDecoder:
    """Weights that have learned a little: write as many tokens as you read. Without `ends`: fresh ones that go on."""
    torch.manual_seed(seed)
    assert isinstance(model, Transformer)
    if ends:
        optimizer = torch.optim.Adam(model.parameters(), 0.01)
        for _ in range(UPDATES):
            lengths = torch.randint(1, 13, (24,)).tolist()
            rows = [torch.randint(4, 40, (length,)).tolist() for length in lengths]
            target = Sequences.pad([[START, *row, END] for row in rows])
            hidden_BTD = model.train()(source_batch(rows), target.ids[:, :-1])
            loss = F.cross_entropy(model.head(hidden_BTD).flatten(0, 1), target.ids[:, 1:].flatten(), ignore_index=PAD)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        model.bias[[PAD, START] if ends else [PAD, START, END]] = -30.0
    return model.eval()


def small_run(path: Path, seed: int, ends: bool = True, step: int = 7, **keys: Any) -> RunFolder:
    """A run folder; called again with another `step`, one more checkpoint in it."""
    joint = keys.get("tie_embeddings") == "all"
    source, target = tokenizers("bpe")
    source = target if joint else source
    section = TransformerSection(**{**SIZES, **keys})
    if not (path / "recipe.yaml").exists():
        raw = {
            "task": "translation",
            "data": {"train": {"grammar": "en-fr", "pairs": 100}, "max_length": 60},
            "tokenizer": {"kind": "bpe", "joint": joint},
            "model": section.model_dump(mode="json"),
        }
        run = RunFolder.create(path, recipes.check(raw, "a test"))
        save_tokenizers(run.tokenizer, {"source": source} if joint else {"source": source, "target": target})
    run = RunFolder.open(path)
    model = ending(build(section, source.size, target.size), seed, ends)
    weights = checkpoint.stored_tensors(model)
    checkpoint.write(run.checkpoints / f"step-{step}", weights, None, TrainState(update=step))
    run.point("best", step)
    return run
