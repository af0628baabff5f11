"""How many floating-point operations an update is worth: counted from the model and the lengths, padding left out.

    forward            2 · P · n  +  4 · d · p
    with the backward  6 · P · n  + 12 · d · p

P: numbers in the matrices that n tokens are multiplied by (one multiplication, one addition; in the backward pass twice
that, for the gradients of the input and of the matrix). A source token goes through the encoder and through what makes
keys and values of it, a target token through the rest and the output layer. p: pairs of a query and a key that it may
see, d wide: one product for the score, one for the mean; a causal query sees itself and what is before. Word vectors
are looked up, not multiplied. What is computed again (checkpointed activations) or for padding is no use and does not
count: this is the numerator of MFU, "model FLOPs utilisation" (Chowdhery et al. 2022).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from torch import Tensor, nn

from jumok.data.batch import PairBatch
from jumok.data.images.batch import ImageBatch
from jumok.data.labelled_batch import LabelledBatch
from jumok.data.masked_batch import MaskedBatch
from jumok.data.packing import PackedPairs
from jumok.data.rendering.batch import WordBatch
from jumok.data.series_windows import WindowBatch
from jumok.data.windows import TextBatch
from jumok.layers.attention import Additive, General
from jumok.layers.embedding import Convolutions, Patches
from jumok.layers.multihead import MultiHeadAttention
from jumok.models.bert import Bert, HiddenWords
from jumok.models.decoder import Attending
from jumok.models.forecaster import Forecaster
from jumok.models.language import LanguageModel
from jumok.models.permuted import PermutedRecognizer, QueryBlock
from jumok.models.reader import TextLabeller, WordLabeller
from jumok.models.recognizer import CtcRecognizer, Recognizer
from jumok.models.recognizer_decoders import TransformerWriter, WritingRecognizer
from jumok.models.recognizer_encoders import LAYERS, Encoder, RecurrentEncoder, Stem, VitEncoder
from jumok.models.seq2seq import Seq2Seq
from jumok.models.transformer import Transformer
from jumok.models.vit import ImageLabeller, Vit
from jumok.tasks.objective import Objective

FORWARD_AND_BACKWARD = 3  # times the forward pass
STEPS = ("recurrent", "combine", "readout")  # the parts of a recurrent decoder that each target token goes through


@dataclass(frozen=True)
class Flops:
    """Operations of a forward pass, by what they come once for: a row, a token of either side, a pair that looks."""

    row: int = 0
    source: int = 0
    target: int = 0
    pairs: Counter[str] | None = None  # by the kind of attention: self, causal, cross
    passes: int = 1

    def __call__(self, batch: Any) -> int | None:
        """What an update on this batch is worth; None where its kind is not known."""
        work = _work(batch)
        if work is None:
            return None
        looks = sum(cost * work[kind] for kind, cost in (self.pairs or Counter()).items())
        tokens = self.row * work["row"] + self.source * work["source"] + self.target * work["target"]
        return FORWARD_AND_BACKWARD * self.passes * (tokens + looks)


def flops_of(objective: Objective) -> Flops | None:
    """The counter for what is trained; None for a model that nobody has counted."""
    model, passes = objective.model, 2 if getattr(objective, "r_drop", 0) else 1
    if isinstance(model, Transformer):
        offered = [part for block in model.decoder.blocks for part in _offers(block)]
        source = _products(model.encoder, *offered)
        target = _products(model.decoder) - _products(*offered) + _head(model)
        return Flops(0, source, target, _looks(model), passes)
    if isinstance(model, Seq2Seq):
        keys, queries = _scorer_parts(model.decoder)
        row, source = _products(model.decoder.bridge), _products(model.encoder, *keys)
        steps = [part for name, part in model.decoder.named_children() if name in STEPS]
        return Flops(row, source, _products(model.project, *steps, *queries) + _head(model), _looks(model), passes)
    if isinstance(model, LanguageModel):
        return Flops(0, 0, _products(model) + _head(model), _looks(model), passes)
    if isinstance(model, HiddenWords):
        reader, section = _products(model.reader.encoder), model.reader.section
        guess = 2 * section.width * (section.width + model.reader.embedding.num_embeddings)
        return Flops(guess, reader, 0, _looks(model), passes)
    if isinstance(model, WordLabeller) and isinstance(model.reader, Bert):
        return Flops(0, _products(model.reader.encoder, model.head), 0, _looks(model), passes)
    if isinstance(model, TextLabeller) and isinstance(model.reader, Bert):
        pooler = [model.reader.pooler] if model.reader.section.pooling == "first" else []
        return Flops(_products(*pooler, model.head), _products(model.reader.encoder), 0, _looks(model), passes)
    if isinstance(model, ImageLabeller):
        return Flops(_products(model.scores) + _vit_flops(model.reader), passes=passes)
    if isinstance(model, Recognizer):
        return _recognizer_flops(model, passes)
    if isinstance(model, Forecaster):
        written = [part for part in (model.head, model.highway) if part is not None]
        return Flops(_products(*written), 0, _products(model.reader), _looks(model), passes)
    return None


def _vit_flops(vit: Vit) -> int:
    """All images are of one size: what there is to do comes once for each of them."""
    section = vit.section
    stem: nn.Module = vit.stem
    patches = section.grid[0] * section.grid[1]
    tokens = patches + vit.added
    total = tokens * _products(vit.encoder) + tokens**2 * _looks(vit)["self"]
    if isinstance(stem, Patches):
        return total + patches * _products(stem)
    if isinstance(stem, Stem):
        return total + _convolved(stem.layers, section.image)
    assert isinstance(stem, Convolutions)
    height, width = section.image
    for number, layer in enumerate(stem.layers, 1):
        total += _convolved([layer], (height, width))
        if number % stem.depth == 0:
            height, width = (height + 1) // 2, (width + 1) // 2
    return total


def _convolved(
    layers: Iterable[nn.Module], image: tuple[int, int], pools: Iterable[tuple[int, int] | None] = ()
) -> int:
    """Of convolutions one after the other, with a pooling behind some of them."""
    total, sides = 0, list(image)
    for layer, pool in zip_longest(layers, pools):
        assert isinstance(layer, nn.Conv2d)
        borders = [int(border) for border in layer.padding]  # never "same"
        measures = zip(sides, borders, layer.kernel_size, layer.stride, strict=True)
        sides = [(side + 2 * border - kernel) // step + 1 for side, border, kernel, step in measures]
        total += 2 * layer.weight.numel() * sides[0] * sides[1]
        sides = [side // by for side, by in zip(sides, pool or (1, 1), strict=True)]
    return total


def _recognizer_flops(model: Recognizer, passes: int) -> Flops:
    """A picture comes once for each word, whatever it says; characters and <eos> are what is counted by length. What
    pictures are rendered with is no part of the model."""
    rows, columns = model.encoder.grid
    row, places, looks = _seen_flops(model.encoder), rows * columns, _looks(model)
    if isinstance(model, CtcRecognizer):
        return Flops(row + columns * _products(model.ctc), passes=passes)
    if isinstance(model, PermutedRecognizer):
        blocks = [block for block in model.blocks if isinstance(block, QueryBlock)]
        offered = _products(*(part for block in blocks for part in (block.cross.key, block.cross.value)))
        content = _products(*(part for block in blocks for part in (block.characters.key, block.characters.value)))
        queries = _products(*blocks, model.head) - offered - content
        row += places * offered + (0 if model.ctc is None else columns * _products(model.ctc))
        orders = model.section.permutations
        target = content + orders * (queries + places * looks["cross"])
        return Flops(row, 0, target, Counter(causal=orders * looks["causal"]), passes)
    assert isinstance(model, WritingRecognizer)
    writer = model.writer
    if isinstance(writer, TransformerWriter):
        offered = _products(*(part for block in writer.decoder.blocks for part in _offers(block)))
        written = _products(writer.decoder) - offered
    else:
        keys, asked = _scorer_parts(writer.decoder)
        offered, row = _products(*keys), row + _products(writer.decoder.bridge)
        written = _products(*(part for name, part in writer.decoder.named_children() if name in STEPS), *asked)
    target = written + _products(writer.head) + places * looks["cross"]
    return Flops(row + places * offered, 0, target, Counter(causal=looks["causal"]), passes)


def _seen_flops(encoder: Encoder) -> int:
    """Of looking at a picture."""
    if isinstance(encoder, VitEncoder):
        return _vit_flops(encoder.vit)
    assert isinstance(encoder, RecurrentEncoder)
    pools = [pool for _, pool in LAYERS]
    return _convolved(encoder.layers, encoder.section.image, pools) + encoder.grid[1] * _products(encoder.recurrent)


def _products(*modules: nn.Module) -> int:
    """2 · P of all matrices in these modules."""
    total = 0
    for module in modules:
        for part in module.modules():
            if isinstance(part, nn.Linear):
                total += part.weight.numel()
            elif isinstance(part, nn.RNNBase):
                total += sum(weight.numel() for name, weight in part.named_parameters() if "weight" in name)
    return 2 * total


def _head(model: Transformer | Seq2Seq | LanguageModel) -> int:
    """The output layer, which may be the word vectors."""
    return 2 * (model.embedding.weight if model.tied else model.weight).numel()


def _offers(block: nn.Module) -> list[nn.Module]:
    """What makes keys and values of the source for a decoder block."""
    cross = getattr(block, "cross", None)
    return [] if cross is None else [cross.key, cross.value]


def _scorer_parts(decoder: nn.Module) -> tuple[list[nn.Module], list[nn.Module]]:
    """By what a scorer multiplies each key (once, for all queries) and each query."""
    scorer = getattr(decoder, "scorer", None)
    if isinstance(scorer, General):
        return [scorer.weight], []
    return ([scorer.key], [scorer.query]) if isinstance(scorer, Additive) else ([], [])


def _looks(model: nn.Module) -> Counter[str]:
    """4 · d of each attention, by its kind."""
    costs: Counter[str] = Counter()
    for part in model.modules():
        if isinstance(part, MultiHeadAttention):
            costs[part.tap.kind] += 4 * part.heads * part.head_width
        elif isinstance(part, Attending):
            costs["cross"] += 4 * part.recurrent.width
    return costs


def _work(batch: Any) -> dict[str, int] | None:
    """What there is of rows, tokens and pairs that look at each other."""
    if isinstance(batch, PairBatch | PackedPairs):
        # the last word is not read: a packed target has left it out already
        source, target = batch.source.lengths, batch.target.lengths - int(isinstance(batch, PairBatch))
        return {
            "row": len(batch),
            "source": int(source.sum()),
            "target": int(target.sum()),
            "self": int((source * source).sum()),
            "causal": _triangles(target),
            "cross": int((source * target).sum()),
        }
    if isinstance(batch, MaskedBatch | LabelledBatch):
        lengths = batch.words.lengths
        rows = batch.guesses if isinstance(batch, MaskedBatch) else len(batch)  # what goes through the head
        own = int((lengths * lengths).sum())
        return {"row": rows, "source": int(lengths.sum()), "target": 0, "self": own, "causal": 0, "cross": 0}
    if isinstance(batch, WordBatch):
        written = batch.lengths + 1  # <sos> is read and <eos> is written
        causal = _triangles(written)
        return {"row": len(batch), "source": 0, "target": int(written.sum()), "self": 0, "causal": causal, "cross": 0}
    if isinstance(batch, ImageBatch):
        return {"row": len(batch), "source": 0, "target": 0, "self": 0, "causal": 0, "cross": 0}
    if isinstance(batch, TextBatch | WindowBatch):
        rows, width = (batch.ids if isinstance(batch, TextBatch) else batch.past).shape
        triangle = rows * width * (width + 1) // 2
        return {"row": rows, "source": 0, "target": rows * width, "self": 0, "causal": triangle, "cross": 0}
    return None


def _triangles(lengths: Tensor) -> int:
    return int((lengths * (lengths + 1) // 2).sum())
