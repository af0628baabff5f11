"""`jumok serve`: what is wrong is told before anything is loaded, and secrets stay out of sight."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest
from asked import Ask, refused
from journey import jumok

from jumok.errors import BadInput
from jumok.serve.settings import KEY_VARIABLE, allowed_hosts, allowed_origins, read_keys


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--log", "xml"], "--log xml"),
        (["--cors", "example.org"], "--cors example.org"),
        (["--cors", "https://example.org/path"], "--cors"),
        (["--allow-host", "http://example.org"], "--allow-host"),
        (["--language", "small"], "--language small"),
        (["--api-key-file", "/nowhere/keys"], "--api-key-file"),
        (["--seconds", "0"], "seconds"),
        (["--host", "nowhere.invalid"], "--host"),
        (["--port", "70000"], "65535"),
    ],
)
def test_what_is_wrong_is_told(ask: Ask, arguments: list[str], words: str) -> None:
    refused(ask("serve", *arguments), words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--run", "nowhere"], "nowhere"),
        (["--run", "a=b=c"], "b=c"),
        (["--run", "bad name=x"], "bad name"),
        (["--language", "other=en-fr"], "other"),
        (["--engine", "steam"], "steam"),
        (["--precision", "float8"], "float8"),
        (["--device", "abacus"], "abacus"),
    ],
)
def test_models_that_cannot_be_loaded_end_it(arguments: list[str], words: str) -> None:
    """In a process of its own: an event loop needs a thread where there is none, and tests with a browser leave one."""
    said = jumok("serve", "--port", "0", *arguments, timeout=60)
    refused((said.returncode, said.stdout, said.stderr), words)
    assert "Traceback" not in said.stderr


def test_help_names_the_limits(ask: Ask) -> None:
    code, said, _ = ask("serve", "--help")
    assert code == 0
    for option in ("--max-request-bytes", "--api-key-file", "--allow-host", "--queue"):
        assert option in said
    assert "--api-key " not in said  # a key on a command line would be seen by all


def test_keys_come_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = secrets.token_hex(16), secrets.token_hex(20)
    file = tmp_path / "keys"
    file.write_text(f"# ours\n{first}\n\n  {second}  \n{first}\n")
    file.chmod(0o600)
    assert read_keys(file) == (first, second)
    monkeypatch.setenv(KEY_VARIABLE, second)
    assert read_keys(None) == (second,)
    monkeypatch.delenv(KEY_VARIABLE)
    assert read_keys(None) == ()


def test_keys_that_can_be_guessed_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "keys"
    for text in ("", "# nothing\n", "short\n", "열쇠" * 10, "with a space in the middle"):
        file.write_text(text, encoding="utf-8")
        file.chmod(0o600)
        with pytest.raises(BadInput) as told:
            read_keys(file)
        assert text.strip() == "" or text.startswith("#") or text.strip() not in str(told.value)
    monkeypatch.setenv(KEY_VARIABLE, "short")
    with pytest.raises(BadInput, match=KEY_VARIABLE):
        read_keys(None)


@pytest.mark.skipif(os.name != "posix", reason="other rights elsewhere")
def test_a_file_of_keys_that_others_can_read_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "keys"
    file.write_text(secrets.token_hex(16))
    file.chmod(0o644)
    read_keys(file)
    assert "chmod 600" in capsys.readouterr().err


def test_names_and_origins() -> None:
    assert allowed_hosts("127.0.0.1", ["A.org"]) == ("localhost", "127.0.0.1", "[::1]", "a.org")
    assert allowed_hosts("::1", [])[-1] == "[::1]"
    assert "0.0.0.0" not in allowed_hosts("0.0.0.0", [])
    assert allowed_origins(["https://A.org", "*"]) == ("https://a.org", "*")
