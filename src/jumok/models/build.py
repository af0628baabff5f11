"""From a recipe's `model:` section to the network it describes."""

from __future__ import annotations

from jumok.models.encoder_decoder import EncoderDecoder
from jumok.models.seq2seq import Seq2Seq
from jumok.models.transformer import Transformer
from jumok.recipe import ModelSection, Seq2SeqSection, TransformerSection


def build(section: ModelSection, source_size: int, target_size: int) -> EncoderDecoder:
    """The translation model a recipe describes, for vocabularies of these sizes."""
    if isinstance(section, Seq2SeqSection):
        return Seq2Seq(section, source_size, target_size)
    assert isinstance(section, TransformerSection)
    return Transformer(section, source_size, target_size)
