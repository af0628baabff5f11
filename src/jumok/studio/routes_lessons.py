"""What the page "Lessons" asks: the lessons, what each computes live, their results, and to run an experiment."""

from __future__ import annotations

import asyncio
import base64
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jumok.errors import BadInput, did_you_mean
from jumok.studio.answers import Asked, act, asked, computed, get, json_answer, post, settings_of
from jumok.studio.lessons import measured, texts
from jumok.studio.lessons.live import LIVE, Live
from jumok.studio.processes import Processes, processes_of
from jumok.studio.streams import BEAT, EVERY, event_stream

KIND = "lab"
MOST_SEEDS = 5
DONE = re.compile(r"\[(\d+)/(\d+)\] ")
Name = Annotated[str, Field(max_length=60)]
Language = Literal["en", "ko"]


def _known(name: str) -> str:
    """A name of the list, whatever was asked for."""
    if name not in texts.names():
        raise BadInput(f'there is no lesson "{name[:60]}".{did_you_mean(name[:60], texts.names())}')
    return name


def _runs(request: Request) -> Path:
    return settings_of(request).runs.absolute()


# ---------------------------------------------------------------- reading


class ListAsked(Asked):
    language: Language = "en"


async def listed(request: Request) -> Response:
    ask = await asked(request, ListAsked)
    return json_answer({"lessons": await asyncio.to_thread(_listed, ask.language, _runs(request))})


def _listed(language: str, runs: Path) -> list[dict[str, Any]]:
    found = []
    for number, name in enumerate(texts.names(), 1):
        verdicts = measured.held(name, runs)[0].result.verdicts
        about = {"number": number, "name": name, "title": texts.title(name, language), "live": name in LIVE}
        found.append({**about, "held": sum(one.holds for one in verdicts), "of": len(verdicts)})
    return found


class LessonAsked(Asked):
    name: Name
    language: Language = "en"


async def lesson(request: Request) -> Response:
    ask = await asked(request, LessonAsked)
    found = await asyncio.to_thread(_lesson, _known(ask.name), ask.language, _runs(request))
    return json_answer({**found, "job": _job(processes_of(request.app), ask.name)})


def _lesson(name: str, language: str, runs: Path) -> dict[str, Any]:
    experiment, words = texts.experiment_of(name), texts.words(language)[name]
    live = LIVE.get(name)
    results = [one.told() for one in measured.held(name, runs)]
    claims = words.get("claims")
    for result in results:
        for verdict, claim in zip(result["verdicts"], claims or [], strict=False):
            if claims is not None and len(claims) == len(result["verdicts"]):
                verdict["said"] = claim
    return {
        "name": name,
        "number": experiment.number,
        "title": texts.title(name, language),
        "source": experiment.source,
        **{part: words[part] for part in texts.TEXTS},
        "results": results,
        "live": _described(live, words["live"]) if live is not None else None,
    }


def _described(live: Live, words: dict[str, Any]) -> dict[str, Any]:
    sliders = [{**vars(slider), "label": words["sliders"][slider.key]} for slider in live.sliders]
    return {"about": words["about"], "names": words["names"], "facts": words.get("facts"), "sliders": sliders}


class LiveAsked(Asked):
    name: Name
    values: Annotated[dict[str, float], Field(max_length=8, strict=False)]


async def live(request: Request) -> Response:
    """A small calculation, at once."""
    ask = await asked(request, LiveAsked)
    name = _known(ask.name)
    if name not in LIVE:
        raise BadInput(f'the lesson "{name}" computes nothing live')
    found = await computed(request, LIVE[name], ask.values)
    return json_answer(found.told())


class PictureAsked(Asked):
    name: Name
    origin: Annotated[str, Field(max_length=60)]
    dark: bool = False
    stamp: Annotated[str, Field(max_length=30)] = ""  # of the result: another one is another question


async def picture(request: Request) -> Response:
    ask = await asked(request, PictureAsked)
    image = await asyncio.to_thread(_picture, _known(ask.name), ask.origin, ask.dark, _runs(request))
    return json_answer({"png": base64.b64encode(image).decode()})


def _picture(name: str, origin: str, dark: bool, runs: Path) -> bytes:
    found = [one for one in measured.held(name, runs) if one.origin == origin]
    if not found:
        raise BadInput(f'there is no result of {name} from "{origin[:60]}"')
    return measured.picture(name, found[0], dark)


# ---------------------------------------------------------------- running


class Run(Asked):
    name: Name
    seeds: Annotated[int, Field(ge=1, le=MOST_SEEDS)] = 1
    effort: Annotated[float, Field(ge=0.05, le=1, strict=False)] = 1.0


class Named(Asked):
    name: Name


async def run(request: Request) -> Response:
    """One experiment at a time: they share the folder, and the machine."""
    ask, known = await asked(request, Run), processes_of(request.app)
    name = _known(ask.name)
    busy = [job for job in known.of(KIND) if job.is_running]
    if busy:
        raise BadInput(f"{busy[0].name} is being measured: stop it, or wait until it is there")
    folder = measured.folder_of(_runs(request), ask.effort)
    options = ["--seeds", str(ask.seeds), "--effort", f"{ask.effort:g}", "--jobs", "1"]
    known.start(KIND, name, folder, ["lab", "run", name, "--out", str(folder), *options])
    return json_answer({"name": name})


async def stop(request: Request) -> Response:
    ask = await asked(request, Named)
    job = processes_of(request.app).find(KIND, ask.name)
    if job is None or not job.is_running:
        raise BadInput(f'"{ask.name[:60]}" is not being measured')
    job.stop()
    return json_answer({"name": ask.name})


def _job(known: Processes, name: str) -> dict[str, Any] | None:
    """How far it is: seeds that are done, of how many; and its last lines."""
    job = known.find(KIND, name)
    if job is None:
        return None
    told = job.told()
    counts = [match.groups() for line in told["lines"] if (match := DONE.match(line))]
    done, of = map(int, counts[-1]) if counts else (0, None)
    return {
        **told,
        "lines": told["lines"][-40:],
        "done": done,
        "of": of,
        "seconds": round(time.time() - job.began) if job.is_running else None,
    }


async def events(request: Request) -> Response:
    """?name=…: the state of this experiment's process, whenever it changes."""
    name = _known(request.query_params.get("name", ""))
    return event_stream(_told(processes_of(request.app), name))


async def _told(known: Processes, name: str) -> AsyncIterator[dict[str, Any] | None]:
    before: Any = None
    quiet_since = time.monotonic()
    while not known.is_closed:
        found = _job(known, name)
        now = time.monotonic()
        if found != before:
            before, quiet_since = found, now
            if found is not None:
                yield {"job": found}
        elif now - quiet_since >= BEAT:
            quiet_since = now
            yield None
        await asyncio.sleep(EVERY)


ROUTES: list[Route] = [
    post("/api/lessons/list", listed),
    post("/api/lessons/lesson", lesson),
    post("/api/lessons/live", live),
    post("/api/lessons/picture", picture),
    get("/api/lessons/events", events),
    act("/api/lessons/run", run),
    act("/api/lessons/stop", stop),
]
