"""`jumok read`, as a user types it: every way to name pictures, every way to be told what stands in them."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from asked import Ask
from PIL import Image
from striped_words import ENDING, a_reader, a_word, striped, write_striped

from jumok import api
from jumok.cli.read import Form
from jumok.errors import Failure
from jumok.tasks import text_reader
from jumok.tasks.text_reader import TextReader


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> TextReader:
    """What `--run stripes` is: a reader of stripes."""
    found = a_reader()
    monkeypatch.setattr(api, "task_of", lambda run: "recognition" if str(run) == "stripes" else "vision")
    monkeypatch.setattr(api, "load", lambda run, device: found)
    return found


@pytest.fixture
def jumok(ask: Ask, reader: TextReader) -> Any:
    return lambda *arguments: ask("read", "--run", "stripes", *arguments)


def rows(output: str) -> list[list[str]]:
    return [line.split("\t") for line in output.splitlines()]


def test_files_folders_and_patterns(jumok: Any, tmp_path: Path) -> None:
    words = [a_word() for _ in range(5)]
    files = write_striped(tmp_path / "new", words, (20, 100))
    code, out, err = jumok(*files)
    assert (code, err) == (0, "")
    assert [row[0] for row in rows(out)] == list(map(str, files))
    assert [row[1] for row in rows(out)] == words
    assert all(0 < float(row[2]) < 1 for row in rows(out))
    assert jumok(tmp_path / "new")[1] == out
    assert jumok(tmp_path / "new" / "00[13].png")[1].splitlines() == [out.splitlines()[1], out.splitlines()[3]]
    deep = write_striped(tmp_path / "new" / "test" / "deep", ["가"])[0]
    (tmp_path / "new" / "labels.txt").write_text("gone.png\tnothing\n", encoding="utf-8")  # for reading it is no matter
    code, more, err = jumok(tmp_path / "new")
    assert (code, err) == (0, "")
    assert more.startswith(out)
    assert rows(more)[-1][:2] == [str(deep), "가"]


def test_archives_and_lists_of_labels(jumok: Any, tmp_path: Path) -> None:
    words = [a_word() for _ in range(3)]
    files = write_striped(tmp_path / "words", words)
    with zipfile.ZipFile(tmp_path / "words.zip", "w") as archive:
        for file in files:
            archive.write(file, file.name)
    code, out, err = jumok(tmp_path / "words.zip")
    assert (code, [row[1] for row in rows(out)]) == (0, words), err
    with zipfile.ZipFile(tmp_path / "words.zip", "a") as archive:  # for reading they are no matter, as in a folder
        archive.writestr("labels.txt", f"{files[1].name}\tsomething\ngone.png\tnothing\n")
    assert jumok(tmp_path / "words.zip") == (0, out, "")
    assert [row[1] for row in rows(jumok(tmp_path / "words.zip" / files[2].name)[1])] == words[2:]
    with zipfile.ZipFile(tmp_path / "labelled.zip", "w") as archive:
        for file in files:
            archive.write(file, file.name)
        archive.writestr("labels.txt", f"{files[1].name}\tsomething\n")
    assert [row[1] for row in rows(jumok(tmp_path / "labelled.zip" / "labels.txt")[1])] == words[1:2]
    labels = "".join(f"{file.name}\tsomething\n" for file in files[:2])
    (tmp_path / "words" / "labels.tsv").write_text(labels, encoding="utf-8")
    code, out, err = jumok(tmp_path / "words" / "labels.tsv")
    assert (code, [row[1] for row in rows(out)]) == (0, words[:2]), err


def test_an_lmdb(jumok: Any, tmp_path: Path) -> None:
    lmdb = pytest.importorskip("lmdb")
    words = [a_word() for _ in range(3)]
    files = write_striped(tmp_path, words)
    with lmdb.open(str(tmp_path / "words.lmdb")) as database, database.begin(write=True) as change:
        change.put(b"num-samples", b"3")
        for number, file in enumerate(files, 1):
            change.put(b"image-%09d" % number, file.read_bytes())
            change.put(b"label-%09d" % number, b"another")
    code, out, err = jumok(tmp_path / "words.lmdb")
    assert (code, [row[1] for row in rows(out)]) == (0, words), err


def test_paths_from_a_pipe(jumok: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [a_word() for _ in range(3)]
    files = write_striped(tmp_path, words)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{files[2]}\n\n{tmp_path}/gone.png\r\n{files[0]}"))
    code, out, err = jumok()
    assert [row[1] for row in rows(out)] == [words[2], words[0]]
    assert code == 2
    assert "gone.png: no such file" in err
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    code, _, err = jumok()
    assert code == 2
    assert "name pictures" in err


def test_a_pipe_that_stays_open_holds_nothing_back(jumok: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next path is told only when the last one has been read; the last line has no end."""
    words = [a_word() for _ in range(3)]
    files = write_striped(tmp_path / "é", words)
    come, go = os.pipe()
    told, seen = threading.Semaphore(0), []
    plain = Form.line

    def line(self: Form, name: str, *others: Any) -> str:
        seen.append(name)
        told.release()
        return plain(self, name, *others)

    def say() -> None:
        with open(go, "wb", buffering=0) as pipe:
            for number, file in enumerate(files):
                path = f"{file}\r\n".encode() if number < 2 else str(file).encode()
                pipe.write(path[:-9])
                pipe.write(path[-9:])
                if number < 2 and not told.acquire(timeout=20):
                    seen.append("nothing for 20 seconds")
                    return

    monkeypatch.setattr(Form, "line", line)
    talking = threading.Thread(target=say)
    with open(come, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        talking.start()
        code, out, err = jumok()
    talking.join()
    assert (code, [row[1] for row in rows(out)]) == (0, words), err
    assert seen == list(map(str, files))


@pytest.mark.parametrize("error", [KeyboardInterrupt, Failure("broken")])
def test_what_was_read_is_not_lost(
    jumok: Any, reader: TextReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    words = [a_word() for _ in range(7)]
    files = write_striped(tmp_path, words)
    monkeypatch.setattr(text_reader, "ROWS", 3)
    look, calls = reader.look, []

    def look_twice(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) > 2:
            raise error
        return look(*arguments)

    monkeypatch.setattr(reader, "look", look_twice)
    code, out, _ = jumok(*files)
    assert code != 0
    assert [row[1] for row in rows(out)] == words[:6]


def test_json_and_csv_and_characters(jumok: Any, tmp_path: Path) -> None:
    word, sure = a_word(2), [random.uniform(0.6, 1.0) for _ in range(8)]
    file = tmp_path / 'a,"b".png'
    Image.fromarray(striped(word, sure=sure[: len(word)])).save(file)
    plain = rows(jumok(file, "--characters")[1])[0]
    assert plain[:2] == [str(file), word]
    assert plain[3::2] == list(word)
    assert [float(cell) for cell in plain[4::2]] == pytest.approx(sure[: len(word)], abs=0.01)
    found = json.loads(jumok(file, "--json", "--characters", "--turn")[1])
    assert (found["image"], found["text"], found["turned"]) == (str(file), word, 0)
    assert found["confidence"] == pytest.approx(float(plain[2]), abs=1e-4)
    assert [character for character, _ in found["characters"]] == list(word)
    assert set(json.loads(jumok(file, "--json")[1])) == {"image", "text", "confidence"}
    head, row = csv.reader(io.StringIO(jumok(file, "--csv", "--characters")[1]))
    assert head == ["image", "text", "confidence", "confidences"]
    assert row[:3] == plain[:3]
    assert row[3].split() == plain[4::2]


def test_a_blank_picture(jumok: Any, tmp_path: Path) -> None:
    Image.new("RGB", (90, 30)).save(tmp_path / "blank.png")
    assert rows(jumok(tmp_path / "blank.png")[1]) == [[str(tmp_path / "blank.png"), "", f"{ENDING:.4f}"]]
    assert json.loads(jumok(tmp_path / "blank.png", "--json", "--characters")[1])["characters"] == []


def test_what_cannot_be_read_is_told_and_the_others_are_read(jumok: Any, tmp_path: Path) -> None:
    words = [a_word() for _ in range(4)]
    files = write_striped(tmp_path / "new", words)
    files[1].write_bytes(b"")
    files[2].write_bytes(files[0].read_bytes()[:50])
    (tmp_path / "new" / "zz.png").symlink_to(tmp_path / "nowhere.png")
    code, out, err = jumok(tmp_path / "gone.png", tmp_path / "new", tmp_path / "no*.png", files[3])
    assert code == 2
    assert [row[1] for row in rows(out)] == [words[0], words[3], words[3]]
    for said in ("gone.png: no such file", "001.png: the file is empty", "002.png: ", "zz.png: a link to something",
                 "no*.png: no file matches", "5 inputs could not be read (named above)"):  # fmt: skip
        assert said in err
    (tmp_path / "nothing").mkdir()
    code, out, err = jumok(tmp_path / "nothing")
    assert (code, out) == (2, "")
    assert "no image in it" in err


def test_of_an_animation_the_first_picture_is_read_and_that_is_told(jumok: Any, tmp_path: Path) -> None:
    words = [a_word() for _ in range(2)]
    files = write_striped(tmp_path / "words", words)
    frames = [Image.open(file) for file in files]
    frames[0].save(tmp_path / "moves.png", save_all=True, append_images=frames[1:])
    code, out, err = jumok(tmp_path / "moves.png")
    assert (code, rows(out)[0][1]) == (0, words[0])
    assert err == f"note: {tmp_path / 'moves.png'} has more pictures than one: its first was looked at\n"
    code, _, err = jumok(tmp_path / "moves.png", files[0], tmp_path / "moves.png")
    assert (code, err.count("note:")) == (0, 1)
    assert "2 files have more pictures than one" in err


def test_tall_pictures(jumok: Any, tmp_path: Path) -> None:
    word = a_word(5)
    Image.fromarray(np.rot90(striped(word, (20, 90)))).save(tmp_path / "tall.png")
    assert rows(jumok(tmp_path / "tall.png", "--turn")[1])[0][1::2] == [word, "270"]
    assert rows(jumok(tmp_path / "tall.png")[1])[0][1] != word


def test_options_that_do_not_fit(ask: Ask, jumok: Any, reader: TextReader, tmp_path: Path) -> None:
    file = write_striped(tmp_path, ["0"])[0]
    assert jumok(file, "--fast")[0] == 0
    assert reader.model.asked[-1]["fast"] is True
    assert jumok(file, "--sure", 0.75)[0] == 0
    assert reader.model.asked[-1]["sure"] == 0.75
    for arguments, said in (
        (["--beam", 3], "--beam 3 is for decoders that write one character"),
        (["--beam", 0], "--beam 0"),
        (["--sure", 2], "--sure 2: a probability"),
        (["--sure", 0.5, "--fast"], "--sure 0.5: fast takes every word"),
        (["--json", "--csv"], "not both"),
        (["--boxes", tmp_path / "b.json", file], "name the one page"),
    ):
        code, out, err = jumok(file, *arguments)
        assert (code, out) == (2, "")
        assert said in err
    code, _, err = ask("read", "--run", "other", file)
    assert code == 2
    assert "other has learned vision" in err
    with torch.no_grad():
        reader.model.place.fill_(torch.nan)
    code, _, err = jumok(file)
    assert code == 1
    assert "not numbers" in err


# ---------------------------------------------------------------- boxes on a page


@pytest.fixture
def page(tmp_path: Path) -> tuple[Path, dict[str, list[int]]]:
    """A page with three words, and where they are."""
    pixels = np.full((200, 300, 3), 255, np.uint8)
    places = {"가나": [10, 20, 128, 32], "0é": [150, 100, 128, 48], "X1Y": [20, 150, 96, 30]}
    for word, (x, y, width, height) in places.items():
        pixels[y : y + height, x : x + width] = striped(word, (height, width))
    Image.fromarray(pixels).save(tmp_path / "page.png")
    return tmp_path / "page.png", places


def test_boxes_of_a_page(jumok: Any, tmp_path: Path, page: tuple[Path, dict[str, list[int]]]) -> None:
    file, places = page
    first, second, third = places.values()
    named = dict(zip(("x", "y", "width", "height"), second, strict=True))
    x, y, width, height = third
    corners = [[x, y], [x + width, y], [x + width, y + height], [x, y + height]]
    given = [first, {"id": "b", **named}, {"box": corners}]
    (tmp_path / "b.json").write_text(json.dumps(given), encoding="utf-8")
    code, out, err = jumok(file, "--boxes", tmp_path / "b.json", "--json")
    assert (code, err) == (0, "")
    found = [json.loads(line) for line in out.splitlines()]
    assert [one["text"] for one in found] == list(places)
    assert [one["box"] for one in found] == given
    assert [one["image"] for one in found] == [f"{file}#{number}" for number in (1, 2, 3)]
    head, *lines = csv.reader(io.StringIO(jumok(file, "--boxes", tmp_path / "b.json", "--csv")[1]))
    assert head == ["image", "text", "confidence", "box"]
    assert [json.loads(line[3]) for line in lines] == given
    assert [row[1] for row in rows(jumok(file, "--boxes", tmp_path / "b.json")[1])] == list(places)


def test_boxes_that_are_none(jumok: Any, tmp_path: Path, page: tuple[Path, dict[str, list[int]]]) -> None:
    file, places = page
    given = [[900, 1, 5, 5], places["가나"], [1, 2, 3], [1, 2, float("nan"), 4], places["0é"], [1, 1, 0, 5]]
    (tmp_path / "b.json").write_text(json.dumps(given), encoding="utf-8")
    code, out, err = jumok(file, "--boxes", tmp_path / "b.json", "--json")
    assert code == 2
    found = [json.loads(line) for line in out.splitlines()]
    assert [(one["text"], one["box"]) for one in found] == [("가나", places["가나"]), ("0é", places["0é"])]
    assert [one["image"][-2:] for one in found] == ["#2", "#5"]
    for number in (1, 3, 4, 6):
        assert f"b.json: box {number}: " in err
    assert "4 boxes could not be read" in err
    (tmp_path / "b.json").write_text("[[1, 2, 3, 4]", encoding="utf-8")
    code, out, err = jumok(file, "--boxes", tmp_path / "b.json")
    assert (code, out) == (2, "")
    assert "b.json, line 1: not JSON" in err
    (tmp_path / "b.json").write_text("[[1, 2, 3, 4]]", encoding="utf-8")
    for page_file in (tmp_path / "b.json", tmp_path, tmp_path / "gone.png"):
        code, out, err = jumok(page_file, "--boxes", tmp_path / "b.json")
        assert (code, out) == (2, "")
        assert str(page_file) in err


def test_help_names_all_of_it() -> None:
    code = "import typer; from jumok.cli.read import read; import sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_lists_of_words(jumok: Any, tmp_path: Path) -> None:
    """What looks nearly like a word of a list is read as that; all else as it stands there."""
    Image.fromarray(striped("aXb", sure=[0.9, 0.6, 0.9])).save(tmp_path / "word.png")
    Image.fromarray(striped("17", sure=0.6)).save(tmp_path / "number.png")
    listed = tmp_path / "words.txt"
    listed.write_text("aab\n가나힣\n", encoding="utf-8")
    pictures = [tmp_path / "word.png", tmp_path / "number.png"]
    assert [row[1] for row in rows(jumok(*pictures)[1])] == ["aXb", "17"]
    code, out, err = jumok(*pictures, "--words", listed)
    assert (code, err) == (0, "")
    assert [row[1] for row in rows(out)] == ["aab", "17"]
    assert rows(jumok(*pictures, "--words", listed, "--trust", "1")[1])[0][1] == "aXb"
    assert rows(jumok(*pictures, "--words", listed, "--trust", "inf")[1])[0][1] == "aab"
    text = tmp_path / "text.txt.gz"
    with gzip.open(text, "wt", encoding="utf-8") as lines:
        lines.write('Ab "17", aab! baa.\n' * 3)
    assert rows(jumok(*pictures, "--words", text, "--words", listed)[1])[0][1] == "aab"
    for given, said in [
        (("--words", tmp_path / "none.txt"), "none.txt"),
        (("--trust", "5"), "--trust 5 says how much the words of --words are trusted: give that too"),
        (
            ("--words", listed, "--trust", "0.5"),
            "--trust 0.5: how many times likelier a word of the list is, 1 or more",
        ),
        (("--words", pictures[0]), "word.png"),
    ]:
        code, out, err = jumok(pictures[0], *given)
        assert (code, out) == (2, ""), given
        assert said in err
        assert "Traceback" not in err


def test_an_empty_list_of_words(jumok: Any, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n\n")
    code, _, err = jumok(*write_striped(tmp_path / "new", ["a"]), "--words", tmp_path / "empty.txt")
    assert code == 2
    assert "empty.txt: no words in it" in err
    assert "render.words" not in err
