"""Every kind of picture becomes the pixels that a person sees; every broken one is named; sizes are kept to."""

from __future__ import annotations

import random
import struct
import threading
import time
import tracemalloc
import warnings
import zlib
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from jumok.data.images.picture import (
    BORDER,
    MOST_PIXELS,
    BadPicture,
    decode,
    fit,
    is_animated,
    is_picture,
    pixels_of,
)
from jumok.data.images.raw import RawImage
from jumok.errors import BadInput

Array = NDArray[Any]
# What a viewer does with the stored pixels, by the EXIF standard, written without Pillow.
SHOWN = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.transpose(1, 0, 2),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: np.rot90(a, 2).transpose(1, 0, 2),
    8: lambda a: np.rot90(a, 1),
}


def noise(height: int, width: int, channels: int = 3) -> NDArray[np.uint8]:
    return np.random.default_rng().integers(0, 256, (height, width, channels), np.uint8)


def blocks(rows: int, columns: int) -> NDArray[np.uint8]:
    """Squares of 16 pixels in one colour: what JPEG keeps."""
    return np.random.default_rng().integers(0, 256, (rows, columns, 3), np.uint8).repeat(16, 0).repeat(16, 1)


def saved(picture: Image.Image | Array, kind: str, **options: Any) -> bytes:
    if not isinstance(picture, Image.Image):
        picture = Image.fromarray(np.ascontiguousarray(picture.squeeze(2) if picture.shape[2:] == (1,) else picture))
    out = BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, bits: int, colour: int, raw: bytes, *more: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    chunks = [chunk(b"IHDR", header), *more, chunk(b"IDAT", zlib.compress(raw)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


# ---------------------------------------------------------------- kinds


@pytest.mark.parametrize(
    ("kind", "options"),
    [("PNG", {}), ("BMP", {}), ("TIFF", {}), ("PPM", {}), ("WEBP", {"lossless": True}), ("JPEG2000", {})],
)
def test_what_is_stored_without_loss_comes_back(kind: str, options: dict[str, Any]) -> None:
    pixels = noise(37, 21)
    found = decode(saved(pixels, kind, **options), "x", 3)
    assert found.dtype == np.uint8
    assert found.flags.writeable
    assert np.array_equal(found, pixels)


@pytest.mark.parametrize(("kind", "options"), [("JPEG", {"quality": 95, "subsampling": 0}), ("AVIF", {"quality": 95})])
def test_what_is_stored_with_loss_is_near(kind: str, options: dict[str, Any]) -> None:
    if kind not in Image.SAVE:
        pytest.skip(f"this Pillow has no {kind}")
    pixels = blocks(2, 3)
    away = np.abs(decode(saved(pixels, kind, **options), "x", 3).astype(int) - pixels)
    assert np.percentile(away, 75) < 12  # AVIF blurs colours where squares meet


def test_grey_becomes_three_equal_channels_and_colour_becomes_its_luminance() -> None:
    grey = noise(9, 14, 1)
    data = saved(grey, "PNG")
    assert np.array_equal(decode(data, "x", 1), grey)
    assert np.array_equal(decode(data, "x", 3), grey.repeat(3, axis=2))
    colour = noise(9, 14)
    luminance = colour @ np.array([0.299, 0.587, 0.114])
    assert np.abs(decode(saved(colour, "PNG"), "x", 1)[:, :, 0] - luminance).max() <= 1


@pytest.mark.parametrize("orientation", SHOWN)
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP", "JPEG"])
def test_the_camera_s_orientation_is_applied(kind: str, orientation: int) -> None:
    stored = blocks(2, 3)
    exif = Image.Exif()
    exif[0x0112] = orientation
    options: dict[str, Any] = {"WEBP": {"lossless": True}, "JPEG": {"quality": 95, "subsampling": 0}}.get(kind, {})
    found = decode(saved(stored, kind, exif=exif, **options), "x", 3)
    shown = SHOWN[orientation](stored)
    assert found.shape == shown.shape
    assert np.abs(found.astype(int) - shown).max() <= (24 if kind == "JPEG" else 0)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_damaged_notes_of_the_camera_do_not_damage_the_picture() -> None:
    pixels = blocks(1, 2)
    for notes in (b"Exif\x00\x00II*\x00\xff\xff\xff\xff", b"Exif\x00\x00" + random.randbytes(40), b"Exif\x00\x00"):
        data = saved(pixels, "JPEG", quality=95, subsampling=0, exif=notes)
        assert np.abs(decode(data, "x", 3).astype(int) - pixels).max() < 24


def test_sixteen_bit_grey_is_scaled_and_not_clipped() -> None:
    values = np.random.default_rng().integers(0, 65536, (20, 30), np.uint16)
    values[0, :5] = 0, 128, 129, 65535, 65535 - 129
    right = np.floor(values / 257 + 0.5).astype(np.uint8)
    assert list(right[0, :5]) == [0, 0, 1, 255, 254]
    picture = Image.fromarray(values)
    assert picture.mode.startswith("I")
    big_endian = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    for data in (
        saved(picture, "PNG"),
        saved(picture, "TIFF"),
        png(30, 20, 16, 0, big_endian),
        b"P5 30 20 65535\n" + values.astype(">u2").tobytes(),
    ):
        assert np.array_equal(decode(data, "x", 1)[:, :, 0], right)
        assert np.array_equal(decode(data, "x", 3), right[:, :, None].repeat(3, axis=2))


def test_sixteen_bit_colour_keeps_the_upper_bits() -> None:
    values = np.random.default_rng().integers(0, 65536, (4, 6, 3), np.uint16)
    raw = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    assert np.abs(decode(png(6, 4, 16, 2, raw), "x", 3).astype(int) - values / 257).max() <= 1


def test_numbers_without_an_agreed_white_are_refused() -> None:
    for values in (np.full((3, 3), 70_000, np.int32), np.full((3, 3), -1, np.int32), np.ones((3, 3), np.float32)):
        with pytest.raises(BadPicture, match=r"^lab\.tif: .*nobody says what is white\. Save it with 8 or 16 bit$"):
            decode(saved(Image.fromarray(values), "TIFF"), "lab.tif", 3)


def tiff(values: Array, bits: int, sample: int, raw: bytes) -> bytes:
    """Grey as other programs write it: one strip, `sample` 1 for numbers without a sign and 2 for such with one."""
    height, width = values.shape
    tags = [(256, 4, width), (257, 4, height), (258, 3, bits), (259, 3, 1), (262, 3, 1), (273, 4, 8), (277, 3, 1)]
    tags += [(278, 4, height), (279, 4, len(raw)), (339, 3, sample)]
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    return b"II*\0" + struct.pack("<I", 8 + len(raw)) + raw + struct.pack("<H", len(tags)) + entries + bytes(4)


def test_small_numbers_of_32_bit_are_taken_as_they_are() -> None:
    values = np.random.default_rng().integers(0, 233, (6, 5), np.int32)
    values[0, :2] = 0, 232
    exif = Image.Exif()
    exif[0x0112] = 6
    for sample in (1, 2):
        data = tiff(values, 32, sample, values.tobytes())
        assert np.array_equal(decode(data, "x", 1)[:, :, 0], values)
        assert np.array_equal(decode(data, "x", 3), values[:, :, None].repeat(3, axis=2))
    turned = saved(Image.fromarray(values), "TIFF", exif=exif)
    assert np.array_equal(decode(turned, "x", 1)[:, :, 0], np.rot90(values, -1))
    small = values.astype(np.uint16)  # of 16 bit the same numbers are nearly black
    for data in (saved(Image.fromarray(small), "TIFF"), saved(Image.fromarray(small), "PNG")):
        assert decode(data, "x", 1).max() == 1
    values[1, 1] = 256
    with pytest.raises(BadPicture, match=r"^lab\.tif: numbers of 32 bit, of which nobody says what is white"):
        decode(tiff(values, 32, 2, values.tobytes()), "lab.tif", 1)


def test_twelve_bit_grey_has_its_own_white() -> None:
    values = np.random.default_rng().integers(0, 4096, (4, 6), np.uint16)
    values[0, :2] = 0, 4095
    pairs = values.reshape(-1, 2).astype(int)
    raw = b"".join(int(one << 12 | two).to_bytes(3, "big") for one, two in pairs)
    found = decode(tiff(values, 12, 1, raw), "x", 1)[:, :, 0]
    assert np.array_equal(found, np.floor(values / 4095 * 255 + 0.5))


def test_transparent_places_show_white() -> None:
    pixels = noise(12, 10, 4)
    pixels[0, :, 3], pixels[1, :, 3] = 0, 255
    alpha = pixels[:, :, 3:] / 255
    right = pixels[:, :, :3] * alpha + 255 * (1 - alpha)
    found = decode(saved(pixels, "PNG"), "x", 3)
    assert np.abs(found - right).max() <= 1
    assert (found[0] == 255).all()
    assert np.array_equal(found[1], pixels[1, :, :3])


def test_transparent_grey_shows_white() -> None:
    pixels = noise(12, 10, 2)
    alpha = pixels[:, :, 1] / 255
    right = pixels[:, :, 0] * alpha + 255 * (1 - alpha)
    data = saved(Image.fromarray(pixels, "LA"), "PNG")
    assert np.abs(decode(data, "x", 1)[:, :, 0] - right).max() <= 1
    assert np.abs(decode(data, "x", 3) - right[:, :, None]).max() <= 1


def test_palettes() -> None:
    colours = noise(1, 8)[0]
    places = np.random.default_rng().integers(0, 8, (9, 7), np.uint8)
    picture = Image.fromarray(places)
    picture.putpalette(colours.tobytes())
    assert picture.mode == "P"
    right = colours[places]
    for kind in ("PNG", "GIF", "BMP", "TIFF"):
        assert np.array_equal(decode(saved(picture, kind), "x", 3), right)
    alphas = bytes([0, 255, 128, 255, 255, 255, 255, 255])
    share = np.frombuffer(alphas, np.uint8)[places][:, :, None] / 255
    over_white = right * share + 255 * (1 - share)
    assert np.abs(decode(saved(picture, "PNG", transparency=alphas), "x", 3) - over_white).max() <= 1
    one = np.where((places == 3)[:, :, None], 255, right)
    for kind in ("PNG", "GIF"):
        assert np.array_equal(decode(saved(picture, kind, transparency=3), "x", 3), one)


def test_one_colour_that_is_transparent() -> None:
    grey = np.random.default_rng().integers(0, 4, (5, 6), np.uint8)
    raw = b"".join(b"\0" + row.tobytes() for row in grey)
    data = png(6, 5, 8, 0, raw, chunk(b"tRNS", struct.pack(">H", 2)))
    assert np.array_equal(decode(data, "x", 1)[:, :, 0], np.where(grey == 2, 255, grey))
    wide = grey.astype(np.uint16) * 257
    raw = b"".join(b"\0" + row.astype(">u2").tobytes() for row in wide)
    data = png(6, 5, 16, 0, raw, chunk(b"tRNS", struct.pack(">H", 514)))
    assert np.array_equal(decode(data, "x", 1)[:, :, 0], np.where(grey == 2, 255, grey))
    colour = noise(5, 6)
    raw = b"".join(b"\0" + row.tobytes() for row in colour)
    data = png(6, 5, 8, 2, raw, chunk(b"tRNS", struct.pack(">HHH", *colour[2, 2])))
    hidden = (colour == colour[2, 2]).all(axis=2, keepdims=True)
    assert np.array_equal(decode(data, "x", 3), np.where(hidden, 255, colour))


def test_black_and_white() -> None:
    bits = np.random.default_rng().integers(0, 2, (11, 13)).astype(bool)
    for kind in ("PNG", "TIFF", "BMP", "PPM"):
        found = decode(saved(Image.fromarray(bits), kind), "x", 1)[:, :, 0]
        assert np.array_equal(found, bits * np.uint8(255))


def test_inks_and_television_colours() -> None:
    pixels = blocks(2, 2)
    for mode, kind, options, away in (
        ("CMYK", "TIFF", {}, 1),
        ("CMYK", "JPEG", {"quality": 95}, 24),
        ("YCbCr", "TIFF", {}, 3),
    ):
        data = saved(Image.fromarray(pixels).convert(mode), kind, **options)
        with Image.open(BytesIO(data)) as stored:
            assert stored.mode in (mode, "RGB")
        assert np.abs(decode(data, "x", 3).astype(int) - pixels).max() <= away, mode


def test_of_an_animation_the_first_picture_counts() -> None:
    frames = [noise(8, 9, 1) for _ in range(3)]
    first, *others = (Image.fromarray(frame[:, :, 0]) for frame in frames)
    for kind, options in (("GIF", {}), ("PNG", {}), ("WEBP", {"lossless": True}), ("TIFF", {})):
        data = saved(first, kind, save_all=True, append_images=others, **options)
        assert np.array_equal(decode(data, "x", 1), frames[0]), kind
        assert is_animated(RawImage("x", None, data)), kind
        assert not is_animated(RawImage("x", None, saved(first, kind))), kind


def test_what_a_phone_puts_behind_its_jpeg_is_no_animation() -> None:
    photo, depth = (Image.fromarray(noise(8, 9, 1)[:, :, 0]) for _ in range(2))
    data = saved(photo, "MPO", save_all=True, append_images=[depth])
    with Image.open(BytesIO(data)) as opened:
        assert opened.format == "MPO"
        assert opened.n_frames == 2
    assert not is_animated(RawImage("IMG_1.jpg", None, data))
    assert decode(data, "IMG_1.jpg", 3).shape == (8, 9, 3)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(("width", "height"), [(MOST_PIXELS // 4096 + 1, 4096), (12_000, 12_000), (100_000, 90_000)])
def test_a_bomb_is_refused_before_it_is_decoded(width: int, height: int) -> None:
    bomb = png(width, height, 8, 2, bytes(1 << 20))
    started = time.perf_counter()
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BadPicture, match=rf"^bomb\.png: {width} × {height} is more than .* Scale it down$"):
            decode(bomb, "bomb.png", 3)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert time.perf_counter() - started < 1


def test_a_large_picture_within_the_limit_gives_no_warning() -> None:
    data = saved(Image.new("1", (8192, 8192)), "PNG")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert decode(data, "x", 1).shape == (8192, 8192, 1)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM"])
def test_a_picture_that_was_cut_off_is_named(kind: str) -> None:
    data = saved(noise(40, 40), kind)
    with pytest.raises(BadPicture, match=r"^cats/7\.x: (cut off: |a broken ).*Copy it again, or take it out$"):
        decode(data[: len(data) // 2], "cats/7.x", 3)


def test_cut_off_is_said_in_words() -> None:
    for kind in ("JPEG", "PNG", "BMP"):
        data = saved(noise(40, 40), kind)
        with pytest.raises(BadPicture, match=rf"cut off: the {kind} file ends before the picture does"):
            decode(data[: len(data) // 2], "x", 3)


def test_a_damaged_checksum_is_told() -> None:
    data = bytearray(saved(noise(8, 8), "PNG"))
    data[data.index(b"IHDR") + 6] ^= 0xFF  # a height that the checksum does not know
    with pytest.raises(BadPicture, match=r"^x: a broken PNG file"):
        decode(bytes(data), "x", 3)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (b"hello, I am a text", "not an image, or of a kind that is not known here"),
        (b"\n<!DOCTYPE html><html>404", "a web page: the download did not give the picture"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "a drawing"),
        (b"%PDF-1.7", "a PDF"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "a HEIC picture, as iPhones take them"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"),
        (bytes(1000), "nothing but zeros"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image"),  # Pillow would start Ghostscript
    ],
)
def test_what_is_no_picture_is_said(data: bytes, words: str) -> None:
    with pytest.raises(BadInput, match=words) as caught:
        decode(data, "cats/7.jpg", 3)
    assert isinstance(caught.value, BadPicture)
    assert str(caught.value).startswith("cats/7.jpg: ")
    assert not is_picture(data[:64])


def test_whatever_the_bytes_are_it_is_pixels_or_a_bad_picture() -> None:
    rng = random.SystemRandom()
    whole = [saved(noise(24, 17), kind) for kind in ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM", "JPEG2000")]
    assert all(is_picture(data[:16]) for data in whole)
    bad = 0
    for _ in range(400):
        data = bytearray(rng.choice(whole))
        for _ in range(rng.randint(1, 6)):
            data[int(len(data) * rng.random() ** 2)] = rng.randrange(256)
        cut = bytes(data[: rng.choice((len(data), rng.randrange(1, len(data))))])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = decode(cut, "x", rng.choice((1, 3)))
        except BadPicture:
            bad += 1
        else:
            assert found.dtype == np.uint8
            assert found.ndim == 3
    assert bad > 50


def test_threads_decode_side_by_side() -> None:
    pictures = [noise(50, 40) for _ in range(8)]
    stored = [saved(pixels, kind) for pixels in pictures for kind in ("PNG", "BMP")]
    wrong: list[int] = []

    def work() -> None:
        for _ in range(5):
            wrong.extend(
                n for n, data in enumerate(stored) if not np.array_equal(decode(data, "", 3), pictures[n // 2])
            )

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---------------------------------------------------------------- sizes


@pytest.mark.parametrize("how", ["crop", "squash", "pad"])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_way_gives_the_size(how: Any, channels: int) -> None:
    rng = random.SystemRandom()
    for _ in range(30):
        pixels = noise(rng.randint(1, 60), rng.randint(1, 60), channels)
        size = (rng.randint(1, 40), rng.randint(1, 40))
        found = fit(pixels, size, how)
        assert found.shape == (*size, channels)
        assert found.dtype == np.uint8
    assert fit(noise(1, 5000, channels), (8, 8), how).shape == (8, 8, channels)
    right = noise(24, 32, channels)
    assert fit(right, (24, 32), how) is right


def test_crop_without_a_change_of_scale_only_cuts() -> None:
    pixels = noise(32, 49)
    assert np.array_equal(fit(pixels, (32, 32), "crop"), pixels[:, 8:40])
    assert np.array_equal(fit(pixels.transpose(1, 0, 2), (32, 32), "crop"), pixels[:, 8:40].transpose(1, 0, 2))


def test_crop_is_the_middle_of_the_scaled_picture() -> None:
    pixels = noise(64, 96)
    small = np.asarray(Image.fromarray(pixels).resize((48, 32), Image.Resampling.BICUBIC))
    assert np.abs(fit(pixels, (32, 32), "crop").astype(int) - small[:, 8:40]).max() <= 1
    tall = np.asarray(Image.fromarray(pixels).resize((96 * 3, 64 * 3), Image.Resampling.BICUBIC))
    found = fit(pixels, (192, 96), "crop").astype(int)
    assert np.abs(found - tall[:, 96:192]).max() <= 1


def test_crop_keeps_the_aspect() -> None:
    y, x = np.mgrid[0:300, 0:500]
    disc = np.where((y - 149.5) ** 2 + (x - 249.5) ** 2 < 100**2, 255, 0).astype(np.uint8)[:, :, None]
    for how, radius in (("crop", 20), ("pad", 12)):
        found = fit(disc, (60, 60), how)[:, :, 0] > 200
        rows, columns = np.nonzero(found)
        assert abs(np.ptp(rows) - np.ptp(columns)) <= 1
        assert abs(np.ptp(rows) + 1 - 2 * radius) <= 2
    squashed = fit(disc, (60, 60), "squash")[:, :, 0] > 128
    rows, columns = np.nonzero(squashed)
    assert abs((np.ptp(rows) + 1) / (np.ptp(columns) + 1) - 5 / 3) < 0.1


def test_what_gets_smaller_is_not_aliased() -> None:
    board = ((np.indices((256, 256)).sum(axis=0) % 2) * 255).astype(np.uint8)[:, :, None]
    for how in ("crop", "squash", "pad"):
        assert np.abs(fit(board, (30, 30), how)[2:-2, 2:-2].astype(int) - 128).max() < 12


def test_pad_shows_all_of_it_in_grey_borders() -> None:
    pixels = np.full((10, 30, 3), 250, np.uint8)
    found = fit(pixels, (15, 15), "pad")
    assert (found[5:10] == 250).all()
    assert (found[:5] == BORDER).all()
    assert (found[10:] == BORDER).all()
    inside = noise(20, 10)
    assert np.array_equal(fit(inside, (20, 30), "pad")[:, 10:20], inside)  # its scale is right: nothing is resampled


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(ValueError, match="stretch"):
        fit(noise(3, 3), (2, 2), "stretch")  # type: ignore[arg-type]


def test_pixels_of_what_a_reader_gave() -> None:
    pixels, grey = noise(6, 5), noise(6, 5, 1)
    assert np.array_equal(pixels_of(RawImage("x", None, saved(pixels, "PNG")), 3), pixels)
    assert pixels_of(RawImage("x", None, pixels), 3) is pixels
    assert np.array_equal(pixels_of(RawImage("x", None, grey), 3), grey.repeat(3, axis=2))
    assert np.array_equal(pixels_of(RawImage("x", None, pixels), 1), decode(saved(pixels, "PNG"), "x", 1))
