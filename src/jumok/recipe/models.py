"""The networks a recipe may ask for: one section for each `model.kind`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from jumok.recipe.sections import Section


class Seq2SeqSection(Section):
    """Recurrent encoder–decoder: Sutskever et al. 2014, Bahdanau et al. 2015, Luong et al. 2015."""

    kind: Literal["seq2seq"] = Field("seq2seq", description="The family of models.")
    cell: Literal["rnn", "lstm", "gru"] = Field("lstm", description="The recurrent cell.")
    embedding: int = Field(256, ge=1, description="Width of the word vectors.")
    width: int = Field(512, ge=1, description="Width of the hidden state (of both directions together).")
    layers: int = Field(2, ge=1, description="Stacked recurrent layers, in encoder and decoder each.")
    bidirectional: bool = Field(False, description="Let the encoder read in both directions.")
    attention: Literal["none", "luong", "bahdanau"] = Field(
        "luong",
        description="none: the final state is all the decoder gets; luong: after the step; bahdanau: before it.",
    )
    scorer: str = Field(
        "general", description="Score of query and key: dot, scaled-dot, general, additive, location, or your own."
    )
    input_feeding: bool = Field(False, description="Luong only: feed s̃_t into the next step (slower, often better).")
    reverse_source: bool = Field(False, description="Read the source backwards (Sutskever's trick without attention).")
    dropout: float = Field(0.3, ge=0.0, lt=1.0, description="On embeddings, between layers, and before the softmax.")
    forget_bias: float = Field(1.0, description="Starting bias of the LSTM's forget gate (0 is PyTorch's own).")
    tie_embeddings: bool = Field(
        False, description="Share the decoder's word vectors with its output layer (a projection bridges the widths)."
    )
    max_source: int = Field(512, ge=1, description="Longest source the location scorer can address, in tokens.")
    written_out: bool = Field(False, description="Compute the cells from their equations instead of the fused kernel.")

    @model_validator(mode="after")
    def _possible(self) -> Seq2SeqSection:
        if self.bidirectional and self.width % 2:
            raise ValueError(f"width {self.width} must be even when bidirectional is on (half for each direction)")
        if self.input_feeding and self.attention != "luong":
            raise ValueError(f"input_feeding belongs to luong attention, not to attention: {self.attention}")
        return self
