"""The page "Train": curves that grow line by line; what may be started, and by whom; start, stop, resume for real."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient
from studio_server import Studio, shown, until

from jumok import recipe as recipes
from jumok.errors import BadInput
from jumok.studio import starting
from jumok.studio.curves import curves, point
from jumok.studio.processes import AT_ONCE, Processes
from jumok.studio.streams import Tail
from jumok.training.run import RunFolder

TINY = (
    "data.train.pairs=300 data.valid.pairs=20 model.width=16 model.heads=2 model.feed_forward=32 "
    "model.encoder_layers=1 model.decoder_layers=1 training.log_every=1 training.batch_tokens=256 "
    "training.validate_sentences=4 training.validate_every=10 training.checkpoint_every=10 training.keep=4 "
    "training.warmup=5 device=cpu"
)


@pytest.fixture(scope="module", autouse=True)
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Runs go into "runs" of the folder that the studio was started in: a fresh one."""
    folder = tmp_path_factory.mktemp("studio")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


def a_run(folder: Path, name: str, events: list[dict[str, Any]] | None = None) -> RunFolder:
    run = RunFolder.create(folder / name, recipes.read("demo-transformer"))
    for event in events or []:
        write(run, event)
    return run


def write(run: RunFolder, event: dict[str, Any]) -> None:
    with run.metrics.open("a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")


def train_event(step: int, loss: float | None) -> dict[str, Any]:
    return {"event": "train", "step": step, "loss": loss, "tokens_per_second": 10.0}


def valid_event(step: int, **values: float) -> dict[str, Any]:
    return {"event": "valid", "step": step, "best": True, **values}


def with_token(client: TestClient) -> dict[str, str]:
    return {"X-Jumok-Token": client.app.state.settings.token}  # type: ignore[attr-defined]


# ---------------------------------------------------------------- curves


def test_curves_have_the_numbers_of_the_metrics() -> None:
    losses = [random.uniform(1, 9) for _ in range(20)]
    events = [train_event(step, loss) for step, loss in enumerate(losses)]
    events[7]["loss"] = None  # it was no number
    found = curves([*events, valid_event(10, loss=2.5, bleu=12.5), {"event": "plan", "step": 0, "updates": 5}])
    expected = [[float(step), loss] for step, loss in enumerate(losses)]
    expected[7][1] = None  # type: ignore[call-overload]
    assert found["train"]["loss"] == expected
    assert found["valid"] == {"loss": [[10.0, 2.5]], "bleu": [[10.0, 12.5]]}
    told = point(valid_event(3, bleu=4.0))
    assert told == {"kind": "valid", "step": 3, "values": {"bleu": 4.0}, "best": True}
    assert point({"event": "plan", "step": 0, "updates": 5}) is None


def test_tail_gives_whole_lines_once_and_says_when_a_file_was_cut(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "metrics.jsonl")
    assert tail.more() == (False, [])
    text = json.dumps(train_event(1, 2.0)) + "\n"
    tail.path.write_text(text + text[:9], encoding="utf-8")
    assert tail.more() == (False, [train_event(1, 2.0)])
    assert tail.more() == (False, [])
    tail.path.write_text(text + text + "no JSON\n[1]\n", encoding="utf-8")
    assert tail.more() == (False, [train_event(1, 2.0)])
    tail.path.write_text(text, encoding="utf-8")
    assert tail.more() == (True, [])
    assert tail.more() == (False, [train_event(1, 2.0)])


def test_a_file_may_vanish_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tail = Tail(tmp_path / "metrics.jsonl")
    tail.path.write_text(json.dumps(train_event(1, 2.0)) + "\n", encoding="utf-8")
    real = Path.open

    def opened(path: Path, *arguments: Any, **more: Any) -> Any:
        if path == tail.path:
            path.unlink()
        return real(path, *arguments, **more)

    monkeypatch.setattr(Path, "open", opened)
    assert tail.more() == (False, [])
    assert not tail.path.exists()
    assert tail.more() == (False, [])


class Listener:
    """Reads server-sent events from a real server, as an EventSource does; `last` is the id of what came last."""

    def __init__(self, studio: Studio, path: str, last: str | None = None) -> None:
        self.connection = http.client.HTTPConnection(studio.url.removeprefix("http://"), timeout=10)
        self.connection.request("GET", path, headers={} if last is None else {"Last-Event-ID": last})
        self.last = last
        self.response = self.connection.getresponse()
        assert self.response.headers["Content-Type"].startswith("text/event-stream")

    def next(self, key: str) -> dict[str, Any]:
        while True:
            line = self.response.readline()
            assert line
            if line.startswith(b"id: "):
                self.last = line[4:].decode().strip()
            if line.startswith(b"data: ") and key in (message := json.loads(line[6:])):
                return message  # type: ignore[no-any-return]


def test_events_tell_the_lines_as_they_come(studio: Studio, tmp_path: Path) -> None:
    run = a_run(tmp_path, "grows", [train_event(1, 5.0)])
    name = studio.shelf.add("grows <b>", run.path)
    place = run.metrics.stat().st_size
    listener = Listener(studio, f"/api/train/events?run=grows%20%3Cb%3E&from={place}")
    assert name in {entry["name"] for entry in listener.next("list")["list"]["runs"]}
    write(run, train_event(2, 4.0))
    write(run, valid_event(2, loss=4.5, bleu=1.0))
    points: list[dict[str, Any]] = []
    while len(points) < 2:
        message = listener.next("points")
        assert message["run"] == name
        points += message["points"]
    assert [one["step"] for one in points] == [2, 2]
    assert points[0]["values"]["loss"] == 4.0
    assert points[1]["values"] == {"loss": 4.5, "bleu": 1.0}
    assert message["place"] == run.metrics.stat().st_size
    run.metrics.write_text("", encoding="utf-8")  # it goes back to its checkpoint
    assert listener.next("anew") == {"run": name, "anew": True}
    listener.connection.close()


def test_who_listens_again_goes_on_where_he_was(studio: Studio, tmp_path: Path) -> None:
    """A browser asks again under its old address; what it had last says where it is."""
    runs = [a_run(tmp_path, name, [train_event(1, 5.0)]) for name in ("one", "two")]
    names = [studio.shelf.add(f"again-{number}", run.path) for number, run in enumerate(runs)]
    path = "/api/train/events?" + "&".join(f"run={name}&from=0" for name in names)
    listener = Listener(studio, path)
    for run, name in zip(runs, names, strict=True):
        message = listener.next("points")
        assert (message["run"], message["place"]) == (name, run.metrics.stat().st_size)
    listener.next("list")
    assert listener.last == "-".join(str(run.metrics.stat().st_size) for run in runs)
    listener.connection.close()
    write(runs[1], train_event(2, 4.0))
    listener = Listener(studio, path, listener.last)
    message = listener.next("points")
    assert (message["run"], [one["step"] for one in message["points"]]) == (names[1], [2])
    listener.connection.close()
    for odd in ("", "x", "1", "-1-2", "1-2-3", "1-x"):  # nothing that we said: the address says where
        listener = Listener(studio, path, odd)
        assert [one["step"] for one in listener.next("points")["points"]] == [1]
        listener.connection.close()


def test_reading_files_does_not_hold_up_the_loop(
    studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run(tmp_path, "slow", [train_event(1, 5.0)])
    name, threads, real = studio.shelf.add("slow", run.path), set[str](), Tail.more

    def more(tail: Tail) -> Any:
        threads.add(threading.current_thread().name)
        return real(tail)

    monkeypatch.setattr(Tail, "more", more)
    listener = Listener(studio, f"/api/train/events?run={name}&from=0")
    listener.next("points")
    listener.connection.close()
    assert threads
    assert all(name.startswith("asyncio_") for name in threads), threads


def test_events_of_unknown_runs_and_places_are_refused(client: TestClient) -> None:
    for query in ("run=..%2F..%2Fetc&from=0", "run=en-fr&from=-1", "run=en-fr", "run=en-fr&from=x"):
        assert client.get(f"/api/train/events?{query}").status_code == 400
    assert client.post("/api/train/curves", json={"runs": ["../runs"]}).status_code == 400


def test_attention_of_a_checkpoint_is_what_the_model_gives(client: TestClient) -> None:
    shelf = client.app.state.shelf  # type: ignore[attr-defined]
    update = shelf.checkpoints("en-fr")[-1]
    sentence = "I am a student."
    answer = client.post("/api/train/attention", json={"run": "en-fr", "update": update, "sentence": sentence})
    about = json.loads(answer.headers["X-About"])
    expected = shelf.load("en-fr", update).attend(sentence, about["forced"])
    shape = tuple(map(int, answer.headers["X-Shape"].split(",")))
    assert np.array_equal(np.frombuffer(answer.content, "<f4").reshape(shape), expected.weights)
    assert about["target"] == list(expected.target)
    assert about["own"] == shelf.load("en-fr", update).translate([sentence])[0]
    gone = client.post("/api/train/attention", json={"run": "en-fr", "update": update + 1, "sentence": sentence})
    assert json.loads(gone.headers["X-About"]) == {"gone": True}
    for wrong in ({"run": "../x"}, {"sentence": " "}, {"layer": 99}):
        body = {"run": "en-fr", "update": update, "sentence": sentence, **wrong}
        assert client.post("/api/train/attention", json=body).status_code == 400


# ---------------------------------------------------------------- what may be started


def test_acts_need_the_token(client: TestClient, elsewhere: Path) -> None:
    for path, body in (("start", {"recipe": "demo"}), ("stop", {"run": "en-fr"}), ("resume", {"run": "en-fr"})):
        assert client.post(f"/api/train/{path}", json=body).status_code == 401
        wrong = client.post(f"/api/train/{path}", json=body, headers={"X-Jumok-Token": "x"})
        assert wrong.status_code == 401
    assert not (elsewhere / "runs").exists()


@pytest.mark.parametrize(
    "recipe", ["../demo", "/etc/passwd", "demo.yaml", "recipes/demo", "", "--resume", "demo\n", "https://example.org/a"]
)
def test_names_that_are_no_recipes_are_refused(
    client: TestClient, recipe: str, elsewhere: Path, tmp_path: Path
) -> None:
    (elsewhere / "demo.yaml").write_text("model: {}\n", encoding="utf-8")  # a file of that name is not read
    answer = client.post("/api/train/start", json={"recipe": recipe}, headers=with_token(client))
    assert answer.status_code == 400
    assert "recipe" in answer.json()["error"]["message"]
    assert not (elsewhere / "runs").exists()


@pytest.mark.parametrize(
    "override",
    [
        "--resume", "--run=/tmp/x", "model.width", "=3", "model.width=-1", "model.wdith=3", "model.width=wide",
        "data.train.source=/etc/passwd", "data.train.file=x.tsv", "data.train={source: a, target: b}", "data=x",
        "data.valid.text=*", "start=runs/x", "imported=x", "tokenizer.source=a/b", "tokenizer={source: x}",
        "tokenizer.source=x", "render.fonts=[x]", "training.wandb=true", "model.width=../3", "model.width=&a 3",
        "task=vision", "data.train.alignments=x", "data.train.pairs={a: 1}", "model.width=3\n--resume", "__class__.x=1",
    ],
)  # fmt: skip
def test_overrides_that_the_recipe_does_not_take_are_refused(
    client: TestClient, override: str, elsewhere: Path
) -> None:
    body = {"recipe": "demo", "overrides": [override]}
    answer = client.post("/api/train/start", json=body, headers=with_token(client))
    assert answer.status_code == 400, answer.json()
    assert not (elsewhere / "runs").exists()


def test_numbers_that_make_no_sense_are_refused(client: TestClient) -> None:
    for more in ({"minutes": 0}, {"minutes": -1}, {"seed": -1}, {"seed": "1"}, {"overrides": "a=b"}, {"run": "x"}):
        answer = client.post("/api/train/start", json={"recipe": "demo", **more}, headers=with_token(client))
        assert answer.status_code == 400


def test_every_listed_recipe_can_be_started_with_keys(client: TestClient) -> None:
    listed = client.get("/api/train/recipes").json()["recipes"]
    assert [one["name"] for one in listed] == recipes.names()
    assert all(one["about"] for one in listed)
    chosen = starting.recipe_of("demo-transformer", [*TINY.split(), "seed=7"])
    assert chosen.model.width == 16
    assert chosen.seed == 7


def test_a_folder_that_exists_is_never_taken(tmp_path: Path) -> None:
    run = a_run(tmp_path, "demo")
    (tmp_path / "demo-2").mkdir()
    (tmp_path / "demo-2" / "mine.txt").write_text("kept", encoding="utf-8")
    free = starting.free_folder(tmp_path, "demo", taken={"demo-3"})
    assert free.name == "demo-4"
    starting.let_go(free)
    assert not free.exists()
    starting.let_go(tmp_path / "demo-2")
    starting.let_go(run.path)
    assert (tmp_path / "demo-2" / "mine.txt").is_file()
    assert run.recipe_file.is_file()


def test_only_a_stopped_run_is_resumed_and_only_ours_is_stopped(client: TestClient) -> None:
    headers = with_token(client)
    for path, run in (("resume", "en-fr"), ("resume", "nobody"), ("stop", "en-fr"), ("stop", "../x")):
        assert client.post(f"/api/train/{path}", json={"run": run}, headers=headers).status_code == 400
    entry = next(one for one in client.get("/api/train/runs").json()["runs"] if one["name"] == "en-fr")
    assert entry["resumable"] is False
    assert entry["job"] is None


# ---------------------------------------------------------------- processes


def test_processes_are_few_and_their_lines_are_kept(tmp_path: Path) -> None:
    known = Processes()
    ended: list[str] = []
    job = known.start("train", "first", tmp_path, ["recipes"], lambda job: ended.append(job.name))
    with pytest.raises(BadInput, match="running already"):
        known.start("train", "first", tmp_path, ["recipes"])
    known.start("lab", "second", tmp_path, ["nonsense"])
    assert len(known.running) == AT_ONCE
    with pytest.raises(BadInput, match="stop one"):
        known.start("train", "third", tmp_path, ["recipes"])
    until(lambda: not known.running and ended == ["first"])
    assert job.state == "done"
    assert any(line.startswith("demo-transformer") for line in job.lines)
    assert job.lines_after(job.printed - 2) == list(job.lines)[-2:]
    second = known.find("lab", "second")
    assert second is not None
    assert second.state == "failed"
    known.close()
    with pytest.raises(BadInput):
        known.start("train", "late", tmp_path, ["recipes"])


# ---------------------------------------------------------------- the page


def test_page_draws_the_run_and_grows(open_page: Any, studio: Studio, tmp_path: Path) -> None:
    run = a_run(tmp_path, "seen", [train_event(step, 9 / step) for step in range(1, 30)])
    name = studio.shelf.add("seen", run.path)
    page = open_page(f"#/train?runs={name}&recipe=lstm-luong&keys=model.width%3D64&look=en-fr&sentence=I+am+a+student.")
    assert page.get_by_label("Changed keys").input_value() == "model.width=64"
    legend = page.locator(".plot-key").first
    assert f"{9 / 29:.3f}" in legend.text_content()
    write(run, train_event(30, 0.125))
    until(lambda: page.evaluate("document.querySelector('.plot-key').textContent.includes('0.125')"))
    page.locator(".plot-frame").first.focus()
    page.keyboard.press("Home")
    assert "9" in legend.locator("b").first.text_content()
    page.get_by_label("Show the curves of en-fr").check()
    assert "en-fr" in page.url
    page.wait_for_selector(".train-seen canvas")
    until(lambda: page.evaluate("document.querySelector('.train-own').textContent.includes('suis')"))


@pytest.mark.full
def test_start_grow_stop_and_resume_in_the_browser(open_page: Any, studio: Studio, elsewhere: Path, axe: Any) -> None:
    keys = f"{TINY} training.updates=4000".replace("=", "%3D").replace(" ", "+")
    page = open_page(f"#/train?recipe=demo-transformer&keys={keys}", token=True)
    page.set_default_timeout(60_000)
    page.get_by_role("button", name="Start training").click()
    row = page.locator(".train-runs li", has_text="demo-transformer")
    stop = row.get_by_role("button", name="Stop demo-transformer")
    stop.wait_for()
    value = "document.querySelector('.plot-key').textContent"
    until(lambda: page.evaluate(f"{value}.includes('demo-transformer')"), 60)
    first = page.evaluate(value)
    until(lambda: page.evaluate(value) != first)
    metrics = elsewhere / "runs" / "demo-transformer" / "metrics.jsonl"
    until(lambda: "valid" in metrics.read_text(encoding="utf-8"), 60)
    axe(page)
    stop.click()
    resume = row.get_by_role("button", name="Resume demo-transformer")
    resume.wait_for()
    assert "everything is saved" in page.locator(".train-console").text_content()
    before = metrics.read_text(encoding="utf-8")
    resume.click()
    until(lambda: metrics.read_text(encoding="utf-8").count("\n") > before.count("\n") + 5, 60)
    assert metrics.read_text(encoding="utf-8").startswith(before[: len(before) // 2])
    stop.click()
    resume.wait_for()
    page.get_by_label("Translator").wait_for()
    slider = page.get_by_label("Checkpoint (update)")
    slider.focus()
    page.keyboard.press("Home")
    until(lambda: page.evaluate("/checkpoint=\\d+/.test(location.hash)"))
    page.wait_for_selector(".train-seen canvas")
    axe(page)


@pytest.mark.full
@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_page_in_both_languages_and_themes(
    open_page: Any, studio: Studio, axe: Any, tmp_path: Path, language: str, theme: str
) -> None:
    run = a_run(tmp_path, "<i>한글", [train_event(1, 3.0), valid_event(1, loss=2.0, bleu=3.0)])
    name = studio.shelf.add("<i>한글", run.path)
    page = open_page("#/train", language=language, theme=theme)
    assert page.locator("h1").text_content() == {"en": "Train", "ko": "학습"}[language]
    label = {"en": f"Show the curves of {name}", "ko": f"{name}의 곡선 보기"}[language]
    page.get_by_label(label, exact=True).check()
    until(lambda: page.evaluate("document.querySelector('.plot-key').textContent.includes('<i>한글')"))
    axe(page)
    page.reload()
    shown(page)
    assert page.get_by_label(label, exact=True).is_checked()


@pytest.mark.full
def test_a_training_that_the_studio_leaves_behind_saves_and_can_be_resumed(elsewhere: Path) -> None:
    known = Processes()
    folder = elsewhere / "left"
    arguments = ["train", "demo-transformer", *TINY.split(), "training.updates=100000", "--run", str(folder)]
    job = known.start("train", "left", folder, arguments)
    run = RunFolder(folder)
    until(lambda: len(run.events()) > 3, 90)
    began = time.monotonic()
    known.close()
    assert time.monotonic() - began < 20
    assert not job.is_running
    assert run.pointed("last")
    assert any("everything is saved" in line for line in job.lines)
