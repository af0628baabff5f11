"""Pictures of words, composed where the model learns: the CPU has drawn each glyph once, everything else is a batch of
tensors.

    glyphs → a line → coverage through a camera → ink on a ground → what a camera and a file do to it

All draws come from the device's own generator, which the training loop sets for each batch: the same update sees the
same pictures. No shape depends on a draw and nothing waits for one, so an update can be recorded with all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.data.images.augment_draws import some
from jumok.data.rendering.degrade import QUANTA, blur, coarsen, compress, noise
from jumok.data.rendering.geometry import Camera, View
from jumok.data.rendering.painting import colours, edges, gradient, shown, strokes, texture, uniform
from jumok.data.rendering.table import GlyphTable, Line
from jumok.recipe.recognition import Rendering

if TYPE_CHECKING:
    from jumok.data.rendering.atlas import Atlas

LINE_DISTANCE = 1.15  # ems, to the next line of a text
MOST_TRACKING = 1.0  # ems between letters that stand far apart
SMALL_CAPITALS = (0.78, 0.92)  # their size, of an initial's; those of small letters are smaller, or COS would be Cos
THICK = 0.1  # share of the ink that is more than a pixel from an edge: with less, edges alone would be bolder letters


@dataclass(frozen=True)
class Pictures:
    images: Tensor  # (B, C, H, W), uint8
    centres: Tensor  # (B, L, 2): the middle of each letter, x and y, from 0 to 1
    aspects: Tensor  # (B,): width by height of what each shows, were it not squashed to the size of all


class Renderer(nn.Module):
    """Glyph numbers (B, L) to pictures of `size`."""

    quanta: Tensor

    def __init__(self, atlas: Atlas, section: Rendering, size: tuple[int, int], channels: int) -> None:
        super().__init__()
        self.table = GlyphTable(atlas, section.size)
        self.section, self.size, self.channels = section, size, channels
        # made here and not where it is used: a recorded update may not bring anything from the CPU
        self.register_buffer("quanta", torch.tensor(QUANTA, dtype=torch.float32), persistent=False)

    @torch.no_grad()
    def forward(self, glyphs_BL: Tensor) -> Pictures:
        section = self.section
        line = self._line(glyphs_BL)
        camera = Camera(line, self._view(line))
        ink_B1HW = self._coverage(line, camera)
        image_BCHW = self._painted(ink_B1HW)
        if section.blur:
            image_BCHW = coarsen(blur(image_BCHW, section.blur), min(0.5, 0.25 * section.blur))
        if section.noise:
            image_BCHW = compress(noise(image_BCHW, section.noise), min(0.9, 0.4 * section.noise), self.quanta)
        images = image_BCHW.round().clamp(0, 255).to(torch.uint8)
        return Pictures(images, self._centres(line, camera), camera.wide / camera.high)

    # ------------------------------------------------------------ where the letters stand

    def _line(self, glyphs_BL: Tensor) -> Line:
        count, device, em = len(glyphs_BL), glyphs_BL.device, self.table.em
        drawn = torch.rand(3, count, device=device)
        tracking_B = em * torch.where(drawn[0] < 0.2, 0.35 * drawn[1], 0.06 * drawn[1] - 0.03)
        tumbling_B1 = (drawn[2] < 0.05 * min(1.0, self.section.curve)).float()[:, None]
        lifts_BL = tumbling_B1 * 0.1 * em * torch.randn(glyphs_BL.shape, device=device).clamp(-2, 2)
        sizes_BL = None
        if self.section.lettering:
            lettered = torch.rand(3, count, device=device)
            far_B = lettered[0] < self.section.lettering
            tracking_B = torch.where(far_B, em * MOST_TRACKING * lettered[2], tracking_B)
            small_B = (lettered[1] < self.section.lettering) & self.table.capitals(glyphs_BL)
            sizes_BL = torch.ones(glyphs_BL.shape, device=device)
            sizes_BL[:, 1:] = torch.where(small_B, uniform(count, *SMALL_CAPITALS, device), 1)[:, None]
        return self.table.lay_out(glyphs_BL, tracking_B, lifts_BL, sizes_BL)

    def _view(self, line: Line) -> View:
        count, device, section = len(line.left), line.left.device, self.section
        on_arc_B = (torch.rand(count, device=device) < 0.15).float()
        bend_B = section.curve * (
            0.08 * torch.randn(count, device=device) + on_arc_B * uniform(count, -1.6, 1.6, device)
        )
        bend_B = torch.where(bend_B.abs() < 0.01, 0.01, bend_B).clamp(-2.5, 2.5)
        turned = torch.randn(4, count, device=device).clamp(-3, 3)
        heavy_B = torch.where(torch.rand(count, device=device) < 0.2, 3.0, 1.0)  # a few are turned far
        angle_B = section.perspective * 0.04 * turned[0] * heavy_B
        # a word on a round sign may be anywhere on it: half of them stand as they would at its top or bottom
        aside_B = on_arc_B * (torch.rand(count, device=device) - 0.5).clamp(min=0) * uniform(count, -1.4, 1.4, device)
        angle_B = angle_B + min(1.0, section.curve) * aside_B
        side, below = (section.perspective * 0.08 * turned[row] * heavy_B for row in (2, 3))
        shear_B = section.perspective * 0.15 * turned[1]
        tight = torch.rand(count, 4, device=device)
        margins_B4 = -0.02 + 0.32 * tight**2  # most crops are tight, a few cut into the letters
        return View(bend_B, angle_B, shear_B, side.clamp(-0.4, 0.4), below.clamp(-0.3, 0.3), margins_B4)

    def _coverage(self, line: Line, camera: Camera) -> Tensor:
        """How much ink there is on each pixel: (B, 1, H, W); and on some pictures a part of another line."""
        high, wide = (side * self.section.finer for side in self.size)
        device = line.left.device
        y_H = (torch.arange(high, device=device) + 0.5) / high
        x_W = (torch.arange(wide, device=device) + 0.5) / wide
        count = len(line.left)
        x_BP = x_W.expand(high, wide).reshape(1, -1).expand(count, -1)
        y_BP = y_H[:, None].expand(high, wide).reshape(1, -1).expand(count, -1)
        x_BP, y_BP = camera.to_line(x_BP, y_BP)
        ink_BP = self.table.coverage(line, x_BP, y_BP)
        if self.section.clutter:
            ink_BP = self._with_neighbours(line, x_BP, y_BP, ink_BP)
        ink_B1HW = ink_BP.view(count, 1, high, wide)
        weight_B = 0.25 * torch.randn(count, device=device).clamp(-1.5, 1.5)  # thinner, bolder
        ink_B1HW = ((ink_B1HW - 0.5) * 1.2 + 0.5 + weight_B[:, None, None, None] * ink_B1HW).clamp(0, 1)
        return F.avg_pool2d(ink_B1HW, self.section.finer) if self.section.finer > 1 else ink_B1HW

    def _with_neighbours(self, line: Line, x_BP: Tensor, y_BP: Tensor, ink_BP: Tensor) -> Tensor:
        """What else is written above, below, to the left or to the right of some words: as much of it as the margin
        shows."""
        device, em = ink_BP.device, self.table.em
        rows, chosen = some(len(ink_BP), self.section.clutter, device)
        side_R = (4 * torch.rand(len(rows), device=device)).long()
        own, another = line.rows(rows), line.rows(rows.roll(1))
        gap_R = em * uniform(len(rows), 0.2, 0.6, device)
        right_R, left_R = own.right + gap_R - another.left, own.left - gap_R - another.right
        away_R = torch.where(side_R == 0, right_R, torch.where(side_R == 1, left_R, own.left - another.left))
        down_R = LINE_DISTANCE * em * torch.where(side_R < 2, 0.0, 2.0 * side_R - 5)
        more_RP = self.table.coverage(another, x_BP[rows] - away_R[:, None], y_BP[rows] - down_R[:, None])
        both_RP = torch.maximum(ink_BP[rows], torch.where(chosen[:, None], more_RP, 0))
        return ink_BP.index_copy(0, rows, both_RP)

    def _centres(self, line: Line, camera: Camera) -> Tensor:
        return torch.stack(camera.to_picture(*self.table.middles(line)), dim=-1)

    # ------------------------------------------------------------ what they look like

    def _painted(self, ink_B1HW: Tensor) -> Tensor:
        section, size, channels = self.section, self.size, self.channels
        count, device = len(ink_B1HW), ink_B1HW.device
        ink_B3, ground_B3 = colours(count, device)
        coloured_B = (torch.rand(count, device=device) < section.colour).float()  # the rest: black on white
        ink_B3 = ink_B3 * coloured_B[:, None]
        ground_B3 = 255 + (ground_B3 - 255) * coloured_B[:, None]
        ground = gradient(ground_B3, coloured_B, size, channels)
        rough_B = coloured_B * 30 * torch.rand(count, device=device) ** 2
        ground = ground + rough_B[:, None, None, None] * texture(count, size, device)
        ink = gradient(ink_B3, coloured_B, size, channels)
        if section.clutter:
            rows, chosen = some(count, section.clutter, device)
            part = ground.index_select(0, rows)
            ground = ground.index_copy(0, rows, torch.where(chosen[:, None, None, None], edges(part), part))
            rows, chosen = some(count, section.clutter / 2, device)
            line = strokes(size, len(rows), device) * chosen[:, None, None, None]
            change_RC = shown(60 * torch.randn(len(rows), 3, device=device), channels)
            tone = ground.index_select(0, rows) + change_RC[:, :, None, None]
            ground = ground.index_copy(0, rows, torch.lerp(ground.index_select(0, rows), tone, line))
        if section.outline:
            ground = self._shadowed(ground, ink_B1HW, ink_B3)
            ground = self._outlined(ground, ink_B1HW, ink_B3)
        image = torch.lerp(ground, ink, ink_B1HW)
        if section.outline:
            image = self._raised(image, ground, ink_B1HW)
        return self._hollowed(image, ground, ink, ink_B1HW) if section.lettering else image

    def _hollowed(self, image: Tensor, ground: Tensor, ink: Tensor, ink_B1HW: Tensor) -> Tensor:
        """Some words as nothing but the edges of their letters, where these are thick enough to have an inside."""
        rows, chosen = some(len(image), self.section.lettering / 2, image.device)
        part_R1HW = ink_B1HW.index_select(0, rows)
        inner_R1HW = -F.max_pool2d(-part_R1HW, 3, 1, 1)
        thick_R = inner_R1HW.sum(dim=(1, 2, 3)) > THICK * part_R1HW.sum(dim=(1, 2, 3))
        edge_R1HW = F.max_pool2d(part_R1HW, 3, 1, 1) - inner_R1HW
        made = torch.lerp(ground.index_select(0, rows), ink.index_select(0, rows), edge_R1HW)
        changed = (chosen & thick_R)[:, None, None, None]
        return image.index_copy(0, rows, torch.where(changed, made, image.index_select(0, rows)))

    def _outlined(self, ground: Tensor, ink_B1HW: Tensor, ink_B3: Tensor) -> Tensor:
        """A rim of another colour around the letters of some pictures; of every second one it is wide and soft, as
        light is."""
        rows, chosen = some(len(ground), self.section.outline, ground.device)
        part_R1HW = ink_B1HW.index_select(0, rows)
        glow_R1HW = F.avg_pool2d(F.max_pool2d(part_R1HW, 5, 1, 2), 5, 1, 2)
        glows_R = (torch.rand(len(rows), device=ground.device) < 0.5)[:, None, None, None]
        rim = torch.where(glows_R, glow_R1HW, F.max_pool2d(part_R1HW, 3, 1, 1)) * chosen[:, None, None, None]
        return ground.index_copy(0, rows, torch.lerp(ground.index_select(0, rows), self._tone(ink_B3, rows), rim))

    def _shadowed(self, ground: Tensor, ink_B1HW: Tensor, ink_B3: Tensor) -> Tensor:
        """A copy of the letters of some pictures, a few pixels away; every second one reaches there, as the side of a
        thick letter does."""
        rows, chosen = some(len(ground), self.section.outline, ground.device)
        count, device = len(rows), ground.device
        away = (torch.rand(2, count, device=device) * 7).floor().long() - 3
        part_RHW = ink_B1HW.index_select(0, rows)[:, 0]
        far_RHW = _moved(part_RHW, away)
        between_RHW = torch.maximum(_moved(part_RHW, away // 3), _moved(part_RHW, 2 * away // 3))
        thick_R = (torch.rand(count, device=device) < 0.5)[:, None, None]
        part_RHW = torch.where(thick_R, torch.maximum(far_RHW, between_RHW), far_RHW)
        share = (part_RHW * uniform(count, 0.3, 1.0, device)[:, None, None] * chosen[:, None, None])[:, None]
        return ground.index_copy(0, rows, torch.lerp(ground.index_select(0, rows), self._tone(ink_B3, rows), share))

    def _raised(self, image: Tensor, ground: Tensor, ink_B1HW: Tensor) -> Tensor:
        """Letters cut into their ground, or standing out of it: light falls on one of their sides, none on the other,
        and little or nothing of the ink is seen."""
        rows, chosen = some(len(image), self.section.outline / 2, image.device)
        count, device = len(rows), image.device
        part_RHW = ink_B1HW.index_select(0, rows)[:, 0]
        away = (torch.rand(2, count, device=device) * 4).floor().long() - 1
        away[0] = torch.where((away == 0).all(dim=0), 1, away[0])  # somewhere the light comes from
        lit_R1HW = (part_RHW - _moved(part_RHW, away))[:, None]
        left_R = (0.5 * torch.rand(count, device=device))[:, None, None, None]
        under = ground.index_select(0, rows)
        made = torch.lerp(under, image.index_select(0, rows), left_R)
        made = made + uniform(count, -110, 110, device)[:, None, None, None] * lit_R1HW
        return image.index_copy(0, rows, torch.where(chosen[:, None, None, None], made, image.index_select(0, rows)))

    def _tone(self, ink_B3: Tensor, rows: Tensor) -> Tensor:
        """A colour away from the ink's."""
        light_R = ink_B3.index_select(0, rows).mean(dim=1)
        far_R = torch.where(light_R > 127.5, light_R - 127.5, light_R + 127.5)
        tone_R3 = far_R[:, None] + 40 * torch.randn(len(rows), 3, device=ink_B3.device)
        return shown(tone_R3.clamp(0, 255), self.channels)[:, :, None, None]


def _moved(part_RHW: Tensor, away: Tensor) -> Tensor:
    """Each picture so many pixels down and across (2, R); what comes in from outside is its edge again."""
    high, wide = part_RHW.shape[1:]
    y = (torch.arange(high, device=away.device) - away[0][:, None]).clamp(0, high - 1)
    x = (torch.arange(wide, device=away.device) - away[1][:, None]).clamp(0, wide - 1)
    return part_RHW.gather(1, y[:, :, None].expand(-1, -1, wide)).gather(2, x[:, None, :].expand(-1, high, -1))
