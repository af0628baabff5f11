"""LibreTranslate's API, so that its clients work: POST /translate (JSON or a form), GET /languages, POST /detect.

A service knows the languages of its runs (`--language NAME=en-fr`, or from the embedded grammar). Which language a text
is in, "auto" finds among those: the one whose vocabulary knows most of it, in the fewest pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from jumok.serve.asking import JSON_BODY, body_of, content_type, takes
from jumok.serve.guard import missing_key
from jumok.serve.problems import Problem, problem_of, told
from jumok.serve.schema import LibreAsk, LibreProblemTold, LibreTold
from jumok.serve.service import Service, all_of, check_texts, service_of
from jumok.tasks.wishes import Wishes

if TYPE_CHECKING:
    from jumok.serve.models import Served

router = APIRouter()
FORM, FILES = "application/x-www-form-urlencoded", "multipart/form-data"
FIELDS = 32
NAMES = {
    "ar": "Arabic", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish",
    "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian",
    "it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "no": "Norwegian", "pl": "Polish",
    "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sv": "Swedish", "th": "Thai", "tr": "Turkish",
    "uk": "Ukrainian", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
AS_FORM = {"$ref": "#/components/schemas/LibreAsk"}
WRONG: dict[int | str, dict[str, Any]] = {"4XX": {"model": LibreProblemTold}, "5XX": {"model": LibreProblemTold}}


@router.post(
    "/translate",
    summary="Translate, as LibreTranslate does.",
    openapi_extra=takes(LibreAsk, application__x_www_form_urlencoded=AS_FORM),
    responses={200: {"model": LibreTold}, **WRONG},
)
async def translate(request: Request) -> Response:
    service = service_of(request)
    asked = await _asked(request)
    _check_key(request, asked.api_key)
    if asked.format == "html":
        raise Problem(400, "invalid", "format html is not translated here: send the text between the tags as text")
    texts = [asked.q] if isinstance(asked.q, str) else asked.q
    check_texts(texts, service.settings, "q")
    chosen = [_chosen(service, asked.source, asked.target, text) for text in texts]
    wishes = Wishes(nbest=1 + asked.alternatives)
    futures = []
    by_model: dict[str, list[int]] = {}
    for place, (served, _, _) in enumerate(chosen):
        by_model.setdefault(served.name, []).append(place)
    placed: dict[int, Any] = {}
    try:
        for places in by_model.values():
            worker: Any = chosen[places[0]][0].worker
            accepted = worker.accept([texts[place] for place in places], wishes, None, service.settings.seconds)
            placed |= zip(places, accepted, strict=True)
    except BaseException:
        for future in placed.values():
            future.cancel()
        raise
    futures = [placed[place] for place in range(len(texts))]
    try:
        found = await all_of(futures, "q")
    except Problem as problem:  # LibreTranslate knows no 422
        raise Problem(400, problem.code, problem.message, problem.where) from None
    answer: dict[str, Any] = {"translatedText": [one[0].text for one in found]}
    if asked.source == "auto":
        answer["detectedLanguage"] = [{"confidence": sure, "language": source} for _, source, sure in chosen]
    if asked.alternatives:
        answer["alternatives"] = [[other.text for other in one[1:]] for one in found]
    return told({key: value[0] for key, value in answer.items()} if isinstance(asked.q, str) else answer)


@router.get("/languages", summary="The languages of the models, as LibreTranslate tells them.")
async def languages(request: Request) -> Response:
    service = service_of(request)
    targets: dict[str, list[str]] = {}
    for served in service.served():
        if served.languages is not None:
            source, target = served.languages
            targets.setdefault(source, []).append(target)
            targets.setdefault(target, [])
    return told(
        [{"code": code, "name": NAMES.get(code, code), "targets": found} for code, found in sorted(targets.items())]
    )


@router.post(
    "/detect",
    summary="Which language a text is in, among those of the models.",
    responses=WRONG,
    openapi_extra={
        "requestBody": {
            "content": {
                kind: {
                    "schema": {
                        "type": "object",
                        "properties": {"q": {"type": "string"}, "api_key": {"type": "string"}},
                        "required": ["q"],
                    }
                }
                for kind in (JSON_BODY, FORM)
            }
        }
    },
)
async def detect(request: Request) -> Response:
    service = service_of(request)
    given = await _fields(request)
    _check_key(request, given.get("api_key"))
    text = given.get("q")
    if not isinstance(text, str):
        raise Problem(400, "invalid", "Invalid request: missing q parameter")
    check_texts([text], service.settings, "q")
    service.model(None, "translation")
    found = {source: known(served, text) for served in service.served() for source in [_source(served)] if source}
    ranked = sorted(found.items(), key=lambda item: -item[1])
    return told([{"confidence": round(100 * sure, 1), "language": source} for source, sure in ranked])


# ---------------------------------------------------------------- what is asked


async def _asked(request: Request) -> LibreAsk:
    """A form's values are all text; its numbers are read as such."""
    try:
        if content_type(request) == JSON_BODY:
            return LibreAsk.model_validate_json(body_of(request))
        return LibreAsk.model_validate(await _fields(request))
    except ValidationError as error:
        problem = problem_of(error)
        assert problem is not None
        raise Problem(400, problem.code, f"Invalid request: {problem.message}") from None


async def _fields(request: Request) -> dict[str, Any]:
    given = content_type(request)
    try:
        if given == JSON_BODY:
            return _Fields.model_validate_json(body_of(request)).model_dump()
        if given == FORM:
            body = (body_of(request)).decode("utf-8")
            found: dict[str, list[str]] = parse_qs(body, keep_blank_values=True, max_num_fields=FIELDS)
            if len(found.get("q", [])) > 1:
                return {**{name: values[0] for name, values in found.items()}, "q": found["q"]}
            return {name: values[0] for name, values in found.items()}
        if given == FILES:
            async with request.form(max_files=0, max_fields=FIELDS) as form:
                return {name: value for name, value in form.items() if not isinstance(value, UploadFile)}
    except ValidationError:
        raise Problem(400, "invalid", "Invalid request: q must be a text") from None
    except (UnicodeDecodeError, ValueError, HTTPException, KeyError):
        raise Problem(400, "form", "Invalid request: the form cannot be read") from None
    raise Problem(400, "content_type", f"Invalid request: send {JSON_BODY} or {FORM}")


class _Fields(LibreAsk):
    """Of /detect: only a text is needed."""

    source: str = ""
    target: str = ""


def _check_key(request: Request, key: Any) -> None:
    guard: Any = request.scope["jumok.guard"]
    if not request.scope["jumok.known"] and not guard.knows(
        key.encode(errors="replace") if isinstance(key, str) else None
    ):
        raise missing_key()


# ---------------------------------------------------------------- languages


def _source(served: Served) -> str | None:
    return served.languages[0] if served.languages is not None else None


def _chosen(service: Service, source: str, target: str, text: str) -> tuple[Served, str, float]:
    """The model for a text, the language it is in, and how sure that is (in percent)."""
    service.model(None, "translation")  # says if there is none, or none yet
    fitting = [one for one in service.served() if one.languages is not None and one.languages[1] == target]
    if source != "auto":
        fitting = [one for one in fitting if _source(one) == source]
    if not fitting:
        pairs = sorted({"-".join(one.languages) for one in service.served() if one.languages is not None})
        there = f"There is: {', '.join(pairs)}" if pairs else "Say what the runs translate: --language NAME=en-fr"
        raise Problem(400, "language", f"{source[:20]}-{target[:20]} is not translated here. {there}")
    if source != "auto":
        return fitting[0], source, 100.0
    best = max(fitting, key=lambda one: known(one, text))
    return best, _source(best) or "", round(100 * known(best, text), 1)


def known(served: Served, text: str) -> float:
    """How well a model's vocabulary fits a text, from 0 to 1: the share that it knows, in as long pieces as can be.

    A vocabulary cuts its own language into long pieces and others into short ones.
    """
    tokenizer = served.model.source
    sample = text[:500].strip()
    (ids,) = tokenizer.encode([sample])
    letters = sum(not character.isspace() for character in sample)
    if not ids or not letters:
        return 0.0
    share = 1 - sum(id == tokenizer.specials.unknown for id in ids) / len(ids)
    return share * min(1.0, letters / len(ids) / 3)
