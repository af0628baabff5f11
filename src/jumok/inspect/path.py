"""The attention of a search: what each output had looked at, whatever was reordered, pruned or joined on its way.

Every step of a hypothesis is a node that knows the step before it. When the search chooses, the nodes of the hypotheses
that live on are chosen with them; those nobody descends from are forgotten. So the history of an output is the way
from its last node to the root, and no more is kept than there are live hypotheses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.data.batch import END
from jumok.errors import BadInput
from jumok.inspect.attention import Attention
from jumok.inspect.attention_record import AttentionRecord, Look
from jumok.inspect.tokens import Ids
from jumok.layers.tap import Tap
from jumok.search.events import Completed, Event, Finished, Hypothesis
from jumok.search.scores import Integers
from jumok.search.stepper import Stepper


@dataclass(frozen=True, eq=False)
class Path:
    """One output of a search and what the model looked at while writing it.

    `path["decoder.1.cross"]` is (T, S), or (H, T, S) where there are heads; T counts `<eos>`, unless the
    translation was cut (not `finished`): then the model wrote none.
    """

    sentence: int
    tokens: Ids  # as `Hypothesis` has them: without <sos> and <eos>
    score: float
    log_probability: float
    finished: bool
    records: dict[str, AttentionRecord]  # by the name of the tap, each of one row

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.records:
            raise BadInput(f'no attention "{name}" was recorded, only: {", ".join(self.records) or "none"}')
        return self.records[name].weights[0]

    def attention(self, name: str, head: int | None = None, words: bool = True) -> Attention:
        """The picture of one tap."""
        self[name]
        picture: Attention = self.records[name].attention(0, head, words, self.log_probability)
        return picture

    def _repr_html_(self) -> str:
        """In a notebook: who looked at whom last, in the last layer that was recorded."""
        names = [name for name in self.records if self.records[name].kind != "self"] or list(self.records)
        return self.attention(names[-1])._repr_html_() if names else "<p>no attention was recorded</p>"


@dataclass(eq=False)
class Sentence:
    """What is searched for, and what was seen when it was read."""

    number: int
    ids: Ids  # as they were read; a language model's prompt
    text: str | None = None  # that the ids were cut from, where it is known
    read: dict[str, tuple[Tap, Tensor, float]] = field(default_factory=dict)  # (T, S) or (H, T, S) by the tap's name


@dataclass(eq=False)
class Node:
    """One step of one hypothesis: the token it read, and what it looked at then."""

    sentence: Sentence
    parent: Node | None = None  # None: the root, before any step
    token: int = -1
    depth: int = 0  # steps taken, this one included
    seen: dict[str, tuple[Tap, Tensor, float]] = field(default_factory=dict)  # (S,) or (H, S) by the tap's name

    def steps(self) -> list[Node]:
        """From the first step to this one."""
        found: list[Node] = []
        node: Node | None = self
        while node is not None and node.parent is not None:
            found.append(node)
            node = node.parent
        return found[::-1]

    def written(self) -> Ids:
        """What has been written before this step: all it has read but `<sos>`."""
        return tuple(node.token for node in self.steps()[1:])


@dataclass
class _Search:
    """A search under way: its sentences, the newest node of each live hypothesis, and outputs that may yet win."""

    sentences: dict[int, Sentence] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    ended: dict[int, list[tuple[Hypothesis, Node]]] = field(default_factory=dict)


Done = Callable[[Sentence, list[tuple[Hypothesis, Node]]], None]


class Trail:
    """Follows the searches of one model (search/watching.py tells), and gives what became of each sentence to `done`"""

    def __init__(self, model: nn.Module, done: Done) -> None:
        self.model, self.done = model, done
        self.begun = 0  # sentences
        self._asked: tuple[int, Sequence[str | None]] = (0, ())  # the first one's number, and the sentences
        self._expected: list[tuple[int, Ids, str | None]] = []
        self._searches: WeakKeyDictionary[Any, _Search] = WeakKeyDictionary()
        self._reading: list[Sentence] = []
        self._stepping: list[Node] = []

    @property
    def under_way(self) -> bool:
        """Whether what the taps see now belongs to a search."""
        return bool(self._reading or self._stepping)

    def pause(self) -> None:
        """What comes now is no search's."""
        self._reading, self._stepping = [], []

    def ask(self, texts: Sequence[str | None]) -> None:
        """These sentences are numbered as they stand here, whether something is searched for them or not."""
        self._asked = self.begun, texts
        self.begun += len(texts)

    def expect(self, rows: Sequence[tuple[int, Sequence[int]]]) -> None:
        """These will be searched, in whatever order: (which of the sentences asked for, its ids)."""
        first, texts = self._asked
        self._expected = [(first + place, tuple(ids), texts[place]) for place, ids in rows]

    def add(self, tap: Tap, look: Look) -> None:
        """What a tap saw in a step of the search, or when its sentences were read."""
        rows = enumerate(zip(look.weights, look.differences, strict=True))
        if self._reading:
            for place, (weights, difference) in rows:
                sentence = self._reading[place]
                length = len(sentence.ids) - (tap.kind == "causal")  # a prompt's last token is read in the first step
                sentence.read[tap.name] = (tap, weights[..., :length, :length].clone(), difference)
            return
        for place, (weights, difference) in rows:
            node = self._stepping[place]
            sentence = node.sentence
            length = len(sentence.ids)
            if tap.kind == "causal":  # a row's own columns; behind them stands what other rows need
                before = sentence.read.get(tap.name)
                length = node.depth + (0 if before is None else before[1].size(-1))
            node.seen[tap.name] = (tap, weights[..., 0, :length].clone(), difference)

    # ------------------------------------------------------------ the Watcher protocol

    def reading(self, search: object, stepper: Stepper, rows: Sequence[int], batch: Any) -> None:
        self.pause()
        if self.model not in (stepper, *getattr(stepper, "members", ())):  # nor is it one of an ensemble
            return
        lengths = getattr(batch, "lengths", None)
        if lengths is None:
            return
        texts = [tuple(ids[:length]) for ids, length in zip(batch.ids.tolist(), lengths.tolist(), strict=True)]
        self._reading = [self._sentence(ids) for ids in texts]
        state = self._searches.setdefault(search, _Search())
        state.sentences.update(zip(rows, self._reading, strict=True))
        state.nodes += [Node(sentence) for sentence in self._reading]

    def stepping(self, search: object, tokens: Integers) -> None:
        self.pause()
        state = self._searches.get(search)
        if state is not None:
            pairs = zip(state.nodes, tokens.tolist(), strict=True)
            state.nodes = self._stepping = [Node(n.sentence, n, token, n.depth + 1) for n, token in pairs]

    def chosen(self, search: object, happened: Sequence[Event], parents: Integers) -> None:
        self.pause()
        state = self._searches.get(search)
        if state is None:
            return
        for event in happened:
            if isinstance(event, Finished):
                node = _writer(state, event.row, event.output)
                if node is not None:
                    state.ended.setdefault(event.row, []).append((event.output, node))
            elif isinstance(event, Completed):
                outputs = list(_outputs(state, event))
                self.done(state.sentences.pop(event.row), outputs)
        state.nodes = [state.nodes[place] for place in parents.tolist()]

    def _sentence(self, ids: Ids) -> Sentence:
        for place, (number, expected, text) in enumerate(self._expected):
            if ids in (expected, (*expected, END)):
                del self._expected[place]
                return Sentence(number, ids, text)
        self.begun += 1
        return Sentence(self.begun - 1, ids)


def _outputs(state: _Search, event: Completed) -> Iterator[tuple[Hypothesis, Node]]:
    """The n-best of a sentence with their last nodes: those that finished, and those cut in this very step."""
    ended = state.ended.pop(event.row, [])
    for output in event.hypotheses:
        known = next((node for one, node in ended if one is output), None)
        node = known or _writer(state, event.row, output)
        if node is not None:
            yield output, node


def _writer(state: _Search, row: int, output: Hypothesis) -> Node | None:
    """The live hypothesis that has written these tokens."""
    sentence, tokens = state.sentences[row], tuple(output.tokens)
    return next((node for node in state.nodes if node.sentence is sentence and node.written() == tokens), None)


def history(sentence: Sentence, node: Node, ended: bool = True) -> Iterator[tuple[Tap, Tensor, float]]:
    """Each tap's weights over the whole of an output, (T, S) or (H, T, S), and its max|Δ|.

    Of an output that was cut (not `ended`) the last step is left out: it wrote nothing.
    """
    steps = node.steps() if ended else node.steps()[:-1]
    for name, (tap, weights, difference) in sentence.read.items():
        if name not in node.seen:
            yield tap, weights, difference
    for name, (tap, last, _) in node.seen.items():
        rows = [step.seen[name][1] for step in steps]
        if not rows:  # it was cut before the first word
            yield tap, last.new_zeros((*last.shape[:-1], 0, last.size(-1))), 0.0
            continue
        difference = largest(step.seen[name][2] for step in steps)
        width = rows[-1].size(-1)
        table = torch.stack([F.pad(row, (0, width - row.size(-1))) for row in rows], dim=-2)
        if name in sentence.read:  # a prompt's tokens have looked at each other before
            _, before, earlier = sentence.read[name]
            table = torch.cat([F.pad(before, (0, width - before.size(-1))), table], dim=-2)
            difference = largest((difference, earlier))
        yield tap, table, difference


def largest(differences: Iterable[float]) -> float:
    """max|Δ| of several. One that is not a number is not lost among them, as `max` would lose it."""
    known = list(differences)
    return math.nan if any(map(math.isnan, known)) else max(known, default=0.0)
