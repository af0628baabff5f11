"""A search with all it has thought of: every hypothesis as a node that knows its parent, its scores and its fate.

The search is the one that translates; the nodes are what it reports on its way (search/tree.py), in its own order: step
by step, and in each step from the likeliest down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from jumok.data.batch import END, PAD, START, source_batch
from jumok.errors import BadInput
from jumok.search import Decoding, Hypothesis
from jumok.search.events import ROOT, Event, Finished, Pruned, Token
from jumok.tasks.translator import Translator
from jumok.tasks.wishes import Sentence, Wishes

Fate = Literal["alive", "finished", "cut", "beam", "stopped", "cancelled"]  # the last three: why it was given up


@dataclass(frozen=True)
class Node:
    """One hypothesis: its parent's tokens and one more. Node number 0, before any token, is not among them."""

    number: int
    parent: int
    step: int  # tokens so far, from 1
    token: int
    log_probability: float  # of the whole hypothesis
    score: float
    fate: Fate


@dataclass(frozen=True)
class Output:
    """A translation that came out, and the nodes on its way."""

    hypothesis: Hypothesis
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class Searched:
    nodes: tuple[Node, ...]  # by number
    outputs: tuple[Output, ...]  # best first
    source: tuple[int, ...]  # the ids that were read


@torch.inference_mode()
def search_tree(translator: Translator, text: str, wishes: Wishes, prefix: Sequence[int] = ()) -> Searched:
    """Translate one sentence. `prefix`: the very tokens that every hypothesis begins with."""
    if not text.strip():
        raise BadInput("the sentence is empty: there is nothing to translate. Write one")
    translator.refuse_long([text])
    check_tokens(translator, prefix)
    row = translator.cut([text])[0]
    if not row:
        raise BadInput("the model's vocabulary finds nothing to read in this sentence. Write another")
    (job,) = translator.jobs(translator.asked(wishes), 0, Sentence(text), row)
    for model in translator.models:
        model.eval()
    options = replace(job.options, prefix=tuple(prefix))
    decoding = Decoding(translator.engine.stepper, device=translator.device, events=True)
    (number,) = decoding.add(source_batch([job.source]), options)
    told: list[Event] = []
    while not decoding.done:
        told += decoding.step()
    nodes = _nodes(told, options.length_penalty)
    children = {(node.parent, node.token): node.number for node in nodes}
    outputs = [Output(one, _way(children, one)) for one in decoding.results[number]]
    return Searched(tuple(nodes), tuple(outputs), tuple(job.source))


def check_tokens(translator: Translator, ids: Sequence[int]) -> None:
    """Refuse token ids that no translation of this model can hold."""
    for token in ids:
        if not 0 <= token < translator.target.size or token in (PAD, START, END):
            raise BadInput(f"token {token} is none that this model writes: it may be of another run")
    longest = min(model.longest for model in translator.models)
    if len(ids) >= longest:
        raise BadInput(f"{len(ids)} tokens are too many: the model writes at most {longest - 1}")


def _nodes(told: Sequence[Event], length_penalty: float) -> list[Node]:
    """In the order of their numbers, so that parents come before their children."""
    steps = {ROOT: 0}
    nodes = []
    known = [event for event in told if isinstance(event, Token | Finished | Pruned)]
    for event in sorted(known, key=lambda event: event.hypothesis):
        step = steps[event.hypothesis] = steps[event.parent] + 1
        fate: Fate
        if isinstance(event, Token):
            token, total, fate = event.token, event.log_probability, "alive"
        elif isinstance(event, Finished):
            fate = "finished" if event.output.finished else "cut"
            token, total = END, event.output.log_probability
        else:  # its score is log p / step ** α
            token, total, fate = event.token, event.score * step**length_penalty, event.reason
        nodes.append(Node(event.hypothesis, event.parent, step, token, total, event.score, fate))
    return nodes


def _way(children: dict[tuple[int, int], int], output: Hypothesis) -> tuple[int, ...]:
    """The nodes of an output, `<eos>` last; one that the search had to stop has none of those."""
    way, node = [], ROOT
    for token in (*output.tokens, END):
        if (node, token) not in children:
            break
        node = children[node, token]
        way.append(node)
    return tuple(way)
