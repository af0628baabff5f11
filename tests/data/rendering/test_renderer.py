"""Pictures of words, composed of glyphs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_fonts import PLAIN, section, words_of

from jumok.data.rendering.rendered import RenderedWords
from jumok.data.rendering.renderer import Renderer
from jumok.data.rendering.table import GlyphTable
from jumok.text.special import SPECIAL_TOKENS


@pytest.fixture(scope="module")
def words() -> RenderedWords:
    return words_of(section(held_out_fonts=0))


def test_a_line_is_as_wide_as_its_letters(words: RenderedWords, seed: int) -> None:
    table = GlyphTable(words.atlas, 24)
    batch = words.batch(np.arange(50), seed)
    line = table.lay_out(batch.glyphs, torch.zeros(50), torch.zeros(batch.glyphs.shape))
    wide = torch.from_numpy(words.atlas.advance)[batch.glyphs].sum(dim=1)
    some = batch.lengths > 0
    assert ((line.right - line.left)[some] <= wide[some] + 24).all()
    assert ((line.right - line.left)[some] > 0.4 * wide[some] - 4).all()
    spaced = table.lay_out(batch.glyphs, torch.full((50,), 5.0), torch.zeros(batch.glyphs.shape))
    torch.testing.assert_close(spaced.right[some] - line.right[some], 5.0 * (batch.lengths[some] - 1))


def test_what_is_seen_of_a_letter_is_its_mask(words: RenderedWords, seed: int) -> None:
    """Each pixel of a line, asked for in its middle, is the glyph's own."""
    table = GlyphTable(words.atlas, 24)
    batch = words.batch(np.arange(200), seed)
    row = int((batch.lengths == batch.lengths.max()).nonzero()[0])
    glyphs = batch.glyphs[row : row + 1, :1]
    line = table.lay_out(glyphs, torch.zeros(1), torch.zeros(1, 1))
    mask = words.atlas.masks[int(glyphs[0, 0])]
    high, wide = mask.shape
    y, x = torch.meshgrid(torch.arange(high) + 0.5, torch.arange(wide) + 0.5, indexing="ij")
    found = table.coverage(line, x.reshape(1, -1) - table.pen, y.reshape(1, -1)).view(high, wide)
    torch.testing.assert_close(found, torch.from_numpy(mask / 255).float(), atol=5e-3, rtol=0.0)


@pytest.mark.parametrize("counted", [0, 32])
def test_ink_is_found_as_the_plain_way_finds_it(
    words: RenderedWords, counted: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit, whether the letter before a point is counted or searched for: letters are few, points are many."""
    monkeypatch.setattr("jumok.data.rendering.table.MOST_COUNTED", counted)
    torch.manual_seed(seed)
    table, batch = GlyphTable(words.atlas, 24), words.batch(np.arange(40), seed)
    line = table.lay_out(batch.glyphs, torch.randn(40), torch.randn(batch.glyphs.shape))
    x, y = -10 + (line.right[:, None] + 20) * torch.rand(40, 500), -5 + 60 * torch.rand(40, 500)
    last, (high, wide) = batch.glyphs.size(1) - 1, words.atlas.masks.shape[1:]
    own = (torch.searchsorted(line.starts, x, right=True) - 1).clamp(0, last)
    begin, following = (line.starts.gather(1, each) for each in (own, (own + 1).clamp(max=last)))
    other = torch.where(x - begin < (following - begin) / 2, own - 1, own + 1).clamp(0, last)
    ink = []
    for which in (own, other):
        column = x - line.starts.gather(1, which) + (table.pen - 0.5)
        row = y - line.lifts.gather(1, which) - 0.5
        inside = (column > -1) & (column < wide) & (row > -1) & (row < high)
        column, row = column.clamp(0, wide - 1.001), row.clamp(0, high - 1.001)
        left, above, glyph = column.long(), row.long(), line.glyphs.gather(1, which)
        corners = [[table.masks[glyph, above + down, left + across].float() for across in (0, 1)] for down in (0, 1)]
        upper, lower = (torch.lerp(*pair, column - left) for pair in corners)
        ink.append(torch.where(inside, torch.lerp(upper, lower, row - above), 0) / 255)
    found = table.coverage(line, x, y)
    assert found.max() > 0.9
    assert torch.equal(found, torch.maximum(*ink))


def test_letters_of_other_sizes_stand_on_the_same_line(words: RenderedWords, seed: int) -> None:
    """Each point of a letter of half the size shows what the point twice as far from its origin shows."""
    torch.manual_seed(seed)
    table, batch = GlyphTable(words.atlas, 24), words.batch(np.arange(60), seed)
    glyphs = batch.glyphs[batch.lengths == batch.lengths.max()][:1]
    none, one, half = torch.zeros(1), torch.ones(glyphs.shape), torch.full(glyphs.shape, 0.5)
    whole = table.lay_out(glyphs, none, torch.zeros(glyphs.shape))
    same, small = (table.lay_out(glyphs, none, torch.zeros(glyphs.shape), size) for size in (one, half))
    x, y = whole.left + (whole.right - whole.left) * torch.rand(1, 4000), 60 * torch.rand(1, 4000)
    ink = table.coverage(whole, x, y)
    assert ink.max() > 0.9
    torch.testing.assert_close(table.coverage(same, x, y), ink, atol=1e-3, rtol=0.0)
    smaller = table.coverage(small, x / 2, table.baseline + (y - table.baseline) / 2)
    torch.testing.assert_close(smaller, ink, atol=1e-3, rtol=0.0)
    torch.testing.assert_close(small.right - small.left, (whole.right - whole.left) / 2)
    torch.testing.assert_close(small.bottom - table.baseline, (whole.bottom - table.baseline) / 2)
    torch.testing.assert_close(table.middles(small)[0] * 2, table.middles(whole)[0])
    torch.testing.assert_close((table.middles(small)[1] - table.baseline) * 2, table.middles(whole)[1] - table.baseline)


def test_capitals_are_told_from_small_letters(words: RenderedWords) -> None:
    table = GlyphTable(words.atlas, 24)
    ids = words.charset.encode

    def even(text: str) -> bool:
        glyphs = words.atlas.index[0][np.array(ids(text)) - len(SPECIAL_TOKENS)]
        return bool(table.capitals(torch.from_numpy(glyphs.astype(np.int64))[None]))

    assert [even(text) for text in ("HOUSE", "7491", "A", "House", "axe", "seven")] == [True] * 3 + [False] * 3


def test_lettering_sets_words_far_apart_in_small_capitals_and_hollow(words: RenderedWords, seed: int) -> None:
    batch = words.batch(np.arange(200), seed)
    renderer = Renderer(words.atlas, section(**{**PLAIN, "lettering": 1.0}), (32, 96), 1)
    torch.manual_seed(seed)
    line = renderer._line(batch.glyphs)
    close = renderer.table.lay_out(batch.glyphs, torch.zeros(200), torch.zeros(batch.glyphs.shape))
    wider = ((line.right - line.left) - (close.right - close.left))[batch.lengths > 3]
    assert wider.mean() > 0.5 * 24
    assert line.sizes is not None
    small = line.sizes[:, 1] < 1
    assert torch.equal(small, renderer.table.capitals(batch.glyphs))
    assert 0 < small.sum() < 200
    assert (line.sizes[:, 0] == 1).all()
    ink = torch.zeros(40, 1, 32, 96)
    ink[:, :, 8:24, 20:70] = 1  # a letter as a box
    ground, colour = torch.full_like(ink, 200.0), torch.full_like(ink, 10.0)
    made = renderer._hollowed(torch.lerp(ground, colour, ink), ground, colour, ink)
    within, edge = made[:, 0, 10:22, 22:68].flatten(1), made[:, 0, 8, 20:70]
    hollow = (within == 200).all(dim=1)
    assert int(hollow.sum()) == 20
    assert (within[~hollow] == 10).all()
    assert (edge == 10).all()
    thin = torch.zeros(40, 1, 32, 96)
    thin[:, :, 8:24, 30:32] = 1  # a stroke without anything within
    plain = torch.lerp(ground, colour, thin)
    assert torch.equal(renderer._hollowed(plain, ground, colour, thin), plain)


def test_without_lettering_nothing_more_is_drawn(words: RenderedWords, seed: int) -> None:
    """Recipes from before there was any see the pictures that they saw."""
    batch = words.batch(np.arange(20), seed)
    assert section().lettering == 0
    renderer = Renderer(words.atlas, section(), (32, 96), 1)
    torch.manual_seed(seed)
    line = renderer._line(batch.glyphs)
    after = torch.rand(1)
    torch.manual_seed(seed)
    torch.rand(3, 20)
    torch.randn(batch.glyphs.shape)
    assert torch.equal(torch.rand(1), after)
    assert line.sizes is None


def test_plain_words_are_black_on_white_and_where_the_centres_say(words: RenderedWords, seed: int) -> None:
    torch.manual_seed(seed)
    batch = words.batch(np.arange(64), seed)
    made = Renderer(words.atlas, section(**PLAIN), (32, 96), 1)(batch.glyphs)
    assert made.images.shape == (64, 1, 32, 96)
    assert made.images.dtype == torch.uint8
    some = batch.lengths > 0
    dark = 255 - made.images[:, 0].float()
    assert (dark[some].amax(dim=(1, 2)) > 120).all()
    assert (dark[~some] == 0).all()
    centre = (dark * torch.arange(96)).sum(dim=(1, 2)) / dark.sum(dim=(1, 2)) / 96
    there = torch.arange(batch.glyphs.size(1)) < batch.lengths[:, None]
    mean = (made.centres[..., 0] * there).sum(dim=1) / batch.lengths
    assert (centre - mean)[some].abs().mean() < 0.08
    assert (made.centres[..., 0][there] > -0.1).all()
    assert (made.centres[..., 0][there] < 1.1).all()


@pytest.mark.parametrize("size", [(48, 192), (48, 384)])
def test_an_aspect_is_that_of_the_letters_and_not_of_the_picture(
    words: RenderedWords, size: tuple[int, int], seed: int
) -> None:
    """A picture made as wide as its aspect says shows the line as wide as it is by its height."""
    batch = words.batch(np.arange(64), seed)
    renderer = Renderer(words.atlas, section(**PLAIN), size, 1)
    torch.manual_seed(seed)
    line = renderer._line(batch.glyphs)
    torch.manual_seed(seed)
    made = renderer(batch.glyphs)
    assert made.aspects.shape == (64,)
    inked = made.images[:, 0] < 128
    rows, columns = inked.any(dim=2), inked.any(dim=1)
    # not those with a margin below none: they are cut
    whole = ~(rows[:, 0] | rows[:, -1] | columns[:, 0] | columns[:, -1]) & (batch.lengths > 2)
    assert whole.sum() > 5

    def extent(inked: torch.Tensor) -> torch.Tensor:
        """From the first to the last, of all: there is nothing between two letters."""
        first, last = inked.float().argmax(dim=1), inked.float().flip(1).argmax(dim=1)
        return 1 - (first + last) / inked.size(1)

    seen = made.aspects * extent(columns) / extent(rows)
    true = (line.right - line.left) / (line.bottom - line.top)
    # half a pixel at each edge is lost, which is some hundredths of the height; of small marks more
    off = (seen / true)[whole].sub(1)
    assert off.median().abs() < 0.08
    assert off.abs().quantile(0.75) < 0.12
    assert made.aspects[whole].max() > 1.5 * made.aspects[whole].min()


def test_the_same_draws_make_the_same_pictures_and_others_do_not(words: RenderedWords, seed: int) -> None:
    renderer = Renderer(words.atlas, section(), (32, 96), 3)
    batch = words.batch(np.arange(32), seed)

    def made(drawn: int) -> torch.Tensor:
        torch.manual_seed(drawn)
        images: torch.Tensor = renderer(batch.glyphs).images
        return images

    assert torch.equal(made(seed), made(seed))
    differs = (made(seed) != made(seed + 1)).flatten(1).any(dim=1)
    assert differs.all()


def test_a_grey_picture_is_the_grey_of_the_coloured_one(words: RenderedWords, seed: int) -> None:
    """Mixed of greys from the start. Noise is left out: it has more draws where there are more channels."""
    batch = words.batch(np.arange(60), seed)
    varied = section(noise=0, colour=0.8, outline=0.5, clutter=0.5)
    made = []
    for channels in (3, 1):
        torch.manual_seed(seed)
        made.append(Renderer(words.atlas, varied, (32, 96), channels)(batch.glyphs).images.double())
    red, green, blue = made[0].clamp(1, 254).unbind(1)
    grey = 0.299 * red + 0.587 * green + 0.114 * blue
    inside = ((made[0] > 0) & (made[0] < 255)).all(dim=1)  # what is too bright or too dark is cut off afterwards
    assert inside.double().mean() > 0.3
    assert (grey - made[1][:, 0])[inside].abs().max() <= 1.01  # both are rounded


@pytest.mark.parametrize("part", ["colour", "outline", "curve", "perspective", "blur", "noise", "clutter"])
def test_each_part_changes_pictures(words: RenderedWords, part: str, seed: int) -> None:
    batch = words.batch(np.arange(48), seed)
    torch.manual_seed(seed)
    plain = Renderer(words.atlas, section(**PLAIN), (32, 96), 3)(batch.glyphs).images
    torch.manual_seed(seed)
    changed = Renderer(words.atlas, section(**{**PLAIN, part: 1.0}), (32, 96), 3)(batch.glyphs).images
    assert (plain != changed).any()


def test_no_shape_depends_on_what_is_written(words: RenderedWords) -> None:
    renderer = Renderer(words.atlas, section(), (32, 128), 3)
    nothing = torch.zeros(7, 8, dtype=torch.long)
    assert renderer(nothing).images.shape == (7, 3, 32, 128)
    assert renderer(nothing[:1]).images.shape == (1, 3, 32, 128)
