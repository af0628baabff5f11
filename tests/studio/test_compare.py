"""The page "Compare": both maps, their difference and both rows of probabilities are Python's own, on one scale."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from looked_runs import classifier_run, reader_run, translator_run
from playwright.sync_api import expect
from starlette.testclient import TestClient
from studio_server import Studio
from translators import sentences

from jumok import api
from jumok import recipe as recipes
from jumok.inspect.forced import forced_attention
from jumok.inspect.record import record
from jumok.inspect.view import View
from jumok.studio.app import create_app
from jumok.studio.attention_jobs import Text, job_of
from jumok.studio.attention_sights import looked
from jumok.studio.comparing import Row, rows_told, word_keys
from jumok.studio.shelf import Shelf

Open = Callable[..., Any]
READY = ".compare-result:not([aria-busy]) .compare-map:nth-child(3) .matrix"


@pytest.fixture(scope="module", autouse=True)
def _as_it_is() -> Iterator[None]:
    """To compile the faster search takes longer than all of this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jumok.models.fast.compiles", lambda model, precision: False)
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A Transformer with two checkpoints, others with other vocabularies, two classifiers and a reader of pictures."""
    folder = tmp_path_factory.mktemp("runs")
    made = {
        "two": translator_run(folder / "two", updates=2),
        "words": translator_run(folder / "words", kind="word"),
        "lstm": translator_run(folder / "lstm", name="lstm-luong"),
        "good": classifier_run(folder / "good"),
        "bad": classifier_run(folder / "bad", labels=("bad", "good", "other"), layers=1),
        "pictures": reader_run(folder / "pictures"),
    }
    return {name: run.path for name, run in made.items()}


def shelf_with(shelf: Shelf, runs: dict[str, Path]) -> Shelf:
    for name, path in runs.items():
        shelf.add(name, path)
    return shelf


def shelf_of(client: TestClient, runs: dict[str, Path]) -> Shelf:
    return shelf_with(client.app.state.shelf, runs)  # type: ignore[attr-defined]


def ask(client: TestClient, path: str, a: Any, b: Any, status: int = 200, **body: Any) -> Any:
    sides = {name: side if isinstance(side, dict) else {"run": side} for name, side in (("a", a), ("b", b))}
    answer = client.post(f"/api/compare/{path}", json={**sides, **body})
    assert answer.status_code == status, answer.text
    return answer


def maps(answer: Any) -> tuple[Any, dict[str, Any]]:
    shape = tuple(int(side) for side in answer.headers["X-Shape"].split(","))
    return np.frombuffer(answer.content, "<f4").reshape(shape), json.loads(answer.headers["X-About"])


def test_two_checkpoints_by_tokens(client: TestClient, runs: dict[str, Path]) -> None:
    """One head of one layer, and means of both: what `forced_attention` gives for the same output."""
    shelf, (text,) = shelf_of(client, runs), sentences(1)
    sides = {"run": "two", "update": 1}, {"run": "two"}
    first, best = shelf.load("two", 1), shelf.load("two")
    told = ask(client, "look", *sides, text=text).json()
    outputs = [model.nbest([text])[0][0] for model in (first, best)]
    assert [side["output"] for side in told["sides"]] == [output.text for output in outputs]
    assert told["target"] == outputs[0].text
    for kind, layer, head in (("cross", 1, 3), ("self", 0, None), ("causal", 1, 0)):
        view = {"layer": layer, **({} if head is None else {"head": head})}
        found, about = maps(ask(client, "maps", *sides, text=text, kind=kind, by="tokens", **view))
        own = [
            forced_attention(model, [text], [told["target"]], words=False, view=View(layer, head, kind))[0]
            for model in (first, best)
        ]
        assert np.array_equal(found[0], own[0].weights)
        assert np.array_equal(found[1], own[1].weights)
        assert np.array_equal(found[2], own[1].weights - own[0].weights)
        names = next(one for one in told["kinds"] if one["kind"] == kind)["tokens"]
        assert (names["rows"], names["columns"]) == (list(own[0].target), list(own[0].source))
        assert about["scale"] == max(own[0].weights.max(), own[1].weights.max())
        place = about["largest"]["row"], about["largest"]["column"]
        assert abs(found[2]).max() == abs(found[2][place]) == abs(np.float32(about["largest"]["difference"]))
    every, _ = maps(ask(client, "maps", *sides, text=text, kind="cross", by="tokens"))
    each = [maps(ask(client, "maps", *sides, text=text, kind="cross", by="tokens", layer=layer))[0] for layer in (0, 1)]
    assert np.allclose(every, np.mean(each, axis=0), atol=1e-6)


READERS = [
    "data.train.pairs=60", "data.valid.pairs=4", "model.width=16", "model.heads=2", "model.layers=2",
    "model.feed_forward=16", "training.validate_every=4", "training.checkpoint_every=2", "training.updates=4",
    "training.keep=9", "device=cpu",
]  # fmt: skip


@pytest.mark.parametrize(
    ("recipe", "text", "second"),
    [
        ("bert-tiny", "the old [MASK] gives a [MASK] .", None),
        ("tag", "the old man gives a book", None),
        ("answer", "who gives a book ?", "the old man gives a book to his daughter ."),
    ],
)
def test_readers_of_other_tasks(tmp_path: Path, recipe: str, text: str, second: str | None) -> None:
    """Hidden words, tags, answers: both say what they say alone, and how likely each finds what the first one says."""
    api.train(recipes.read(recipe, READERS), tmp_path / "run", quiet=True, report=False)
    shelf = Shelf([("run", tmp_path / "run")], device="cpu")
    sides = {"run": "run", "update": 2}, {"run": "run", "update": 4}
    models = [shelf.load("run", update) for update in (2, 4)]
    texts = {"text": text, **({} if second is None else {"second": second})}
    with TestClient(create_app(shelf), base_url="http://127.0.0.1:8765") as client:
        told = ask(client, "look", *sides, **texts).json()
        same = ask(client, "look", sides[0], sides[0], **texts).json()
        found, _ = maps(ask(client, "maps", *sides, **texts, kind="self", by="tokens", layer=1, head=1))
        ask(client, "look", *sides, text=" ", status=400)
        if recipe == "bert-tiny":
            ask(client, "look", *sides, text="no gap", status=400)
    assert same["a"] == pytest.approx(same["b"])
    assert len(told["labels"]) == len(told["a"]) == len(told["b"]) > 0
    assert told["a"] != told["b"]
    said = [side["label"] for side in told["sides"]]
    if recipe == "bert-tiny":
        guesses = [model.fill(text, 1000) for model in models]
        assert said == [one[0][0].text for one in guesses]
        for side, one in zip("ab", guesses, strict=True):
            shares = [{f"[MASK] {place}: {guess.token}": guess.probability for guess in each}
                      for place, each in enumerate(one, 1)]  # fmt: skip
            known = {name: share for each in shares for name, share in each.items()}
            assert told[side] == pytest.approx([known[name] for name in told["labels"]])
    elif recipe == "tag":
        tags = [model.predict([text])[0] for model in models]
        assert said == [" ".join(f"{word}/{tag}" for word, tag in zip(text.split(), one, strict=True)) for one in tags]
        assert told["labels"] == said[0].split()
    else:
        assert said == [model.answer(text, second).text for model in models]
    (kind,) = told["kinds"]
    assert found.shape == (3, len(kind["tokens"]["rows"]), len(kind["tokens"]["columns"]))
    jobs = [looked(job_of(model, Text(text, second))) for model in models]
    for weights, sight in zip(found, jobs, strict=False):
        assert np.array_equal(weights, sight.map("self", "head", 1, 1, words=False))
    assert kind["tokens"]["rows"] == list(jobs[0].group("self").queries.tokens)


def test_probabilities_of_one_output(client: TestClient, runs: dict[str, Path]) -> None:
    shelf, (text, target) = shelf_of(client, runs), sentences(2)  # any words will do for the output
    told = ask(client, "look", "two", {"run": "two", "update": 1}, text=text, target=target).json()
    assert told["target"] == target
    for side, update in (("a", None), ("b", 1)):
        scored = shelf.load("two", update).score([text], [target])[0]
        assert told["probabilities"]["tokens"]["names"] == list(scored.tokens)
        assert np.allclose(told["probabilities"]["tokens"][side], np.exp(scored.log_probabilities))
        by_words = told["probabilities"]["words"]
        assert by_words["names"] == [*target.split(), "<eos>"]
        assert math.prod(by_words[side]) == pytest.approx(math.exp(scored.log_probability))


def test_other_vocabularies_are_compared_by_words(client: TestClient, runs: dict[str, Path]) -> None:
    shelf, (text, target) = shelf_of(client, runs), sentences(2)
    told = ask(client, "look", "two", "words", text=text, target=target).json()
    assert told["probabilities"]["tokens"] is None
    (cross, *_) = told["kinds"]
    assert cross["tokens"] is None
    assert cross["words"]["rows"] == [*target.split(), "<eos>"]
    assert cross["words"]["columns"] == [*text.split(), "<eos>"]
    found, _ = maps(ask(client, "maps", "two", "words", text=text, target=target, kind="cross", layer=1))
    for place, run in enumerate(("two", "words")):
        (own,) = forced_attention(shelf.load(run), [text], [target], view=View(1))
        assert np.array_equal(found[place], own.weights)
        assert np.allclose(found[place].sum(axis=-1), 1, atol=1e-5)
    message = ask(client, "maps", "two", "words", 400, text=text, kind="cross", by="tokens").json()["error"]["message"]
    assert "by words" in message


def test_a_transformer_and_an_lstm_have_cross_attention_in_common(client: TestClient, runs: dict[str, Path]) -> None:
    shelf, (text,) = shelf_of(client, runs), sentences(1)
    told = ask(client, "look", "two", "lstm", text=text).json()
    assert [(one["kind"], one["layers"], one["heads"]) for one in told["kinds"]] == [("cross", [2, 1], [4, 0])]
    found, _ = maps(ask(client, "maps", "two", "lstm", text=text, kind="cross", by="tokens"))
    (own,) = forced_attention(shelf.load("lstm"), [text], [told["target"]], words=False)
    assert np.array_equal(found[1], own.weights)
    assert "no heads" in ask(client, "maps", "two", "lstm", 400, text=text, kind="cross", head=1).text


def test_classifiers(client: TestClient, runs: dict[str, Path]) -> None:
    """Labels by their names, whatever their order; attention as the layers had it."""
    shelf, (text,) = shelf_of(client, runs), sentences(1)
    told = ask(client, "look", "good", "bad", text=text).json()
    assert told["labels"] == ["good", "bad"]
    assert [side["only"] for side in told["sides"]] == [["좋음"], ["other"]]
    for side, run in (("a", "good"), ("b", "bad")):
        (said,) = shelf.load(run).predict([text])
        assert told[side] == [said.probabilities[label] for label in ("good", "bad")]
    found, _ = maps(ask(client, "maps", "good", "bad", text=text, kind="self", layer=0, head=1, by="tokens"))
    model = shelf.load("bad")
    with record(model.model) as seen:
        model.scores([text])
    assert np.array_equal(found[1], seen.weights(seen.names()[0])[0, 1].numpy())
    names = told["kinds"][0]
    assert len(names["tokens"]["rows"]) == found.shape[1]
    assert names["words"]["columns"][1:-1] == text.split()


def test_what_cannot_be_compared_is_said(client: TestClient, runs: dict[str, Path]) -> None:
    shelf_of(client, runs)
    for a, b, body, words in (
        ("two", "good", {"text": "x"}, "of one task"),
        ("pictures", "pictures", {"text": "x"}, "not compared here"),
        ("two", "words", {"text": " "}, "write one"),
        ("two", {"run": "two", "update": 7}, {"text": "x"}, "no checkpoint of update 7"),
        ("two", "words", {"text": "a " * 1500}, "limit"),
        ("two", "words", {"text": "a", "target": "b " * 1500}, "limit"),
        ("two", "good", {"text": "x", "layers": 1}, "layers"),
    ):
        message = ask(client, "look", a, b, 400, **body).json()["error"]["message"]
        assert words in message


def test_words_of_pieces() -> None:
    tokens, words = ("<fr>", "a", "b", "c", "<eos>"), (None, 0, 0, 1, None)
    assert word_keys(tokens, words) == [("<fr>", 0), (0, 0), (1, 0), ("<eos>", 0)]
    chances = [random.random() for _ in tokens]
    logs = [math.log(p) for p in chances]
    whole = Row(("ab", "c", "<eos>"), (0, 1, None), ("ab", "c"), logs[:3])
    told = rows_told(whole, Row(tokens, words, ("ab", "c"), logs), "words")
    assert told is not None
    assert told["names"] == ["ab", "c", "<eos>"]
    assert told["a"] == pytest.approx(chances[:3])
    assert told["b"] == pytest.approx([chances[1] * chances[2], chances[3], chances[4]])


# ---------------------------------------------------------------- in the browser


def shown(x: float) -> str:
    """As the page writes a number between −1 and 1."""
    text = f"{abs(x):.3f}" if abs(x) >= 0.0005 else f"{abs(x):.2e}".replace("e-0", "e−").replace("e-", "e−")
    return f"−{text}" if x < 0 else text


def test_the_pages_numbers_are_pythons(studio: Studio, runs: dict[str, Path], open_page: Open) -> None:
    shelf, (text,) = shelf_with(studio.shelf, runs), sentences(1)
    page = open_page(f"#/compare?run=two&a=1&other=two&b=best&layer=1&head=2&text={text.replace(' ', '+')}")
    page.wait_for_selector(READY)
    first, best = shelf.load("two", 1), shelf.load("two")
    target = first.nbest([text])[0][0].text
    own = [forced_attention(model, [text], [target], words=False, view=View(1, 2))[0] for model in (first, best)]
    difference = own[1].weights - own[0].weights
    for place, expected in enumerate((own[0].weights, own[1].weights, difference)):
        drawn = page.evaluate(f"Array.from(document.querySelectorAll('.compare-map .matrix')[{place}].numbers)")
        assert np.array_equal(np.array(drawn, np.float32), expected.ravel())
    row, column = np.unravel_index(abs(difference).argmax(), difference.shape)
    a, b = (float(one.weights[row, column]) for one in own)
    sentence = page.locator(".compare-maps .compare-sentence").inner_text()
    assert f"{shown(a)} in A and {shown(b)} in B" in sentence
    scale = shown(max(float(one.weights.max()) for one in own))
    assert f"0 to {scale} in A and B, −{scale} to {scale}" in page.locator(".compare-scale").inner_text()
    ends = page.locator(".compare-map .legend span").all_inner_texts()
    assert ends == ["0", scale, "0", scale, f"−{scale}", scale]
    scored = first.score([text], [target])[0]
    assert page.locator(".compare-table tbody td:nth-child(2)").all_inner_texts() == [
        shown(math.exp(one)) if one else "1" for one in scored.log_probabilities
    ]
    # the place of the largest difference is pinned in all three, and is in the address
    page.get_by_role("button", name="Show it").click()
    assert f"pin={row}-{column}" in page.url
    assert page.locator(".compare-map .pin").count() == 3
    assert f"B − A {shown(float(difference[row, column]))}" in page.locator(".compare-map .pin").nth(2).inner_text()


@pytest.mark.full
def test_sides_are_chosen_swapped_and_stretched(studio: Studio, runs: dict[str, Path], open_page: Open) -> None:
    shelf_with(studio.shelf, runs)
    page = open_page("#/compare?run=two")  # by itself: its first checkpoint and its best one
    page.wait_for_selector(READY)
    assert page.locator(".compare-name").all_inner_texts() == ["A\ntwo, update 1", "B\ntwo"]
    page.get_by_label("Run B").select_option(label=shelf_with(studio.shelf, runs).entry("words")["title"])
    expect(page.locator(".compare-name").nth(1)).to_contain_text("words")
    page.wait_for_selector(READY)
    assert "by words" in page.locator(".compare-maps").inner_text()
    page.get_by_role("button", name="Swap A and B").click()
    expect(page.locator(".compare-name").nth(0)).to_contain_text("words")
    page.wait_for_selector(READY)
    assert "run=words" in page.url
    page.get_by_role("switch", name="Stretch").check()
    assert "own scale" in page.locator(".compare-scale").inner_text()
    link = page.url[page.url.index("#") :]
    text = page.locator(".compare-maps .compare-sentence").inner_text()
    again = open_page(link)
    again.wait_for_selector(READY)
    assert again.locator(".compare-maps .compare-sentence").inner_text() == text
    again.get_by_label("Run B").select_option(label=studio.shelf.entry("good")["title"])
    expect(again.get_by_role("alert")).to_contain_text("Choose two runs of one task")


@pytest.mark.full
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("run", ["two", "good"])
def test_everybody_can_use_it(
    studio: Studio,
    runs: dict[str, Path],
    open_page: Open,
    axe: Callable[[Any], None],
    theme: str,
    language: str,
    run: str,
) -> None:
    shelf_with(studio.shelf, runs)
    for viewport in ({"width": 1280, "height": 800}, {"width": 390, "height": 844}):
        page = open_page(f"#/compare?run={run}", language=language, theme=theme, viewport=viewport)
        page.wait_for_selector(READY)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        axe(page)
        assert page.locator("h1").inner_text() == {"en": "Compare", "ko": "비교"}[language]


@pytest.mark.full
def test_hostile_text_is_only_text(studio: Studio, runs: dict[str, Path], open_page: Open) -> None:
    shelf_with(studio.shelf, runs)
    page = open_page(
        "#/compare?run=two&other=words&text=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E+%E2%80%AEabc+%00%0A&target=%3Cb%3E&by=nonsense&layer=99&pin=7-9-x&kind=%5B%5D"
    )
    page.wait_for_selector(READY)
    assert page.locator("#view img").count() == 0
    assert "<img" in page.locator(".compare-maps").inner_text() + page.get_by_label("Text", exact=True).input_value()
