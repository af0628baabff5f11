"""What can be asked, and that the answers are what the models say and OpenAPI promises."""

from __future__ import annotations

import base64
import json
import tempfile

import pytest
from served import COLOURS, picture, translator
from starlette.testclient import TestClient
from translators import sentences

from jumok.serve import schema
from jumok.tasks.wishes import Wishes


def test_translations_are_those_of_the_translator(client: TestClient) -> None:
    texts = sentences(12)
    expected = translator().found(texts, Wishes(nbest=2, beam=3))
    said = client.post("/v1/translate", json={"text": texts, "nbest": 2, "beam": 3})
    assert said.status_code == 200
    told = schema.TranslateTold.model_validate(said.json())
    assert told.model == "en-fr"
    for one, found in zip(told.translations, expected, strict=True):
        assert one.text == found[0].text
        assert one.score == pytest.approx(found[0].score, abs=1e-5)
        assert [other.text for other in one.alternatives or []] == [found[1].text]


def test_one_text_needs_no_list(client: TestClient) -> None:
    said = client.post("/v1/translate", json={"text": "I am a student."}).json()
    assert [one["text"] for one in said["translations"]] == ["Je suis étudiant."]
    assert "alternatives" not in said["translations"][0]


def test_wishes_reach_the_search(client: TestClient) -> None:
    text = "The young cat will drink milk."
    for wish in ({"forbid": ["jeune"]}, {"prefix": "Un"}, {"sample": True, "temperature": 20.0, "seed": 7}):
        (said,) = client.post("/v1/translate", json={"text": text, **wish}).json()["translations"]
        assert said["text"] == translator().translate([text], **wish)[0]
        assert said["text"] != translator().translate([text])[0]


def test_an_empty_text_has_an_empty_translation(client: TestClient) -> None:
    said = client.post("/v1/translate", json={"text": ["", "I am a student."]}).json()["translations"]
    assert [one["text"] for one in said] == ["", "Je suis étudiant."]


def events(text: str) -> list[tuple[str, dict[str, object]]]:
    found = []
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


@pytest.mark.parametrize("beam", [1, 4])
def test_a_stream_begins_what_it_ends_with(client: TestClient, beam: int) -> None:
    for text in sentences(5):
        said = client.post("/v1/translate", json={"text": text, "stream": True, "beam": beam})
        assert said.headers["content-type"].startswith("text/event-stream")
        *parts, (last, whole) = events(said.text)
        assert last == "done"
        assert {name for name, _ in parts} <= {"text"}
        (one,) = schema.TranslateTold.model_validate(whole).translations
        assert one.text.startswith("".join(str(part["text"]) for _, part in parts))
        assert one.text == translator().translate([text], beam=beam)[0]


def test_what_cannot_be_streamed_is_refused_with_a_code(client: TestClient) -> None:
    several = client.post("/v1/translate", json={"text": ["a", "b"], "stream": True})
    long = client.post("/v1/translate", json={"text": "cat " * 1000, "stream": True})
    assert (several.status_code, several.json()["error"]["where"]) == (422, "stream")
    assert (long.status_code, long.json()["error"]["where"]) == (422, "text")


def test_labels(client: TestClient) -> None:
    said = client.post("/v1/classify", json={"text": ["a", "b"], "best": 2}).json()
    told = schema.ClassifyTold.model_validate(said)
    assert told.model == "labels"
    assert [one.label for one in told.labels] == ["good", "good"]
    assert list(told.labels[0].probabilities or {}) == ["good", "bad"]


def test_pairs_must_pair_up(client: TestClient) -> None:
    wrong = client.post("/v1/classify", json={"text": ["a", "b"], "second": ["c"]})
    assert (wrong.status_code, wrong.json()["error"]["where"]) == (422, "second")


def test_tags_answers_vectors_and_guesses(client: TestClient) -> None:
    tags = schema.TagTold.model_validate(client.post("/v1/tag", json={"text": "The cat sleeps"}).json())
    assert (tags.sentences[0].words, tags.sentences[0].tags) == (["The", "cat", "sleeps"], ["TAG3", "TAG3", "TAG6"])
    asked = {"question": ["Who?", "What?"], "context": "Cats sleep.", "best": 2}
    answers = schema.AnswerTold.model_validate(client.post("/v1/answer", json=asked).json()).answers
    assert [[one.text for one in each] for each in answers] == [["Cats", ""]] * 2
    asked = {"text": ["abc", "a"], "normalise": False, "model": "words"}
    vectors = schema.EmbedTold.model_validate(client.post("/v1/embed", json=asked).json())
    assert vectors.vectors == [[3.0, 0.0, 0.5], [1.0, 0.0, 0.5]]
    guesses = schema.FillTold.model_validate(client.post("/v1/fill", json={"text": "The [MASK].", "best": 2}).json())
    assert [one.text for one in guesses.guesses[0][0]] == ["The cat."] * 2


def test_a_picture_comes_in_three_ways(client: TestClient) -> None:
    image, query = picture(), {"best": "3"}
    ways = [
        client.post("/v1/image/classify", json={"image": base64.b64encode(image).decode(), "best": 3}),
        client.post("/v1/image/classify", content=image, headers={"content-type": "image/png"}, params=query),
        client.post("/v1/image/classify", files={"file": ("a.png", image, "image/png")}, params=query),
    ]
    assert [way.status_code for way in ways] == [200] * 3
    assert ways[0].json() == ways[1].json() == ways[2].json()
    (one,) = schema.ImageClassifyTold.model_validate(ways[0].json()).images
    assert set(one.probabilities or {}) == set(COLOURS)


def test_several_files_of_a_form(client: TestClient) -> None:
    images = [("file", (f"{n}.png", picture(size=(8 + n, 9)), "image/png")) for n in range(3)]
    said = client.post("/v1/image/classify", files=images)
    assert len(said.json()["images"]) == 3


def test_a_large_file_of_a_form_is_not_written_to_the_disk(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def rolled(self: object) -> None:
        raise AssertionError("it went to the disk")

    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "rollover", rolled)
    large = picture() + bytes(3 << 20)
    assert client.post("/v1/image/classify", files={"file": ("a.png", large, "image/png")}).status_code == 200


def test_words_in_pictures(client: TestClient) -> None:
    image = {"content": picture(), "headers": {"content-type": "image/png"}}
    plain = schema.ImageReadTold.model_validate(client.post("/v1/image/read", **image).json())
    assert (plain.images[0].text, plain.images[0].characters) == ("word", None)
    told = schema.ImageReadTold.model_validate(client.post("/v1/image/read?characters=true", **image).json())
    assert told.images[0].characters == [("w", 0.9), ("o", 1.0)]
    wrong = client.post("/v1/image/read?beam=x&nothing=1", **image)
    assert wrong.status_code == 422
    assert "nothing" in wrong.json()["error"]["message"]


def test_attention_as_numbers_and_as_a_page(client: TestClient) -> None:
    said = client.post("/v1/attend", json={"text": "I am a student."})
    told = schema.AttendTold.model_validate(said.json())
    expected = translator().attend("I am a student.")
    assert tuple(told.target) == expected.target
    assert told.weights[0][0] == pytest.approx(float(expected.weights[0, 0]), abs=1e-5)
    page = client.post("/v1/attend", json={"text": "<b>I</b> am", "format": "html"})
    assert page.headers["content-type"].startswith("text/html")
    assert "sandbox" in page.headers["content-security-policy"]
    assert "<b>I</b>" not in page.text


def test_what_attention_there_is_not_is_refused(client: TestClient) -> None:
    wrong = client.post("/v1/attend", json={"text": "I am", "layer": 7})
    assert wrong.status_code == 422
    assert wrong.json()["error"]["code"] == "refused"


@pytest.mark.parametrize("name", ["nothing", "../../etc/passwd", "labels", "en-fr\x00", "é" * 90])
def test_models_are_names_and_nothing_else(client: TestClient, name: str) -> None:
    wrong = client.post("/v1/translate", json={"text": "I am", "model": name})
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (404, "model")


def test_the_place_of_what_is_wrong(client: TestClient) -> None:
    wrong = client.post("/v1/translate", json={"text": ["I am", "cat " * 1000]})
    assert (wrong.status_code, wrong.json()["error"]["where"]) == (422, "text[1]")
    wrong = client.post("/v1/translate", json={"text": "I am", "beam": 10_000, "banana": 1})
    assert wrong.json()["error"]["where"] == "beam"
    assert "banana" in wrong.json()["error"]["message"]
    schema.ProblemTold.model_validate(wrong.json())


def test_a_wish_that_contradicts_itself(client: TestClient) -> None:
    wrong = client.post("/v1/translate", json={"text": "I am", "beam": 2, "nbest": 3})
    assert wrong.status_code == 422
    assert "beam" in wrong.json()["error"]["message"]
