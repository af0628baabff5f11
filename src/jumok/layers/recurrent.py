"""Recurrent networks: the tanh RNN (Elman 1990), the LSTM (Hochreiter and Schmidhuber 1997; Gers et al. 2000) and the
GRU (Cho et al. 2014), each as its equations and through PyTorch's fused kernel, over the same parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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
    """A cell, its fused versions over one step and over whole rows, and how its parameters are stacked."""

    cell: Cell
    fused_step: Cell
    fused: type[nn.RNN] | type[nn.LSTM] | type[nn.GRU]
    states: int
    gates: int
    holding: tuple[float, ...]  # by gate: what to add so that the state stays as it is; () where nothing can


HOLD = 1e4  # far beyond any pre-activation: σ(x + HOLD) is 1 and σ(x - HOLD) is 0 whatever x was

KINDS = {
    "rnn": Kind(
        cell=rnn_cell,
        fused_step=lambda x, state, weights: (torch.rnn_tanh_cell(x, state[0], *weights),),
        fused=nn.RNN,
        states=1,
        gates=1,
        holding=(),
    ),
    "lstm": Kind(
        cell=lstm_cell,
        fused_step=lambda x, state, weights: torch.lstm_cell(x, state, *weights),
        fused=nn.LSTM,
        states=2,
        gates=4,
        holding=(-HOLD, HOLD, 0.0, 0.0),
    ),
    "gru": Kind(
        cell=gru_cell,
        fused_step=lambda x, state, weights: (torch.gru_cell(x, state[0], *weights),),
        fused=nn.GRU,
        states=1,
        gates=3,
        holding=(0.0, HOLD, 0.0),
    ),
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
        before = self.initial_state(x_BLD) if state is None else state
        if lengths is not None:
            lengths = lengths.cpu()  # packing needs it there; a tensor that is there already costs nothing
            lengths = None if bool((lengths == x_BLD.size(1)).all()) else lengths
        if self.written_out:
            return self._written_out(x_BLD, lengths, before)
        if lengths is None:
            one_step = x_BLD.size(1) == 1 and self.directions == 1
            return self._step(x_BLD, before) if one_step else self._full(x_BLD, before)
        # cuDNN wants its weights in one piece and packs well; elsewhere holding is up to a quarter faster.
        if self.kind.holding and state is None and not x_BLD.is_cuda:
            return self._held(x_BLD, lengths, before)
        return self._packed(x_BLD, lengths, before)

    def _between(self, layer: int, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training) if layer and self.dropout else x

    def _weights(self, layer: int, direction: int = 0) -> CellWeights:
        suffix = "l0_reverse" if direction else "l0"
        names = ("weight_ih_", "weight_hh_", "bias_ih_", "bias_hh_")
        return CellWeights(*(getattr(self.layers[layer], name + suffix) for name in names))

    def _state_of(self, layer: int, state: State) -> State:
        return tuple(part[layer * self.directions : (layer + 1) * self.directions] for part in state)

    # ------------------------------------------------------------ the fused kernels

    def _step(self, x_B1D: Tensor, state: State) -> tuple[Tensor, State]:
        """One position: the kernels for whole rows rearrange their weights on each call, which would be most of it."""
        x_BD, finals = x_B1D[:, 0], []
        for index in range(len(self.layers)):
            before = tuple(part[index] for part in state)
            finals.append(self.kind.fused_step(self._between(index, x_BD), before, self._weights(index)))
            x_BD = finals[-1][0]
        return x_BD[:, None], tuple(torch.stack(parts) for parts in zip(*finals, strict=True))

    def _full(self, x_BLD: Tensor, state: State) -> tuple[Tensor, State]:
        """Rows without padding."""
        finals: list[State] = []
        for index in range(len(self.layers)):
            x_BLD, after = self._layer(index, self._between(index, x_BLD), state)
            finals.append(after)
        return x_BLD, _join(finals)

    def _layer(self, index: int, x: Tensor | PackedSequence, state: State) -> tuple[Any, State]:
        before = self._state_of(index, state)
        output, after = self.layers[index](x, before if self.kind.states > 1 else before[0])
        return output, after if self.kind.states > 1 else (after,)

    def _packed(self, x_BLD: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, State]:
        """Padding is cut out: the kernel gets all first positions, then all second ones, and so on."""
        packed = pack_padded_sequence(x_BLD, lengths.clamp(min=1), batch_first=True, enforce_sorted=False)
        finals: list[State] = []
        for index in range(len(self.layers)):
            packed, after = self._layer(index, packed._replace(data=self._between(index, packed.data)), state)
            finals.append(after)
        outputs_BLD, _ = pad_packed_sequence(packed, batch_first=True, total_length=x_BLD.size(1))
        final = _join(finals)
        if bool((lengths == 0).any()):  # an empty row cannot be packed: it was read as one token, which is taken back
            real_B1 = (lengths > 0).to(x_BLD.device)[:, None]
            outputs_BLD = outputs_BLD * real_B1[:, None]
            final = tuple(torch.where(real_B1, after, before) for after, before in zip(final, state, strict=True))
        return outputs_BLD, final

    def _held(self, x_BLD: Tensor, lengths: Tensor, state: State) -> tuple[Tensor, State]:
        """Padding is read, but the state holds: one more input, 1 at padding, opens the gate that keeps and shuts the
        one that adds. So the backward direction comes to each row's end with zeros, and the forward one carries the
        LSTM's c from there to the end of the batch; h is looked up at the row's end."""
        lengths = lengths.to(x_BLD.device)[:, None, None]
        padding_BL1 = torch.arange(x_BLD.size(1), device=x_BLD.device)[:, None] >= lengths
        kernel: Callable[..., Any] = torch.lstm if self.kind.states > 1 else torch.gru
        width = self.width // self.directions
        last_B1D = (lengths - 1).clamp(min=0).expand(-1, 1, width)
        x_BLD = x_BLD.masked_fill(padding_BL1, 0.0)
        hold = x_BLD.new_tensor(self.kind.holding).repeat_interleave(width)[:, None]
        finals: list[State] = []
        for index in range(len(self.layers)):
            weights: list[Tensor] = []
            for direction in range(self.directions):
                own = self._weights(index, direction)
                weights += own._replace(input_weight=torch.cat((own.input_weight, hold), dim=1))
            x_BLD = torch.cat((self._between(index, x_BLD), padding_BL1.to(x_BLD.dtype)), dim=-1)
            before = self._state_of(index, state)
            start = before if self.kind.states > 1 else before[0]
            both_ways = self.directions == 2
            x_BLD, h, *c = kernel(x_BLD, start, weights, True, 1, 0.0, self.training, both_ways, True)
            x_BLD = x_BLD.masked_fill(padding_BL1, 0.0)
            forward_1BD = x_BLD[..., :width].gather(1, last_B1D).transpose(0, 1)
            finals.append((torch.cat((forward_1BD, h[1:])), *c))
        return x_BLD, _join(finals)

    # ------------------------------------------------------------ the equations

    def _written_out(self, x_BLD: Tensor, lengths: Tensor | None, state: State) -> tuple[Tensor, State]:
        positions = torch.arange(x_BLD.size(1), device=x_BLD.device)
        real_BL1 = None if lengths is None else (positions < lengths.to(x_BLD.device)[:, None])[..., None]
        finals: list[State] = []
        for index in range(len(self.layers)):
            x_BLD = self._between(index, x_BLD)
            outputs: list[Tensor] = []
            for direction in range(self.directions):
                before = tuple(part[index * self.directions + direction] for part in state)
                weights = self._weights(index, direction)
                output_BLD, after = self._unroll(x_BLD, real_BL1, before, weights, backwards=bool(direction))
                outputs.append(output_BLD)
                finals.append(after)
            x_BLD = torch.cat(outputs, dim=-1)
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


def _join(finals: list[State]) -> State:
    """The layers' states under each other: (layers x directions, B, D)."""
    return tuple(torch.cat(parts) for parts in zip(*finals, strict=True))
