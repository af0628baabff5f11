"""Which model a recipe describes: one section for each `model.kind`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, Tag

from jumok.recipe.models import (
    BertSection,
    ForecasterSection,
    RecurrentLanguageSection,
    RecurrentReaderSection,
    Seq2SeqSection,
    TransformerLanguageSection,
    TransformerSection,
    VitSection,
)
from jumok.recipe.recognition import RecognizerSection


def model_kind(value: object) -> str | None:
    """Which section a `model:` mapping is; without a kind, the recurrent encoder–decoder."""
    return value.get("kind", "seq2seq") if isinstance(value, dict) else getattr(value, "kind", None)


# One of these by `model.kind`; a new family adds its section here.
ModelSection = Annotated[
    Annotated[Seq2SeqSection, Tag("seq2seq")]
    | Annotated[TransformerSection, Tag("transformer")]
    | Annotated[RecurrentLanguageSection, Tag("recurrent-lm")]
    | Annotated[TransformerLanguageSection, Tag("transformer-lm")]
    | Annotated[BertSection, Tag("bert")]
    | Annotated[RecurrentReaderSection, Tag("recurrent")]
    | Annotated[ForecasterSection, Tag("forecaster")]
    | Annotated[VitSection, Tag("vit")]
    | Annotated[RecognizerSection, Tag("recognizer")],
    Discriminator(model_kind),
]
