"""From the bytes of a picture to pixels, (H, W, C) in uint8, upright and without transparency; and to a size.

What a person sees is what the model gets: the camera's orientation is applied, transparent places show white, 16-bit
grey is scaled and not clipped, of an animation the first picture counts. The size is read from the header, and a
picture that is too large is refused before anything of it is decoded. Pillow decodes and resamples without holding
Python's lock, so threads run side by side.
"""

from __future__ import annotations

import warnings
from io import BytesIO
from typing import Literal

import numpy as np
from PIL import Image
from PIL.TiffImagePlugin import TiffImageFile

from jumok.data.images.raw import Pixels, RawImage
from jumok.errors import BadInput

Fit = Literal["crop", "squash", "pad"]

MOST_PIXELS = 1 << 26  # 8192 × 8192: 200 MB in RGB. Below the size that Pillow warns at
BORDER = 128  # mid grey, near zero once a model has normalised it
# Pillow knows many more; some of them start other programs (EPS), none of them is what people train with.
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF", "PPM", "AVIF", "JPEG2000")
KNOWN = "JPEG, PNG, GIF, BMP, WebP, TIFF, PPM, AVIF and JPEG 2000 are read"
OTHERS = (
    (0, b"<!doctype", "a web page: the download did not give the picture"),
    (0, b"<html", "a web page: the download did not give the picture"),
    (0, b"<svg", "a drawing (SVG): save it as PNG"),
    (0, b"<?xml", "XML, perhaps a drawing (SVG): save it as PNG"),
    (0, b"%pdf", "a PDF: save its pages as PNG"),
    (0, b"version https://git-lfs", "a pointer of Git LFS, the picture was not downloaded: git lfs pull"),
    (4, b"ftyphei", "a HEIC picture, as iPhones take them, which is not read here: save it as JPEG"),
    (4, b"ftypmif1", "a HEIF picture, which is not read here: save it as JPEG"),
)
ORIENTATION = 0x0112
BITS_PER_SAMPLE = 0x0102
UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_270, 7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}  # fmt: skip

Image.init()  # once and here: not in one of many threads
# Notes of a camera that are damaged are left out; nobody can do anything about them.
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.(Tiff|Jpeg|Mpo)ImagePlugin")
_OPENERS = [(kind, *Image.OPEN[kind]) for kind in FORMATS if kind in Image.OPEN]


class BadPicture(BadInput):
    """A file that should be a picture and cannot be shown."""


def is_picture(head: bytes) -> bool:
    """Whether a file that begins with these bytes (16 or more) says that it is a picture that can be read."""
    return any(accept is None or accept(head) is True for _, _, accept in _OPENERS)


def pixels_of(image: RawImage, channels: int) -> Pixels:
    """The pixels of what a reader gave, (H, W, channels)."""
    if isinstance(image.data, bytes):
        return decode(image.data, image.name, channels)
    pixels = image.data
    if pixels.shape[2] == channels:
        return pixels
    return _array(_picture(pixels).convert("L" if channels == 1 else "RGB"))


def decode(data: bytes, name: str, channels: int) -> Pixels:
    """(H, W, 1) grey or (H, W, 3) RGB. Threads may call this at once."""
    picture = _opened(data, name)
    width, height = picture.size
    if width * height > MOST_PIXELS:
        raise BadPicture(
            f"{name}: {width} × {height} is more than the {MOST_PIXELS:,} pixels that a picture may have here. "
            "Scale it down"
        )
    try:
        picture.load()
        bits = _bits(picture)
        return _array(_plain(_turned(picture), "L" if channels == 1 else "RGB", bits, name))
    except (BadPicture, MemoryError):
        raise
    except Exception as error:  # what Pillow raises over broken bytes is of every kind
        raise _broken(name, picture.format or "image", error) from None


def is_animated(image: RawImage) -> bool:
    """Whether more pictures follow the first, which is the one that counts: an animation, or pages. What a phone puts
    behind its JPEG (how far, how bright: MPO) belongs to the one picture."""
    if not isinstance(image.data, bytes):
        return False
    try:
        picture = _opened(image.data, image.name)
        return picture.format != "MPO" and bool(getattr(picture, "is_animated", False))
    except MemoryError:
        raise
    except Exception:  # a broken one is told as that, where it is decoded
        return False


def fit(pixels: Pixels, size: tuple[int, int], how: Fit) -> Pixels:
    """Bring a picture to (height, width): `crop` fills it and cuts what is over, evenly on both sides; `squash`
    gives up the aspect; `pad` shows all of it, with grey borders. What has the size already is given as it is."""
    height, width = pixels.shape[:2]
    if (height, width) == size:
        return pixels
    if how == "squash":
        return _resized(pixels, size)
    if how == "crop":
        return _cropped(pixels, size)
    if how == "pad":
        return _padded(pixels, size)
    raise ValueError(f'no way to fit a picture: "{how}"')


# ---------------------------------------------------------------- decoding


def _opened(data: bytes, name: str) -> Image.Image:
    """The header read. `Image.open` does the same, but warns of large pictures where threads cannot keep it quiet."""
    if not data:
        raise BadPicture(f"{name}: the file is empty")
    head = data[:16]
    for kind, factory, accept in _OPENERS:
        if accept is None or accept(head) is True:
            try:
                picture = factory(BytesIO(data), "")
            except MemoryError:
                raise
            except Exception as error:
                raise _broken(name, kind, error) from None
            if not all(picture.size):
                raise BadPicture(f"{name}: a picture of {picture.size[0]} × {picture.size[1]} pixels")
            return picture
    start = data[:64].lstrip().lower()
    for place, mark, words in OTHERS:
        if start.startswith(mark, place):
            raise BadPicture(f"{name}: {words}")
    if not any(data):
        raise BadPicture(f"{name}: nothing but zeros: it was not written to the end. Copy it again, or take it out")
    raise BadPicture(f"{name}: not an image, or of a kind that is not known here. {KNOWN}")


def _broken(name: str, kind: str, error: Exception) -> BadPicture:
    reason = str(error).strip().rstrip(".")
    if "truncated" in reason.lower() or isinstance(error, EOFError):
        what = f"cut off: the {kind} file ends before the picture does"
    else:
        what = f"a broken {kind} file" + f" ({reason})" * bool(reason)
    return BadPicture(f"{name}: {what}. Copy it again, or take it out")


def _turned(picture: Image.Image) -> Image.Image:
    """As the camera was held. (Of a TIFF, Pillow has done it while loading.)"""
    try:
        turn = UPRIGHT.get(picture.getexif().get(ORIENTATION, 1))
    except Exception:  # notes of the camera that are damaged do not damage the picture
        turn = None
    return picture if turn is None else picture.transpose(turn)


def _bits(picture: Image.Image) -> int:
    """Of a grey value of more than 8 bit. The mode does not tell: it is "I" for 16 and for 32 bit, and only a TIFF can
    have 12 or 32."""
    return (
        int(picture.tag_v2[BITS_PER_SAMPLE][0]) if isinstance(picture, TiffImageFile) and picture.mode[0] == "I" else 16
    )


def _plain(picture: Image.Image, mode: str, bits: int, name: str) -> Image.Image:
    """8 bits, without transparency, in `mode`."""
    if picture.mode == "F":
        raise BadPicture(
            f"{name}: floating-point numbers, of which nobody says what is white. Save it with 8 or 16 bit"
        )
    if picture.mode.startswith("I"):
        return _deep_grey(picture, bits, name).convert(mode)
    if picture.mode == "La":
        picture = picture.convert("LA")
    see_through = picture.mode in ("LA", "PA", "RGBA", "RGBa") or "transparency" in picture.info
    if see_through or (picture.mode == "P" and picture.palette is not None and picture.palette.mode == "RGBA"):
        over = picture.convert("RGBA")
        picture = Image.new("RGB", picture.size, (255, 255, 255))
        picture.paste(over, mask=over)
    return picture if picture.mode == mode else picture.convert(mode)


def _deep_grey(picture: Image.Image, bits: int, name: str) -> Image.Image:
    """0 … 65535 to 0 … 255, rounded. Pillow itself would clip at 255, and nearly all would be white. Of 32 bit nobody
    knows what is white; but what goes no further than 255 are numbers of 8 bit that a program has stored so."""
    values = np.asarray(picture)
    white = 255 if bits > 16 else (1 << bits) - 1
    if values.min() < 0 or values.max() > white:
        what = "numbers of 32 bit" if bits > 16 else f"numbers outside of 0 … {white}"
        raise BadPicture(f"{name}: {what}, of which nobody says what is white. Save it with 8 or 16 bit")
    grey = ((values.astype(np.uint32) * 255 + white // 2) // white).astype(np.uint8)
    hidden = picture.info.get("transparency")
    if isinstance(hidden, int):
        grey[values == hidden] = 255
    return Image.fromarray(grey)


# ---------------------------------------------------------------- sizes


def _cropped(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    height, width = pixels.shape[:2]
    scale = min(height / size[0], width / size[1])  # pixels of the picture for one of the result
    tall, wide = size[0] * scale, size[1] * scale
    if scale == 1.0:  # only cut: half a pixel of offset would blur it
        top, left = (height - size[0]) // 2, (width - size[1]) // 2
        return np.ascontiguousarray(pixels[top : top + size[0], left : left + size[1]])
    top, left = max(0.0, (height - tall) / 2), max(0.0, (width - wide) / 2)
    return _resized(pixels, size, (left, top, min(left + wide, width), min(top + tall, height)))


def _padded(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    height, width = pixels.shape[:2]
    scale = max(height / size[0], width / size[1])
    tall, wide = (max(1, min(most, round(side / scale))) for side, most in zip((height, width), size, strict=True))
    top, left = (size[0] - tall) // 2, (size[1] - wide) // 2
    canvas = np.full((*size, pixels.shape[2]), BORDER, np.uint8)
    inner = pixels if (tall, wide) == (height, width) else _resized(pixels, (tall, wide))
    canvas[top : top + tall, left : left + wide] = inner
    return canvas


def _resized(pixels: Pixels, size: tuple[int, int], box: tuple[float, float, float, float] | None = None) -> Pixels:
    """Bicubic; where it gets smaller the filter grows with it, so that nothing is aliased."""
    return _array(_picture(pixels).resize((size[1], size[0]), Image.Resampling.BICUBIC, box))


def _picture(pixels: Pixels) -> Image.Image:
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


def _array(picture: Image.Image) -> Pixels:
    pixels = np.array(picture)  # a copy: what Pillow gives by itself cannot be written to
    return pixels if pixels.ndim == 3 else pixels[:, :, None]
