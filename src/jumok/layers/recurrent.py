"""Recurrent networks: the tanh RNN (Elman 1990), the LSTM (Hochreiter and Schmidhuber 1997; Gers et al. 2000) and the
GRU (Cho et al. 2014), each as its equations and through PyTorch's fused kernel, over the same parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from jumok.errors import BadInput, did_you_mean

State = tuple[Tensor, ...]  # (h,) or, for the LSTM, (h, c); h always comes first


class CellWeights(NamedTuple):
    """What a cell knows: W and b for its input, U and b' for its previous state, the gates stacked in rows."""

    input_weight: Tensor
    hidden_weight: Tensor
    input_bias: Tensor
    hidden_bias: Tensor


Cell = Callable[[Tensor, State, CellWeights], State]


def rnn_cell(x_BD: Tensor, state: State, weights: CellWeights) -> State:
    """h_t = tanh(W x_t + b + U h_(t-1) + b')"""
    (h,) = state
    h = torch.tanh(
        F.linear(x_BD, weights.input_weight, weights.input_bias)
        + F.linear(h, weights.hidden_weight, weights.hidden_bias)
    )
    return (h,)


def lstm_cell(x_BD: Tensor, state: State, weights: CellWeights) -> State:
    """input, forget and output gates decide what enters, stays in and leaves the cell state c:

    i_t = σ(W_i x_t + b_i + U_i h_(t-1) + b'_i)        f_t, o_t likewise
    g_t = tanh(W_g x_t + b_g + U_g h_(t-1) + b'_g)
    c_t = f_t ⊙ c_(t-1) + i_t ⊙ g_t
    h_t = o_t ⊙ tanh(c_t)
    """
    h, c = state
    gates = F.linear(x_BD, weights.input_weight, weights.input_bias)
    gates = gates + F.linear(h, weights.hidden_weight, weights.hidden_bias)
    input_gate, forget_gate, candidate, output_gate = gates.chunk(4, dim=-1)
    c = torch.sigmoid(forget_gate) * c + torch.sigmoid(input_gate) * torch.tanh(candidate)
    h = torch.sigmoid(output_gate) * torch.tanh(c)
    return h, c


def gru_cell(x_BD: Tensor, state: State, weights: CellWeights) -> State:
    """reset gate r, update gate z:

    r_t = σ(W_r x_t + b_r + U_r h_(t-1) + b'_r)        z_t likewise
    n_t = tanh(W_n x_t + b_n + r_t ⊙ (U_n h_(t-1) + b'_n))
    h_t = (1 - z_t) ⊙ n_t + z_t ⊙ h_(t-1)
    """
    (h,) = state
    reset_x, update_x, candidate_x = F.linear(x_BD, weights.input_weight, weights.input_bias).chunk(3, dim=-1)
    reset_h, update_h, candidate_h = F.linear(h, weights.hidden_weight, weights.hidden_bias).chunk(3, dim=-1)
    reset_gate, update_gate = torch.sigmoid(reset_x + reset_h), torch.sigmoid(update_x + update_h)
    candidate = torch.tanh(candidate_x + reset_gate * candidate_h)
    return ((1 - update_gate) * candidate + update_gate * h,)


class Kind(NamedTuple):
    cell: Cell
    fused: type[nn.RNN] | type[nn.LSTM] | type[nn.GRU]
    states: int
    gates: int


KINDS = {
    "rnn": Kind(rnn_cell, nn.RNN, states=1, gates=1),
    "lstm": Kind(lstm_cell, nn.LSTM, states=2, gates=4),
    "gru": Kind(gru_cell, nn.GRU, states=1, gates=3),
}


class Recurrent(nn.Module):
    """A stack of recurrent layers over padded rows.

    `width` is what comes out: a bidirectional layer gives half of it to each direction. Outputs at padding are 0 and
    the final state is the one at each row's own end, whichever path computes it. Dropout lies between the layers; we
    apply it ourselves, because cuDNN's has a random state of its own that a resumed run could not restore.
    """

    def __init__(
        self,
        cell: str,
        input_width: int,
        width: int,
        layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        forget_bias: float = 0.0,
        written_out: bool = False,
    ) -> None:
        super().__init__()
        if cell not in KINDS:
            raise BadInput(f'no recurrent cell "{cell}".{did_you_mean(cell, KINDS)}')
        self.kind = KINDS[cell]
        self.directions = 2 if bidirectional else 1
        if width % self.directions:
            raise BadInput(f"width {width} must be even when bidirectional is on (half for each direction)")
        self.width = width
        self.dropout = dropout
        self.written_out = written_out
        self.layers = nn.ModuleList(
            self.kind.fused(
                width if layer else input_width,
                width // self.directions,
                batch_first=True,
                bidirectional=bidirectional,
            )
            for layer in range(layers)
        )
        self.reset_parameters(forget_bias)

    def reset_parameters(self, forget_bias: float) -> None:
        """Glorot for what is read, orthogonal for what recurs (gate by gate), zero biases but the forget gate's."""
        for name, parameter in self.named_parameters():
            gates = parameter.data.chunk(self.kind.gates)
            if "weight_ih" in name:
                for gate in gates:
                    nn.init.xavier_uniform_(gate)
            elif "weight_hh" in name:
                for gate in gates:
                    nn.init.orthogonal_(gate)
            else:
                nn.init.zeros_(parameter)
                if self.kind.cell is lstm_cell and "bias_ih" in name:
                    nn.init.constant_(gates[1], forget_bias)

    def initial_state(self, like: Tensor) -> State:
        """Zeros (layers x directions, B, D) for the rows of `like`."""
        rows, width = like.size(0), self.width // self.directions
        zeros = like.new_zeros(len(self.layers) * self.directions, rows, width)
        return (zeros,) * self.kind.states

    def forward(self, x_BLD: Tensor, lengths: Tensor | None = None, state: State | None = None) -> tuple[Tensor, State]:
        """Read rows of the given lengths (all full without them) from `state` on (zeros without it)."""
        if state is None:
            state = self.initial_state(x_BLD)
        if lengths is not None:
            lengths = lengths.cpu()  # packing needs it there; already there costs nothing
            if bool((lengths == x_BLD.size(1)).all()):
                lengths = None
        run = self._written_out if self.written_out else self._fused
        return run(x_BLD, lengths, state)

    def _between(self, layer: int, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training) if layer and self.dropout else x

    def _layer_state(self, state: State, layer: int) -> State:
        start = layer * self.directions
        return tuple(part[start : start + self.directions] for part in state)

    # ------------------------------------------------------------ the fused kernel

    def _fused(self, x_BLD: Tensor, lengths: Tensor | None, state: State) -> tuple[Tensor, State]:
        packed: Tensor | PackedSequence = x_BLD
        if lengths is not None:
            packed = pack_padded_sequence(x_BLD, lengths.clamp(min=1), batch_first=True, enforce_sorted=False)
        finals: list[State] = []
        for index, layer in enumerate(self.layers):
            if isinstance(packed, PackedSequence):
                packed = packed._replace(data=self._between(index, packed.data))
            else:
                packed = self._between(index, packed)
            before = self._layer_state(state, index)
            packed, after = layer(packed, before if len(before) > 1 else before[0].contiguous())
            finals.append(after if isinstance(after, tuple) else (after,))
        final = tuple(torch.cat(parts) for parts in zip(*finals, strict=True))
        if isinstance(packed, Tensor):
            return packed, final
        outputs, _ = pad_packed_sequence(packed, batch_first=True, total_length=x_BLD.size(1))
        return outputs, final

    # ------------------------------------------------------------ the equations

    def _written_out(self, x_BLD: Tensor, lengths: Tensor | None, state: State) -> tuple[Tensor, State]:
        positions = torch.arange(x_BLD.size(1), device=x_BLD.device)
        real_BL1 = None if lengths is None else (positions < lengths.to(x_BLD.device)[:, None])[..., None]
        finals: list[State] = []
        for index, layer in enumerate(self.layers):
            x_BLD = self._between(index, x_BLD)
            directions: list[Tensor] = []
            for direction, suffix in enumerate(("", "_reverse")[: self.directions]):
                weights = CellWeights(
                    getattr(layer, f"weight_ih_l0{suffix}"),
                    getattr(layer, f"weight_hh_l0{suffix}"),
                    getattr(layer, f"bias_ih_l0{suffix}"),
                    getattr(layer, f"bias_hh_l0{suffix}"),
                )
                before = tuple(part[index * self.directions + direction] for part in state)
                outputs, after = self._unroll(x_BLD, real_BL1, before, weights, backwards=bool(direction))
                directions.append(outputs)
                finals.append(after)
            x_BLD = torch.cat(directions, dim=-1)
        return x_BLD, tuple(torch.stack(parts) for parts in zip(*finals, strict=True))

    def _unroll(
        self, x_BLD: Tensor, real_BL1: Tensor | None, state: State, weights: CellWeights, backwards: bool
    ) -> tuple[Tensor, State]:
        """One direction of one layer, a step at a time; padding leaves the state as it is and puts out 0."""
        outputs: list[Tensor] = []
        steps = range(x_BLD.size(1))
        for step in reversed(steps) if backwards else steps:
            new = self.kind.cell(x_BLD[:, step], state, weights)
            if real_BL1 is None:
                state, output = new, new[0]
            else:
                real = real_BL1[:, step]
                state = tuple(torch.where(real, after, before) for after, before in zip(new, state, strict=True))
                output = new[0] * real
            outputs.append(output)
        return torch.stack(outputs[::-1] if backwards else outputs, dim=1), state
