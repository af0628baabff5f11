"""A Transformer of ours in CTranslate2's own terms (Klein et al. 2020): the same numbers under their names.

Both compute the same blocks; what differs is how they are written down. CTranslate2 keeps queries, keys and values of
a text's own words in one matrix, positions that are added as a table, and the scale √d of the word vectors as a flag.
It searches over names of tokens, so the vocabularies go with the weights.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jumok.data.batch import END, START, UNKNOWN
from jumok.errors import BadInput
from jumok.layers.block import Block
from jumok.layers.multihead import MultiHeadAttention
from jumok.layers.position import Learned, Sinusoidal
from jumok.layers.stack import Stack
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.models.transformer import Transformer
from jumok.recipe import TransformerSection
from jumok.text.tokenizer import Tokenizer

PRECISIONS = ("float32", "int8")
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "silu": "SWISH", "swiglu": "SWISH"}
LONGEST = 1024  # positions of a table that could go on for ever, at least

Floats = npt.NDArray[np.float32]


def library() -> Any:
    """CTranslate2, or a word about where to get it."""
    try:
        return importlib.import_module("ctranslate2")
    except ImportError as error:
        raise BadInput(f"CTranslate2 is not installed here ({error}): pip install 'jumok[ct2]'") from None


def check_precision(precision: str) -> None:
    if precision not in PRECISIONS:
        raise BadInput(
            f"--precision {precision}: CTranslate2 models are made in {' or '.join(PRECISIONS)} here"
            f"{' (bfloat16 is for jumok translate --engine torch)' * (precision == 'bfloat16')}. Give one of these"
        )


def refuse_foreign(model: EncoderDecoder) -> Transformer:
    """Say which key of the recipe asks for something that CTranslate2 does not have."""
    if not isinstance(model, Transformer):
        raise BadInput(
            "model.kind: CTranslate2 runs Transformers only, not recurrent models. onnxruntime runs them (jumok export "
            "onnx, --engine onnx), and so does --engine torch"
        )
    section = model.section
    if section.reader is not None:
        raise BadInput(
            "model.reader: CTranslate2 has no translator whose source a BERT reads. onnxruntime runs it (jumok export "
            "onnx, --engine onnx), and so does --engine torch"
        )
    if section.position == "relative":
        raise BadInput(
            "model.position relative: CTranslate2 shares no learned biases of distances as this model has them. Use "
            "--engine torch, or train with another position"
        )
    if section.key_value_heads not in (None, section.heads):
        raise BadInput(
            f"model.key_value_heads {section.key_value_heads}: CTranslate2's decoders look at the source with as many "
            "heads of keys as of queries. Use --engine torch, or train with key_value_heads null"
        )
    return model


def names_of(tokenizer: Tokenizer) -> list[str]:
    """What each id is called; no two are called the same."""
    return [str(tokenizer._model.id_to_token(id)) for id in range(tokenizer.size)]


def save_model(
    model: EncoderDecoder, source: Tokenizer, target: Tokenizer, folder: Path, precision: str, positions: int = LONGEST
) -> None:
    """The model's files into a folder that is there. `positions`: how many there are where no recipe says it."""
    check_precision(precision)
    spec = spec_of(refuse_foreign(model), names_of(source), names_of(target), positions)
    spec.validate()
    spec.optimize(quantization=None if precision == "float32" else precision)
    spec.save(str(folder))


def spec_of(model: Transformer, source: Sequence[str], target: Sequence[str], positions: int) -> Any:
    library()
    specs = importlib.import_module("ctranslate2.specs.transformer_spec")
    section = model.section
    encoder = specs.TransformerEncoderSpec(section.encoder_layers, section.heads, **_asked(section))
    decoder = specs.TransformerDecoderSpec(section.decoder_layers, section.heads, **_asked(section))
    spec = specs.TransformerSpec(encoder, decoder)
    _stack(encoder, model.encoder, section, positions)
    _stack(decoder, model.decoder, section, positions)
    encoder.embeddings[0].weight = _numbers(model.source_embedding.weight)
    decoder.embeddings.weight = _numbers(model.embedding.weight)
    decoder.projection.weight = _numbers(model.embedding.weight if model.tied else model.weight)
    decoder.projection.bias = _numbers(model.bias)
    config = spec.config
    config.unk_token, config.bos_token, config.eos_token = target[UNKNOWN], target[START], target[END]
    config.decoder_start_token = target[START]
    config.add_source_eos = True  # as our sources end; who uses the folder elsewhere gives pieces alone
    config.layer_norm_epsilon = 1e-5 if section.norm_kind == "layer" else 1e-6
    spec.register_source_vocabulary(list(source))
    spec.register_target_vocabulary(list(target))
    return spec


def _asked(section: TransformerSection) -> dict[str, Any]:
    common = importlib.import_module("ctranslate2.specs.common_spec")
    final = section.norm == "pre" if section.final_norm is None else section.final_norm
    turned = {"rotary_dim": section.width // section.heads, "rotary_interleave": False}
    return {
        "pre_norm": True,  # until the norm after the last layer has its place, which may follow post-norm layers too
        "no_final_norm": not final,
        "activation": getattr(common.Activation, ACTIVATIONS[section.activation]),
        "ffn_glu": section.activation == "swiglu",
        "rms_norm": section.norm_kind == "rms",
        **(turned if section.position == "rotary" else {}),
    }


def _stack(spec: Any, stack: nn.Module, section: TransformerSection, positions: int) -> None:
    assert isinstance(stack, Stack)
    spec.pre_norm = section.norm == "pre"
    if section.position != "rotary":
        spec.position_encodings.encodings = _positions(stack, section.width, positions)
    if not isinstance(stack.norm, nn.Identity):
        _norm(spec.layer_norm, stack.norm)
    for theirs, ours in zip(spec.layer, stack.blocks, strict=True):
        assert isinstance(ours, Block)
        _attention(theirs.self_attention, ours.attention, own=True)
        _norm(theirs.self_attention.layer_norm, ours.attention_norm.norm)
        if ours.cross is not None and ours.cross_norm is not None:
            _attention(theirs.attention, ours.cross, own=False)
            _norm(theirs.attention.layer_norm, ours.cross_norm.norm)
        _linear(theirs.ffn.linear_0, ours.feed_forward.inner)
        _linear(theirs.ffn.linear_1, ours.feed_forward.outer)
        if ours.feed_forward.gate is not None:
            _linear(theirs.ffn.linear_0_noact, ours.feed_forward.gate)
        _norm(theirs.ffn.layer_norm, ours.feed_forward_norm.norm)


def _positions(stack: Stack, width: int, positions: int) -> Floats:
    if isinstance(stack.added, Learned):
        return _numbers(stack.added.weight)
    if isinstance(stack.added, Sinusoidal):
        return _numbers(stack.added.formula(torch.arange(positions, dtype=torch.float64)).float())
    return np.zeros((positions, width), np.float32)  # no positions: without a table they would compute one


def _attention(spec: Any, attention: MultiHeadAttention, own: bool) -> None:
    parts = [attention.query, attention.key, attention.value]
    for theirs, ours in zip(spec.linear, [parts] if own else [parts[:1], parts[1:]], strict=False):
        theirs.weight = _numbers(torch.cat([part.weight for part in ours]))
        theirs.bias = _numbers(torch.cat([part.bias for part in ours]))
    _linear(spec.linear[-1], attention.output)


def _linear(spec: Any, map: nn.Linear) -> None:
    spec.weight, spec.bias = _numbers(map.weight), _numbers(map.bias)


def _norm(spec: Any, norm: nn.Module) -> None:
    assert isinstance(norm, nn.LayerNorm | nn.RMSNorm)
    spec.gamma = _numbers(norm.weight)
    if isinstance(norm, nn.LayerNorm):
        spec.beta = _numbers(norm.bias)


def _numbers(tensor: Tensor) -> Floats:
    """A copy: CTranslate2 rounds in place."""
    return np.array(tensor.detach().float().cpu().numpy(), np.float32, order="C")
