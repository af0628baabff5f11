"""Where a reader of words looked in a picture while it wrote each character.

    α_t = the decoder's attention at the picture for character t, a share for each cell of the encoder's grid

recurrent, transformer   one pass with the text given: it goes through the same states as the reading did
permuted                 the position queries of the last round of reading
ctc                      has no attention, but it is known in which columns a character was written: of all paths that
                         become the word y, the share that stands at y_t in column c,

    γ_c(t) = Σ_(paths of y that stand at y_t in column c) p(path) / p(y),      α_t = γ(t) / Σ_c γ_c(t)

γ is minus the gradient of the CTC loss by log p_c(y_t) (layers/ctc.py). Attention is the mean over layers and heads
unless one is asked for, computed again from the queries and keys that the layers had (inspect/record.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.images.picture import fit, pixels_of
from jumok.data.images.raw import Pixels, RawImage
from jumok.errors import BadInput, Failure
from jumok.inspect.attention import Weights
from jumok.inspect.healthy import require_numbers
from jumok.inspect.reading_overlay import WHOLE, Box, Numbers, covered, middles
from jumok.inspect.record import record
from jumok.inspect.seen import Seen
from jumok.inspect.view import View
from jumok.layers.ctc import BLANK, ctc_loss
from jumok.layers.tap import Tap
from jumok.models.permuted import PermutedRecognizer, earlier, with_start
from jumok.models.recognizer import CtcRecognizer, Reading, Recognizer
from jumok.models.recognizer_decoders import WritingRecognizer
from jumok.tasks.text_reader import TextReader
from jumok.text.special import END, PAD, START

MOST_PICTURES = 24  # on one page
LARGEST = (640, 1280)  # pixels of a picture that is shown, down and across: a page is to be opened on a phone, too
CTC = "CTC: the columns where it was written"


@dataclass(frozen=True, eq=False)
class Looked:
    """Where the characters of texts looked, pictures side by side."""

    maps: Tensor  # (B, L, h, w), on the CPU: 1 in all for each character, 0 behind the end
    max_difference: float  # between what the layers returned and the weights applied to their values


@dataclass(frozen=True, eq=False)
class Frames:
    """A picture, what was read in it, and where each character looked."""

    name: str
    picture: Pixels  # (H, W, 3), not larger than LARGEST
    size: tuple[int, int]  # that it had, height and width
    characters: tuple[str, ...]
    confidences: tuple[float, ...]  # p of each character
    confidence: float  # p of the word
    maps: Weights  # (n, h, w), each sums to 1
    about: str  # what the maps are
    max_difference: float = 0.0  # between what the layers returned and these weights applied to their values
    box: Box = WHOLE  # what of the picture the maps lie on
    places: Numbers | None = None  # (n,) x of the characters, from 0 to 1, where it is known

    @property
    def text(self) -> str:
        return "".join(self.characters)

    @property
    def is_ctc(self) -> bool:
        return self.about == CTC

    @property
    def centres(self) -> Numbers:
        """(n, 2): the centre of mass of each map, x and y, in shares of the picture."""
        rows, columns = self.maps.shape[1:]
        x = self.maps.sum(axis=1) @ middles(columns, self.box.left, self.box.right)
        y = self.maps.sum(axis=2) @ middles(rows, self.box.top, self.box.bottom)
        return np.stack([x, y], axis=1).astype(np.float64)


# ---------------------------------------------------------------- pictures of a user


def frames_of(
    reader: TextReader,
    images: Iterator[RawImage] | Sequence[RawImage],
    layer: int | None = None,
    head: int | None = None,
) -> list[Frames]:
    """Each picture with what was read and where; one that cannot be decoded is an error."""
    check(reader.model, layer, head)
    section = reader.model.section
    given = list(islice(iter(images), MOST_PICTURES + 1))
    if not given:
        raise BadInput("there is no picture to look at: name one at least")
    if len(given) > MOST_PICTURES:
        raise BadInput(f"more than {MOST_PICTURES} pictures are too many for one page: give fewer at once")
    pictures = [_prepared(image, reader) for image in given]
    images_BCHW = torch.from_numpy(np.stack([own.transpose(2, 0, 1) for _, _, own in pictures]))
    reading, found = looked(reader.model, images_BCHW, layer, head)
    named = about(reader.model, layer, head)
    frames = []
    for row, (image, (picture, size, _)) in enumerate(zip(given, pictures, strict=True)):
        length = int(reading.lengths[row])
        log_probs = reading.log_probs[row, :length].cpu().double()
        frames.append(
            Frames(
                name=image.name,
                picture=picture,
                size=size,
                characters=tuple(reader.charset.decode([one]) for one in reading.ids[row, :length].tolist()),
                confidences=tuple(log_probs.exp().tolist()),
                confidence=float((log_probs.sum() + reading.ending[row].cpu().double()).exp()),
                maps=found.maps[row, :length].numpy(),
                about=named,
                max_difference=found.max_difference,
                box=covered(size, section.image, reader.resize),
            )
        )
    return frames


def _prepared(image: RawImage, reader: TextReader) -> tuple[Pixels, tuple[int, int], Pixels]:
    """A picture as it is shown, the size it had, and as the model sees it. One by one: photographs are large."""
    section, pixels = reader.model.section, pixels_of(image, 3)
    height, width = pixels.shape[:2]
    scale = min(1.0, LARGEST[0] / height, LARGEST[1] / width)
    shown = fit(pixels, (max(1, round(height * scale)), max(1, round(width * scale))), "squash")
    return shown, (height, width), fit(pixels_of(image, section.channels), section.image, reader.resize)


# ---------------------------------------------------------------- what is looked at


def check(model: Recognizer, layer: int | None, head: int | None) -> None:
    """Refuse layers and heads that are not there."""
    if isinstance(model, CtcRecognizer):
        for option, value in (("layer", layer), ("head", head)):
            if value is not None:
                raise BadInput(
                    f"{option} {value}: a CTC model has no decoder that attends to the picture; it shows the columns "
                    f"where each character was written. Leave --{option} out"
                )
        return
    if layer is not None or head is not None:
        View(layer, head, "cross").tap(model)


def about(model: Recognizer, layer: int | None = None, head: int | None = None) -> str:
    """In words, as in "cross-attention of the decoder, mean of 6 heads"."""
    if isinstance(model, CtcRecognizer):
        return CTC
    taps = [one for one in model.modules() if isinstance(one, Tap) and one.kind == "cross"]
    layers, heads = len(taps), taps[0].heads
    who = "attention of the decoder"
    if isinstance(model, PermutedRecognizer):
        rounds = model.section.refinements + 1
        who = "attention of the position queries" + (f", round {rounds} of {rounds}" if rounds > 1 else "")
    over = f"{layers} layers" if layers > 1 and layer is None else ""
    if head is None and heads is not None and heads > 1:
        over += (" and " if over else "") + f"{heads} heads"
    parts = [who]
    if layer is not None:
        parts.append(f"layer {layer}")
    if head is not None:
        parts.append(f"head {head}")
    return ", ".join([*parts, *([f"mean of {over}"] if over else [])])


def looked(
    model: Recognizer, images_BCHW: Tensor, layer: int | None = None, head: int | None = None
) -> tuple[Reading, Looked]:
    """What the model reads in pictures, and where each character looked."""
    check(model, layer, head)
    with _evaluating(model), torch.no_grad():
        images_BCHW = images_BCHW.to(next(model.parameters()).device)
        if isinstance(model, PermutedRecognizer):
            return _last_round(model, images_BCHW, _Asked(layer, head))
        reading = model.read(images_BCHW)
    longest = model.section.max_length if isinstance(model, WritingRecognizer) else reading.ids.size(1)
    ids_BT = F.pad(reading.ids, (0, longest + 1 - reading.ids.size(1)), value=PAD)
    ids_BT = ids_BT.scatter(1, reading.lengths[:, None], END)
    return reading, looked_given(model, images_BCHW, ids_BT, reading.lengths, layer, head)


def looked_given(
    model: Recognizer,
    images_BCHW: Tensor,
    ids_BT: Tensor,
    lengths_B: Tensor,
    layer: int | None = None,
    head: int | None = None,
) -> Looked:
    """Where each character of texts that are given would look: ids are `y_1 … y_n <eos> <pad> …`, lengths n. A text
    that has no path through the columns (CTC) has empty maps."""
    check(model, layer, head)
    device, asked = next(model.parameters()).device, _Asked(layer, head)
    images_BCHW, ids_BT, lengths_B = (each.to(device) for each in (images_BCHW, ids_BT, lengths_B))
    with _evaluating(model), torch.no_grad():
        if isinstance(model, CtcRecognizer):
            return _by_columns(model, images_BCHW, ids_BT, lengths_B)
        if isinstance(model, PermutedRecognizer):
            seen = _by_queries(model, images_BCHW, ids_BT, lengths_B, asked)
        elif isinstance(model, WritingRecognizer):
            with asked.recorded(model) as seen:
                model.scores(images_BCHW, ids_BT, lengths_B)
        else:
            raise BadInput(f"{type(model).__name__}: it is not known here what this model looks at")
    weights_BTS = _mean([seen.weights(name) for name in seen.names()])
    return Looked(_maps(weights_BTS[:, :-1], lengths_B, model.encoder.grid), seen.max_difference)


@contextmanager
def _evaluating(model: Recognizer) -> Iterator[None]:
    require_numbers(model)
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)


@dataclass(frozen=True)
class _Asked:
    layer: int | None
    head: int | None

    @contextmanager
    def recorded(self, model: Recognizer) -> Iterator[Seen]:
        layers = None if self.layer is None else [self.layer]
        heads = None if self.head is None else [self.head]
        with record(model, layers, heads, ["cross"]) as seen:
            yield seen


def _last_round(model: PermutedRecognizer, images_BCHW: Tensor, asked: _Asked) -> tuple[Reading, Looked]:
    """As the model reads: left to right each place is a call, a round of looking again is one call for all places."""
    with asked.recorded(model) as seen:
        reading = model.read(images_BCHW)
    calls = [[one.weights for one in seen.records if one.name == name] for name in seen.names()]
    refined = model.section.refinements > 0
    weights_BTS = _mean([each[-1] if refined else torch.cat(each, dim=-2) for each in calls])
    missing = reading.ids.size(1) - weights_BTS.size(1)  # places not come to; below 0 where there is one for <eos>
    weights_BLS = F.pad(weights_BTS, (0, 0, 0, missing))
    return reading, Looked(_maps(weights_BLS, reading.lengths, model.encoder.grid), seen.max_difference)


def _by_queries(
    model: PermutedRecognizer, images_BCHW: Tensor, ids_BT: Tensor, lengths_B: Tensor, asked: _Asked
) -> Seen:
    """A round in which every place sees all characters but its own; where a model has none, those before it."""
    pictures = model.pictures(model.encoder(images_BCHW))
    content = model.content(torch.cat([torch.full_like(ids_BT[:, :1], START), ids_BT[:, :-1]], dim=1))
    mask_BTS = earlier(model.left_to_right(lengths_B))
    if model.section.refinements:
        place_T = torch.arange(model.places, device=ids_BT.device)
        mask_BTS = with_start((place_T[:, None] != place_T) & (place_T < lengths_B[:, None])[:, None])
    with asked.recorded(model) as seen:
        model.decoded(model.queries(len(ids_BT)), content, pictures, mask_BTS)
    return seen


def _by_columns(model: CtcRecognizer, images_BCHW: Tensor, ids_BT: Tensor, lengths_B: Tensor) -> Looked:
    columns_BCD = model.encoder.columns(model.encoder(images_BCHW))
    blank_B1 = torch.full_like(ids_BT[:, :1], BLANK)
    found_BCS = model.ctc.head.among(columns_BCD, torch.cat([blank_B1, ids_BT[:, :-1]], dim=1)).float()
    with torch.inference_mode(False), torch.enable_grad():
        said_BCL = found_BCS[..., 1:].clone().requires_grad_()
        loss_B = ctc_loss(said_BCL, found_BCS[..., 0].clone(), ids_BT[:, :-1].clone(), lengths_B.clone())
        (gradient_BCL,) = torch.autograd.grad(loss_B.sum(), said_BCL)
    share_BLC = -gradient_BCL.transpose(1, 2)
    share_BLC = share_BLC / share_BLC.sum(dim=2, keepdim=True).clamp(min=1e-30)
    return Looked(_maps(share_BLC.cpu(), lengths_B, (1, columns_BCD.size(1))), 0.0)


def _mean(layers: Sequence[Tensor]) -> Tensor:
    """(B, T, S) over layers and heads."""
    return torch.stack([one.mean(dim=1) if one.dim() == 4 else one for one in layers]).mean(dim=0)


def _maps(weights_BLS: Tensor, lengths_B: Tensor, grid: tuple[int, int]) -> Tensor:
    """(B, L, h, w), 0 behind the end."""
    there_BL = torch.arange(weights_BLS.size(1)) < lengths_B.cpu()[:, None]
    maps = torch.where(there_BL[..., None], weights_BLS, 0.0).reshape(*weights_BLS.shape[:2], *grid)
    if not bool(torch.isfinite(maps).all()):
        raise Failure("what the model looks at is not a number. Its weights may have diverged")
    return maps
