"""The glyphs of an atlas where a model learns: their masks, and the measures that put them side by side."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from jumok.data.rendering.glyphs import CAPITALS

if TYPE_CHECKING:
    from jumok.data.rendering.atlas import Atlas


@dataclass(frozen=True)
class Line:
    """Letters side by side, in pixels of the atlas: x from the first pen position, y down from the cells' top."""

    glyphs: Tensor  # (B, L), 0 after the end
    starts: Tensor  # (B, L) where the pen stands; after the end: far to the right
    lifts: Tensor  # (B, L) how far a letter is moved down
    left: Tensor  # (B,) the box of all ink
    right: Tensor
    top: Tensor
    bottom: Tensor
    sizes: Tensor | None = None  # (B, L) how large each letter is, where not all are 1; they stand on one line

    def rows(self, rows: Tensor) -> Line:
        parts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return Line(**{name: part.index_select(0, rows) for name, part in parts.items() if part is not None})


FAR = 1e6  # no letter stands there
MOST_COUNTED = 32  # letters of a line
EVEN = 0.88  # of a capital's height, at least: o has 0.8 of it


class GlyphTable(nn.Module):
    """Masks and measures of all glyphs, as buffers: they go where the model goes, and are no part of a checkpoint."""

    masks: Tensor  # (N, CH, CW), uint8
    measures: Tensor  # (N, 5): advance, left, right, top, bottom

    def __init__(self, atlas: Atlas, em: int) -> None:
        super().__init__()
        self.pen, self.baseline = atlas.pen, atlas.baseline
        self.em = em
        with warnings.catch_warnings():  # a memory map that cannot be written to: nobody will
            warnings.simplefilter("ignore", UserWarning)
            self.register_buffer("masks", torch.from_numpy(atlas.masks), persistent=False)
        columns = (atlas.advance, atlas.left, atlas.right, atlas.top, atlas.bottom)
        measures = torch.stack([torch.from_numpy(each.astype("float32")) for each in columns], dim=1)
        self.register_buffer("measures", measures, persistent=False)

    def lay_out(self, glyphs_BL: Tensor, tracking_B: Tensor, lifts_BL: Tensor, sizes_BL: Tensor | None = None) -> Line:
        """`tracking`: how much wider than usual each letter is."""
        there_BL = glyphs_BL > 0
        advance_BL, left_BL, right_BL, top_BL, bottom_BL = self._measured(glyphs_BL, sizes_BL)
        widths_BL = torch.where(there_BL, advance_BL + tracking_B[:, None], 0)
        starts_BL = widths_BL.cumsum(dim=1) - widths_BL
        inked_BL = there_BL & (bottom_BL > top_BL)  # a space has none
        none_B = ~inked_BL.any(dim=1)

        def edge(values_BL: Tensor, least: bool, of_none: float) -> Tensor:
            far = FAR if least else -FAR
            found_BL = torch.where(inked_BL, values_BL, far)
            found_B = found_BL.amin(dim=1) if least else found_BL.amax(dim=1)
            return torch.where(none_B, of_none, found_B)

        return Line(
            glyphs_BL,
            torch.where(there_BL, starts_BL, FAR),
            lifts_BL,
            edge(starts_BL + left_BL - self.pen, True, 0.0),
            edge(starts_BL + right_BL - self.pen, False, 2.0 * self.em),
            edge(top_BL + lifts_BL, True, self.baseline - 0.7 * self.em),
            edge(bottom_BL + lifts_BL, False, float(self.baseline)),
            sizes_BL,
        )

    def _measured(self, glyphs_BL: Tensor, sizes_BL: Tensor | None) -> tuple[Tensor, ...]:
        """Advance, left, right, top and bottom of letters of these sizes."""
        found = self.measures[glyphs_BL].unbind(dim=-1)
        if sizes_BL is None:
            return found
        origins = (0, self.pen, self.pen, self.baseline, self.baseline)
        return tuple(origin + (each_BL - origin) * sizes_BL for origin, each_BL in zip(origins, found, strict=True))

    def middles(self, line: Line) -> tuple[Tensor, Tensor]:
        """Of each letter, (B, L): x and y."""
        advance_BL, _, _, top_BL, bottom_BL = self._measured(line.glyphs, line.sizes)
        return line.starts.clamp(max=1e4) + advance_BL / 2, (top_BL + bottom_BL) / 2 + line.lifts

    def capitals(self, glyphs_BL: Tensor) -> Tensor:
        """Whether all letters reach about as high as capitals, which are of one height in all faces, (B,)."""
        _, _, _, top_BL, bottom_BL = self.measures[glyphs_BL].unbind(dim=-1)
        inked_BL = (glyphs_BL > 0) & (bottom_BL > top_BL)
        reach_BL = torch.where(inked_BL, self.baseline - top_BL, FAR)
        return inked_BL.any(dim=1) & (reach_BL.amin(dim=1) > EVEN * CAPITALS * self.em)

    def coverage(self, line: Line, x_BP: Tensor, y_BP: Tensor) -> Tensor:
        """How much ink there is at points of the line: (B, P), from 0 to 1.

        At most two letters reach a point: the one whose pen stands before it, and its neighbour on the nearer side
        (slanted letters lean over their edges). The darker of the two is taken.
        """
        last = line.glyphs.size(1) - 1
        before_BP = (_begun(line.starts, x_BP) - 1).clamp_(0, last)  # small numbers: places of letters are few
        own_BP = before_BP.long()
        begin_BP = line.starts.gather(1, own_BP)
        following_BP = line.starts.gather(1, (own_BP + 1).clamp_(max=last))
        nearer_BP = (x_BP - begin_BP < (following_BP - begin_BP) / 2).to(before_BP.dtype)  # its beginning than its end
        other_BP = (before_BP + 1 - 2 * nearer_BP).clamp_(0, last).long()
        own, other = (self._ink(line, each_BP, x_BP, y_BP) for each_BP in (own_BP, other_BP))
        return torch.maximum(own, other)

    def _ink(self, line: Line, which_BP: Tensor, x_BP: Tensor, y_BP: Tensor) -> Tensor:
        """Of one letter at each point, between its mask's four nearest pixels."""
        height, width = self.masks.shape[1:]
        cell_BP = (line.glyphs * (height * width)).gather(1, which_BP)
        across_BP, down_BP = x_BP - line.starts.gather(1, which_BP), y_BP - line.lifts.gather(1, which_BP)
        if line.sizes is not None:  # a smaller letter is its mask, seen from farther away
            size_BP = line.sizes.gather(1, which_BP)
            across_BP, down_BP = across_BP / size_BP, self.baseline + (down_BP - self.baseline) / size_BP
        column_BP, row_BP = across_BP + (self.pen - 0.5), down_BP - 0.5
        inside_BP = (column_BP > -1) & (column_BP < width) & (row_BP > -1) & (row_BP < height)
        column_BP, row_BP = column_BP.clamp_(0, width - 1.001), row_BP.clamp_(0, height - 1.001)
        left_BP, above_BP = column_BP.floor(), row_BP.floor()
        across_BP, down_BP = column_BP - left_BP, row_BP - above_BP
        place_P = ((above_BP * width + left_BP).long() + cell_BP).view(-1)
        flat = self.masks.view(-1)

        def at(offset: int) -> Tensor:
            # on a CPU a fifth of the time of flat[place_P + offset]
            return flat[offset:].index_select(0, place_P).view(x_BP.shape).float()

        above = torch.lerp(at(0), at(1), across_BP)
        below = torch.lerp(at(width), at(width + 1), across_BP)
        return torch.lerp(above, below, down_BP) * inside_BP / 255


def _begun(starts_BL: Tensor, x_BP: Tensor) -> Tensor:
    """How many letters begin at or before each point, (B, P). Letters are few: on a CPU counting them, all points at
    once, takes a quarter of the time of a search for each point."""
    if x_BP.is_cuda or starts_BL.size(1) > MOST_COUNTED:
        return torch.searchsorted(starts_BL, x_BP.contiguous(), right=True, out_int32=True)
    count_BP = torch.zeros(x_BP.shape, dtype=torch.int16, device=x_BP.device)
    for start_B in starts_BL.unbind(1):
        count_BP += x_BP >= start_B[:, None]
    return count_BP
