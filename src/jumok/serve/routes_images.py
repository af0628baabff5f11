"""What runs that look at pictures can be asked: classes, and the words in them.

A picture comes as a file of a form, as the body itself, or as base64 in JSON. It is decoded where it is computed: not
here, and within the limits of `data/images/picture.py`, which reads sizes before it makes room for them.
"""

from __future__ import annotations

import base64
import binascii
import sys
from typing import TypeVar

from fastapi import APIRouter
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request
from starlette.responses import Response

from jumok.serve.asking import JSON_BODY, body_of, content_type, read_json, takes
from jumok.serve.computing import ClassifyImage, ReadImage
from jumok.serve.problems import Problem, told
from jumok.serve.routes_texts import computed, labelled
from jumok.serve.schema import ImageClassifyAsk, ImageClassifyTold, ImageReadAsk, ImageReadTold, PicturesAsk
from jumok.serve.service import service_of
from jumok.serve.settings import Settings
from jumok.tasks.text_reader import Way

router = APIRouter()
FORM = "multipart/form-data"
SPARE = 128  # commas between keys, and in the name of a model
FIELDS = 16  # of a form, beside its files
BINARY = {"type": "string", "format": "binary"}
AS_FORM = {"type": "object", "properties": {"file": {"type": "array", "items": BINARY}}, "required": ["file"]}
Asked = TypeVar("Asked", bound=PicturesAsk)


@router.post(
    "/v1/image/classify",
    summary="Tell the class of pictures.",
    openapi_extra=takes(ImageClassifyAsk, multipart__form_data=AS_FORM, image__png=BINARY),
    responses={200: {"model": ImageClassifyTold}},
)
async def classify(request: Request) -> Response:
    service = service_of(request)
    asked, pictures = await pictures_of(request, ImageClassifyAsk, service.settings)
    jobs = [ClassifyImage(picture, _name(place, pictures)) for place, picture in enumerate(pictures)]
    name, found = await computed(service, asked.model, ("vision",), jobs, "image")
    return told({"model": name, "images": [labelled(said, asked.best) for said in found]})


@router.post(
    "/v1/image/read",
    summary="Read the words in pictures.",
    openapi_extra=takes(ImageReadAsk, multipart__form_data=AS_FORM, image__png=BINARY),
    responses={200: {"model": ImageReadTold}},
)
async def read(request: Request) -> Response:
    service = service_of(request)
    asked, pictures = await pictures_of(request, ImageReadAsk, service.settings)
    way = Way(asked.fast, asked.beam, asked.turn, sure=asked.sure)
    jobs = [ReadImage(picture, _name(place, pictures), way) for place, picture in enumerate(pictures)]
    name, found = await computed(service, asked.model, ("recognition",), jobs, "image")
    words = []
    for one in found:
        word = {"text": one.text, "confidence": one.confidence, "turned": one.turned}
        words.append({**word, "characters": one.characters} if asked.characters else word)
    return told({"model": name, "images": words})


def _name(place: int, pictures: list[bytes]) -> str:
    return f"image {place + 1}" if len(pictures) > 1 else "image"


async def pictures_of(request: Request, kind: type[Asked], settings: Settings) -> tuple[Asked, list[bytes]]:
    """What is asked, and the bytes of the pictures. Of a form or a plain body, what is asked stands in the query."""
    given = content_type(request)
    if given == JSON_BODY:
        # neither base64 nor what else is asked has more; to look through a million keys takes many seconds
        if body_of(request).count(b",") > settings.texts + SPARE:
            message = f"this is more than {settings.texts} pictures and what is asked of them"
            raise Problem(413, "too_many", message, "image")
        asked = read_json(request, kind)
        _check_count(len(asked.images()), settings)
        return asked, [_decoded(text, place) for place, text in enumerate(asked.images())]
    if given == FORM:
        pictures = await _files(request, settings)
    elif given.startswith("image/") or given == "application/octet-stream":
        pictures = [body_of(request)]
    else:
        message = f"send a picture (image/png …), a form with files ({FORM}), or JSON with base64 ({JSON_BODY})"
        raise Problem(415, "content_type", message)
    if not all(pictures):
        raise Problem(422, "invalid", "the picture is empty", "file")
    query = dict(request.query_params)
    if "image" in query:
        raise Problem(422, "invalid", "the picture is in the body: leave it out of the address", "image")
    # what stands in an address is text, whatever it means
    return kind.model_validate_strings({**query, "image": "-"}, strict=False), pictures


class _InMemory(MultiPartParser):
    """Starlette would write files of more than a megabyte to the disk: nothing that comes in is stored."""

    spool_max_size = sys.maxsize


async def _files(request: Request, settings: Settings) -> list[bytes]:
    try:
        form = await _InMemory(request.headers, request.stream(), max_files=settings.texts, max_fields=FIELDS).parse()
    except MultiPartException as error:
        raise Problem(400, "form", f"the form cannot be read: {error.message}") from None
    except (UnicodeDecodeError, ValueError, KeyError) as error:
        raise Problem(400, "form", f"the form cannot be read: {type(error).__name__}") from None
    try:
        files = [one for one in form.getlist("file") if isinstance(one, UploadFile)]
        if not files:
            raise Problem(422, "invalid", 'the form has no file under the name "file"', "file")
        return [await one.read() for one in files]
    finally:
        await form.close()


def _check_count(count: int, settings: Settings) -> None:
    if count > settings.texts:
        raise Problem(413, "too_many", f"{count} pictures: a request may have {settings.texts}", "image")


def _decoded(text: str, place: int) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Problem(422, "invalid", "this is no base64", f"image[{place}]") from None
