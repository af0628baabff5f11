"""The shell in a real browser: languages, themes, the address, the keyboard, and what is said where something fails."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from studio_server import Studio, click_cell, holds, shown

from jumok.studio import assets
from jumok.studio.guard import Guard

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
NAMES = ["translate", "attention", "recurrent", "positions", "vision", "reading", "train", "compare", "lessons"]
MOST_JAVASCRIPT = 250_000  # bytes


def test_javascript_stays_small() -> None:
    sent = {name: len(assets.answer(name).body) for name in assets.files() if name.endswith(".js")}
    assert len(sent) > 30
    assert sum(sent.values()) < MOST_JAVASCRIPT, sum(sent.values())


def test_lines_of_modules_stay_where_they_are() -> None:
    """What is sent has no indentation, but its lines have their numbers; that is safe where no text has two lines."""
    for name, path in assets.files().items():
        if name.endswith(".js"):
            whole = path.read_text(encoding="utf-8")
            assert len(assets.text(name).split("\n")) == len(whole.split("\n"))
            for number, line in enumerate(whole.split("\n"), start=1):
                if not line.strip().startswith("//"):
                    assert _closed(line), f"{name}, line {number}: a text of several lines"
    assert not _closed("const a = `b")
    assert _closed("""x = `a ${b ? `c` : "`"} d`; // it's ` here""")


def _closed(line: str) -> bool:
    """Whether each template that begins in this line ends there."""
    inside: list[str] = []  # the templates, and the ${ of them, that are open
    index = 0
    while index < len(line):
        sign = line[index]
        if inside and inside[-1] == "`":
            if sign == "\\":
                index += 1
            elif sign == "`":
                inside.pop()
            elif line.startswith("${", index):
                inside.append("{")
                index += 1
        elif sign in "\"'":
            found = re.compile(rf"{sign}(?:\\.|[^\\{sign}])*{sign}").match(line, index)
            index = found.end() - 1 if found else index
        elif line.startswith("//", index):
            break
        elif sign == "`":
            inside.append("`")
        elif sign == "{" and inside:
            inside.append("{")
        elif sign == "}" and inside:
            inside.pop()
        index += 1
    return not inside


def test_text_only_ever_goes_in_as_text() -> None:
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|new Function|setHTML"
    for name, path in assets.files().items():
        if name.endswith(".js"):
            assert not re.search(ways, path.read_text(encoding="utf-8")), name


def test_nothing_is_named_that_is_elsewhere() -> None:
    for name, path in assets.files().items():
        found = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'`]*", path.read_text(encoding="utf-8"))
        assert [one for one in found if "www.w3.org" not in one] == [], name  # names of XML are no addresses


@pytest.mark.full
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_every_page_is_there_for_everybody(studio: Studio, open_page: Open, axe: Any, name: str, theme: str) -> None:
    page = open_page(f"#/{name}", theme=theme)
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    assert page.locator("h1").count() == 1
    assert page.locator("nav.pages [aria-current=page]").get_attribute("href").startswith(f"#/{name}")
    axe(page)


@pytest.mark.full
def test_all_parts_are_there_for_everybody(scratch: Studio, open_page: Open, axe: Any) -> None:
    for theme in ("light", "dark"):
        page = open_page("#/lessons?pin='1.2", theme=theme)
        axe(page)
        page.click(".menu summary")
        axe(page)


@pytest.mark.full
def test_first_paint_within_a_second(studio: Studio, open_page: Open) -> None:
    page = open_page()
    paints = page.evaluate("performance.getEntriesByType('paint').map(one => [one.name, one.startTime])")
    assert {name for name, _ in paints} == {"first-paint", "first-contentful-paint"}
    assert all(milliseconds < 1000 for _, milliseconds in paints), paints


@pytest.mark.full
@pytest.mark.parametrize("width", [320, 390, 768, 1280, 1920])
def test_nothing_sticks_out(scratch: Studio, open_page: Open, width: int) -> None:
    page = open_page("#/lessons", viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.full
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
@pytest.mark.parametrize("name", NAMES)
def test_long_names_of_runs_do_not_stick_out(
    studio: Studio, open_page: Open, monkeypatch: Any, width: int, name: str
) -> None:
    real = studio.shelf.entries
    other = {**real()[0], "title": "a-run-with-a-name " * 6 + "x" * 160}
    monkeypatch.setattr(studio.shelf, "entries", lambda: [other, {**other, "name": "y" * 200, "task": "none"}])
    page = open_page(f"#/{name}", viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page = open_page(
        f"#/{name}?run={'y' * 200}", viewport={"width": width, "height": 800}
    )  # which has not what it shows
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.complaints.clear()  # nobody has such a run: what is asked of it is refused


# ---------------------------------------------------------------- language and theme


def test_languages_switch_and_stay(scratch: Studio, open_page: Open) -> None:
    page = open_page("#/lessons")
    assert page.locator("h1").text_content() == "Lessons"
    page.click("text=한국어")
    shown(page)
    assert page.locator("h1").text_content() == "배우기"
    assert page.evaluate("document.documentElement.lang") == "ko"
    assert page.locator("nav a").first.text_content() == "번역"
    assert page.locator("#heard").text_content() == "숫자 36개, 주목"
    assert "lang=ko" in page.url
    assert page.evaluate("document.activeElement.type") == "radio"  # who uses the keyboard is where they were
    page.goto(f"{scratch.url}/")
    page.reload()
    shown(page)
    assert page.evaluate("document.documentElement.lang") == "ko"


@pytest.mark.full
def test_the_browsers_language_comes_first(studio: Studio, open_page: Open) -> None:
    page = open_page("#/train", language="ko")
    assert page.locator("h1").text_content() == "학습"


@pytest.mark.full
def test_hangul_is_drawn(studio: Studio, open_page: Open) -> None:
    """No boxes: different syllables look different, and unlike a character that no font has."""
    page = open_page("#/train", language="ko")
    drawn = page.evaluate(
        """() => ["주", "목", "번", "\\u{10ffff}"].map((text) => {
            const canvas = document.createElement("canvas");
            [canvas.width, canvas.height] = [48, 48];
            const pen = canvas.getContext("2d");
            pen.font = `32px ${getComputedStyle(document.body).fontFamily}`;
            pen.fillText(text, 4, 40);
            return canvas.toDataURL();
        })"""
    )
    assert len(set(drawn)) == 4


@pytest.mark.full
def test_themes_switch_and_canvases_follow(scratch: Studio, open_page: Open) -> None:
    page = open_page("#/lessons")

    def colour() -> list[int]:
        found: list[int] = page.evaluate(
            """() => { const copy = document.createElement("canvas");
            const pen = copy.getContext("2d", { willReadFrequently: true });
            pen.drawImage(document.querySelector("#coloured"), 0, 0);
            return [...pen.getImageData(9, 9, 1, 1).data]; }"""
        )
        return found[:3]

    assert colour() == [10, 10, 250]
    switch = page.get_by_role("switch", name="Dark theme")
    assert switch.get_attribute("aria-checked") == "false"
    switch.click()
    assert switch.get_attribute("aria-checked") == "true"
    assert colour() == [250, 10, 10]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
    page.reload()
    shown(page)
    assert colour() == [250, 10, 10]


# ---------------------------------------------------------------- the address


@pytest.mark.full
def test_a_link_reproduces_the_view(scratch: Studio, open_page: Open) -> None:
    page = open_page("#/lessons", token=True)
    page.get_by_label("Self").check(force=True)
    page.get_by_label("Layer").fill("4")
    page.get_by_label("Words").check()
    page.get_by_label("Head").select_option("first")
    page.get_by_label("Text").fill("12")  # a text that looks like a number stays a text
    page.get_by_label("Text").press("Enter")
    click_cell(page, 2, 3)
    page.click(".theme")
    link = page.url
    assert scratch.settings.token not in link
    other = open_page(link.removeprefix(f"{scratch.url}/"))
    assert other.get_by_label("Self").is_checked()
    assert other.get_by_label("Layer").input_value() == "4"
    assert other.get_by_label("Words").is_checked()
    assert other.get_by_label("Head").input_value() == "first"
    assert other.get_by_label("Text").input_value() == "12"
    assert other.locator("#tokens bdi").last.text_content() == "12"
    assert other.locator(".pin .number").text_content() == page.locator(".pin .number").text_content()
    assert other.evaluate("document.documentElement.dataset.theme") == "dark"
    assert other.url == link


@pytest.mark.full
def test_pages_by_link_and_back(scratch: Studio, open_page: Open) -> None:
    page = open_page("#/lessons?text=a")
    page.click("text=Elsewhere")
    page.wait_for_url("**/#/compare?side=2")
    shown(page)
    page.go_back()
    page.wait_for_selector("#heard")
    assert page.get_by_label("Text").input_value() == "a"
    page.locator("nav a", has_text="Train").click()
    holds(page, "document.querySelector('h1').textContent === 'Train'")


@pytest.mark.full
@pytest.mark.parametrize(
    "hash",
    [
        "#",
        "#/",
        "#/nothing",
        "#/../../etc",
        "#/translate?__proto__=1&constructor=2",
        "#%%%",
        "#/lessons?pin=x&layer=1e999",
        "#main",
    ],
)
def test_any_address_shows_something(scratch: Studio, open_page: Open, hash: str) -> None:
    page = open_page(hash)
    assert page.locator("h1").count() == 1


def test_the_token_leaves_the_address_at_once(scratch: Studio, open_page: Open) -> None:
    page = open_page(f"#token={scratch.settings.token}")
    assert scratch.settings.token not in page.url
    assert page.evaluate("sessionStorage.getItem('jumok-token')") == scratch.settings.token
    assert page.evaluate("Object.values(localStorage).join()").find(scratch.settings.token) < 0
    page.evaluate("token => { location.hash = `token=${token}`; }", scratch.settings.token)
    holds(page, "!location.hash.includes('token')")


# ---------------------------------------------------------------- acting, failing


@pytest.mark.full
def test_acting_asks_for_the_token(scratch: Studio, open_page: Open, axe: Any) -> None:
    page = open_page("#/lessons")
    page.click("text=Act")
    dialog = page.get_by_role("dialog")
    axe(page)
    dialog.get_by_label("Token").fill("wrong")
    dialog.get_by_role("button", name="Use it").click()
    page.wait_for_selector("dialog .wrong")
    page.complaints.clear()  # the browser tells the console of an answer 401
    dialog.get_by_label("Token").fill(f"{scratch.url}/#token={scratch.settings.token}")  # the whole address will do
    page.keyboard.press("Enter")
    page.wait_for_selector("text=It is done.")
    page.locator(".notice").first.wait_for()
    page.click("text=Act")
    holds(page, "document.querySelectorAll('.notice').length === 2")  # it is known now
    assert scratch.settings.token not in page.url


@pytest.mark.full
def test_nobody_has_to_give_the_token(scratch: Studio, open_page: Open) -> None:
    page = open_page("#/lessons")
    page.click("text=Act")
    page.keyboard.press("Escape")
    holds(page, "!document.querySelector('dialog')")
    assert page.locator(".notice").count() == 0


@pytest.mark.full
def test_what_fails_is_said(scratch: Studio, open_page: Open) -> None:
    page = open_page("#/lessons")
    page.click("text=Fail")
    page.wait_for_selector("text=this is wrong: do something else")
    page.complaints.clear()


@pytest.mark.full
def test_what_was_wrong_is_said_once_and_not_for_ever(scratch: Studio, open_page: Open) -> None:
    page = open_page("#/lessons")
    for _ in range(3):
        page.click("text=Fail")
        page.wait_for_selector(".notice.wrong")
    page.wait_for_timeout(300)
    assert page.locator(".notice.wrong").count() == 1
    page.complaints.clear()
    page.click("nav a >> nth=0")
    holds(page, "!document.querySelector('.notice.wrong')")


@pytest.mark.full
@pytest.mark.parametrize(("hash", "said"), [("#/lessons?run=no+such", "no such"), ("#/nosuchpage", "nosuchpage")])
def test_names_that_are_not_there_are_told(scratch: Studio, open_page: Open, hash: str, said: str) -> None:
    page = open_page(hash)
    page.wait_for_selector(".notice.wrong")
    assert said in page.locator(".notice.wrong").text_content()
    assert "no+such" not in page.url  # what is shown is what the address says


@pytest.mark.full
@pytest.mark.parametrize(("name", "recipe"), [("vision", "vit-demo"), ("reading", "read-demo")])
def test_a_page_without_a_run_leads_to_one(studio: Studio, open_page: Open, name: str, recipe: str) -> None:
    page = open_page(f"#/{name}")
    assert recipe in page.locator(".absent code").text_content()
    page.locator(".absent button").click()
    page.wait_for_selector(".train-form")
    assert page.locator(".train-form select").evaluate("one => one.selectedOptions[0].textContent") == recipe
    assert "minutes=3" in page.url


@pytest.mark.full
def test_a_run_without_what_the_page_shows_is_said(scratch: Studio, open_page: Open, monkeypatch: Any) -> None:
    real = scratch.shelf.entries
    other = {**real()[0], "name": "pictures", "title": "A <b>run</b>", "task": "vision"}
    monkeypatch.setattr(scratch.shelf, "entries", lambda: [*real(), other])
    page = open_page("#/lessons?run=pictures")
    assert "A <b>run</b>" in page.locator(".absent").text_content()
    page.locator(".absent button").click()
    page.wait_for_selector("#heard")
    assert "run=en-fr" in page.url
    assert page.locator("#run").evaluate("one => one.selectedIndex") == 0


@pytest.mark.full
def test_the_first_run_is_watched_until_it_is_there(scratch: Studio, open_page: Open, monkeypatch: Any) -> None:
    """Its progress is in the header, and then it is in the list, also of a page that had no run to show."""

    class Told:
        states: ClassVar = [{"state": "waiting", "share": 0.0}, {"state": "training", "share": 0.42}]
        at = 0

        def progress(self, shelf: Any) -> dict[str, Any]:
            return self.states[self.at] if self.at < 2 else {"state": "ready", "share": 1.0, "name": "tiny"}

    told, real = Told(), scratch.shelf.entries
    other, tiny = {**real()[0], "name": "pictures", "task": "vision"}, {**real()[0], "name": "tiny", "title": "Tiny"}
    monkeypatch.setitem(vars(scratch.app.state)["_state"], "first", told)
    monkeypatch.setattr(scratch.shelf, "entries", lambda: [other, *([tiny] if told.at == 2 else [])])
    page = open_page("#/lessons")
    assert page.locator(".absent").count() == 1
    holds(page, "document.querySelector('#first').textContent.includes('about to learn')")
    told.at = 1
    holds(page, "document.querySelector('#first').textContent.includes('42 %')")
    assert page.locator("#first progress").evaluate("one => one.value") == 42
    told.at = 2
    page.wait_for_selector("text=The Transformer has learned.")
    assert page.locator("#first").is_hidden()
    assert page.locator("#run option").all_text_contents() == [other["title"], "Tiny"]
    page.wait_for_selector("#heard")  # nobody has to choose it
    assert page.locator("#run").evaluate("one => one.selectedIndex") == 1


# ---------------------------------------------------------------- the keyboard


@pytest.mark.full
def test_everything_is_reached_by_keyboard(scratch: Studio, open_page: Open) -> None:
    page = open_page("#/lessons")
    reached = []
    for _ in range(60):
        page.keyboard.press("Tab")
        name = page.evaluate(
            "(document.activeElement.ariaLabel || document.activeElement.labels?.[0]?.textContent"
            " || document.activeElement.textContent || '').trim().slice(0, 40)"
        )
        outline = page.evaluate(
            "(() => { const one = document.activeElement;"
            " const seen = (x) => x && getComputedStyle(x).outlineStyle !== 'none';"
            " return seen(one) || seen(one.nextElementSibling) || one.matches('.skip, body'); })()"
        )
        assert outline, name  # where one is can be seen
        reached.append(name)
    wanted = [
        "Skip to the content", "Run", "EN", "Dark theme", "Export", "Translate", "Lessons", "Cross", "Layer", "Words",
        "Head", "Text", "Elsewhere", "A map",
    ]  # fmt: skip
    places = [next(index for index, name in enumerate(reached) if name.startswith(want)) for want in wanted]
    assert places == sorted(places)


@pytest.mark.full
def test_skip_link_goes_to_the_content(scratch: Studio, open_page: Open) -> None:
    page = open_page("#/lessons")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert page.url.endswith("#/lessons")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.type") == "radio"


@pytest.mark.full
def test_export_menu_by_keyboard(scratch: Studio, open_page: Open) -> None:
    page = open_page("#/lessons")
    page.focus(".menu summary")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Picture (PNG)"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.localName") == "summary"
    assert not page.evaluate("document.querySelector('.menu').open")


# ---------------------------------------------------------------- other people's pages


ATTACK = """async (url) => {
    const ask = (path, options) => fetch(url + path, options).then((answer) => answer.status, () => "refused");
    const json = {"Content-Type": "application/json"};
    return [
        await ask("/api/runs"), await ask("/api/scratch/act", {method: "POST", body: "{}", headers: json}),
        await ask("/api/scratch/words", {method: "POST", mode: "no-cors", body: '{"text": "a"}'}),
    ];
}"""


class Evil(BaseHTTPRequestHandler):
    """A page of somebody else's, at another port of this machine: from elsewhere a browser may not ask at all."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<p>hello")

    def log_message(self, *arguments: Any) -> None:
        return


@pytest.fixture
def evil() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Evil) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_page_of_another_origin_cannot_drive_the_studio(
    scratch: Studio, evil: str, browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real requests of a real browser, from a page at another address of this machine. That it cannot read an answer
    is the browser's doing; that nothing is done for it is ours: requests come to the door, and none gets in."""
    came, inside = list[str](), list[str]()
    check, routed = Guard.check, scratch.app.router.middleware_stack

    def counted(guard: Guard, scope: Any) -> None:
        came.append(f"{scope['method']} {scope['path']}")
        check(guard, scope)

    async def entered(scope: Any, *more: Any) -> None:
        inside.append(scope["path"])
        await routed(scope, *more)

    monkeypatch.setattr(Guard, "check", counted)
    monkeypatch.setattr(scratch.app.router, "middleware_stack", entered)
    context = browser.new_context()
    try:
        page = context.new_page()
        other = scratch.url.replace("127.0.0.1", "localhost")
        for place in (evil, evil.replace("127.0.0.1", "localhost")):
            page.goto(place)
            for target in (scratch.url, other):
                came.clear()
                told = page.evaluate(ATTACK, target)
                assert told[:2] == ["refused", "refused"]
                assert told[2] in (0, "refused")  # an answer that it cannot read: 403
                assert {"GET /api/runs", "POST /api/scratch/words"} <= set(came)
                assert inside == []
        page.goto(scratch.url)  # its own page gets in
        assert inside[0] == "/"
    finally:
        context.close()
