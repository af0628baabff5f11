"""A recurrent translator as two graphs: an encoder, run once for each batch, and one step of the decoder.

    encoder        ids, mask (B, S)                               -> state_0 … (L, B, D), keys and values (B, S, D)
    decoder_step   token (B), state_0 …, feed, keys, values, mask -> log p of the next token, attention, state_0 …, feed

State, and with input feeding the last s̃ (`feed`), are all that a step leaves to the next: the cache is what comes out.
Keys, values, mask and attention are there where the decoder attends. ONNX has recurrent layers, whose rows may end at
different places only in one way that PyTorch's exporter does not write; so padding is read, and the state holds
(layers/recurrent.py). What cannot hold, the tanh RNN, reads each row turned round for its backward direction.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from jumok.data.batch import Sequences
from jumok.interop.onnx_graph import Graph, Values, words_of
from jumok.interop.onnx_plain import Marked, WrittenOut, masked, plain
from jumok.layers.attention import Location, Scorer
from jumok.layers.recurrent import KINDS, Recurrent, State
from jumok.models.decoder import Attending, Cache, FeedingDecoder, Memory
from jumok.models.seq2seq import Seq2Seq
from jumok.tasks.engine_onnx_recurrent import ATTENDED, FEED, state_names

LONGEST = 200  # tokens of a source in the check


class OpenRecurrent(Recurrent):
    """Rows of any lengths without asking for them while a graph is made; a step as its equations."""

    def forward(self, x_BLD: Tensor, lengths: Tensor | None = None, state: State | None = None) -> tuple[Tensor, State]:
        before = self.initial_state(x_BLD) if state is None else state
        if lengths is None:
            return self._written_out(x_BLD, None, before)
        return self._held(x_BLD, lengths, before) if self.kind.holding else self._turned(x_BLD, lengths, before)

    def _turned(self, x_BLD: Tensor, lengths_B: Tensor, state: State) -> tuple[Tensor, State]:
        """Both directions read forwards; outputs behind a row's end are cut off, and its state is the last before."""
        place_L, length_B1, width = torch.arange(x_BLD.size(1)), lengths_B[:, None], self.width // self.directions
        real_BL = place_L < length_B1
        turned_BL = torch.where(real_BL, length_B1 - 1 - place_L, place_L)
        last_B1D = (length_B1 - 1).clamp(min=0)[..., None].expand(-1, 1, width)
        finals = []
        for index in range(len(self.layers)):
            outputs = []
            for direction in range(self.directions):
                read_BLD = _gathered(x_BLD, turned_BL) if direction else x_BLD
                before = state[0][index * self.directions + direction][None]
                weights = list(self._weights(index, direction))
                said_BLD, _ = torch.rnn_tanh(read_BLD, before, weights, True, 1, 0.0, False, False, True)
                finals.append(said_BLD.gather(1, last_B1D)[:, 0])
                outputs.append(_gathered(said_BLD, turned_BL) if direction else said_BLD)
            x_BLD = torch.cat(outputs, dim=-1) * real_BL[..., None]
        return x_BLD, (torch.stack(finals),)


def _gathered(x_BLD: Tensor, places_BL: Tensor) -> Tensor:
    return x_BLD.gather(1, places_BL[..., None].expand(-1, -1, x_BLD.size(2)))


class Watched(WrittenOut):
    """A tap that keeps its weights: a graph gives them out, for coverage."""

    weights: Tensor

    def forward(
        self,
        query_BHTD: Tensor,
        key_BHSD: Tensor,
        value_BHSD: Tensor,
        mask: Tensor | None,
        scorer: Scorer,
        bias: Tensor | None = None,
        causal: bool = False,
        dropout: float = 0.0,
    ) -> Tensor:
        assert mask is not None
        self.weights = torch.softmax(masked(scorer(query_BHTD, key_BHSD), mask[:, None]), dim=-1)
        return torch.matmul(self.weights, value_BHSD)


def _opened(model: Seq2Seq) -> Seq2Seq:
    copy = plain(model)
    for module in copy.modules():
        if isinstance(module, Recurrent):
            module.__class__ = OpenRecurrent
    if isinstance(copy.decoder, Attending):
        copy.decoder.tap = Watched()  # type: ignore[assignment]
    return copy


class RecurrentEncoderGraph(nn.Module):
    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = _opened(model)

    def forward(self, given: list[Tensor]) -> Values:
        ids_BS, mask_BS = given
        return remembered(self.model.encode(Marked(ids_BS, mask_BS)))


def remembered(memory: Memory) -> Values:
    return memory.state if memory.keys is None or memory.values is None else (*memory.state, memory.keys, memory.values)


class RecurrentStepGraph(nn.Module):
    """One token further, for every row."""

    def __init__(self, model: Seq2Seq) -> None:
        super().__init__()
        self.model = _opened(model)
        self.states = model.decoder.recurrent.kind.states
        self.feeds, self.attends = isinstance(model.decoder, FeedingDecoder), isinstance(model.decoder, Attending)

    def forward(self, given: list[Tensor]) -> Values:
        """`given`: tokens, the parts of the state; s̃ with input feeding; keys, values and mask with attention."""
        tokens_B, *rest = given
        state, rest = tuple(rest[: self.states]), rest[self.states :]
        cache = Cache(state, rest[0] if self.feeds else None)
        keys, values, mask = rest[-3:] if self.attends else (None, None, None)
        memory = Memory(tokens_B, state, keys, values, None if mask is None else mask.bool())
        hidden_BD, cache = self.model.advance(tokens_B, memory, cache)
        tap = getattr(self.model.decoder, "tap", None)
        weights = (tap.weights[:, 0],) if isinstance(tap, Watched) else ()
        feed = () if cache.feed is None else (cache.feed,)
        return (self.model.log_probs(hidden_BD), *weights, *cache.state, *feed)


def longest_source(model: Seq2Seq) -> int | None:
    """Most tokens of a source; None where there is no end."""
    scorer = getattr(model.decoder, "scorer", None)
    return scorer.weight.out_features if isinstance(scorer, Location) else None


def recurrent_encoder_graph(model: Seq2Seq) -> Graph:
    vocabulary, end = model.encoder.embedding.num_embeddings, longest_source(model) or LONGEST

    def sample(sizes: Any) -> list[Tensor]:
        return list(words_of(sizes["batch"], sizes["source"], vocabulary))

    def expected(given: list[Tensor]) -> Values:
        return remembered(model.encode(Sequences(given[0], given[1].sum(dim=1))))

    shapes = ((3, 7), (1, 1), (5, 33), (2, LONGEST))
    tried = tuple({"batch": rows, "source": min(length, end)} for rows, length in shapes)
    axes, states = {0: "batch", 1: "source"}, model.decoder.recurrent.kind.states
    made: dict[str, dict[int, str]] = {name: {1: "batch"} for name in state_names(states)}
    if isinstance(model.decoder, Attending):
        made |= {"keys": axes, "values": axes}
    return Graph(RecurrentEncoderGraph(model), {"ids": axes, "mask": axes}, made, sample, expected, tried)


def recurrent_step_graph(model: Seq2Seq) -> Graph:
    module, recurrent = RecurrentStepGraph(model), model.decoder.recurrent
    vocabulary, width, end = model.embedding.num_embeddings, recurrent.width, longest_source(model) or LONGEST

    def sample(sizes: Any) -> list[Tensor]:
        rows, source = sizes["batch"], sizes["source"]
        tokens_B = torch.randint(1, vocabulary, (rows,))
        state = torch.tanh(torch.randn(module.states, len(recurrent.layers), rows, width))
        feed = [torch.tanh(torch.randn(rows, width))] if module.feeds else []
        if not module.attends:
            return [tokens_B, *state]
        keys_BSD, values_BSD = torch.randn(2, rows, source, width)
        return [tokens_B, *state, *feed, keys_BSD, values_BSD, words_of(rows, source, vocabulary)[1]]

    def expected(given: list[Tensor]) -> Values:
        found: Values = module(given)  # the model itself is asked in `verify_steps`
        return found

    parts: dict[str, dict[int, str]] = {name: {1: "batch"} for name in state_names(module.states)}
    if module.feeds:
        parts[FEED] = {0: "batch"}
    source: dict[str, dict[int, str]] = {}
    if module.attends:
        source = {name: {0: "batch", 1: "source"} for name in ATTENDED}
    seen = {"attention": {0: "batch", 1: "source"}} if module.attends else {}
    shapes = ((3, 7), (1, 1), (6, 33), (2, LONGEST))
    tried = tuple({"batch": rows, "source": min(length, end)} for rows, length in shapes)
    inputs: dict[str, dict[int, str]] = {"token": {0: "batch"}, **parts, **source}
    outputs: dict[str, dict[int, str]] = {
        "log_probs": {0: "batch"}, **seen, **{f"new_{name}": axes for name, axes in parts.items()}
    }  # fmt: skip
    return Graph(module, inputs, outputs, sample, expected, tried)


def recurrent_config(model: Seq2Seq) -> dict[str, Any]:
    """What config.json says of such a translator besides what all have."""
    recurrent = model.decoder.recurrent
    return {
        "decoder": "recurrent", "cell": next(name for name, kind in KINDS.items() if kind is recurrent.kind),
        "states": recurrent.kind.states, "layers": len(recurrent.layers), "width": recurrent.width,
        "attends": isinstance(model.decoder, Attending), "feeds": isinstance(model.decoder, FeedingDecoder),
        "max_source": longest_source(model), "max_target": None,
        "source_vocabulary": model.encoder.embedding.num_embeddings,
        "target_vocabulary": model.embedding.num_embeddings,
    }  # fmt: skip
