"""A translator's folder: encoder.onnx, decoder_step.onnx, config.json and its tokenizers; proved before it is given.

Each graph is held to the model with random inputs of several sizes, then both with random words through a search of
several steps, and in the end whole translations (beam 5) are held to PyTorch's: at least 99.5 % must be the same. What
is rounded to int8 after that is held to the probabilities of these (rounding.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jumok.data.batch import Sequences, source_batch
from jumok.errors import BadInput, Failure
from jumok.interop.onnx_decoder import EncoderGraph, StepGraph
from jumok.interop.onnx_graph import Graph, check, differs, words_of, write
from jumok.interop.onnx_recurrent import longest_source as longest_recurrent
from jumok.interop.onnx_recurrent import recurrent_config, recurrent_encoder_graph, recurrent_step_graph
from jumok.interop.rounding import check_rounded, forced
from jumok.interop.ties import tied
from jumok.layers.position import Learned
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.models.seq2seq import Seq2Seq
from jumok.models.transformer import Transformer
from jumok.search import Hypothesis, SearchOptions, Stepper, max_length_for, refill
from jumok.tasks.engine_onnx import ENCODER, STEP
from jumok.text.special import END, PAD, START, UNKNOWN

SAME = 0.995  # of whole translations
BEAM, STEPS, TOGETHER = 5, 6, 32
Translates = Transformer | Seq2Seq
Asked = tuple[list[int], SearchOptions]
SPECIAL_IDS = {"pad": PAD, "unknown": UNKNOWN, "start": START, "end": END}


def known(model: EncoderDecoder) -> Translates:
    if not isinstance(model, Transformer | Seq2Seq):
        raise BadInput(f"{type(model).__name__}: Transformers and recurrent translators can be exported to ONNX")
    return model


def longest_source(model: Transformer) -> int | None:
    """Most tokens of a source, `<eos>` included; None where there is no end."""
    if model.reader is not None and model.reader.positions is not None:
        return model.reader.positions.num_embeddings - 1  # the first is for [CLS]
    return model.encoder.added.num_embeddings if isinstance(model.encoder.added, Learned) else None


def longest_target(model: Transformer) -> int | None:
    return model.decoder.added.num_embeddings if isinstance(model.decoder.added, Learned) else None


def encoder_graph(model: Transformer) -> Graph:
    layers, vocabulary = len(model.decoder.blocks), model.source_embedding.num_embeddings
    end = longest_source(model) or 400

    def sample(sizes: Any) -> list[Tensor]:
        return list(words_of(sizes["batch"], sizes["source"], vocabulary))

    def expected(given: list[Tensor]) -> tuple[Tensor, ...]:
        store = model.encode(Sequences(given[0], given[1].sum(dim=1))).store
        return tuple(store.flatten(0, 1).transpose(2, 3))

    tried = tuple({"batch": rows, "source": min(length, end)} for rows, length in ((3, 7), (1, 1), (5, 33), (2, 400)))
    axes = {0: "batch", 1: "source"}
    made = {name: {0: "batch", 2: "source"} for name in names("source", layers)}
    return Graph(EncoderGraph(model), {"ids": axes, "mask": axes}, made, sample, expected, tried)


def names(what: str, layers: int) -> tuple[str, ...]:
    return tuple(f"{what}_{kind}_{layer}" for layer in range(layers) for kind in ("key", "value"))


def step_graph(model: Transformer) -> Graph:
    layers, vocabulary = len(model.decoder.blocks), model.embedding.num_embeddings
    module = StepGraph(model)
    attention = module.attention
    end = (longest_target(model) or 400) - 1

    def sample(sizes: Any) -> list[Tensor]:
        rows, source, past = sizes["batch"], sizes["source"], sizes["past"]
        mask_BS = words_of(rows, source, vocabulary)[1]
        sources = torch.randn(2 * layers, rows, attention.groups, source, attention.head_width)
        pasts = torch.randn(2 * layers, rows, attention.groups, past, attention.head_width)
        positions_B = torch.randint(min(past, end) + 1, (rows,))
        return [torch.randint(1, vocabulary, (rows,)), positions_B, mask_BS, *sources, *pasts]

    def expected(given: list[Tensor]) -> tuple[Tensor, ...]:
        found: tuple[Tensor, ...] = module(given)  # the model itself is asked in `verify_steps`
        return found

    inputs: dict[str, dict[int, str]] = {
        "token": {0: "batch"}, "position": {0: "batch"}, "mask": {0: "batch", 1: "source"},
        **{name: {0: "batch", 2: "source"} for name in names("source", layers)},
        **{name: {0: "batch", 2: "past"} for name in names("past", layers)},
    }  # fmt: skip
    shapes = ((3, 7, 5), (1, 1, 1), (6, 33, 16), (2, 3, 300))
    tried = tuple({"batch": rows, "source": source, "past": past} for rows, source, past in shapes)
    outputs: dict[str, dict[int, str]] = {
        "log_probs": {0: "batch"}, "attention": {0: "batch", 1: "source"},
        **{name: {0: "batch"} for name in names("new", layers)},
    }  # fmt: skip
    return Graph(module, inputs, outputs, sample, expected, tried)


def write_translator(model: Translates, folder: Path) -> tuple[dict[str, Any], float]:
    """Both graphs into a folder. What config.json says of them, and the largest difference."""
    if isinstance(model, Seq2Seq):
        graphs, about = (recurrent_encoder_graph(model), recurrent_step_graph(model)), recurrent_config(model)
    else:
        graphs, about = (encoder_graph(model), step_graph(model)), _transformer_config(model)
    differences, described = [], {}
    for name, graph in zip((ENCODER, STEP), graphs, strict=True):
        write(graph, folder / name)
        differences.append(check(graph, folder / name))
        described[name] = graph.described()
    return {"kind": "translator", **about, "special_ids": SPECIAL_IDS, "files": described}, max(differences)


def _transformer_config(model: Transformer) -> dict[str, Any]:
    attention = StepGraph(model).attention
    return {
        "layers": len(model.decoder.blocks), "groups": attention.groups, "head_width": attention.head_width,
        "max_source": longest_source(model), "max_target": longest_target(model),
        "source_vocabulary": model.source_embedding.num_embeddings,
        "target_vocabulary": model.embedding.num_embeddings,
    }  # fmt: skip


@torch.inference_mode()
def verify_steps(model: Translates, stepper: Stepper) -> float:
    """Random words through a few steps, the rows mixed between them: the largest difference of log p."""
    walked: Stepper = model
    vocabulary, largest = model.embedding.num_embeddings, 0.0
    if isinstance(model, Seq2Seq):
        read, words, longest = longest_recurrent(model), model.encoder.embedding.num_embeddings, None
    else:
        read, words, longest = longest_source(model), model.source_embedding.num_embeddings, longest_target(model)
    ids_BS, mask_BS = words_of(4, min(9, read or 9), words)
    batch = Sequences(ids_BS, mask_BS.sum(dim=1))
    memories: tuple[Any, Any] = walked.encode(batch), stepper.encode(batch)
    capacity = min(STEPS, longest or STEPS)
    caches: tuple[Any, Any] = walked.start(memories[0], 4, capacity), stepper.start(memories[1], 4, capacity)
    for position in range(capacity):
        tokens_B, positions_B = torch.randint(1, vocabulary, (4,)), torch.full((4,), position)
        here, cache = stepper.step(tokens_B, positions_B, memories[1], caches[1])
        there, own = walked.step(tokens_B, positions_B, memories[0], caches[0])
        largest = max(largest, differs(f"log p at position {position}", here, there))
        rows = torch.randint(4, (4,))
        chosen: list[tuple[Any, Any]] = [
            walked.select(memories[0], own, rows),
            stepper.select(memories[1], cache, rows),
        ]
        memories, caches = (chosen[0][0], chosen[1][0]), (chosen[0][1], chosen[1][1])
    return largest


def asked_of(model: Translates, rows: Sequence[Sequence[int]]) -> list[Asked]:
    """What is asked for each source (beam 5), the longest first."""
    asked = []
    for row in sorted(rows, key=len, reverse=True):
        most = min(max_length_for(len(row), 2.0, 20), model.longest)
        asked.append((list(row), SearchOptions(beam=BEAM, max_length=most)))
    return asked


@torch.inference_mode()
def best_of(stepper: Stepper, asked: Sequence[Asked]) -> list[Hypothesis]:
    made = dict(refill(stepper, asked, TOGETHER, share=1.0, batch_of=source_batch))
    return [made[place][0] for place in range(len(asked))]


def agreement(model: Translates, stepper: Stepper, asked: Sequence[Asked], here: Sequence[Hypothesis]) -> str:
    """A sentence about the share of sources whose best translation has the same tokens in both, or where rounding
    decides; `Failure` where there are too few."""
    there = best_of(stepper, asked)
    unlike = [row for row, ours, theirs in zip(asked, here, there, strict=True) if ours.tokens != theirs.tokens]
    ties = sum(tied(model, *row) for row in unlike)
    same = len(asked) - len(unlike)
    share = (same + ties) / max(1, len(asked))
    told = f"{same} of {len(asked)} translations (beam {BEAM}) are the same in onnxruntime and PyTorch"
    told += f", {ties} more are ties" * bool(ties)
    if share < SAME:
        raise Failure(f"{told}: at least {SAME:.1%} must be: nothing was written")
    return told


def agreement_rounded(stepper: Stepper, asked: Sequence[Asked], here: Sequence[Hypothesis], cure: str) -> str:
    """The same of what is written in int8, where whole translations are told, and probabilities are the lock."""
    told = held_rounded(stepper, asked, here, cure)
    there = best_of(stepper, asked)
    same = sum(ours.tokens == theirs.tokens for ours, theirs in zip(here, there, strict=True))
    return f"in int8 {same} of {len(asked)} are the same, {told}"


def held_rounded(stepper: Stepper, asked: Sequence[Asked], here: Sequence[Hypothesis], cure: str) -> str:
    return check_rounded(here, forced(stepper, [row for row, _ in asked], [one.tokens for one in here]), cure)
