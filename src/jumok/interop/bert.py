"""BERT's checkpoints as Hugging Face keeps them: what their `config.json` says and what their tensors are called.

The same weights go by several names: with or without `bert.` before them, `gamma` and `beta` (checkpoints that were
once TensorFlow's) or `weight` and `bias`. Here is the one table of how they are called in this house.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from jumok.errors import BadInput, shortly
from jumok.recipe import BertSection
from jumok.recipe.reading import plainer

T = TypeVar("T")  # a tensor, or what else is kept under its name

ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "silu": "silu", "swish": "silu"}

# in their checkpoints → here; {} is the number of a layer
NAMES = {
    "embeddings.word_embeddings": "embedding",
    "embeddings.position_embeddings": "positions",
    "embeddings.token_type_embeddings": "segments",
    "embeddings.LayerNorm": "norm",
    "encoder.layer.{}.attention.self.query": "encoder.blocks.{}.attention.query",
    "encoder.layer.{}.attention.self.key": "encoder.blocks.{}.attention.key",
    "encoder.layer.{}.attention.self.value": "encoder.blocks.{}.attention.value",
    "encoder.layer.{}.attention.output.dense": "encoder.blocks.{}.attention.output",
    "encoder.layer.{}.attention.output.LayerNorm": "encoder.blocks.{}.attention_norm.norm",
    "encoder.layer.{}.intermediate.dense": "encoder.blocks.{}.feed_forward.inner",
    "encoder.layer.{}.output.dense": "encoder.blocks.{}.feed_forward.outer",
    "encoder.layer.{}.output.LayerNorm": "encoder.blocks.{}.feed_forward_norm.norm",
    "pooler.dense": "pooler",
}
HIDDEN_WORDS = {
    "cls.predictions.transform.dense": "transform",
    "cls.predictions.transform.LayerNorm": "norm",
    "cls.predictions": "",  # whose bias is the output layer's
}
KINDS = {"weight": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
COUNTED = re.compile(r"\.(\d+)\.")
VALUE = re.compile(r"\b(\w+)(?= -?\d)")  # a key with its number, in a sentence
# tables that can be counted out, copies of the word vectors and their bias, and a head that nothing here has
OTHERS = ("embeddings.position_ids", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias", "cls.seq_relati")


def section_of(config: Mapping[str, Any], where: str = "config.json") -> BertSection:
    """The model that a configuration describes; what we cannot compute as they do is refused."""
    kind = config.get("model_type")
    if kind != "bert":
        raise BadInput(f"{where}: model_type is {shortly(kind)}; only bert can be read here")
    positions = config.get("position_embedding_type", "absolute")
    if positions != "absolute":
        raise BadInput(f"{where}: position_embedding_type {shortly(positions)}; only absolute positions can be read")
    if config.get("is_decoder") or config.get("add_cross_attention"):
        raise BadInput(f"{where}: this checkpoint is a decoder; BERT reads")
    activation = config.get("hidden_act", "gelu")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise BadInput(f"{where}: hidden_act {shortly(activation)} is not one of {', '.join(ACTIVATIONS)}")
    keys = {
        "width": "hidden_size", "layers": "num_hidden_layers", "heads": "num_attention_heads",
        "feed_forward": "intermediate_size", "max_positions": "max_position_embeddings",
        "segments": "type_vocab_size", "norm_epsilon": "layer_norm_eps", "dropout": "hidden_dropout_prob",
        "attention_dropout": "attention_probs_dropout_prob",
    }  # fmt: skip
    missing = [theirs for theirs in keys.values() if theirs not in config]
    if missing:
        raise BadInput(f"{where}: missing key {missing[0]!r}")
    try:
        return BertSection(
            activation=ACTIVATIONS[activation], **{ours: config[theirs] for ours, theirs in keys.items()}
        )
    except ValidationError as error:
        first = error.errors()[0]
        ours = str(first["loc"][0]) if first["loc"] else ""
        message = VALUE.sub(lambda found: keys.get(found[1], found[1]), plainer(first))
        raise BadInput(f"{where}: {f'{keys.get(ours, ours)}: ' if ours else ''}{message}") from None


def encoder_weights(state: Mapping[str, T]) -> dict[str, T]:
    """The tensors of the encoder under the names that `models.bert.Bert` has for them."""
    return _renamed(state, NAMES)


def hidden_words_weights(state: Mapping[str, T]) -> dict[str, T]:
    """Those of the head that guesses hidden words; none, where there is no such head."""
    return _renamed(state, HIDDEN_WORDS)


def unknown(state: Iterable[str]) -> list[str]:
    """Names that belong to neither: heads for tasks, or another kind of model."""
    known = {**NAMES, **HIDDEN_WORDS}
    return [name for name in state if _place(name, known) is None and not _bare(name).startswith(OTHERS)]


def _renamed(state: Mapping[str, T], names: Mapping[str, str]) -> dict[str, T]:
    found: dict[str, T] = {}
    for name, tensor in state.items():
        place = _place(name, names)
        if place in found:
            raise BadInput(f"two tensors for one weight: {name} is there under another name too")
        if place is not None:
            found[place] = tensor
    return found


def _place(name: str, names: Mapping[str, str]) -> str | None:
    module, _, kind = _bare(name).rpartition(".")
    numbers = COUNTED.findall(f"{module}.")
    ours = names.get(COUNTED.sub(".{}.", f"{module}.").removesuffix("."))
    if ours is None or kind not in KINDS:
        return None
    return f"{ours.format(*numbers)}.{KINDS[kind]}".removeprefix(".")


def _bare(name: str) -> str:
    return name.removeprefix("bert.")
