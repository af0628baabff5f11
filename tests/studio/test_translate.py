"""The page "translate": its numbers are Python's, its tree is the search's, and a click begins the translation anew."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from onnx_runs import keep
from starlette.testclient import TestClient
from studio_server import Studio

from jumok import recipe as recipes
from jumok.data import grammar
from jumok.models.build import build
from jumok.search.options import normalised
from jumok.studio.routes_translate import FIRST
from jumok.tasks.vocabulary import save_tokenizers
from jumok.text.special import END
from jumok.text.tokenizer import train_tokenizer
from jumok.trained import TrainedTranslator
from jumok.training.run import RunFolder

RUN = "en-fr"
TEXT = FIRST["en"]
GIVEN_UP = ("beam", "stopped")
READY = ".translate-page:not([aria-busy])"
Open = Callable[..., Any]


def ask(client: TestClient, path: str, **body: Any) -> Any:
    answer = client.post(f"/api/translate/{path}", json={"run": RUN, "text": TEXT, **body})
    assert answer.status_code == 200, answer.text
    return answer


def search(client: TestClient, **body: Any) -> dict[str, Any]:
    found: dict[str, Any] = ask(client, "search", **{"beam": 3, "length_penalty": 1.0, **body}).json()
    return found


def translator_of(client: TestClient) -> TrainedTranslator:
    model = client.app.state.shelf.load(RUN)  # type: ignore[attr-defined]
    assert isinstance(model, TrainedTranslator)
    return model


def a_sentence(draw: random.Random) -> str:
    return draw.choice(list(grammar.pairs("en", "fr", "test", 40))).source


def tokens_of(found: dict[str, Any]) -> dict[int, list[int]]:
    """What each node has written."""
    written: dict[int, list[int]] = {0: []}
    for number, parent, _, token, *_ in found["nodes"]:
        written[number] = written[parent] + [token] * (token != END)
    return written


# ---------------------------------------------------------------- routes


def test_the_search_is_the_translators_own(client: TestClient, seed: int) -> None:
    draw = random.Random(seed)
    text, beam, penalty = a_sentence(draw), draw.randint(1, 4), draw.choice([0.0, 0.6, 1.0, 1.7])
    found = search(client, text=text, beam=beam, length_penalty=penalty, nbest=beam)
    expected = translator_of(client).nbest([text], nbest=beam, beam=beam, length_penalty=penalty)[0]
    for shown, real in zip(found["outputs"], expected, strict=True):
        assert (shown["text"], tuple(shown["ids"]), shown["finished"]) == (real.text, real.ids, real.finished)
        assert (shown["score"], shown["log_probability"]) == (real.score, real.log_probability)


def test_the_tree_holds_every_hypothesis(client: TestClient, seed: int) -> None:
    draw = random.Random(seed)
    beam, penalty = draw.randint(2, 4), draw.choice([0.0, 0.6, 1.0])
    found = search(client, text=a_sentence(draw), beam=beam, length_penalty=penalty, nbest=2)
    written = tokens_of(found)
    steps = {0: 0}
    alive: dict[int, int] = {}
    for number, parent, step, _, total, score, fate in found["nodes"]:
        assert step == steps[parent] + 1
        steps[number] = step
        assert score == pytest.approx(normalised(total, step, penalty), rel=1e-9)
        alive[step] = alive.get(step, 0) + (fate == "alive")
        assert fate in ("alive", "finished", "cut", *GIVEN_UP)
    assert 1 < max(alive.values()) <= beam
    assert any(node[6] == "beam" for node in found["nodes"])
    assert len({(node[1], node[3]) for node in found["nodes"]}) == len(found["nodes"])
    for output in found["outputs"]:
        assert written[output["nodes"][-1]] == output["ids"]


@pytest.mark.parametrize("words", [True, False])
def test_weights_and_names_are_those_of_python(client: TestClient, seed: int, words: bool) -> None:
    text = a_sentence(random.Random(seed))
    found = search(client, text=text, beam=4)
    best = found["outputs"][0]
    answer = ask(client, "attention", text=text, ids=best["ids"], finished=best["finished"], words=words)
    expected = translator_of(client).attend(text, words=words)
    shape = tuple(map(int, answer.headers["x-shape"].split(",")))
    np.testing.assert_array_equal(np.frombuffer(answer.content, "<f4").reshape(shape), expected.weights)
    unit = "words" if words else "tokens"
    assert tuple(found["source"][unit]) == expected.source
    assert tuple(best["target"][unit]) == expected.target
    assert len(best["target"]["of"]) == len(best["target"]["tokens"])
    assert best["target"]["of"][-1] == len(best["target"]["words"]) - 1


def test_a_forced_beginning_is_kept_token_by_token(client: TestClient, seed: int) -> None:
    free = search(client)
    written = tokens_of(free)
    best = set(free["outputs"][0]["nodes"])
    other = [node for node in free["nodes"] if node[0] not in best and node[3] != END]
    chosen = random.Random(seed).choice(other)
    prefix = written[chosen[0]]
    forced = search(client, prefix=prefix, nbest=2)
    assert all(output["ids"][: len(prefix)] == prefix for output in forced["outputs"])
    assert [node[3] for node in forced["nodes"][: len(prefix)]] == prefix
    assert forced["nodes"][len(prefix) - 1][4] == pytest.approx(chosen[4], rel=1e-5)


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("search", {"text": " \t "}, "empty"),
        ("search", {"text": "house " * 3000}, "limit is"),
        ("search", {"prefix": [10**6]}, "another run"),
        ("search", {"prefix": [END]}, "none that this model writes"),
        ("search", {"beam": 99}, "beam"),
        ("search", {"run": "../../etc"}, "no run"),
        ("attention", {"ids": [-1]}, "none that this model writes"),
        ("attention", {"ids": [5], "layer": 7}, "layer 7"),
        ("attention", {"ids": [5], "head": 0}, "no heads"),
        ("attention", {"ids": [5], "text": "house " * 3000}, "limit is"),
    ],
)
def test_what_cannot_be_done_is_said(client: TestClient, path: str, body: dict[str, Any], said: str) -> None:
    usual = {"run": RUN, "text": TEXT} | ({"beam": 2, "length_penalty": 1.0} if path == "search" else {})
    answer = client.post(f"/api/translate/{path}", json={**usual, **body})
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]


# ---------------------------------------------------------------- the page


@pytest.mark.browser
def test_a_newcomer_finds_the_source_word(open_page: Open, studio: Studio) -> None:
    translator = studio.shelf.load(RUN)
    page = open_page()
    expected = translator.attend(TEXT)
    source, target = expected.source, [*expected.target[:-1], "‹end›"]
    words = page.locator(".translate-target .translate-word")
    assert [word.get_attribute("data-label") for word in words.all()] == target

    # the ribbon says it, word by word, with keys alone
    for row, weights in enumerate(expected.weights):
        best = int(weights.argmax())
        said = f"“{target[row]}” looked most at “{source[best]}” ({weights[best]:.2f})"
        assert page.inner_text(".translate-sentence").startswith(said)
        beside = page.locator(".translate-source .translate-weight").all_text_contents()
        assert beside == [f"{weight:.2f}" if weight >= 0.01 else "" for weight in weights]
        bands = page.locator(".translate-bands path.on")
        assert bands.count() == int((weights >= 0.01).sum())
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert f"step={len(target) - 2}" in page.url
    words.nth(1).hover()
    assert page.inner_text(".translate-sentence").startswith(f"“{target[1]}” looked most at")

    # the table has the very numbers
    frame = page.locator(".translate-map .frame")
    frame.focus()
    for _ in range(len(target)):
        page.keyboard.press("ArrowUp")
    for _ in range(len(source)):
        page.keyboard.press("ArrowLeft")
    first = expected.weights[0, 0]
    assert float(page.inner_text(".translate-map .readout .at .number")) == pytest.approx(float(first), abs=5e-4)

    # tokens: what came over the line is what Python has
    with page.expect_response("**/api/translate/attention") as answered:
        page.get_by_label("Words", exact=True).press("ArrowRight")
    by_token = translator.attend(TEXT, words=False)
    assert answered.value.body() == by_token.weights.astype("<f4").tobytes()
    page.wait_for_selector(READY)
    assert [word.get_attribute("data-label") for word in words.all()][:-1] == list(by_token.target[:-1])
    page.get_by_label("Subword tokens").press("ArrowLeft")
    page.wait_for_selector(READY)

    # a click on a node makes the translation begin so, and there is a way back
    free = words.all_inner_texts()
    node = page.locator(".translate-node.alive:not(.best)").first
    token = int(node.get_attribute("data-token"))
    node.click()
    page.wait_for_selector(".translate-forced:not([hidden])")
    page.wait_for_selector(READY)
    forced = translator.target.pieces([token])[0].removeprefix("▁")
    assert words.first.get_attribute("data-label").startswith(forced)
    assert f"prefix=%27{token}" in page.url
    assert page.evaluate("document.activeElement.dataset.token") == str(token)
    page.click(".translate-forced button")
    page.wait_for_selector(".translate-forced", state="hidden")
    assert words.all_inner_texts() == free


# ---------------------------------------------------------------- runs of all kinds, links, languages

HOSTILE = (
    "<img/src=x/onerror=alert(1)>",
    "\u202eabc",
    "<b>bold</b>",
    "שלום",
    "a\u200bb",
    "</script>",
    "한국어",
    "'\"&amp;",
)


def made_run(path: Path, *, tokens: tuple[str, ...] = (), **model: Any) -> RunFolder:
    """A translator with random weights, whose words are these tokens or the grammar's."""
    texts = [" ".join(tokens)] * 4 if tokens else [pair.source for pair in grammar.pairs("en", "fr", "train", 60)]
    tokenizer = train_tokenizer(texts, "word", 200)
    raw = {
        "task": "translation",
        "data": {"train": {"grammar": "en-fr", "pairs": 10}},
        "tokenizer": {"kind": "word", "vocabulary": 200},
        "model": model,
        "search": {"beam": 3, "max_extra": 2, "max_ratio": 1.0},
    }
    recipe = recipes.check(raw, "test")
    run = RunFolder.create(path, recipe)
    save_tokenizers(run.tokenizer, {"source": tokenizer, "target": tokenizer})
    return keep(run, build(recipe.model, tokenizer.size, tokenizer.size), 0.5)


TINY = {"kind": "transformer", "width": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 3, "feed_forward": 24}
PLAIN = {"kind": "seq2seq", "width": 16, "layers": 1}


def escaped(text: str) -> str:
    return quote(text, safe="")


@pytest.mark.full
@pytest.mark.browser
def test_each_head_of_a_transformer(open_page: Open, studio: Studio, tmp_path: Path) -> None:
    name = studio.shelf.add("heads", made_run(tmp_path / "run", **TINY).path)
    translator = studio.shelf.load(name)
    text = "the cat sleeps"
    page = open_page(f"#/translate?run={name}&text={escaped(text)}")
    for layer, head in ((None, None), (2, 1), (0, 0)):
        if layer is not None:
            page.get_by_label("Layer").select_option(str(layer))
            page.wait_for_selector(READY)
            page.get_by_label("Head", exact=True).select_option(str(head))
            page.wait_for_selector(READY)
        weights = translator.attend(text, layer=layer, head=head).weights[0]
        beside = page.locator(".translate-source .translate-weight").all_text_contents()
        assert beside == [f"{weight:.2f}" if weight >= 0.01 else "" for weight in weights]
    assert "layer=0&head=0" in page.url
    assert page.evaluate("document.querySelector('.translate-head select').value") == "0"


@pytest.mark.full
@pytest.mark.browser
def test_a_model_without_attention_says_so(open_page: Open, studio: Studio, tmp_path: Path, axe: Any) -> None:
    name = studio.shelf.add("plain", made_run(tmp_path / "run", **PLAIN, attention="none").path)
    page = open_page(f"#/translate?run={name}&text=the%20cat&beam=1")
    assert "no attention" in page.inner_text(".translate-explain")
    assert page.locator(".translate-bands path").count() == 0
    assert page.locator(".translate-node").count() > 3
    page.keyboard.press("ArrowRight")
    assert page.locator(".translate-target .translate-word").nth(1).get_attribute("aria-pressed") == "true"
    axe(page)


@pytest.mark.full
@pytest.mark.browser
def test_hostile_tokens_are_text(open_page: Open, studio: Studio, tmp_path: Path, axe: Any) -> None:
    name = studio.shelf.add("hostile", made_run(tmp_path / "run", tokens=HOSTILE, **PLAIN, attention="luong").path)
    text = " ".join(HOSTILE[:5])
    page = open_page(f"#/translate?run={name}&text={escaped(text)}&beam=2")
    words = page.locator(".translate-source .translate-word").all_inner_texts()
    shown = "".join(words)
    assert "<img/src=x/onerror=alert(1)>" in shown
    assert "⟨202E⟩abc" in shown
    assert "<b>bold</b>" in shown
    assert page.evaluate("document.querySelectorAll('.translate-page img, .translate-page b:not(.number)').length") == 0
    for index in range(page.locator(".translate-target .translate-word").count()):
        page.locator(".translate-target .translate-word").nth(index).click()
        assert "looked most at" in page.inner_text(".translate-sentence")
    page.locator(".translate-node").nth(2).hover()
    axe(page)


@pytest.mark.full
@pytest.mark.browser
def test_length_penalty_and_beam_change_the_tree(open_page: Open) -> None:
    page = open_page(f"#/translate?text={escaped('The teacher gave the students a book.')}&beam=3&penalty=0")
    seen = []
    for penalty, beam in ((0.0, 3), (2.0, 3), (2.0, 5)):
        page.evaluate(
            """([label, value]) => {
              const input = [...document.querySelectorAll(".slider")].find((one) => one.innerText.startsWith(label))
                .querySelector("input");
              if (Number(input.value) === value) return;
              input.value = value;
              input.dispatchEvent(new Event("input"));
            }""",
            ["Beam width" if beam == 5 else "Length penalty", beam if beam == 5 else penalty],
        )
        page.wait_for_timeout(250)
        page.wait_for_selector(READY)
        scores = page.locator(".translate-node .number").all_text_contents()
        seen.append((scores, page.inner_text(".translate-list tbody tr:first-child td:nth-child(4)")))
    assert seen[0] != seen[1] != seen[2]
    assert len(seen[2][0]) > len(seen[1][0])
    assert "penalty=2" in page.url
    assert "beam=5" in page.url


@pytest.mark.full
@pytest.mark.browser
def test_the_tree_by_keyboard_and_what_became_of_nodes(open_page: Open) -> None:
    page = open_page("#/translate?beam=2")
    page.locator(".translate-node[tabindex='0']").focus()
    assert page.locator(".translate-node[tabindex='0']").count() == 1
    page.keyboard.press("ArrowRight")
    assert "Alive" in page.inner_text(".translate-told")
    for _ in range(8):
        page.keyboard.press("ArrowDown")
    assert "Given up: 2 other beginnings" in page.inner_text(".translate-told")
    page.keyboard.press("End")
    assert "rank 1" in page.inner_text(".translate-told")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_selector(".translate-forced:not([hidden])")
    page.wait_for_selector(READY)
    assert "forced" in page.evaluate("document.activeElement.className")
    page.locator(".translate-list button").last.click()
    page.wait_for_selector(READY)
    assert "rank=" in page.url


@pytest.mark.full
@pytest.mark.browser
def test_a_link_reproduces_the_view(open_page: Open) -> None:
    page = open_page("#/translate?unit=tokens&step=2&pins=3.4&beam=2&penalty=0.5&pruned=false")
    said = page.inner_text(".translate-sentence")
    page.locator(".translate-node.alive:not(.best)").first.click()
    page.wait_for_selector(".translate-forced:not([hidden])")
    page.wait_for_selector(READY)
    again = open_page(page.url.partition("/#")[2].join(["#", ""]))
    for place in (".translate-sentence", ".translate-forced", ".translate-list", ".translate-tree", ".readout"):
        assert again.inner_text(place) == page.inner_text(place)
    assert said != again.inner_text(".translate-sentence")
    strange = open_page(
        "#/translate?unit=9&step=-4&pins=a.b_9.9.9&beam=1e9&penalty=true&prefix=x&of=en-fr&rank=77&head=3"
    )
    assert "looked most at" in strange.inner_text(".translate-sentence")


@pytest.mark.full
@pytest.mark.browser
def test_mistakes_are_told_and_leave_the_page_as_it_was(open_page: Open) -> None:
    page = open_page()
    before = page.inner_text(".translate-list")
    for text, said in (("   ", "Write one"), ("house " * 600, "limit is")):
        page.fill("#translate-text", text)
        page.keyboard.press("Enter")
        page.wait_for_selector(f".notice.wrong:has-text('{said}')")
        assert page.inner_text(".translate-list") == before
    page.fill("#translate-text", "I am a student.")
    page.keyboard.press("Enter")
    page.wait_for_selector(".translate-list:has-text('étudiant')")
    empty = open_page("#/translate?text=")
    empty.wait_for_selector(".complaint")
    empty.fill("#translate-text", "I am a student.")
    empty.keyboard.press("Enter")
    empty.wait_for_selector(".translate-list:has-text('étudiant')")
    assert empty.locator(".complaint").count() == 0
    page.complaints.clear()  # the browser writes every 400 into its console


@pytest.mark.full
@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_both_languages_and_themes_wide_and_narrow(open_page: Open, axe: Any, language: str, theme: str) -> None:
    for width, height in ((1280, 800), (390, 844)):
        page = open_page(
            "#/translate?beam=2", language=language, theme=theme, viewport={"width": width, "height": height}
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator(".translate-ribbon.tall").count() == (width < 800)
        page.locator(".translate-target .translate-word").nth(2).click()
        assert page.inner_text(".translate-sentence").count("“") >= 2
        assert ("가장 많이" in page.inner_text(".translate-sentence")) == (language == "ko")
        page.locator(".translate-node.alive:not(.best)").first.click()
        page.wait_for_selector(".translate-forced:not([hidden])")
        page.wait_for_selector(READY)
        if (width < 800) == (theme == "dark"):
            axe(page)
