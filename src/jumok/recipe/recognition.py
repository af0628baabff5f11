"""The parts of a recipe about reading words in pictures: the characters, what is rendered, the network."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from jumok.recipe.models import Sides, VitSection, check_heads
from jumok.recipe.sections import Section

Share = Annotated[float, Field(ge=0, le=1)]
SetName = Literal["digits", "latin", "punctuation", "latin-1", "hangul"]


class CharsetSection(Section):
    """The characters that a reader knows. What is not among them is reported before training."""

    sets: tuple[SetName, ...] = Field(
        ("digits", "latin", "punctuation"),
        description="digits; latin: a–z, A–Z; punctuation: that of ASCII; latin-1: accented letters and signs; "
        "hangul: all 11,172 syllables.",
    )
    extra: str = Field("", description="Further characters, one after the other.")
    space: bool = Field(False, description="Whether the space is a character to be read.")
    hangul: Literal["syllables", "jamo"] = Field(
        "jamo", description="syllables: a class for each; jamo: first, middle and last letter, 19 + 21 + 28 classes."
    )

    outside: Literal["stop", "skip"] = Field(
        "stop", description="Pictures whose text has other characters, or is too long: an error, or left out, told."
    )

    @model_validator(mode="after")
    def _some(self) -> CharsetSection:
        if not self.sets and not self.extra:
            raise ValueError("charset: no characters at all; name some (sets: [digits, latin])")
        return self


class Written(Section):
    """What rendered words are made of: how often each kind comes, relative to the others."""

    words: float = Field(1.0, ge=0, description="Words of the lists (`render.words`), each as often as any other.")
    frequent: float = Field(0.0, ge=0, description="Words of the lists, the first ones more often (Zipf's law).")
    letters: float = Field(0.2, ge=0, description="Letters and digits in any order.")
    numbers: float = Field(0.2, ge=0, description="Numbers, prices, dates, times, telephone numbers.")
    syllables: float = Field(0.0, ge=0, description="Hangul syllables in any order, each of the 11,172 as often.")
    empty: float = Field(0.01, ge=0, description="Nothing: a ground without letters.")

    @model_validator(mode="after")
    def _some(self) -> Written:
        if not self.words + self.frequent + self.letters + self.numbers + self.syllables:
            raise ValueError("render.texts: nothing would be written; give one of the kinds a share above 0")
        return self


class Rendering(Section):
    """How pictures of words are made while a model learns; nothing of this is done to pictures of validation files."""

    fonts: tuple[str, ...] = Field(
        (), description="Font files and folders; none: all that the machine and installed packages have."
    )
    held_out_fonts: Share = Field(
        0.1, description="Share of the font families that are never trained with, but validated and tested."
    )
    relatives: Literal["letters", "names"] = Field(
        "letters",
        description="Which families are kept back together: letters: those with alike names or letters, and validation "
        "and the test share none; names: as in runs of before, by names alone, and they share all.",
    )
    words: tuple[str, ...] = Field(
        (), description="Files of words or text (also .gz); none: the words of the embedded grammar."
    )
    held_out_words: Share = Field(0.02, description="Share of the words that are never trained with.")
    texts: Written = Field(default_factory=Written, description="What is written, in shares.")
    case: tuple[float, float, float, float] = Field(
        (0.35, 0.25, 0.3, 0.1), description="Shares of words in lower case, Title Case, UPPER CASE and aNy cAsE."
    )
    punctuation: Share = Field(0.1, description="Share of words with a mark before, after or around them.")
    size: int = Field(32, ge=8, le=128, description="Height of an em in pixels, of the glyphs that are kept.")
    finer: int = Field(
        2, ge=1, le=4, description="Points looked at for each pixel, down and across: letters of long words are narrow."
    )
    colour: Share = Field(
        1.0, description="Share of pictures with colours, gradients and textures; the rest is black on white."
    )
    lettering: Share = Field(
        0.0,
        description="Share of words whose letters stand far apart; as many, of those in capitals, have a larger first "
        "letter; half as many are drawn as the edges of their letters.",
    )
    outline: Share = Field(0.15, description="Share of words with an outline; as many have a shadow.")
    curve: float = Field(1.0, ge=0, description="How far lines bend; 0: straight.")
    perspective: float = Field(1.0, ge=0, description="How far words are turned, sheared and seen from the side.")
    blur: float = Field(1.0, ge=0, description="How far pictures are out of focus, moved, and of low resolution.")
    noise: float = Field(1.0, ge=0, description="How much noise and compression there is.")
    clutter: Share = Field(0.15, description="Share of pictures with parts of other lines, strokes or edges.")

    @model_validator(mode="after")
    def _cases(self) -> Rendering:
        if min(self.case) < 0 or not sum(self.case):
            raise ValueError("render.case: four shares, none below 0 and not all 0")
        return self


NAMED = {  # the models of the line, by encoder and decoder
    ("recurrent", "ctc"): "crnn", ("recurrent", "recurrent"): "attn-lstm", ("recurrent", "transformer"): "cnn-decoder",
    ("recurrent", "permuted"): "cnn-permuted", ("vit", "ctc"): "vit-ctc", ("vit", "recurrent"): "vit-lstm",
    ("vit", "transformer"): "vit-decoder", ("vit", "permuted"): "permuted",
}  # fmt: skip


class RecognizerSection(Section):
    """Reads the word in a picture: what looks at it (`encoder`), and what writes it down (`decoder`)."""

    kind: Literal["recognizer"] = Field("recognizer", description="The family of models.")
    image: Sides = Field((32, 128), description="Height and width that every picture is brought to.")
    channels: Literal[1, 3] = Field(3, description="3: colour; 1: greyscale.")
    encoder: Literal["recurrent", "vit"] = Field(
        "vit", description="recurrent: convolutions, then LSTMs over the columns (CRNN); vit: a Vision Transformer."
    )
    decoder: Literal["ctc", "recurrent", "transformer", "permuted"] = Field(
        "permuted",
        description="ctc: a character or a blank in each column; recurrent: an LSTM with attention; transformer: "
        "left to right; permuted: characters in any order, then looked at again (PARSeq).",
    )
    stem: Literal["patch", "convolution"] = Field(
        "convolution", description="vit: how patches are made: a linear map each, or 3×3 convolutions before it."
    )
    stem_depth: int = Field(
        1, ge=1, le=8, description="vit, convolution: layers at each size that the picture comes down to."
    )
    stem_width: int = Field(
        0,
        ge=0,
        description="vit, convolution: channels of the first size, which double up to the width; 0: the "
        "width, halved for each size.",
    )
    patch: Sides = Field((8, 4), description="vit: height and width of a patch; the image must be a multiple of it.")
    width: int = Field(192, ge=1, description="Width of every hidden state.")
    heads: int = Field(3, ge=1, description="vit: attention heads; each is width / heads wide.")
    layers: int = Field(8, ge=1, description="vit: blocks; recurrent: LSTM layers.")
    feed_forward: int = Field(768, ge=1, description="Inner width of the feed-forward networks.")
    decoder_layers: int = Field(1, ge=1, description="Layers of the decoder (not of ctc).")
    decoder_heads: int = Field(6, ge=1, description="Attention heads of a transformer or permuted decoder.")
    max_length: int = Field(25, ge=1, le=200, description="Most characters of a word.")
    permutations: int = Field(6, ge=1, le=24, description="permuted: orders that are learned at once.")
    refinements: int = Field(1, ge=0, le=5, description="permuted: how often a reading is looked at again.")
    ctc: float = Field(0.2, ge=0, le=1, description="permuted: weight of the auxiliary CTC head; 0: there is none.")
    dropout: float = Field(0.1, ge=0.0, lt=1.0, description="On each sublayer's output.")

    @property
    def columns(self) -> int:
        """Places that CTC can write to, one beside the other."""
        return self.image[1] // self.patch[1] if self.encoder == "vit" else self.image[1] // 4

    @property
    def writes_columns(self) -> bool:
        """Whether there is a CTC head, alone or beside a decoder."""
        return self.decoder == "ctc" or (self.decoder == "permuted" and self.ctc > 0)

    @model_validator(mode="after")
    def _possible(self) -> RecognizerSection:
        if self.encoder == "vit":
            check_heads(self.width, self.heads, None, "none")
        if self.decoder in ("transformer", "permuted") and self.width % self.decoder_heads:
            raise ValueError(f"width {self.width} is not divisible by decoder_heads {self.decoder_heads}")
        if self.encoder == "vit" and any(side % step for side, step in zip(self.image, self.patch, strict=True)):
            image, patch = ("×".join(map(str, sides)) for sides in (self.image, self.patch))
            raise ValueError(f"model: image {image} cannot be cut into patches of {patch}: both must be multiples")
        if self.encoder == "recurrent" and (self.image[0] % 16 or self.image[1] % 4):
            raise ValueError("model: image of a recurrent encoder: the height must be a multiple of 16, the width of 4")
        if self.encoder == "recurrent" and self.width % 2:
            raise ValueError(f"model: width {self.width} must be even: two directions share it")
        if self.writes_columns and self.columns < self.max_length:
            head = ", or no CTC head (ctc: 0)" * (self.decoder == "permuted")
            raise ValueError(
                f"model: {self.columns} columns cannot hold max_length {self.max_length} characters: "
                f"a wider image or narrower patches{head}"
            )
        return self

    @property
    def vit(self) -> VitSection:
        """The encoder's blocks, as the Vision Transformer names them."""
        return VitSection(
            image=self.image,
            channels=self.channels,
            patch=self.patch,
            width=self.width,
            heads=self.heads if self.encoder == "vit" else 1,
            layers=self.layers,
            feed_forward=self.feed_forward,
            position="sinusoidal" if self.width % 4 == 0 else "learned",
            pooling="mean",
            dropout=self.dropout,
        )
