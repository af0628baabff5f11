"""`jumok data`: what people see, and that text from data stays harmless in a terminal."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from commands import invoke

from jumok.cli.check_view import bar
from jumok.cli.data import app
from jumok.data import catalogue
from jumok.errors import BadInput

run = partial(invoke, app)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    source, target = tmp_path / "a.ko", tmp_path / "a.en.gz"
    source.write_text("안녕하세요 여러분\n\x1b[2J나쁜 줄입니다\n\n안녕하세요 여러분\n", encoding="utf-8")
    target.write_bytes(gzip.compress(b"hello everyone\na [red]bad[/red] line\nnothing here\nhello everyone\n"))
    return str(source), str(target)


def test_check_shows_counts_lengths_and_lines(files: tuple[str, str]) -> None:
    output = run("check", *files).output
    assert files[0] in output
    assert "the same pair again" in output
    assert "line 4  as line 1" in output
    assert "line 3  source blank" in output
    assert "█" in output
    assert "\x1b" not in output
    assert "\\x1b[2J나쁜 줄입니다" in output
    assert "a [red]bad[/red] line" in output


def test_check_as_json(files: tuple[str, str]) -> None:
    report = json.loads(run("check", *files, "--json", "--limit", "1").output)
    assert report["files"] == list(files)
    assert report["pairs"] == 4
    assert (report["source"]["script"], report["target"]["script"]) == ("Hangul", "Latin")
    found = {finding["kind"]: finding for finding in report["findings"]}
    assert found["repeated-pair"]["examples"] == [{"line": 4, "note": "as line 1", "source": "", "target": ""}]


def test_check_one_file_with_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"de": "ja gut", "en": "well yes"}\n{"de": "", "en": "no"}\n', encoding="utf-8")
    assert "line 2  source blank" in run("check", str(path), "--columns", "de,en").output
    table = tmp_path / "a.tsv"
    table.write_text("de\ten\nja gut\twell yes\n\tno\n", encoding="utf-8")
    assert "line 3  source blank" in run("check", str(table), "--columns", "de,en").output


@pytest.mark.parametrize("extra", [["--columns", "1"], ["b", "c"]])
def test_check_refuses(files: tuple[str, str], extra: list[str]) -> None:
    with pytest.raises(BadInput, match="two"):
        run("check", files[0], *extra)


def test_list_names_licences_and_urls() -> None:
    output = run("list").output
    assert "multi30k-en-de" in output
    assert "CC BY-NC-SA 4.0" in output
    first = json.loads(run("list", "--json").output)[0]
    assert all(set(file) == {"name", "url", "size", "sha256"} for file in first["files"])


def test_get_says_what_to_type_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the files in place no server is asked: the hashes of what is there are taken for the catalogue's."""
    folder = tmp_path / "my data"
    folder.mkdir()
    table = json.loads(json.dumps(catalogue._table()))
    for name, entry in table[0]["files"].items():
        (folder / name).write_bytes(name.encode())
        entry.update(bytes=len(name), sha256=hashlib.sha256(name.encode()).hexdigest())
    monkeypatch.setattr(catalogue, "_table", lambda: table)
    monkeypatch.setenv("JUMOK_MIRROR", "http://127.0.0.1:1")
    output = run("get", "multi30k-de-en", "--to", str(folder)).output
    assert "CC BY-NC-SA 4.0" in output
    assert output.count("was there, verified") == 6
    assert f"--source '{folder}/train.de.gz' --target '{folder}/train.en.gz'" in output
    assert f"--valid-source '{folder}/val.de.gz' --valid-target '{folder}/val.en.gz'" in output
    assert output.rstrip().endswith("--run runs/multi30k-de-en")


def test_get_unknown_name() -> None:
    with pytest.raises(BadInput, match="jumok data list"):
        run("get", "no-such-set")


def test_grammar_writes_aligned_files(tmp_path: Path) -> None:
    prefix = tmp_path / "new" / "toy"
    arguments = ["grammar", "en-fr", "--pairs", "50", "--split", "valid", "--seed", "3", "--out", str(prefix)]
    run(*arguments)
    written = {path.suffix: path.read_bytes() for path in prefix.parent.iterdir()}
    assert set(written) == {".en", ".fr", ".align"}
    english, french, links = (written[suffix].decode().split("\n")[:-1] for suffix in (".en", ".fr", ".align"))
    assert len(english) == len(french) == len(links) == 50
    assert all(english)
    assert all("-" in link for link in links)
    with pytest.raises(BadInput, match="--force"):
        run(*arguments)
    run(*arguments, "--force")
    assert {path.suffix: path.read_bytes() for path in prefix.parent.iterdir()} == written, (
        "the seed decides everything"
    )


def test_grammar_refuses_unknown_languages_and_splits(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Did you mean"):
        run("grammar", "en-fra", "--out", str(tmp_path / "x"))
    with pytest.raises(BadInput, match="train, valid or test"):
        run("grammar", "en-fr", "--split", "trian", "--out", str(tmp_path / "x"))


def test_bars_grow_with_what_they_show() -> None:
    lengths = [len(bar(share / 200)) for share in range(201)]
    assert lengths == sorted(lengths)
    assert (bar(0), len(bar(1)), bar(1e-9)) == ("", 24, "▏")


def test_the_module_is_light() -> None:
    heavy = ("torch", "numpy", "pooch", "requests", "zstandard")
    code = f"import sys, jumok.cli.data; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_drawn_images_are_written_in_folders_of_classes(tmp_path: Path) -> None:
    from PIL import Image

    place = tmp_path / "shapes"
    result = run("draw", str(place), "--images", "25", "--size", "16")
    assert result.exit_code == 0, result.output
    assert "25 images of 10 classes" in result.output
    files = sorted(place.rglob("*.png"))
    assert len(files) == 25
    assert len({file.parent.name for file in files}) == 10
    assert Image.open(files[0]).size == (16, 16)
    with pytest.raises(BadInput, match="is there already"):
        run("draw", str(place))
    with pytest.raises(BadInput, match="no split"):
        run("draw", str(tmp_path / "other"), "--split", "tests")
