"""The page "Lessons": words in two languages, live calculations, results, and running an experiment."""

from __future__ import annotations

import base64
import gzip
import json
import math
import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from starlette.testclient import TestClient
from studio_server import Studio, shown, until

from jumok.errors import BadInput
from jumok.lab import catalogue
from jumok.lab.results import Result, Seed, write_result
from jumok.lab.runner import judged
from jumok.studio.lessons import measured, texts
from jumok.studio.lessons.live import LIVE

LAB = Path(__file__).parents[2] / "benchmarks" / "results" / "lab.json"
NAMES = texts.names()


@pytest.fixture(scope="module", autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("studio")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


def with_token(client: TestClient) -> dict[str, str]:
    return {"X-Jumok-Token": client.app.state.settings.token}  # type: ignore[attr-defined]


# ---------------------------------------------------------------- words and stored results


@pytest.mark.parametrize("language", texts.LANGUAGES)
def test_every_lesson_has_its_words(language: str) -> None:
    words = texts.words(language)
    assert list(words) == NAMES
    for name, lesson in words.items():
        assert all(len(lesson[part]) > 30 for part in texts.TEXTS), name
        assert set(lesson.get("live", {})) >= ({"about", "sliders", "names"} if name in LIVE else set())
        if language == "ko":
            assert len(lesson["claims"]) == len(measured.stored()[name].result.verdicts)
            hangul = [text for part in ("title", *texts.TEXTS) for text in [lesson[part]] if "가" <= max(text) <= "힣"]
            assert len(hangul) == 4, name


@pytest.mark.parametrize("name", LIVE)
def test_everything_live_has_a_name_in_both_languages(name: str) -> None:
    found = LIVE[name]({})
    keys = {*found.lines, *found.maps, *found.facts, *filter(None, (found.x, found.y))}
    for language in texts.LANGUAGES:
        words = texts.words(language)[name]["live"]
        assert set(words["sliders"]) == {slider.key for slider in LIVE[name].sliders}
        assert keys <= set(words["names"])


def test_the_package_holds_the_measured_results() -> None:
    if not LAB.is_file():
        pytest.skip("the results are not in this tree")
    lab = json.loads(LAB.read_text(encoding="utf-8"))
    kept = json.loads(gzip.decompress(measured.FILE.read_bytes()))
    assert kept == json.loads(gzip.decompress(measured.packed(lab)))
    for each in lab["experiments"]:
        assert [vars(one)["claim"] for one in measured.stored()[each["name"]].result.verdicts] == [
            one["claim"] for one in each["verdicts"]
        ]


# ---------------------------------------------------------------- live


def test_live_scaling_is_the_softmax_of_the_products() -> None:
    for power in random.sample(range(1, 11), 3):
        found = LIVE["scaling"]({"width": power})
        raw, scaled = ([y for _, y in found.lines[name]] for name in ("raw", "scaled"))
        assert math.isclose(sum(raw), 1, rel_tol=1e-9)
        # log-weights are the scores but for a constant: the scaled ones spread √d_k times less
        ratio = (
            torch.tensor(raw, dtype=torch.float64).log().std() / torch.tensor(scaled, dtype=torch.float64).log().std()
        )
        assert math.isclose(ratio, 2 ** (power / 2), rel_tol=1e-3)
        assert found.facts["raw entropy"] < found.facts["scaled entropy"] or power == 1


def test_live_gates_masks_and_clipping() -> None:
    bias, span = random.choice([-2.0, 0.0, 1.5, 4.0]), random.randint(2, 50)
    found = LIVE["forget-gate"]({"bias": bias, "span": span})
    gate = 1 / (1 + math.exp(-bias))
    assert math.isclose(found.facts["left"], gate**span)
    assert math.isclose(dict(found.lines["chosen"])[span], gate**span)
    masked = LIVE["causal-mask"]({"words": random.randint(3, 14)}).maps["masked"]
    assert torch.equal(masked, masked.tril())
    assert torch.allclose(masked.sum(dim=-1), torch.ones(len(masked), dtype=torch.float64))
    most = random.choice([0.5, 2.0, 7.5])
    cut = LIVE["clipping"]({"gain": 2, "clip": most})
    pairs = zip(cut.lines["before"], cut.lines["after"], strict=True)
    assert all(math.isclose(after, min(before, most)) for (_, before), (_, after) in pairs)
    assert cut.lines["before"][-1][1] > 100


def test_live_gradients_fade_with_a_small_matrix_and_a_closed_gate() -> None:
    weak, strong = (LIVE["long-term-dependency"]({"norm": norm, "bias": bias}) for norm, bias in ((0.5, -1), (1.4, 6)))
    for name in ("rnn left", "lstm left"):
        assert weak.facts[name] < 1e-6 < strong.facts[name]
    moved = LIVE["shuffled-patches"]({"moved": random.randint(2, 16)}).facts
    assert moved["without"] < 1e-5 < moved["with"]


@pytest.mark.parametrize("values", [{"width": 99}, {"width": -1}, {"nothing": 1}, {"width": math.inf}])
def test_sliders_stay_within_their_ends(values: dict[str, float]) -> None:
    with pytest.raises(BadInput):
        LIVE["scaling"](values)


def test_live_is_answered_and_hostile_questions_are_not(client: TestClient) -> None:
    answer = client.post("/api/lessons/live", json={"name": "projections", "values": {"words": 5}}).json()
    assert len(answer["maps"]["raw"]) == 5
    hostile: list[Any] = [
        {"name": "heads", "values": {}}, {"name": "../x", "values": {}}, {"name": "scaling", "values": {"width": "x"}},
        {"name": "scaling", "values": {"width": 1e400}}, {"name": "scaling"}, {"name": "5", "values": {}},
    ]  # fmt: skip
    for body in hostile:
        assert client.post("/api/lessons/live", content=json.dumps(body), headers=JSON).status_code == 400, body


JSON = {"Content-Type": "application/json"}

# ---------------------------------------------------------------- results


def test_lessons_come_in_order_with_stored_results(client: TestClient) -> None:
    listed = client.post("/api/lessons/list", json={"language": "ko"}).json()["lessons"]
    assert [one["name"] for one in listed] == NAMES
    assert [one["number"] for one in listed] == list(range(1, 19))
    assert sum(one["of"] for one in listed) == 80
    name = random.choice(NAMES)
    lesson = client.post("/api/lessons/lesson", json={"name": name, "language": "ko"}).json()
    assert lesson["results"][-1]["origin"] == "stored"
    assert [one["said"] for one in lesson["results"][-1]["verdicts"]] == texts.words("ko")[name]["claims"]
    assert lesson["job"] is None
    for wrong in ("1", "../scaling", "nothing"):
        assert client.post("/api/lessons/lesson", json={"name": wrong}).status_code == 400
    answer = client.post("/api/lessons/picture", json={"name": "forget-gate", "origin": "stored"}).json()
    assert base64.b64decode(answer["png"]).startswith(b"\x89PNG")
    body = {"name": "forget-gate", "origin": "../../etc"}
    assert client.post("/api/lessons/picture", json=body).status_code == 400


def test_what_was_measured_here_comes_first(client: TestClient, elsewhere: Path) -> None:
    experiment = catalogue.load(catalogue.find("scaling"))
    numbers = measured.stored()["scaling"].result.numbers[0]
    result = Result("scaling", 0.5, "other", [Seed(1, 2.0, numbers)], judged(experiment, [numbers]), [1])
    folder = measured.folder_of(elsewhere / "runs", 0.5)
    folder.mkdir(parents=True)
    write_result(folder, result, experiment)
    found = client.post("/api/lessons/lesson", json={"name": "scaling"}).json()["results"]
    assert [one["origin"] for one in found] == ["lab-0.5", "stored"]
    assert found[0]["seeds"] == [1]
    assert found[0]["other_code"] is True


def test_a_result_may_vanish_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "scaling"
    (tmp_path / "lab").mkdir()
    write_result(tmp_path / "lab", measured.stored()[name].result, catalogue.load(catalogue.find(name)))
    assert [one.origin for one in measured.held(name, tmp_path)] == ["lab", measured.STORED]
    real = measured.read_result

    def read(folder: Path, name: str) -> Result | None:
        found = real(folder, name)
        (folder / f"{name}.json").unlink(missing_ok=True)
        return found

    monkeypatch.setattr(measured, "read_result", read)
    assert measured.held(name, tmp_path)[-1].origin == measured.STORED
    assert [one.origin for one in measured.held(name, tmp_path)] == [measured.STORED]


def test_running_needs_the_token_and_a_name_of_the_list(client: TestClient, elsewhere: Path) -> None:
    assert client.post("/api/lessons/run", json={"name": "scaling"}).status_code == 401
    assert client.post("/api/lessons/stop", json={"name": "scaling"}).status_code == 401
    hostile: list[dict[str, Any]] = [
        {"name": "--out=/tmp/x"}, {"name": "../scaling"}, {"name": "5"}, {"name": "scaling", "seeds": 0},
        {"name": "scaling", "seeds": 99}, {"name": "scaling", "effort": 2}, {"name": "scaling", "out": "/tmp"},
    ]  # fmt: skip
    for body in hostile:
        assert client.post("/api/lessons/run", json=body, headers=with_token(client)).status_code == 400, body
    assert client.post("/api/lessons/stop", json={"name": "scaling"}, headers=with_token(client)).status_code == 400
    assert not (elsewhere / "runs" / "lab").exists()


# ---------------------------------------------------------------- the page


def test_page_turns_a_slider_and_goes_on(open_page: Any) -> None:
    page = open_page("#/lessons?lesson=scaling&v.width=6")
    raw = page.locator(".lessons-facts dd").first
    spread = LIVE["scaling"]({"width": 6}).facts["raw spread"]
    assert raw.text_content() == f"{spread:.2f}"
    page.get_by_label("Width d_k").focus()
    page.keyboard.press("ArrowRight")
    wider = LIVE["scaling"]({"width": 7}).facts["raw spread"]
    until(lambda: page.evaluate(f"document.querySelector('.lessons-facts dd').textContent === '{wider:.1f}'"))
    assert "v.width=7" in page.url
    assert page.locator(".lessons-verdicts li").count() == 4
    page.get_by_role("link", name="Next 6.").click()
    page.wait_for_selector(".lessons-map")
    shown(page)
    assert "lesson=projections" in page.url
    assert "v.width" not in page.url
    assert page.locator(".lessons-seen").count() == 2  # that one and this


@pytest.mark.full
@pytest.mark.parametrize("language", texts.LANGUAGES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_lesson_is_shown(open_page: Any, axe: Any, language: str, theme: str) -> None:
    page = open_page(f"#/lessons?lesson={NAMES[0]}", language=language, theme=theme)
    for name in NAMES:
        until(partial(page.evaluate, f"location.hash.includes('lesson={name}')"))
        shown(page)
        until(lambda: page.evaluate("document.querySelector('.lessons-figure')?.naturalWidth > 0"))
        assert page.locator("h2").first.text_content() == texts.title(name, language)
        if language == "en":
            assert texts.title(name, language) == texts.experiment_of(name).title
        axe(page)
        if name != NAMES[-1]:
            page.locator(".lessons-next").click()
    assert page.locator(".lessons-seen").count() == len(NAMES)


@pytest.mark.full
def test_run_it_shows_the_result_when_it_is_there(open_page: Any, studio: Studio, elsewhere: Path) -> None:
    page = open_page("#/lessons?lesson=forget-gate&effort=0.05", token=True)
    page.set_default_timeout(120_000)
    page.get_by_role("button", name="Run it").click()
    page.wait_for_selector(".lessons-console:visible, .segments")
    page.get_by_text("here, a first look (effort 0.05)").wait_for()
    until(lambda: (elsewhere / "runs" / "lab-0.05" / "forget-gate.json").is_file())
    assert page.locator(".lessons-verdicts li").count() == 5
    page.get_by_text("five seeds, with jumok", exact=True).click()
    until(lambda: page.evaluate("location.hash.includes('result=stored')"))
