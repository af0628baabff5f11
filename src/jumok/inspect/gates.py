"""What a recurrent network did while it read: its gates, its cell state, and how far back its end state still feels.

The fused kernels keep their gates to themselves, so the equations are written out here over the same weights; how far
the written-out outputs lie from those of the fused layer is measured each time and goes with the result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.data.batch import END, source_batch
from jumok.errors import BadInput
from jumok.inspect.healthy import require_numbers
from jumok.layers.recurrent import KINDS, CellWeights, Recurrent, State
from jumok.models.encoder import Encoder, reading_order
from jumok.models.language import RecurrentLanguageModel
from jumok.models.reader import RecurrentReader, TextLabeller, WordLabeller
from jumok.models.recognizer import Recognizer
from jumok.models.seq2seq import Seq2Seq
from jumok.tasks.generator import Generator
from jumok.tasks.translator import Translator

FORMAT = 1
UNITS = 64  # whose gradients are taken in one pass: each keeps the whole of its way
LONGEST = 1024  # tokens of a language model's text
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Reading:
    """One direction of one layer, over the L tokens it read; D units. Arrays stand in the order of the tokens."""

    layer: int
    backwards: bool  # reads the last token first, so that its end is at the first one
    gates: Mapping[str, Floats]  # (L, D) each, 0 to 1: input, forget, output; or reset, update; none in a plain RNN
    cell: Floats | None  # (L, D) c_t of an LSTM
    hidden: Floats  # (L, D) h_t
    gradient: Floats  # (L,) ‖∂h_T/∂x_t‖, Frobenius, of this reading's last state and the network's input at t
    difference: float  # max |h_t as the fused layer computes it − h_t from the equations|

    @property
    def name(self) -> str:
        return f"layer {self.layer}, {'backward' if self.backwards else 'forward'}"

    @property
    def distance(self) -> NDArray[np.int64]:
        """T − t: how many steps after x_t this reading ended."""
        steps = np.arange(len(self.gradient))
        return steps if self.backwards else steps[::-1]

    def states(self) -> dict[str, Floats]:
        """All that has a value for each token and unit, by name."""
        cell = {} if self.cell is None else {"cell state": self.cell}
        return {**{f"{name} gate": gate for name, gate in self.gates.items()}, **cell, "hidden state": self.hidden}


@dataclass(frozen=True, eq=False)
class Gates:
    """What the recurrent layers of a model did over one sentence."""

    tokens: tuple[str, ...]  # as the network reads them, which may be the sentence backwards
    kind: str  # rnn, lstm, gru
    readings: tuple[Reading, ...]  # layer by layer, forward before backward

    @property
    def difference(self) -> float:
        return max(reading.difference for reading in self.readings)

    def __str__(self) -> str:
        """As `jumok gates` shows it in a terminal."""
        from jumok.inspect.gates_picture import table

        return table(self)

    def _repr_html_(self) -> str:
        from jumok.inspect.gates_picture import page
        from jumok.inspect.html import framed

        return framed(page(self), 760)

    def to_json(self) -> str:
        return json.dumps(self.as_dictionary(), ensure_ascii=False, allow_nan=False) + "\n"

    def as_dictionary(self) -> dict[str, Any]:
        """Plain values; a float32 is written with as many digits as bring it back exactly."""
        readings = [
            {
                "layer": reading.layer,
                "direction": "backward" if reading.backwards else "forward",
                "gates": {name: _plain(gate) for name, gate in reading.gates.items()},
                "cell": None if reading.cell is None else _plain(reading.cell),
                "hidden": _plain(reading.hidden),
                "distance": reading.distance.tolist(),
                "gradient": _plain(reading.gradient[None])[0],
                "difference": reading.difference,
            }
            for reading in self.readings
        ]
        return {"format": FORMAT, "kind": self.kind, "tokens": list(self.tokens), "readings": readings}


def _plain(array: Floats) -> list[list[float]]:
    return [[float(str(value)) for value in row] for row in array]


def gates_of(loaded: Any, sentence: str, layer: int | None = None) -> Gates:
    """The gates of a loaded run (`jumok.load()`) over a sentence: of a translator's encoder, of a language model,
    or of a model that reads texts for their labels.

    All layers and directions, or one layer counted from 0.
    """
    if not sentence.strip():
        raise BadInput("the sentence is empty: there is nothing to read")
    model = getattr(loaded, "model", None)
    if isinstance(loaded, Translator) and isinstance(model, Seq2Seq):
        tokens, x_1LD = _source(loaded, model.encoder, sentence)
        stack = [model.encoder.recurrent]
    elif isinstance(loaded, Generator) and isinstance(model, RecurrentLanguageModel):
        tokens, x_1LD = _text(loaded, model, sentence)
        stack = [layer for layer in model.layers if isinstance(layer, Recurrent)]
    elif isinstance(model, TextLabeller | WordLabeller) and isinstance(model.reader, RecurrentReader):
        tokens, x_1LD = _read(loaded, model.reader, sentence)
        stack = [model.reader.recurrent]
    elif isinstance(model, nn.Module) and any(isinstance(module, Recurrent) for module in model.modules()):
        what = "pictures" if isinstance(model, Recognizer) else "numbers"
        raise BadInput(f"this model reads {what}, not a sentence: its gates are for Python, jumok.inspect.gates.read")
    else:
        raise BadInput(
            "this model has no recurrence, and so no gates: choose a run of an RNN, LSTM or GRU. What a Transformer "
            "looks at is shown by: jumok attend"
        )
    count = sum(len(part.layers) for part in stack)
    if layer is not None and not 0 <= layer < count:
        numbers = "only layer 0" if count == 1 else f"layers 0 to {count - 1}"
        raise BadInput(f"layer {layer}: this model has {numbers}")
    require_numbers(model)
    readings = [reading for reading in read(stack, x_1LD) if layer in (None, reading.layer)]
    return Gates(tuple(tokens), _kind(stack[0]), tuple(readings))


def _kind(recurrent: Recurrent) -> str:
    return next(name for name, kind in KINDS.items() if kind is recurrent.kind)


@torch.no_grad()
def _source(translator: Translator, encoder: Encoder, sentence: str) -> tuple[list[str], Tensor]:
    """The source as the encoder reads it: with its tag and <eos>, and turned round where the encoder does that."""
    ids = [*translator.before, *translator.source.encode([sentence.strip()])[0]]
    if len(ids) > translator.max_length:
        raise BadInput(f"the sentence has {len(ids)} tokens, the model's limit is {translator.max_length}: shorten it")
    batch = source_batch([ids]).to(translator.device)
    order = reading_order(batch) if encoder.reverse else torch.arange(len(ids) + 1, device=translator.device)[None]
    read = batch.ids.gather(1, order)
    return translator.source.pieces(read[0].tolist()), encoder.embedding(read)


@torch.no_grad()
def _text(generator: Generator, model: RecurrentLanguageModel, sentence: str) -> tuple[list[str], Tensor]:
    """A language model reads a line after the <eos> of the line before it."""
    ids = [END, *generator.tokenizer.encode([sentence.strip()])[0]]
    if len(ids) > LONGEST:
        raise BadInput(f"the text has {len(ids)} tokens: gates are shown of {LONGEST} at most. Take a part of it")
    return generator.tokenizer.pieces(ids), model.embedding(torch.tensor([ids], device=generator.device))


@torch.no_grad()
def _read(loaded: Any, reader: RecurrentReader, sentence: str) -> tuple[list[str], Tensor]:
    """What is labelled is read from its beginning to its end, as in training."""
    specials, limit = loaded.tokenizer.specials, loaded.recipe.data.max_length
    ids = [specials.start, *loaded.tokenizer.encode([sentence.strip()])[0], specials.end]
    if len(ids) > limit:
        raise BadInput(f"the text has {len(ids)} tokens, the model's limit is {limit}: shorten it")
    x_1LD = reader.embedding(torch.tensor([ids], device=loaded.device))
    if reader.segments is not None:
        x_1LD = x_1LD + reader.segments.weight[0]
    return loaded.tokenizer.pieces(ids), x_1LD


# ---------------------------------------------------------------- the equations


class Step(NamedTuple):
    state: State
    gates: Mapping[str, Tensor]  # (B, D) each


def lstm_step(x_BD: Tensor, state: State, weights: CellWeights) -> Step:
    """i, f, o = σ(W x_t + b + U h_(t-1) + b'), g = tanh(…), c_t = f ⊙ c_(t-1) + i ⊙ g, h_t = o ⊙ tanh(c_t)"""
    h, c = state
    z = F.linear(x_BD, weights.input_weight, weights.input_bias) + F.linear(
        h, weights.hidden_weight, weights.hidden_bias
    )
    z_input, z_forget, z_candidate, z_output = z.chunk(4, dim=-1)
    i, f, o = torch.sigmoid(z_input), torch.sigmoid(z_forget), torch.sigmoid(z_output)
    c = f * c + i * torch.tanh(z_candidate)
    return Step((o * torch.tanh(c), c), {"input": i, "forget": f, "output": o})


def gru_step(x_BD: Tensor, state: State, weights: CellWeights) -> Step:
    """r, z = σ(…), n = tanh(W x_t + b + r ⊙ (U h_(t-1) + b')), h_t = (1 - z) ⊙ n + z ⊙ h_(t-1)

    So the update gate z here says how much stays, as PyTorch has it; Cho et al. (2014) write it so too, Chung et al.
    (2014) the other way round.
    """
    (h,) = state
    reset_x, update_x, candidate_x = F.linear(x_BD, weights.input_weight, weights.input_bias).chunk(3, dim=-1)
    reset_h, update_h, candidate_h = F.linear(h, weights.hidden_weight, weights.hidden_bias).chunk(3, dim=-1)
    r, z = torch.sigmoid(reset_x + reset_h), torch.sigmoid(update_x + update_h)
    n = torch.tanh(candidate_x + r * candidate_h)
    return Step(((1 - z) * n + z * h,), {"reset": r, "update": z})


def rnn_step(x_BD: Tensor, state: State, weights: CellWeights) -> Step:
    """h_t = tanh(W x_t + b + U h_(t-1) + b'): no gates"""
    (h,) = state
    z = F.linear(x_BD, weights.input_weight, weights.input_bias) + F.linear(
        h, weights.hidden_weight, weights.hidden_bias
    )
    return Step((torch.tanh(z),), {})


STEPS: dict[str, Callable[[Tensor, State, CellWeights], Step]] = {"rnn": rnn_step, "lstm": lstm_step, "gru": gru_step}


class Unrolled(NamedTuple):
    """One direction of one layer, written out; (B, L, D) each, in the order of the tokens."""

    hidden: Tensor
    cell: Tensor | None
    gates: Mapping[str, Tensor]
    end: Tensor  # (B, D) h_T


def unroll(recurrent: Recurrent, x_BLD: Tensor) -> Iterator[Unrolled]:
    """The layers of a stack over full rows, direction by direction, without dropout."""
    step = STEPS[_kind(recurrent)]
    for index in range(len(recurrent.layers)):
        directions: list[Unrolled] = []
        for direction in range(recurrent.directions):
            weights = recurrent._weights(index, direction)
            state = tuple(part[0] for part in recurrent.initial_state(x_BLD))
            steps: list[Step] = []
            places = range(x_BLD.size(1))
            for place in reversed(places) if direction else places:
                steps.append(step(x_BLD[:, place], state, weights))
                state = steps[-1].state
            if direction:
                steps.reverse()
            cell = torch.stack([step.state[1] for step in steps], dim=1) if len(state) > 1 else None
            gates = {name: torch.stack([step.gates[name] for step in steps], dim=1) for name in steps[0].gates}
            hidden = torch.stack([step.state[0] for step in steps], dim=1)
            directions.append(Unrolled(hidden, cell, gates, state[0]))
        yield from directions
        x_BLD = torch.cat([one.hidden for one in directions], dim=-1)


def read(stack: Sequence[Recurrent], x_1LD: Tensor) -> list[Reading]:
    """Recurrent layers on top of each other over one row of vectors: what each layer and direction did.

    The layers' dropout plays no part.
    """
    with torch.no_grad():
        written_out = list(_through(stack, x_1LD))
        differences = [
            float((one.hidden - fused).abs().max())
            for one, fused in zip(written_out, _fused(stack, x_1LD), strict=True)
        ]
    gradients = gradient_norms(stack, x_1LD)
    directions = [direction for part in stack for _ in part.layers for direction in range(part.directions)]
    layers = [layer for layer, part in enumerate(_single(stack)) for _ in range(part.directions)]
    return [
        Reading(
            layer,
            bool(direction),
            {name: _array(gate[0]) for name, gate in one.gates.items()},
            None if one.cell is None else _array(one.cell[0]),
            _array(one.hidden[0]),
            _array(gradient),
            difference,
        )
        for layer, direction, one, gradient, difference in zip(
            layers, directions, written_out, gradients, differences, strict=True
        )
    ]


def _single(stack: Sequence[Recurrent]) -> Iterator[Recurrent]:
    """The stack that each layer belongs to."""
    for part in stack:
        yield from (part for _ in part.layers)


def _array(tensor: Tensor) -> Floats:
    return np.asarray(tensor.float().cpu().numpy(), dtype=np.float32)


def _through(stack: Sequence[Recurrent], x_BLD: Tensor) -> Iterator[Unrolled]:
    for part in stack:
        readings = list(unroll(part, x_BLD))
        yield from readings
        x_BLD = torch.cat([one.hidden for one in readings[-part.directions :]], dim=-1)


def _fused(stack: Sequence[Recurrent], x_1LD: Tensor) -> Iterator[Tensor]:
    """What the kernels give out, for each layer and direction: each fed with its own layer below."""
    for part in stack:
        for layer in part.layers:
            x_1LD = layer(x_1LD)[0]
            yield from x_1LD.chunk(part.directions, dim=-1)


def gradient_norms(stack: Sequence[Recurrent], x_1LD: Tensor) -> list[Tensor]:
    """‖∂h_T/∂x_t‖ for every t (Frobenius norm of the D x E matrix), for each layer and direction; exact.

    One row of the batch for each unit of h_T: row u is asked for the gradient of unit u, and as many rows as memory
    should hold are answered in one pass. Written out, because cuDNN has no gradient outside of training.
    """
    units = stack[0].width // stack[0].directions
    squares: list[Tensor] = []
    for first in range(0, units, UNITS):
        some = min(UNITS, units - first)
        x_ULE = x_1LD.detach().expand(some, -1, -1).clone().requires_grad_()
        with torch.enable_grad():
            ends = [one.end for one in _through(stack, x_ULE)]
            squares = squares or [torch.zeros_like(x_1LD[0, :, 0]) for _ in ends]
            for number, end_UD in enumerate(ends):
                own = end_UD[:, first : first + some].diagonal().sum()
                (gradient_ULE,) = torch.autograd.grad(own, x_ULE, retain_graph=number < len(ends) - 1)
                squares[number] += gradient_ULE.pow(2).sum(dim=(0, 2))
    return [square.sqrt() for square in squares]
