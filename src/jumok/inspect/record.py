"""See what a model looks at, without changing what it does.

    with jumok.record(model) as seen:
        model.translate(["I am a student."])
    seen.path(0)["decoder"]          # (T, S), or (H, T, S) where the attention has heads: of the best output
    seen.attention(0)                # the same as a picture, by words

    with jumok.record(network, layers=[1], heads=[0, 3]) as seen:
        network(batch.source, batch.target.ids[:, :-1])
    seen.weights("decoder.1.cross")  # (B, H, T, S)

Hooks on the model's taps (layers/tap.py) compute the weights again from the very queries and keys that the attention
was computed from; nothing is kept on the model, and when the block ends the hooks are gone. Faster implementations of
a search (models/fast.py, search/on_device.py) have no taps: while a model is recorded it searches itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from jumok.data.batch import END, PAD, Sequences
from jumok.data.packing import PackedSide
from jumok.errors import BadInput
from jumok.inspect.attention_record import AttentionRecord, look
from jumok.inspect.path import Path, largest
from jumok.inspect.seen import Seen
from jumok.inspect.tokens import Ids, Read, Remembering, Vocabulary
from jumok.inspect.twin import twins
from jumok.layers.tap import Tap
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.models.language import LanguageModel
from jumok.models.transformer import Transformer
from jumok.search.watching import watched
from jumok.tasks.engine import Engine, Found, Row
from jumok.tasks.generator import Generator
from jumok.tasks.series_forecaster import SeriesForecaster
from jumok.tasks.translator import Translator
from jumok.text.tokenizer import Tokenizer
from jumok.training.compiling import Compiled

__all__ = ["AttentionRecord", "Path", "Recordable", "Seen", "record"]

Recordable = nn.Module | Translator | Generator | SeriesForecaster | Compiled
PACKED = (
    "packed batches were recorded padded: the kernel that they go through otherwise has no taps, and what it gives may "
    "differ in the last digits"
)
ARGUMENTS = ("query", "key", "value", "mask", "scorer", "bias", "causal", "dropout")  # of a tap


@contextmanager
def record(
    model: Recordable,
    layers: Collection[int] | None = None,
    heads: Sequence[int] | None = None,
    kinds: Collection[str] | None = None,
    *,
    source: Tokenizer | None = None,
    target: Tokenizer | None = None,
) -> Iterator[Seen]:
    """Record the model's attention inside the block: all of it, or only these layers, heads (both counted from 0) and
    kinds ("self", "causal", "cross").

    The model is a network, one that torch.compile has made faster, or a loaded run: then tokens have their names and
    offsets. For a network by itself `source` and `target` are the tokenizers of what it reads and writes.
    """
    words = Vocabulary(source, target)
    network = _network(model)
    taps = _taps(network, layers, heads, kinds)
    inner = next((one for one in network.modules() if isinstance(one, (EncoderDecoder, LanguageModel))), network)
    with ExitStack() as stack:
        if isinstance(model, (Translator, Generator)):
            words = stack.enter_context(_loaded(model))
        seen = Seen(inner, taps, heads, words)
        hooks = _Hooks(inner, taps, seen, heads, words)
        stack.enter_context(hooks.observing())
        stack.enter_context(watched(seen.trail))
        if isinstance(model, Translator):
            stack.enter_context(_itself(model, seen))
        if stack.enter_context(twins(network, hooks.unobserved, lambda difference: _state(seen, difference))):
            seen.notes.append("compiled parts were recorded through their eager twins: seen.twin_difference")
        yield seen


def _network(model: Recordable) -> nn.Module:
    """What has the taps. Of an ensemble it is the first model: attention is shown of that one alone."""
    if isinstance(model, Compiled):
        made = model.compiled
        return made if isinstance(made, nn.Module) else model.objective
    if isinstance(model, nn.Module):
        return model
    if isinstance(model, (Translator, Generator, SeriesForecaster)):
        return model.model
    raise BadInput(f"record() takes a network or a loaded run (jumok.load), not {type(model).__name__}")


def _taps(
    network: nn.Module,
    layers: Collection[int] | None,
    heads: Sequence[int] | None,
    kinds: Collection[str] | None,
) -> list[Tap]:
    every = list(dict.fromkeys(module for module in network.modules() if isinstance(module, Tap)))
    known = sorted({tap.layer for tap in every})
    if layers is not None and not set(layers) <= set(known):
        raise BadInput(f"layers {sorted(layers)}: this model's attention is in layers {', '.join(map(str, known))}")
    there = sorted({tap.kind for tap in every})
    if kinds is not None and not set(kinds) <= set(there):
        raise BadInput(f"kinds {sorted(kinds)}: this model's attention is of the kinds {', '.join(there) or 'none'}")
    taps = [tap for tap in every if (layers is None or tap.layer in layers) and (kinds is None or tap.kind in kinds)]
    if heads is not None and taps and all(tap.heads is None for tap in taps):
        raise BadInput(f"heads {list(heads)}: this model's attention has no heads. Leave them out")
    for tap in taps:
        if heads is not None and tap.heads is not None and not all(0 <= head < tap.heads for head in heads):
            raise BadInput(f"heads {list(heads)}: {tap.name} has {tap.heads}, counted from 0")
    return taps


def _state(seen: Seen, difference: float) -> None:
    seen.twin_difference = largest((difference, seen.twin_difference or 0.0))


class _Hooks:
    """What hangs on the model while it is recorded."""

    def __init__(
        self, inner: nn.Module, taps: Sequence[Tap], seen: Seen, heads: Sequence[int] | None, words: Vocabulary
    ) -> None:
        self.inner, self.taps, self.seen, self.heads, self.words = inner, taps, seen, heads, words
        self.handles: list[RemovableHandle] = []

    @contextmanager
    def observing(self) -> Iterator[None]:
        self._hang()
        try:
            yield
        finally:
            self._take()

    @contextmanager
    def unobserved(self) -> Iterator[None]:
        self._take()
        try:
            yield
        finally:
            self._hang()

    def _hang(self) -> None:
        self.handles = [self.inner.register_forward_pre_hook(self._before, with_kwargs=True)]
        self.handles += [tap.register_forward_hook(self._after, with_kwargs=True) for tap in self.taps]

    def _take(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles = []

    def _before(self, model: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
        given = (*inputs, *named.values())
        if any(isinstance(one, PackedSide) for one in given) and PACKED not in self.seen.notes:
            self.seen.notes.append(PACKED)
        self.seen.begin(_rows(model, given, self.words))

    def _after(self, tap: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], output: Tensor) -> None:
        assert isinstance(tap, Tap)
        if torch._C._current_graph_task_id() != -1:  # a backward pass computes it again: seen before
            return
        given = dict(zip(ARGUMENTS, inputs, strict=False)) | named
        self.seen.add(tap, look(tap, given, output, self.heads))


# ---------------------------------------------------------------- what a forward reads


def _rows(model: nn.Module, inputs: Sequence[Any], words: Vocabulary) -> list[Read]:
    """The texts of a batch, row by row, where it is one of text."""
    if isinstance(model, LanguageModel) and inputs and isinstance(inputs[0], Tensor):
        return [Read(None, ids, words) for ids in _texts(inputs[0])]
    if not isinstance(model, EncoderDecoder) or len(inputs) < 2:
        return []
    source, target = inputs[:2]
    read = _packed(source) if isinstance(source, PackedSide) else _padded(source)
    written = _packed(target) if isinstance(target, PackedSide) else _texts(target)
    return [Read(ids, _until(out, END), words) for ids, out in zip(read, written, strict=True)]


def _padded(side: Sequences) -> list[Ids]:
    rows = zip(side.ids.tolist(), side.lengths.tolist(), strict=True)
    return [tuple(ids[:length]) for ids, length in rows]


def _packed(side: PackedSide) -> list[Ids]:
    ids = side.ids[0].tolist()
    rows = zip(side.starts.tolist(), side.lengths.tolist(), strict=True)
    return [_until(tuple(ids[start : start + length]), PAD) for start, length in rows]


def _texts(ids: Tensor) -> list[Ids]:
    return [_until(tuple(row), PAD) for row in ids.tolist()]


def _until(ids: Ids, end: int) -> Ids:
    return ids[: ids.index(end)] if end in ids else ids


# ---------------------------------------------------------------- loaded runs


@contextmanager
def _loaded(model: Translator | Generator) -> Iterator[Vocabulary]:
    """Inside the block the run's tokenizers remember the texts they have cut."""
    sides = ("source", "target") if isinstance(model, Translator) else ("tokenizer",)
    plain = {side: getattr(model, side) for side in sides}
    known = {side: Remembering(tokenizer) for side, tokenizer in plain.items()}
    for side, tokenizer in known.items():
        setattr(model, side, tokenizer)
    try:
        yield Vocabulary(known.get("source"), known[sides[-1]])
    finally:
        for side, tokenizer in plain.items():
            setattr(model, side, tokenizer)


@contextmanager
def _itself(translator: Translator, seen: Seen) -> Iterator[None]:
    """Inside the block the translator searches with the model itself, and sentences bear the numbers they came with."""
    usual = translator.engine
    if usual.fast and isinstance(translator.model, Transformer):  # nothing faster is known for the others
        exactly = "" if usual.precision == "float32" else f" in float32 instead of {usual.precision}"
        seen.notes.append(f"the search ran on the model itself{exactly}: faster implementations have no taps")
    translator.engine = _Recorded(usual, seen)
    try:
        yield
    finally:
        translator.engine = usual


class _Recorded(Engine):
    """Searches with the models as they are, and tells which sentence each search is for."""

    def __init__(self, usual: Engine, seen: Seen) -> None:
        super().__init__(usual.models, usual.device)
        self.seen = seen

    def asked(self, texts: Sequence[str | None]) -> None:
        self.seen.asked(texts)

    def search(self, rows: Sequence[Row], size: int, sentences: Sequence[int] = ()) -> Found:
        sources = [ids for ids, _ in rows]
        if not sentences:  # nobody said whose they are: each is a sentence by itself
            self.seen.asked([None] * len(rows))
        self.seen.trail.expect(list(zip(sentences or range(len(rows)), sources, strict=True)))
        return super().search(rows, size)

    def answered(self, outputs: Sequence[Sequence[Ids]]) -> None:
        self.seen.answered(outputs)
