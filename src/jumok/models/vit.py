"""The Vision Transformer (Dosovitskiy et al. 2021): an image as a sequence of patches.

    h = encoder([c; r_1 … r_R; x_1 E + P_1; …; x_N E + P_N])        y = W pool(norm(h)) + b

c is a token that belongs to no patch and stands for the image in the end; the mean over patches can do that, too, or a
mean whose weights are learned (sequence pooling, Hassani et al. 2021). Registers r (Darcet et al. 2024) are tokens of
no patch where the model may note what it likes. The class token and registers need no positions: there is one of each.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from jumok.errors import BadInput
from jumok.layers.block import build_norm
from jumok.layers.embedding import Convolutions, Patches
from jumok.layers.linear import for_products, linear
from jumok.layers.position import Grid, SinusoidalGrid
from jumok.layers.stack import Stack
from jumok.models.bert import SPREAD
from jumok.models.native_encoder import encoded
from jumok.recipe import VitSection
from jumok.recipe.models import grid_of


class Vit(nn.Module):
    """Looks at images: `forward` gives a vector for each token (class, registers, patches), `pooled` one for all."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, section: VitSection) -> None:
        super().__init__()
        section.must_be_cut()
        self.section = section
        # values from 0 to 255 come in; where they begin and how far they spread follows from the recipe
        for name, value in (("mean", section.mean), ("deviation", section.deviation)):
            level = torch.tensor(value[: section.channels], dtype=torch.float64) * 255
            self.register_buffer(name, level.float()[:, None, None], persistent=False)
        self.stem: Patches | Convolutions
        if section.stem == "patch":
            self.stem = Patches(section.channels, section.patch, section.width)
        else:
            layers, depth, inner = section.stem_layers, section.stem_depth, section.stem_width
            normalised = section.stem_layer_norms
            self.stem = Convolutions(section.channels, layers, section.width, depth, inner, normalised)
        self.stem_norm = build_norm(section) if section.stem_norm else nn.Identity()
        self.positions: Grid | SinusoidalGrid | None = None
        if section.position == "learned":
            self.positions = Grid(section.grid, section.width, section.antialias)
        elif section.position == "sinusoidal":
            self.positions = SinusoidalGrid(section.width)
        self.added = section.registers + (section.pooling == "class")  # tokens of no patch, before all others
        self.tokens = nn.Parameter(torch.empty(self.added, section.width)) if self.added else None
        # the norm after the pooling is the head's
        final = section.model_copy(update={"final_norm": False}) if section.pooled_norm else section
        self.encoder = Stack(final.model_copy(update={"position": "none"}), section.layers, "self", "encoder")
        if self.tokens is not None:
            nn.init.normal_(self.tokens, std=SPREAD)

    def grid(self, images: Tensor) -> tuple[int, int]:
        """Rows and columns of patches of these images."""
        section, sides = self.section, (images.size(-2), images.size(-1))
        if images.size(-3) != section.channels:
            raise BadInput(f"images of {images.size(-3)} channels, and this model looks at {section.channels}")
        if section.stem == "patch" and any(side % step for side, step in zip(sides, section.patch, strict=True)):
            raise BadInput(
                f"images of {sides[0]}×{sides[1]} cannot be cut into patches of "
                f"{section.patch[0]}×{section.patch[1]}: both sides must be multiples"
            )
        return grid_of(section, sides)

    def normalised(self, images_BCHW: Tensor) -> Tensor:
        """From 0 … 255 to what the model was made for."""
        return (images_BCHW.float() - self.mean) / self.deviation

    def embedded(self, images_BCHW: Tensor) -> Tensor:
        """(B, T, D): what the encoder reads."""
        grid = self.grid(images_BCHW)
        patches_BHWD = self.stem_norm(self.stem(for_products(self.normalised(images_BCHW))))
        if isinstance(self.positions, Grid):
            patches_BHWD = patches_BHWD + self.positions(grid)
        elif self.positions is not None:
            patches_BHWD = patches_BHWD + self.positions(grid, patches_BHWD)
        patches_BTD = patches_BHWD.flatten(1, 2)
        if self.tokens is None:
            return patches_BTD
        return torch.cat([self.tokens.expand(len(patches_BTD), -1, -1).to(patches_BTD.dtype), patches_BTD], dim=1)

    def forward(self, images_BCHW: Tensor) -> Tensor:
        """(B, T, D) of images (B, C, H, W) with values from 0 to 255: the class token, registers, patches by rows."""
        return encoded(self.encoder, self.embedded(images_BCHW))


class Looker(nn.Module):
    """A Vit, and how its tokens become one: what can be asked where it looks (inspect/vision.py)."""

    section: VitSection
    reader: Vit
    weigh: nn.Linear | None  # of sequence pooling


class ImageLabeller(Looker):
    """Scores of labels for images, W dropout(pool(h)) + b: (B, L)."""

    def __init__(self, section: VitSection, labels: int) -> None:
        super().__init__()
        self.section = section
        self.reader = Vit(section)
        self.replays = True  # all shapes repeat
        self.weigh = linear(section.width, 1) if section.pooling == "sequence" else None
        kind = nn.LayerNorm if section.norm_kind == "layer" else nn.RMSNorm
        self.norm = kind(section.width, eps=section.norm_epsilon) if section.pooled_norm else nn.Identity()
        self.dropout = nn.Dropout(section.dropout)
        self.scores = linear(section.width, labels)
        nn.init.normal_(self.scores.weight, std=SPREAD)

    def pooled(self, hidden_BTD: Tensor) -> Tensor:
        """What stands for the image: (B, D). Sequence pooling: Σ_t softmax(w · h_t + b) h_t."""
        if self.section.pooling == "class":
            return self.norm(hidden_BTD[:, 0])
        patches_BTD = hidden_BTD[:, self.reader.added :]
        if self.weigh is None:
            return self.norm(patches_BTD.mean(dim=1))
        weights_BT1 = torch.softmax(self.weigh(for_products(patches_BTD)).float(), dim=1)
        return self.norm((weights_BT1 * patches_BTD).sum(dim=1))

    def forward(self, images_BCHW: Tensor) -> Tensor:
        scores: Tensor = self.scores(self.dropout(for_products(self.pooled(self.reader(images_BCHW)))))
        return scores
