"""What the page "Train" asks: which runs there are, their curves as they grow, and to start, stop and resume one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

import numpy as np
from pydantic import Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jumok.errors import BadInput, JumokError
from jumok.inspect.view import View
from jumok.studio import curves, processes, starting
from jumok.studio.answers import Asked, act, asked, computed, floats, get, json_answer, post, settings_of, shelf_of
from jumok.studio.processes import Job, Processes, processes_of
from jumok.studio.shelf import PACKAGED, Shelf
from jumok.studio.streams import BEAT, EVERY, Placed, Tail, event_stream
from jumok.trained import TrainedTranslator

KIND = "train"
BETWEEN = "-"  # places, where several are told as one
MOST_RUNS = 12  # whose curves are shown together
KEPT = (
    "name", "title", "state", "task", "network", "updates", "planned", "metric", "best", "best_update", "problem",
    "checkpoints", "heads", "languages",
)  # fmt: skip
Name = Annotated[str, Field(max_length=300)]

# ---------------------------------------------------------------- what there is


async def recipes(request: Request) -> Response:
    return json_answer({"recipes": await asyncio.to_thread(starting.listed)})


async def runs(request: Request) -> Response:
    return json_answer(await asyncio.to_thread(_runs, shelf_of(request), processes_of(request.app)))


def _runs(shelf: Shelf, known: Processes) -> dict[str, Any]:
    for job in known.of(KIND):
        if (job.folder / "recipe.yaml").is_file():
            shelf.add(job.name, job.folder)
    entries = [{name: entry.get(name) for name in KEPT} | _of_job(known, entry) for entry in shelf.entries()]
    there = {entry["name"] for entry in entries}
    for job in known.of(KIND):  # what has not written its recipe yet, or never did
        if job.name not in there:
            nothing = dict.fromkeys(KEPT) | {"name": job.name, "title": job.name, "updates": 0}
            state = "starting" if job.is_running else job.state
            entries.append({**nothing, "state": state, "job": job.told(), "resumable": False})
    return {"runs": entries, "busy": len(known.running), "at_once": processes.AT_ONCE}


def _of_job(known: Processes, entry: dict[str, Any]) -> dict[str, Any]:
    """What our own process says of a run, where it is or was ours; and whether the run can be gone on with."""
    job = known.find(KIND, entry["name"])
    resumable = entry["state"] == "stopped" and entry["name"] != PACKAGED and not (job and job.is_running)
    state = job.state if job is not None and job.is_running else entry["state"]
    return {"job": job.told() if job is not None else None, "resumable": resumable, "state": state}


class Chosen(Asked):
    runs: Annotated[list[Name], Field(max_length=MOST_RUNS)]


async def look(request: Request) -> Response:
    """The curves of some runs, each with the place in its metrics from which `events` goes on."""
    chosen, shelf = await asked(request, Chosen), shelf_of(request)

    def found() -> dict[str, Any]:
        return {name: curves.of_run(shelf.folder(name)) for name in chosen.runs}

    return json_answer({"runs": await asyncio.to_thread(found)})


async def events(request: Request) -> Response:
    """?run=NAME&from=PLACE, repeated: the lines of their metrics as they come; and whatever changes in the list. Who
    was listening before says so (Last-Event-ID: the places of all of them), and goes on there."""
    names, places = request.query_params.getlist("run"), request.query_params.getlist("from")
    if len(names) != len(places) or len(names) > MOST_RUNS or not all(place.isdecimal() for place in places):
        raise BadInput(f"ask for up to {MOST_RUNS} runs, each as run=NAME&from=PLACE")
    before = request.headers.get("last-event-id", "").split(BETWEEN)
    if len(before) == len(names) and all(place.isascii() and place.isdecimal() for place in before):
        places = before
    shelf = shelf_of(request)

    def followed() -> dict[str, Tail]:
        asked_for = zip(names, places, strict=True)
        return {name: Tail(shelf.folder(name).metrics, int(place[:18])) for name, place in asked_for}

    tails = await asyncio.to_thread(followed)
    return event_stream(_told(shelf, processes_of(request.app), tails))


async def _told(shelf: Shelf, known: Processes, tails: dict[str, Tail]) -> AsyncIterator[Placed | None]:
    """{"run", "place", "points"} for lines, {"run", "anew": true} where a run went back, {"list": …} for the rest."""
    before: Any = None
    places = {name: tail.place for name, tail in tails.items()}  # that the messages so far have told

    def placed(message: dict[str, Any]) -> Placed:
        return Placed(message, BETWEEN.join(map(str, places.values())))

    quiet_since = listed = time.monotonic()
    while not known.is_closed:
        told = False
        for name, tail in tails.items():
            anew, lines = await asyncio.to_thread(tail.more)
            places[name] = tail.place
            points = [point for line in lines if (point := curves.point(line)) is not None]
            if anew or lines:
                told = True
                found = {"run": name, "anew": True} if anew else {"run": name, "place": tail.place, "points": points}
                yield placed(found)
        now = time.monotonic()
        if before is None or now - listed >= 4 * EVERY:  # the list reads more files than one line each
            listed = now
            found = await asyncio.to_thread(_runs, shelf, known)
            if found != before:
                before, told = found, True
                yield placed({"list": found})
        if told:
            quiet_since = now
        elif now - quiet_since >= BEAT:
            quiet_since = now
            yield None
        await asyncio.sleep(EVERY)


# ---------------------------------------------------------------- start, stop, resume


class Start(Asked):
    recipe: Name
    overrides: list[str] = Field(default_factory=list, max_length=starting.MOST_KEYS)
    minutes: Annotated[float | None, Field(gt=0, le=10_080, strict=False)] = None
    seed: Annotated[int | None, Field(ge=0, le=2**31 - 1)] = None


class Named(Asked):
    run: Name


async def start(request: Request) -> Response:
    ask = await asked(request, Start)
    overrides = [*ask.overrides, *([f"seed={ask.seed}"] if ask.seed is not None else [])]
    await asyncio.to_thread(starting.recipe_of, ask.recipe, overrides)
    shelf, known = shelf_of(request), processes_of(request.app)
    taken = {*shelf.names, *(job.name for job in known.of(KIND))}
    folder = await asyncio.to_thread(starting.free_folder, settings_of(request).runs.absolute(), ask.recipe, taken)
    minutes = ["--minutes", f"{ask.minutes:g}"] if ask.minutes is not None else []

    def ended(job: Job) -> None:
        shelf.forget(job.name)
        starting.let_go(folder)

    try:
        known.start(KIND, folder.name, folder, ["train", ask.recipe, *overrides, "--run", str(folder), *minutes], ended)
    except BadInput:
        starting.let_go(folder)
        raise
    shelf.reserve(folder)
    return json_answer({"run": folder.name})


async def stop(request: Request) -> Response:
    """As Ctrl-C does: after the update that is under way, with all that is needed to resume."""
    ask = await asked(request, Named)
    job = processes_of(request.app).find(KIND, ask.run)
    if job is None or not job.is_running:
        raise BadInput(f'"{ask.run[:60]}" is not a training that this studio has started and that still runs')
    job.stop()
    return json_answer({"run": ask.run})


async def resume(request: Request) -> Response:
    ask, shelf = await asked(request, Named), shelf_of(request)
    entry = await asyncio.to_thread(shelf.entry, ask.run)
    known = processes_of(request.app)
    if not _of_job(known, entry)["resumable"]:
        raise BadInput(f'"{ask.run[:60]}" cannot be resumed: it is {entry["state"]}')
    folder = shelf.folder(ask.run).path.absolute()
    arguments = ["train", "--resume", "--run", str(folder)]
    known.start(KIND, ask.run, folder, arguments, lambda job: shelf.forget(job.name))
    return json_answer({"run": ask.run})


# ---------------------------------------------------------------- the same sentence, over checkpoints


class Look(Asked):
    run: Name
    update: Annotated[int, Field(ge=0)]
    sentence: Annotated[str, Field(max_length=400)]
    target: Annotated[str | None, Field(max_length=800)] = None  # without it: what the newest checkpoint writes
    layer: Annotated[int | None, Field(ge=0, le=200)] = None
    head: Annotated[int | None, Field(ge=0, le=1000)] = None


async def attention(request: Request) -> Response:
    """A training that goes on takes old checkpoints away: one that is not there any more is told, and no error."""
    ask, shelf = await asked(request, Look), shelf_of(request)
    try:
        weights, about = await computed(request, _attention, shelf, ask)
    except (JumokError, OSError):
        if ask.update in shelf.checkpoints(ask.run):
            raise
        weights, about = np.zeros((0, 0)), {"gone": True}
    return floats(weights, **about)


def _attention(shelf: Shelf, ask: Look) -> tuple[Any, dict[str, Any]]:
    """What a checkpoint looks at while it is made to write the same words as all others; and what it writes itself."""
    model = shelf.load(ask.run, ask.update)
    if not isinstance(model, TrainedTranslator) or not model.model.attends:
        raise BadInput(f'"{ask.run}" is no translator with attention')
    sentence, view = ask.sentence.strip(), View(ask.layer, ask.head)
    own = model.nbest([sentence], too_long="truncate")[0][0]
    target = ask.target
    if target is None:
        newest = shelf.checkpoints(ask.run)[-1]
        target = own.text if newest == ask.update else shelf.load(ask.run, newest).translate([sentence])[0]
    if not sentence or not target.strip():
        raise BadInput("there is nothing to look at: give a sentence")
    seen = model.attend(sentence, target, layer=ask.layer, head=ask.head)
    about = {
        "source": list(seen.source), "target": list(seen.target), "own": own.text, "forced": target,
        "name": view.name(model.model), "update": ask.update,
    }  # fmt: skip
    return seen.weights, about


def close(app: Starlette) -> None:
    processes.close(app)


ROUTES: list[Route] = [
    get("/api/train/recipes", recipes),
    get("/api/train/runs", runs),
    post("/api/train/curves", look),
    get("/api/train/events", events),
    post("/api/train/attention", attention),
    act("/api/train/start", start),
    act("/api/train/stop", stop),
    act("/api/train/resume", resume),
]
