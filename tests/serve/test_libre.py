"""LibreTranslate's clients work: PyPI's own, and whatever sends JSON or a form."""

from __future__ import annotations

import secrets
from urllib.error import HTTPError

import pytest
from libretranslatepy import LibreTranslateAPI
from served import QUICK, client, running, translator
from starlette.testclient import TestClient
from translators import sentences

from jumok.serve.settings import Settings

ASK = {"q": "I am a student.", "source": "en", "target": "fr"}


def test_the_client_of_libretranslate() -> None:
    with running() as service:
        api = LibreTranslateAPI(service.url)
        for text in sentences(3):
            assert api.translate(text, "en", "fr") == translator().translate([text])[0]
        assert api.translate(ASK["q"], "auto", "fr") == "Je suis étudiant."
        assert {"code": "en", "name": "English", "targets": ["fr"]} in api.languages()
        assert api.detect("The cat sleeps.")[0]["language"] == "en"
        with pytest.raises(HTTPError, match="400"):
            api.translate("Hallo", "de", "fr")


def test_its_key_stands_in_the_body() -> None:
    key = secrets.token_hex(16)
    with running(Settings(keys=(key,), head_seconds=QUICK.head_seconds)) as service:
        assert LibreTranslateAPI(service.url, key).translate(ASK["q"], "en", "fr") == "Je suis étudiant."
        for api in (LibreTranslateAPI(service.url), LibreTranslateAPI(service.url, key + "x")):
            with pytest.raises(HTTPError, match="401"):
                api.translate(ASK["q"], "en", "fr")


def test_json_and_forms_say_the_same(client: TestClient) -> None:
    expected = {"translatedText": "Je suis étudiant."}
    assert client.post("/translate", json=ASK).json() == expected
    assert client.post("/translate", data=ASK).json() == expected
    assert client.post("/translate", files={key: (None, value) for key, value in ASK.items()}).json() == expected


def test_lists_alternatives_and_auto(client: TestClient) -> None:
    asked = {"q": ["I am a student.", "The cat sleeps."], "source": "auto", "target": "fr", "alternatives": 2}
    said = client.post("/translate", json=asked).json()
    assert said["translatedText"] == ["Je suis étudiant.", "Le chat dort."]
    assert [len(others) for others in said["alternatives"]] == [2, 2]
    assert [one["language"] for one in said["detectedLanguage"]] == ["en", "en"]
    assert all(0 < one["confidence"] <= 100 for one in said["detectedLanguage"])


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({**ASK, "format": "html"}, "html"),
        ({**ASK, "target": "xx"}, "en-fr"),
        ({**ASK, "source": "fr"}, "en-fr"),
        ({"q": "I am"}, "source"),
        ({**ASK, "q": 5}, "q"),
        ({**ASK, "alternatives": 1000}, "alternatives"),
        ({**ASK, "q": "cat " * 1000}, "tokens"),
    ],
)
def test_what_is_wrong_is_told_as_libretranslate_does(client: TestClient, asked: dict[str, object], words: str) -> None:
    said = client.post("/translate", json=asked)
    assert said.status_code == 400
    assert isinstance(said.json()["error"], str)
    assert words in said.json()["error"]


def test_a_service_without_languages_says_so() -> None:
    from served import models

    found = models()
    next(iter(found)).languages = None  # type: ignore[misc]
    with client(Settings(), found) as asked:
        said = asked.post("/translate", json=ASK)
        assert (said.status_code, asked.get("/languages").json()) == (400, [])
        assert "--language" in said.json()["error"]
