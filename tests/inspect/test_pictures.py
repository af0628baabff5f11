"""Files by their ending, as `jumok attend --out` writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from commands import invoke
from translators import translator

from jumok import api
from jumok.cli.attend import attend
from jumok.errors import BadInput
from jumok.inspect.all_heads import all_heads
from jumok.inspect.attention import Attention
from jumok.inspect.attribution import attribute
from jumok.inspect.pictures import KINDS, check_picture_path, write_all_heads, write_picture
from jumok.inspect.record import record
from jumok.inspect.rollout import rollout

BEGINNINGS = {".png": b"\x89PNG", ".svg": b"<?xml", ".html": b"<!DOCTYPE html>", ".gif": b"GIF89a", ".json": b"{"}
SENTENCE, TARGET = "the student reads a book .", "l' étudiant lit un livre ."


def test_every_ending(make_attention: Callable[..., Attention], tmp_path: Path) -> None:
    assert set(BEGINNINGS) == set(KINDS)
    for ending, beginning in BEGINNINGS.items():
        path = tmp_path / f"x{ending.upper()}"
        write_picture(make_attention(3, 2), path)
        assert path.read_bytes().startswith(beginning)


def test_what_cannot_be_written_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    for name, words in (("x.bmp", "none of"), ("nowhere/x.png", "no folder"), ("folder.png", "is a folder")):
        with pytest.raises(BadInput, match=words):
            check_picture_path(tmp_path / name)


def test_all_heads_into_one_file(tmp_path: Path) -> None:
    model = translator("transformer")
    told = write_all_heads(model, SENTENCE, TARGET, tmp_path / "x.html", ("self", 1, 2))
    assert told.splitlines()[0] == TARGET
    assert f"written: {tmp_path / 'x.html'} (30 maps, 0." in told
    assert '"first":["self",1,2]' in (tmp_path / "x.html").read_text(encoding="utf-8")
    for name in ("x.png", "x.svg"):
        write_all_heads(model, SENTENCE, TARGET, tmp_path / name, ("causal", None, None), dark=True)
        assert (tmp_path / name).read_bytes().startswith(BEGINNINGS[name[1:]])


def test_all_heads_needs_a_file_and_what_exists(tmp_path: Path) -> None:
    model = translator("transformer")
    for path, view, words in (
        (None, ("cross", None, None), "--out heads.html"),
        (tmp_path / "x.gif", ("cross", None, None), "none of .html"),
        (tmp_path / "x.html", ("cross", 9, None), "layers 0 to 1"),
        (tmp_path / "x.html", ("cros", None, None), 'Did you mean "cross"'),
    ):
        with pytest.raises(BadInput, match=words):
            write_all_heads(model, SENTENCE, TARGET, path, view)


def test_a_long_sentence_is_drawn_on_a_canvas(make_attention: Callable[..., Attention], tmp_path: Path) -> None:
    for tokens, drawn in ((100, "<section class"), (101, 'id="maps-0"')):
        write_picture(make_attention(tokens, 2), tmp_path / "x.html")
        assert drawn in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_the_command_writes_films_and_all_heads(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(attend)
    told = invoke(app, "I am a student .", "--out", str(tmp_path / "x.gif"), "--dark").output
    assert "étudiant" in told
    assert (tmp_path / "x.gif").read_bytes().startswith(b"GIF89a")
    told = invoke(app, "I am a student .", "--all", "--out", str(tmp_path / "x.html")).output
    assert "étudiant" in told
    assert "(1 map, " in told
    with pytest.raises(BadInput, match="--all draws into a file"):
        invoke(app, "I am a student .", "--all")


def test_long_sentences_are_shown_whole_or_refused() -> None:
    model = translator("transformer")
    model.max_length = 3
    for look in (
        lambda: all_heads(model, SENTENCE, TARGET),
        lambda: attribute(model, SENTENCE, TARGET),
        lambda: rollout(model, SENTENCE, TARGET),
    ):
        with pytest.raises(BadInput, match="limit is 3"):
            look()


def test_broken_bytes_of_an_argument_are_named(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(attend)
    for arguments in (["a \udcff"], ["a", "--target", "\udcff"], ["a", "--steps", "\udcff"]):
        with pytest.raises(BadInput, match=r"not UTF-8 \(byte 0xff\)"):
            invoke(app, *arguments, "--out", str(tmp_path / "x.json"))
    assert list(tmp_path.iterdir()) == []


def test_what_the_model_does_not_know_is_told(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(attend)
    told = invoke(app, "I am a 학생 .", "--out", str(tmp_path / "x.json")).output
    assert "read as <unk>: 학생" in told
    assert "unknown" not in invoke(app, "I am a student.", "--out", str(tmp_path / "x.json")).output
    with pytest.raises(BadInput, match="--dark is for pictures"):
        invoke(app, "I am a student .", "--out", str(tmp_path / "x.html"), "--dark")


def test_one_sentence_as_text(tmp_path: Path) -> None:
    model = api.load_translator(device="cpu")
    for sentence, target in ((["a"], None), (None, None), ("a", 7)):
        with pytest.raises(BadInput, match="one sentence"):
            model.attend(sentence, target)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="empty"):
        model.attend(" ")
    with pytest.raises(BadInput, match="not NoneType"):
        model.translate([None])  # type: ignore[list-item]
    with pytest.raises(BadInput, match="no heads"), record(model, heads=[7]):
        pass
    with pytest.raises(BadInput, match="take a part of it"):
        model.attend("word " * 3000)
    model.attend("I am a student.").save(tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_bytes().startswith(b"<?xml")
