"""What the page "translate" asks: a search with its whole tree, and what its outputs looked at."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jumok.errors import BadInput, JumokError
from jumok.inspect.attention import Attention
from jumok.inspect.tokens import Read, Tokens, Vocabulary
from jumok.inspect.view import View
from jumok.layers.tap import Tap
from jumok.recipe.sections import LONGEST_OUTPUT
from jumok.studio.answers import Asked, asked, computed, floats, get, json_answer, post, shelf_of
from jumok.studio.beam_tree import Searched, check_tokens, search_tree
from jumok.studio.shelf import PACKAGED, Shelf
from jumok.tasks.wishes import Wishes
from jumok.text.special import END, START, UNKNOWN
from jumok.trained import TrainedTranslator

WIDEST = 8  # beams that can be looked at
FIRST = {
    "en": "The white house does not have a garden.",
    "fr": "La maison blanche n'a pas de jardin.",
    "ko": "하얀 집에는 정원이 없다.",
    "de": "Das weiße Haus hat keinen Garten.",
}  # what has been translated when the page opens: words change their places in it


class Searching(Asked):
    run: str
    text: str
    beam: int = Field(ge=1, le=WIDEST)
    length_penalty: float = Field(ge=0, le=10)
    nbest: int = Field(default=1, ge=1, le=WIDEST)
    prefix: list[int] = Field(default=[], max_length=LONGEST_OUTPUT)  # tokens
    tag: str | None = None


class Looking(Asked):
    """At one output: token ids without `<eos>`, and whether the model ended it itself."""

    run: str
    text: str
    ids: list[int] = Field(max_length=LONGEST_OUTPUT)
    finished: bool = True
    words: bool = True
    layer: int | None = None
    head: int | None = None
    tag: str | None = None


async def start(request: Request) -> Response:
    return json_answer(await computed(request, _start, shelf_of(request), request.query_params.get("run", PACKAGED)))


async def search(request: Request) -> Response:
    ask = await asked(request, Searching)
    return json_answer(await computed(request, _search, shelf_of(request), ask))


async def attention(request: Request) -> Response:
    ask = await asked(request, Looking)
    picture = await computed(request, _attention, shelf_of(request), ask)
    return floats(picture.weights, name=picture.name)


def prepare(shelf: Shelf) -> None:
    """The sentence that is there at first open, of the run that is first: what takes time once has then been done."""
    readable = (entry for entry in shelf.entries() if entry["state"] != "damaged")
    name = next((entry["name"] for entry in readable if entry["task"] == "translation"), PACKAGED)
    with contextlib.suppress(JumokError):  # the page will say what is wrong with it
        begin = _start(shelf, name)
        ask = Searching(run=name, text=begin["text"], beam=begin["beam"], length_penalty=begin["length_penalty"])
        best = _search(shelf, ask)["outputs"][0]
        _attention(shelf, Looking(run=name, text=ask.text, ids=best["ids"], finished=best["finished"]))


ROUTES: list[Route] = [
    get("/api/translate/start", start),
    post("/api/translate/search", search),
    post("/api/translate/attention", attention),
]

# ---------------------------------------------------------------- computed in the worker


def _translator(shelf: Shelf, name: str, tag: str | None = None) -> TrainedTranslator:
    model = shelf.load(name)
    if not isinstance(model, TrainedTranslator):
        raise BadInput(f'the run "{name}" does not translate: choose one that does')
    return model if tag is None else model.tagged(tag)


def _start(shelf: Shelf, name: str) -> dict[str, Any]:
    """How the page opens for a run: a sentence it can read, the recipe's search, and the attentions to choose from."""
    translator = _translator(shelf, name)
    languages = shelf.entry(name)["languages"] or [""]
    taps = [module for module in translator.model.modules() if isinstance(module, Tap) and module.kind == "cross"]
    usual = View().tap(translator.model) if taps else None
    return {
        "text": FIRST.get(languages[0]) or _readable(translator),
        "beam": min(translator.search.beam, WIDEST),
        "length_penalty": translator.search.length_penalty,
        "widest": WIDEST,
        "tags": list(translator.source.tags),
        "layers": len(taps),
        "heads": 0 if usual is None else usual.heads or 0,  # 0: one attention without heads, or none at all
        "layer": None if usual is None else usual.layer,
    }


def _readable(translator: TrainedTranslator) -> str:
    """Of a run that nobody knows the language of: the sentence that its vocabulary reads best."""

    def strangeness(text: str) -> tuple[int, float]:
        ids = translator.source.encode([text])[0]
        return ids.count(UNKNOWN), len(ids) / len(text)

    return min(FIRST.values(), key=strangeness)


def _search(shelf: Shelf, ask: Searching) -> dict[str, Any]:
    translator = _translator(shelf, ask.run, ask.tag)
    wishes = Wishes(nbest=min(ask.nbest, ask.beam), beam=ask.beam, length_penalty=ask.length_penalty)
    text = ask.text.strip()
    found = search_tree(translator, text, wishes, ask.prefix)
    spelled = _spelled(translator, text, found)
    tokens = list(dict.fromkeys(node.token for node in found.nodes))
    return {
        "source": spelled[0][0],
        "outputs": [
            {
                "text": translator.target.decode([one.hypothesis.tokens])[0],
                "ids": one.hypothesis.tokens,
                "score": one.hypothesis.score,
                "log_probability": one.hypothesis.log_probability,
                "finished": one.hypothesis.finished,
                "nodes": one.nodes,
                "target": target,
            }
            for one, (_, target) in zip(found.outputs, spelled, strict=True)
        ],
        "nodes": [
            [one.number, one.parent, one.step, one.token, one.log_probability, one.score, one.fate]
            for one in found.nodes
        ],
        "pieces": dict(zip(tokens, translator.target.pieces(tokens), strict=True)),
        "end": END,
        "unknown": translator.unknown_words(text),
    }


def _attention(shelf: Shelf, ask: Looking) -> Attention:
    translator = _translator(shelf, ask.run, ask.tag)
    translator.refuse_long([ask.text])
    check_tokens(translator, ask.ids)
    view = View(ask.layer, ask.head)
    return translator.attentions([ask.text.strip()], [ask.ids], ask.words, view=view, ended=[ask.finished])[0]


# ---------------------------------------------------------------- what the tokens are called

Side = dict[str, Any]


def _spelled(translator: TrainedTranslator, text: str, found: Searched) -> list[tuple[Side, Side]]:
    """For each output, what was read and what was written, by words and by tokens."""
    vocabulary = Vocabulary(translator.source, translator.target)
    sides = []
    for one in found.outputs:
        written = (START, *one.hypothesis.tokens)
        read = Read((*found.source, END), written, vocabulary, text, ended=one.hypothesis.finished)
        queries, keys = read.sides("cross")
        assert queries is not None
        assert keys is not None
        nothing = np.zeros((len(queries), len(keys)), np.float32)
        names = Attention(keys.tokens, queries.tokens, nothing).merge(
            keys.words, queries.words, text.split(), queries.text.split()
        )
        sides.append((_side(keys, names.source, True), _side(queries, names.target, one.hypothesis.finished)))
    return sides


def _side(tokens: Tokens, words: Sequence[str], ended: bool) -> Side:
    """`of`: which of the words each token belongs to; `ended`: the last one is `<eos>`."""
    of, count = [], -1
    for place, word in enumerate(tokens.words):
        if word is None or place == 0 or word != tokens.words[place - 1]:
            count += 1
        of.append(count)
    return {"tokens": tokens.tokens, "words": words, "of": of, "ended": ended}
