"""What runs that read texts can be asked: labels, tags, answers, vectors, and hidden words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from jumok.serve.asking import read_json, takes
from jumok.serve.computing import Ask, Classify, Embed, Fill, Tag
from jumok.serve.problems import Problem, told
from jumok.serve.schema import (
    AnswerAsk,
    AnswerTold,
    ClassifyAsk,
    ClassifyTold,
    EmbedAsk,
    EmbedTold,
    FillAsk,
    FillTold,
    TagAsk,
    TagTold,
)
from jumok.serve.service import Service, all_of, check_texts, service_of
from jumok.tasks.filler import MASK

router = APIRouter()
LABELLING = ("classification", "regression")
FILLED = 1 << 22  # characters of all guesses of a request: each is told with its whole text
READING = ("pretraining", "classification", "regression", "tagging", "answering")


async def computed(
    service: Service, name: str | None, tasks: Sequence[str], jobs: Sequence[Any], key: str
) -> tuple[str, list[Any]]:
    """The name of the model that was asked, and its answers."""
    served = service.model(name, tasks)
    worker: Any = served.worker
    return served.name, await all_of(worker.accept(jobs, service.settings.seconds), key)


@router.post(
    "/v1/classify",
    summary="Label texts, or pairs of them.",
    openapi_extra=takes(ClassifyAsk),
    responses={200: {"model": ClassifyTold}},
)
async def classify(request: Request) -> Response:
    service, asked = service_of(request), read_json(request, ClassifyAsk)
    texts = asked.texts()
    check_texts(texts, service.settings)
    seconds: Sequence[str | None] = [None] * len(texts)
    if asked.second is not None:
        seconds = [asked.second] if isinstance(asked.second, str) else asked.second
        check_texts([second for second in seconds if second is not None], service.settings, "second")
        if len(seconds) != len(texts):
            message = f"{len(texts)} first texts and {len(seconds)} second ones: they must pair up"
            raise Problem(422, "invalid", message, "second")
    jobs = [Classify(text, second) for text, second in zip(texts, seconds, strict=True)]
    name, found = await computed(service, asked.model, LABELLING, jobs, "text")
    return told({"model": name, "labels": [labelled(said, asked.best) for said in found]})


def labelled(said: Any, best: int) -> dict[str, Any]:
    if not said.probabilities:  # a run that tells numbers
        return {"label": float(said.label)}
    shares: Mapping[str, float] = said.probabilities
    ranked = sorted(shares.items(), key=lambda item: -item[1])[:best]
    return {"label": said.label, "probabilities": dict(ranked)}


@router.post(
    "/v1/tag", summary="Tag the words of sentences.", openapi_extra=takes(TagAsk), responses={200: {"model": TagTold}}
)
async def tag(request: Request) -> Response:
    service, asked = service_of(request), read_json(request, TagAsk)
    texts = asked.texts()
    check_texts(texts, service.settings)
    jobs = [Tag.of(text) for text in texts]
    name, found = await computed(service, asked.model, ("tagging",), jobs, "text")
    pairs = zip(jobs, found, strict=True)
    return told({"model": name, "sentences": [{"words": list(job.words), "tags": list(tags)} for job, tags in pairs]})


@router.post(
    "/v1/answer",
    summary="Answer questions from a text.",
    openapi_extra=takes(AnswerAsk),
    responses={200: {"model": AnswerTold}},
)
async def answer(request: Request) -> Response:
    service, asked = service_of(request), read_json(request, AnswerAsk)
    questions = [asked.question] if isinstance(asked.question, str) else asked.question
    check_texts(questions, service.settings, "question")
    check_texts([asked.context], service.settings, "context")
    jobs = [Ask(question, asked.context, asked.best) for question in questions]
    name, found = await computed(service, asked.model, ("answering",), jobs, "question")
    answers = [[one.best, *one.others][: asked.best] for one in found]
    shown = [
        [{"text": each.text, "start": each.start, "probability": each.probability} for each in one] for one in answers
    ]
    return told({"model": name, "answers": shown})


@router.post(
    "/v1/embed",
    summary="Turn texts into vectors.",
    openapi_extra=takes(EmbedAsk),
    responses={200: {"model": EmbedTold}},
)
async def embed(request: Request) -> Response:
    service, asked = service_of(request), read_json(request, EmbedAsk)
    texts = asked.texts()
    check_texts(texts, service.settings)
    jobs = [Embed(text, pooling=asked.pooling, normalise=asked.normalise) for text in texts]
    name, found = await computed(service, asked.model, READING, jobs, "text")
    return told({"model": name, "vectors": [vector.tolist() for vector in found]})


@router.post(
    "/v1/fill",
    summary="Guess hidden words.",
    openapi_extra=takes(FillAsk),
    responses={200: {"model": FillTold}},
)
async def fill(request: Request) -> Response:
    service, asked = service_of(request), read_json(request, FillAsk)
    texts = asked.texts()
    check_texts(texts, service.settings)
    filled = sum(text.count(MASK) * asked.best * len(text) for text in texts)
    if filled > FILLED:
        message = f"the guesses would have {filled:,} characters, each with its text: {FILLED:,} are told at a time"
        raise Problem(413, "too_many", f"{message}. Ask for fewer (best), or hide less", "text")
    jobs = [Fill(text, asked.best) for text in texts]
    name, found = await computed(service, asked.model, ("pretraining",), jobs, "text")
    guesses = [
        [[{"token": g.token, "probability": g.probability, "text": g.text} for g in place] for place in places]
        for places in found
    ]
    return told({"model": name, "guesses": guesses})
