"""What the page "attention" asks: a look at a text, the small maps of a kind, one map, the steps of one query."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Hashable
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jumok.inspect.forced import Side
from jumok.inspect.steps import Step
from jumok.studio.answers import Asked, asked, computed, floats, json_answer, post, shelf_of
from jumok.studio.attention_jobs import Outcome, Text, example_of, job_of
from jumok.studio.attention_sights import Group, Kept, Sight, heads_named, looked
from jumok.studio.shelf import Shelf
from jumok.training.run import RunFolder

SHOWN_KEYS = 24  # of the steps: those with the largest weights


class Look(Asked):
    """A text, read by a run. Without a text: an example of what the run has learned."""

    run: str
    update: int | None = None
    text: str | None = None
    second: str | None = None
    target: str | None = None
    tag: str | None = None
    without: list[str] = Field(default=[], max_length=4096)

    def key(self, shelf: Shelf) -> Hashable:
        """Equal keys, equal sights, as long as the run has the same weights."""
        weights = shelf.stamp(self.run, self.update)
        heads = tuple(sorted(set(self.without)))
        return self.run, weights, self.update, self.text, self.second, self.target, self.tag, heads


AnyLook = TypeVar("AnyLook", bound=Look)


class AskGrid(Look):
    kind: str


class AskMap(AskGrid):
    combine: Literal["head", "mean", "max", "rollout"] = "head"
    layer: int = 0
    head: int = 0
    words: bool = False


class AskSteps(AskGrid):
    layer: int = 0
    head: int = 0
    place: int = 0


async def look(request: Request) -> Response:
    """Who looks at whom, what the model says, how far the record explains what the layers returned."""
    ask = await asked(request, Look)
    return json_answer(await computed(request, _told, request.app.state, shelf_of(request), ask))


async def grid(request: Request) -> Response:
    """All maps of a kind as small pictures, in one answer: bytes (√ of weights), layer by layer, head by head."""
    ask = await asked(request, AskGrid)
    small = (await _seen(request, ask)).group(ask.kind).small
    return json_answer({"shape": small.shape, "bytes": base64.b64encode(small.tobytes()).decode()})


async def one_map(request: Request) -> Response:
    ask = await asked(request, AskMap)
    sight = await _seen(request, ask)
    # no model computes: it need not wait for the worker
    return floats(await asyncio.to_thread(sight.map, ask.kind, ask.combine, ask.layer, ask.head, ask.words))


async def steps(request: Request) -> Response:
    ask = await asked(request, AskSteps)
    sight = await _seen(request, ask)
    without = heads_named(ask.without)
    found = await computed(request, sight.steps, ask.kind, ask.layer, ask.head, ask.place, without)
    group = sight.group(ask.kind)
    told = _head_steps(found) if group.heads is not None else {"steps": [step.as_dictionary() for step in found]}
    return json_answer({"query": group.queries.tokens[ask.place], **told})


# ---------------------------------------------------------------- sights


def kept(state: Any) -> Kept:
    if not hasattr(state, "sights"):
        state.sights = Kept()
    found: Kept = state.sights
    return found


async def _seen(request: Request, ask: Look) -> Sight:
    """The kept one at once; where there is none (any more), it is seen again."""
    shelf = shelf_of(request)
    ask, found = await asyncio.to_thread(_known, kept(request.app.state), shelf, ask)
    if found is not None:
        return found
    seen: Sight = await computed(request, _sight, request.app.state, shelf, ask)
    return seen


def _known(sights: Kept, shelf: Shelf, ask: AnyLook) -> tuple[AnyLook, Sight | None]:
    """Reads files: an example, and which weights there are."""
    ask = _filled(shelf, ask)
    return ask, sights.find(ask.key(shelf))


def _sight(state: Any, shelf: Shelf, ask: Look) -> Sight:
    sights, key = kept(state), ask.key(shelf)
    found = sights.find(key)
    if found is not None:
        return found
    if ask.without:
        whole = _sight(state, shelf, ask.model_copy(update={"without": []}))
        found = looked(whole.job, heads_named(ask.without), whole.outcome)
    else:
        model = shelf.load(ask.run, ask.update)
        found = looked(job_of(model, Text(ask.text or "", ask.second, ask.target, ask.tag)))
    sights.add(key, found)
    return found


def _filled(shelf: Shelf, ask: AnyLook) -> AnyLook:
    """With an example where no text was given."""
    if ask.text is not None:
        return ask
    folder = shelf.folder(ask.run)
    example = _example(folder, _written(folder.recipe_file))
    return ask.model_copy(update={"text": example.text, "second": example.second})


@lru_cache(maxsize=64)
def _example(folder: RunFolder, written: int) -> Text:
    """`written`: when its recipe was. A run may be made anew in the same folder."""
    return example_of(folder.recipe())


def _written(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


# ---------------------------------------------------------------- in JSON


def _told(state: Any, shelf: Shelf, ask: Look) -> dict[str, Any]:
    ask = _filled(shelf, ask)
    sight = _sight(state, shelf, ask)
    whole = _sight(state, shelf, ask.model_copy(update={"without": []})) if ask.without else sight
    return {
        "text": ask.text,
        "second": ask.second,
        "groups": [_group(name, group) for name, group in sight.groups.items()],
        "rolls": sight.rolls,
        "difference": whole.difference,
        "outcome": _outcome(whole.outcome),
        "changed": _outcome(sight.outcome) if ask.without else None,
        "notes": whole.notes,
        "tags": whole.job.tags,
    }


def _group(name: str, group: Group) -> dict[str, Any]:
    return {
        "name": name,
        "layers": [tap.layer for tap in group.taps],
        "taps": [tap.name for tap in group.taps],
        "heads": group.heads,
        "queries": _side(group.queries),
        "keys": _side(group.keys),
    }


def _side(side: Side) -> dict[str, Any]:
    return {"tokens": side.tokens, "words": side.words, "texts": side.texts}


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return asdict(outcome)


def _head_steps(found: tuple[Step, ...]) -> dict[str, Any]:
    """The keys that count most, in their order, each with its vectors and its way from the product to the weight."""
    step = {one.symbol: one for one in found}
    weights, queries, keys = (step[symbol].values for symbol in ("softmax", "q", "k"))
    largest = np.sort(np.argsort(-weights, kind="stable")[:SHOWN_KEYS])
    columns = {
        "dot": keys @ queries,
        "scaled": step["q·k/√d_k"].values,
        "masked": step["mask"].values,
        "weight": weights,
    }
    if "+ b" in step:
        columns["biased"] = step["+ b"].values
    rows = [
        {
            "place": place,
            "key": step["k"].labels[place],
            **{name: float(values[place]) for name, values in columns.items()},
            "k": step["k"].values[place].tolist(),
            "v": step["v"].values[place].tolist(),
        }
        for place in largest.tolist()
    ]
    formulas = {one.symbol: one.formula for one in found}
    return {
        "formulas": formulas,
        "keys": rows,
        "count": len(weights),
        "q": queries.tolist(),
        "value": step["Σ"].values.tolist(),
    }


ROUTES: list[Route] = [
    post("/api/attention/look", look),
    post("/api/attention/grid", grid),
    post("/api/attention/map", one_map),
    post("/api/attention/steps", steps),
]
