"""The part of a recipe about pictures: what is done to them while a model learns, so that it never sees one twice."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from jumok.recipe.sections import Section


class Augmentation(Section):
    """What happens to the pictures of a training batch, each with draws of its own; nothing to those of validation."""

    crop: int = Field(
        0,
        ge=0,
        description="Pixels around a picture, out of which one of its own size is cut anywhere; 0: off.",
    )
    resized_crop: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="A part of the picture, enlarged to its size: the smallest share of the area it may have; 0: off.",
    )
    beyond: Literal["black", "mirror"] = Field(
        "black", description="What is beyond the border of pictures that are cropped or moved: black, or themselves."
    )
    flip: bool = Field(False, description="Half of the pictures are mirrored, left to right.")
    rand_augment: int = Field(
        0,
        ge=0,
        le=10,
        description="RandAugment: operations on each picture, of 14 (turned, sheared, moved, colours changed); 0: off.",
    )
    magnitude: float = Field(9.0, ge=0, le=10, description="How strong RandAugment's operations are: 0 to 10.")
    spread: float = Field(
        0.0, ge=0, le=10, description="Each picture's magnitude is drawn, from so much below `magnitude` up to it."
    )
    colour: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Brightness, contrast and saturation are multiplied by 1 minus to 1 plus this; 0: off.",
    )
    erase: float = Field(
        0.0, ge=0, le=1, description="Probability that a rectangle of the picture is covered with noise."
    )
    mixup: float = Field(
        0.0, ge=0, le=100, description="Two pictures blended, shares from Beta(α, α) with this α (Mixup); 0: off."
    )
    cutmix: float = Field(
        0.0,
        ge=0,
        le=100,
        description="A rectangle of another picture pasted in, its share from Beta(α, α) with this α (CutMix); 0: off.",
    )
    mix: float = Field(
        1.0,
        ge=0,
        le=1,
        description="Probability that a picture is mixed at all; with both mixup and cutmix, each half the time.",
    )

    @model_validator(mode="after")
    def _one_crop(self) -> Augmentation:
        if self.crop and self.resized_crop:
            raise ValueError(
                f"crop {self.crop} and resized_crop {self.resized_crop:g} both cut a part out of the picture: "
                "set one of them to 0"
            )
        return self

    @property
    def changes(self) -> bool:
        """Whether pictures are changed, each by itself."""
        return bool(self.crop or self.resized_crop or self.flip or self.rand_augment or self.colour or self.erase)

    @property
    def mixes(self) -> bool:
        """Whether pictures, and their labels with them, are mixed."""
        return bool(self.mix and (self.mixup or self.cutmix))

    def must_fit(self, height: int, width: int) -> None:
        """ValueError where pictures of this size could be cut out of the black around them altogether."""
        if self.crop >= min(height, width):
            raise ValueError(
                f"augment.crop {self.crop}: pictures of {height}×{width} could be all black; "
                f"an eighth of the side is usual ({max(1, min(height, width) // 8)})"
            )
