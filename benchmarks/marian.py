"""A Transformer of ours as `transformers`' MarianMTModel and as a CTranslate2 model: the same weights in three engines.

MarianMT is post-norm with LayerNorm, additive positions with all sines first, one vocabulary for both sides and tied
word vectors; `model.norm=post model.position=sinusoidal-halves model.tie_embeddings=all` is that.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from jumok.data.batch import END, PAD, START, UNKNOWN
from jumok.errors import BadInput
from jumok.layers.block import Block
from jumok.models.transformer import Transformer
from jumok.recipe import TransformerSection

SECTION = {"norm": "post", "position": "sinusoidal-halves", "tie_embeddings": "all", "activation": "relu"}
LONGEST = 512  # positions that the converted models know


def section(width: int, heads: int, feed_forward: int, layers: int) -> TransformerSection:
    """A model that Marian can hold."""
    sizes = {"width": width, "heads": heads, "feed_forward": feed_forward}
    return TransformerSection(**sizes, encoder_layers=layers, decoder_layers=layers, **SECTION)


def to_marian(model: Transformer) -> Any:
    """A MarianMTModel in evaluation mode with a copy of the weights."""
    from transformers import MarianConfig, MarianMTModel

    asked = model.section
    wrong = [name for name, value in SECTION.items() if getattr(asked, name) != value]
    if wrong or asked.norm_kind != "layer" or asked.key_value_heads not in (None, asked.heads) or asked.final_norm:
        wanted = ", ".join(f"model.{name}={value}" for name, value in SECTION.items())
        raise BadInput(f"MarianMT cannot hold this model: train it with {wanted}, LayerNorm and full heads")
    words = model.embedding.num_embeddings
    config = MarianConfig(
        vocab_size=words, decoder_vocab_size=words, share_encoder_decoder_embeddings=True, tie_word_embeddings=True,
        d_model=asked.width, encoder_layers=asked.encoder_layers, decoder_layers=asked.decoder_layers,
        encoder_attention_heads=asked.heads, decoder_attention_heads=asked.heads,
        encoder_ffn_dim=asked.feed_forward, decoder_ffn_dim=asked.feed_forward, activation_function="relu",
        scale_embedding=True, max_position_embeddings=LONGEST, dropout=0.0, attention_dropout=0.0,
        activation_dropout=0.0, pad_token_id=PAD, bos_token_id=START, eos_token_id=END, decoder_start_token_id=START,
        forced_eos_token_id=None, forced_bos_token_id=None,
    )  # fmt: skip
    marian = MarianMTModel(config).eval()
    with torch.no_grad():
        marian.model.shared.weight.copy_(model.embedding.weight)
        marian.final_logits_bias.copy_(model.bias[None])
        for ours, theirs in ((model.encoder, marian.model.encoder), (model.decoder, marian.model.decoder)):
            for block, layer in zip(ours.blocks, theirs.layers, strict=True):
                for mine, other in _pairs(block, layer):
                    other.load_state_dict(mine.state_dict())
    return marian


def _pairs(block: nn.Module, layer: Any) -> list[tuple[nn.Module, nn.Module]]:
    assert isinstance(block, Block)
    pairs: list[tuple[nn.Module, nn.Module]] = [
        (block.attention_norm.norm, layer.self_attn_layer_norm),
        (block.feed_forward.inner, layer.fc1),
        (block.feed_forward.outer, layer.fc2),
        (block.feed_forward_norm.norm, layer.final_layer_norm),
    ]
    attentions = [(block.attention, layer.self_attn)]
    if block.cross is not None and block.cross_norm is not None:
        attentions.append((block.cross, layer.encoder_attn))
        pairs.append((block.cross_norm.norm, layer.encoder_attn_layer_norm))
    for ours, theirs in attentions:
        pairs += [(ours.query, theirs.q_proj), (ours.key, theirs.k_proj)]
        pairs += [(ours.value, theirs.v_proj), (ours.output, theirs.out_proj)]
    return pairs


def token(number: int) -> str:
    """What CTranslate2 calls a token; it knows strings only."""
    return {PAD: "<pad>", UNKNOWN: "<unk>", START: "<sos>", END: "<eos>"}.get(number, str(number))


def to_ctranslate2(marian: Any, folder: Path, quantization: str | None = None) -> Path:
    """Convert with CTranslate2's own converter. Marian's loader drops <pad> and starts from a zero vector, which the
    original Marian does and we do not: its parent, BART's, takes the model as it is."""
    from ctranslate2.converters import transformers as converters

    marian.config.normalize_before = marian.config.normalize_embedding = False
    loader = converters.BartLoader()
    spec = loader.get_model_spec(marian)
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = token(START), token(END), token(UNKNOWN)
    spec.config.decoder_start_token = token(START)
    loader.set_vocabulary(spec, [token(number) for number in range(marian.config.vocab_size)])
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))
    return folder
