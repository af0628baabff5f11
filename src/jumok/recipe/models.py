"""The networks a recipe may ask for: one section for each `model.kind`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from jumok.recipe.sections import Section

Activation = Literal["relu", "gelu", "silu", "swiglu"]
Position = Literal["sinusoidal", "sinusoidal-halves", "learned", "rotary", "relative", "none"]


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
    target_word_dropout: float = Field(
        0.0, ge=0.0, lt=1.0, description="Share of its own past words that the decoder does not see as it learns."
    )
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


class TransformerSection(Section):
    """Encoder–decoder Transformer: Vaswani et al. 2017. The defaults are its base model, with pre-norm."""

    kind: Literal["transformer"] = Field("transformer", description="The family of models.")
    width: int = Field(512, ge=1, description="Width of every hidden state (d_model).")
    heads: int = Field(8, ge=1, description="Attention heads; each is width / heads wide.")
    key_value_heads: int | None = Field(
        None, ge=1, description="Heads of keys and values, shared by groups of query heads; null: as many as `heads`."
    )
    encoder_layers: int = Field(6, ge=1, description="Layers that read the source.")
    decoder_layers: int = Field(6, ge=1, description="Layers that write the target; fewer decode faster.")
    feed_forward: int = Field(2048, ge=1, description="Inner width of the feed-forward network.")
    activation: Activation = Field("relu", description="Of the feed-forward network; swiglu adds a gate.")
    norm: Literal["pre", "post"] = Field(
        "pre", description="Normalise before each sublayer (steady training) or after the sum, as in the paper."
    )
    norm_kind: Literal["layer", "rms"] = Field("layer", description="LayerNorm, or RMSNorm without mean and bias.")
    final_norm: bool | None = Field(
        None, description="Normalise once more after the last layer; null: with pre-norm only, which needs it."
    )
    position: Position = Field(
        "sinusoidal",
        description="sinusoidal: any length, nothing to learn (-halves: Marian's order of the same numbers); learned; "
        "rotary: queries and keys turned; relative: a learned bias by distance; none.",
    )
    max_positions: int = Field(1024, ge=1, description="learned: the longest sequence, in tokens.")
    tie_embeddings: Literal["none", "target", "all"] = Field(
        "target", description="Share word vectors: target with output; all: source too (needs tokenizer.joint)."
    )
    dropout: float = Field(0.1, ge=0.0, lt=1.0, description="On each sublayer's output and on the embeddings.")
    attention_dropout: float = Field(0.0, ge=0.0, lt=1.0, description="On the attention weights.")
    activation_dropout: float = Field(0.0, ge=0.0, lt=1.0, description="Inside the feed-forward network.")
    target_word_dropout: float = Field(
        0.0, ge=0.0, lt=1.0, description="Share of its own past words that the decoder does not see as it learns."
    )
    reader: BertSection | None = Field(
        None, description="Let a BERT read the source, in the place of the encoder layers (see `start`)."
    )

    @model_validator(mode="after")
    def _possible(self) -> TransformerSection:
        check_heads(self.width, self.heads, self.key_value_heads, self.position)
        if self.reader is not None and self.reader.width != self.width:
            raise ValueError(f"reader.width {self.reader.width} is not the decoder's width {self.width}")
        if self.reader is not None and self.tie_embeddings == "all":
            raise ValueError("tie_embeddings: all shares the source's word vectors, which belong to the reader: target")
        return self


class RecurrentLanguageSection(Section):
    """Recurrent language model: Mikolov et al. 2010 (rnn), Zaremba et al. 2014 (lstm)."""

    kind: Literal["recurrent-lm"] = Field("recurrent-lm", description="The family of models.")
    cell: Literal["rnn", "lstm", "gru"] = Field("lstm", description="The recurrent cell.")
    embedding: int = Field(256, ge=1, description="Width of the word vectors.")
    width: int = Field(512, ge=1, description="Width of the hidden state.")
    layers: int = Field(2, ge=1, description="Stacked recurrent layers.")
    tie_embeddings: bool = Field(
        True, description="Share the word vectors with the output layer (a projection bridges the widths)."
    )
    dropout: float = Field(
        0.2,
        ge=0.0,
        lt=1.0,
        description="On embeddings, between layers, before the softmax; one mask for all positions.",
    )
    word_dropout: float = Field(0.0, ge=0.0, lt=1.0, description="Share of the vocabulary unseen in each batch.")
    forget_bias: float = Field(1.0, description="Starting bias of the LSTM's forget gate (0 is PyTorch's own).")
    written_out: bool = Field(False, description="Compute the cells from their equations instead of the fused kernel.")


class TransformerLanguageSection(Section):
    """Decoder-only Transformer: Vaswani et al. 2017 without the encoder, Radford et al. 2019 for the rest."""

    kind: Literal["transformer-lm"] = Field("transformer-lm", description="The family of models.")
    width: int = Field(256, ge=1, description="Width of every hidden state (d_model).")
    heads: int = Field(4, ge=1, description="Attention heads; each is width / heads wide.")
    key_value_heads: int | None = Field(
        None, ge=1, description="Heads of keys and values, shared by groups of query heads; null: as many as `heads`."
    )
    layers: int = Field(4, ge=1, description="Blocks of causal self-attention and feed-forward network.")
    feed_forward: int = Field(1024, ge=1, description="Inner width of the feed-forward network.")
    activation: Activation = Field("gelu", description="Of the feed-forward network; swiglu adds a gate.")
    norm: Literal["pre", "post"] = Field("pre", description="Normalise before each sublayer, or after the sum.")
    norm_kind: Literal["layer", "rms"] = Field("layer", description="LayerNorm, or RMSNorm without mean and bias.")
    final_norm: bool | None = Field(None, description="Normalise after the last layer; null: with pre-norm only.")
    position: Position = Field("rotary", description="As in the translating Transformer.")
    max_positions: int = Field(1024, ge=1, description="learned: the longest text, in tokens.")
    tie_embeddings: bool = Field(True, description="Share the word vectors with the output layer.")
    dropout: float = Field(0.1, ge=0.0, lt=1.0, description="On each sublayer's output and on the embeddings.")
    attention_dropout: float = Field(0.0, ge=0.0, lt=1.0, description="On the attention weights.")
    activation_dropout: float = Field(0.0, ge=0.0, lt=1.0, description="Inside the feed-forward network.")
    word_dropout: float = Field(
        0.0, ge=0.0, lt=1.0, description="Share of the vocabulary unseen in each batch: read as <unk>."
    )

    @model_validator(mode="after")
    def _possible(self) -> TransformerLanguageSection:
        check_heads(self.width, self.heads, self.key_value_heads, self.position)
        return self


class BertSection(Section):
    """Encoder alone: Devlin et al. 2019. The defaults are a small model of that kind."""

    kind: Literal["bert"] = Field("bert", description="The family of models.")
    width: int = Field(256, ge=1, description="Width of every hidden state.")
    heads: int = Field(4, ge=1, description="Attention heads; each is width / heads wide.")
    key_value_heads: int | None = Field(
        None, ge=1, description="Heads of keys and values, shared by groups of query heads; null: as many as `heads`."
    )
    layers: int = Field(4, ge=1, description="Blocks of self-attention and feed-forward network.")
    feed_forward: int = Field(1024, ge=1, description="Inner width of the feed-forward network.")
    activation: Activation = Field("gelu", description="Of the feed-forward network; swiglu adds a gate.")
    norm: Literal["pre", "post"] = Field("post", description="Normalise before each sublayer, or after the sum.")
    norm_kind: Literal["layer", "rms"] = Field("layer", description="LayerNorm, or RMSNorm without mean and bias.")
    norm_epsilon: float = Field(1e-12, gt=0, description="What a norm adds to the variance.")
    final_norm: bool | None = Field(None, description="Normalise after the last layer; null: with pre-norm only.")
    position: Position = Field("learned", description="learned, as in the paper; or as in the translating Transformer.")
    max_positions: int = Field(512, ge=1, description="learned: the longest text, in tokens.")
    segments: int = Field(
        2, ge=0, description="Texts that a row may consist of, each with a vector; 0: no such vectors."
    )
    pooling: Literal["first", "mean"] = Field(
        "first", description="What stands for a text: tanh(W h + b) of its first token, as in the paper; or the mean."
    )
    pairs: Literal["together", "apart"] = Field(
        "together",
        description="Two texts: in one row, where each word sees both; or each by itself, and their vectors compared.",
    )
    dropout: float = Field(0.1, ge=0.0, lt=1.0, description="On each sublayer's output and on the embeddings.")
    attention_dropout: float = Field(0.1, ge=0.0, lt=1.0, description="On the attention weights.")
    activation_dropout: float = Field(0.0, ge=0.0, lt=1.0, description="Inside the feed-forward network.")

    @model_validator(mode="after")
    def _possible(self) -> BertSection:
        check_heads(self.width, self.heads, self.key_value_heads, self.position)
        return self


TransformerSection.model_rebuild()  # its reader is known by now; keys that are wrong there are explained, too


class RecurrentReaderSection(Section):
    """Recurrent layers that read a text both ways (Schuster and Paliwal 1997): what BERT is compared with."""

    kind: Literal["recurrent"] = Field("recurrent", description="The family of models.")
    cell: Literal["rnn", "lstm", "gru"] = Field("lstm", description="The recurrent cell.")
    embedding: int = Field(256, ge=1, description="Width of the word vectors.")
    width: int = Field(512, ge=2, description="Width of the hidden state, of both directions together.")
    layers: int = Field(2, ge=1, description="Stacked recurrent layers.")
    bidirectional: bool = Field(True, description="Read in both directions.")
    segments: int = Field(
        2, ge=0, description="Texts that a row may consist of, each with a vector; 0: no such vectors."
    )
    dropout: float = Field(0.3, ge=0.0, lt=1.0, description="On embeddings, between layers, and before the labels.")
    forget_bias: float = Field(1.0, description="Starting bias of the LSTM's forget gate (0 is PyTorch's own).")

    @model_validator(mode="after")
    def _possible(self) -> RecurrentReaderSection:
        if self.bidirectional and self.width % 2:
            raise ValueError(f"width {self.width} must be even when bidirectional is on (half for each direction)")
        return self


class ForecasterSection(Section):
    """A network that reads the last values and writes the next ones, all at once."""

    kind: Literal["forecaster"] = Field("forecaster", description="The family of models.")
    cell: Literal["rnn", "lstm", "gru", "transformer"] = Field("lstm", description="What reads the values.")
    width: int = Field(64, ge=1, description="Width of the hidden state.")
    layers: int = Field(1, ge=1, description="Stacked layers.")
    heads: int = Field(4, ge=1, description="transformer: attention heads; each is width / heads wide.")
    feed_forward: int = Field(256, ge=1, description="transformer: inner width of the feed-forward network.")
    dropout: float = Field(0.0, ge=0.0, lt=1.0, description="Between layers, and before the output layer.")
    normalise: Literal["none", "level", "scale"] = Field(
        "level",
        description="level: forecast the way from the last value; scale: and in units of the window's own spread, for "
        "series whose swings grow with their level; none: neither.",
    )
    highway: bool = Field(
        True,
        description="Add a linear map from the window to the forecast: it knows seasons and trends from the start.",
    )

    @model_validator(mode="after")
    def _possible(self) -> ForecasterSection:
        if self.cell == "transformer":
            check_heads(self.width, self.heads, None, "rotary")
        return self


def _two(value: object) -> object:
    """One number is the shortcut for a square."""
    return (value, value) if isinstance(value, int) and not isinstance(value, bool) else value


Side = Annotated[int, Field(ge=1, le=16_384)]
Sides = Annotated[tuple[Side, Side], BeforeValidator(_two)]


def _three(value: object) -> object:
    return (value, value, value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Level = Annotated[tuple[float, float, float], BeforeValidator(_three)]


class VitSection(Section):
    """Vision Transformer: an image as a sequence of patches (Dosovitskiy et al. 2021). With a convolutional stem and
    sequence pooling it is the Compact Convolutional Transformer (Hassani et al. 2021)."""

    kind: Literal["vit"] = Field("vit", description="The family of models.")
    image: Sides = Field((32, 32), description="Height and width of the images, in pixels; one number: a square.")
    channels: Literal[1, 3] = Field(3, description="3: colour; 1: greyscale.")
    mean: Level = Field((0.5, 0.5, 0.5), description="What is taken off each channel (values from 0 to 1).")
    deviation: Level = Field((0.5, 0.5, 0.5), description="What each channel is divided by then.")
    patch: Sides = Field((4, 4), description="Height and width of a patch; the image must be a multiple of it.")
    stem: Literal["patch", "convolution"] = Field(
        "patch", description="patch: each patch by itself, a linear map; convolution: 3×3 layers with pooling (CCT)."
    )
    stem_layers: int = Field(1, ge=1, le=6, description="convolution: layers, each of which halves the image.")
    stem_depth: int = Field(1, ge=1, le=6, description="convolution: 3×3 layers before each halving.")
    stem_norm: bool = Field(False, description="Normalise what the stem gives, before positions are added to it.")
    stem_width: int = Field(64, ge=1, description="convolution: channels between its layers.")
    stem_layer_norms: bool = Field(False, description="convolution: a GroupNorm (of 16 channels) behind each layer.")
    width: int = Field(192, ge=1, description="Width of every hidden state.")
    heads: int = Field(3, ge=1, description="Attention heads; each is width / heads wide.")
    key_value_heads: int | None = Field(
        None, ge=1, description="Heads of keys and values, shared by groups of query heads; null: as many as `heads`."
    )
    layers: int = Field(12, ge=1, description="Blocks of self-attention and feed-forward network.")
    feed_forward: int = Field(768, ge=1, description="Inner width of the feed-forward network.")
    activation: Activation = Field("gelu", description="Of the feed-forward network; swiglu adds a gate.")
    norm: Literal["pre", "post"] = Field("pre", description="Normalise before each sublayer, or after the sum.")
    norm_kind: Literal["layer", "rms"] = Field("layer", description="LayerNorm, or RMSNorm without mean and bias.")
    norm_epsilon: float = Field(1e-6, gt=0, description="What a norm adds to the variance.")
    final_norm: bool | None = Field(None, description="Normalise after the last layer; null: with pre-norm only.")
    position: Literal["learned", "sinusoidal", "none"] = Field(
        "learned", description="A vector for each place; sines of row and column; or none: patches are then a set."
    )
    antialias: bool = Field(True, description="Positions brought to another grid are smoothed where it is coarser.")
    pooling: Literal["class", "mean", "sequence"] = Field(
        "class",
        description="What stands for the image: a token of its own; the mean over patches; a weighted mean (CCT).",
    )
    pooled_norm: bool = Field(False, description="The last norm comes after the pooling instead of before it.")
    registers: int = Field(0, ge=0, le=64, description="Tokens of no patch, for what the model wants to note there.")
    layer_scale: float = Field(0.0, ge=0, description="Where the factor of each sublayer begins; 0: there is none.")
    stochastic_depth: float = Field(
        0.0, ge=0.0, lt=1.0, description="Share of images that pass the last layer by; the first none, rising between."
    )
    dropout: float = Field(0.0, ge=0.0, lt=1.0, description="On each sublayer's output and on the patches.")
    attention_dropout: float = Field(0.0, ge=0.0, lt=1.0, description="On the attention weights.")
    activation_dropout: float = Field(0.0, ge=0.0, lt=1.0, description="Inside the feed-forward network.")

    @model_validator(mode="after")
    def _possible(self) -> VitSection:
        check_heads(self.width, self.heads, self.key_value_heads, "none")
        if self.position == "sinusoidal" and self.width % 4:
            raise ValueError(f"sinusoidal positions have a sine and a cosine of row and column: width {self.width} % 4")
        if any(value <= 0 for value in self.deviation):
            raise ValueError("deviation: what channels are divided by must be more than 0")
        if self.pooled_norm and (self.final_norm is False or (self.norm == "post" and not self.final_norm)):
            raise ValueError("pooled_norm: there is no last norm (final_norm)")
        if self.stem_layer_norms and self.stem == "patch":
            raise ValueError(
                "stem_layer_norms: patches have no layers between which norms could be (stem: convolution)"
            )
        return self

    def must_be_cut(self) -> None:
        """An image must consist of whole patches. Not known before `start` has said how large they are."""
        if self.stem == "patch" and any(side % step for side, step in zip(self.image, self.patch, strict=True)):
            image, patch = ("×".join(map(str, sides)) for sides in (self.image, self.patch))
            raise ValueError(
                f"model: image {image} cannot be cut into patches of {patch}: both sides must be multiples"
            )

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return grid_of(self, self.image)

    @property
    def max_positions(self) -> int:
        return self.grid[0] * self.grid[1]


def grid_of(section: VitSection, image: tuple[int, int]) -> tuple[int, int]:
    """How many rows and columns of patches an image of another size has."""
    if section.stem == "patch":
        return image[0] // section.patch[0], image[1] // section.patch[1]
    rows, columns = image
    for _ in range(section.stem_layers):  # pooling over 3 with a step of 2 and a border of 1
        rows, columns = (rows + 1) // 2, (columns + 1) // 2
    return rows, columns


def check_heads(width: int, heads: int, key_value_heads: int | None, position: Position) -> None:
    """The numbers must divide each other; the messages say how."""
    if width % heads:
        raise ValueError(f"width {width} is not divisible by heads {heads}: each head takes an equal share")
    if key_value_heads is not None and heads % key_value_heads:
        raise ValueError(f"heads {heads} is not divisible by key_value_heads {key_value_heads}: groups are equal")
    if position == "rotary" and width // heads % 2:
        raise ValueError(f"rotary positions turn pairs: width / heads = {width // heads} must be even")
    if position.startswith("sinusoidal") and width % 2:
        raise ValueError(f"sinusoidal positions come in pairs of sine and cosine: width {width} must be even")
