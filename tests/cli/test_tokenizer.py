"""`jumok tokenizer`: train, encode, show, and what is said when it cannot be done."""

from __future__ import annotations

import gzip
import io
from functools import partial
from pathlib import Path

import pytest
from commands import invoke

from jumok.cli.tokenizer import app, encode
from jumok.errors import BadInput
from jumok.text.tokenizer import Tokenizer

run = partial(invoke, app)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("the dog, the cat\n\nthe dogs\n" * 5, encoding="utf-8")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress("나는 학생입니다\n".encode() * 5))
    out = tmp_path / "made/here"
    result = run("train", str(tmp_path / "a.txt"), str(tmp_path / "b.txt.gz"), "--vocabulary", "60", "--out", str(out))
    assert result.exit_code == 0
    assert "bpe tokenizer of" in result.output
    return out


def test_train_reads_all_files(folder: Path) -> None:
    tokenizer = Tokenizer.load(folder)
    assert tokenizer.kind == "bpe"
    assert 4 < tokenizer.size <= 60
    assert tokenizer.decode(tokenizer.encode(["the dog 학생입니다"])) == ["the dog 학생입니다"]


def encode_input(folder: Path, content: bytes, monkeypatch: pytest.MonkeyPatch, ids: bool = False) -> None:
    # Typer's runner gives a standard input that cannot be peeked into, unlike a real one.
    raw: io.RawIOBase = io.BytesIO(content)  # type: ignore[assignment]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(raw), encoding="utf-8"))
    encode(folder, ids)


def test_encode_gives_a_line_for_a_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer, lines = Tokenizer.load(folder), ["the dog,", "", "나는"]
    rows = tokenizer.encode(lines)
    content = ("\n".join(lines) + "\n").encode()
    encode_input(folder, content, monkeypatch)
    assert capsys.readouterr().out.split("\n") == [*(" ".join(tokenizer.pieces(row)) for row in rows), ""]
    encode_input(folder, content, monkeypatch, ids=True)
    assert capsys.readouterr().out.split("\n") == [*(" ".join(map(str, row)) for row in rows), ""]
    with pytest.raises(BadInput, match="line 2"):
        encode_input(folder, b"good\n\xff\n", monkeypatch)


def test_show(folder: Path) -> None:
    output = run("show", str(folder), "the dog Ω").output
    assert "bpe" in output
    assert "▁the ▁dog" in output
    assert "(1 unknown)" in output
    assert f"{Tokenizer.load(folder).size} tokens" in output


def test_an_existing_tokenizer_may_be_replaced_but_nothing_else(folder: Path, tmp_path: Path) -> None:
    text = str(tmp_path / "a.txt")
    before = Tokenizer.load(folder).fingerprint
    with pytest.raises(BadInput, match="--force"):
        run("train", text, "--kind", "character", "--out", str(folder))
    assert Tokenizer.load(folder).fingerprint == before
    run("train", text, "--kind", "character", "--out", str(folder), "--force")
    assert Tokenizer.load(folder).kind == "character"
    with pytest.raises(BadInput, match="is not a tokenizer folder"):
        run("train", text, "--out", str(tmp_path))
    with pytest.raises(BadInput, match="is not a tokenizer folder"):
        run("train", text, "--out", text)
    assert (tmp_path / "a.txt").read_text(encoding="utf-8").startswith("the dog")


def test_what_cannot_be_done_is_said(folder: Path, tmp_path: Path) -> None:
    text, out = str(tmp_path / "a.txt"), str(tmp_path / "new")
    with pytest.raises(BadInput, match='Did you mean "unigram"'):
        run("train", text, "--kind", "unigrams", "--out", out)
    with pytest.raises(BadInput, match="at least 260"):
        run("train", text, "--kind", "byte", "--vocabulary", "100", "--out", out)
    with pytest.raises(BadInput, match=r"nowhere\.txt"):
        run("train", str(tmp_path / "nowhere.txt"), "--out", out)
    (tmp_path / "bad.txt").write_bytes(b"good\nb\xe9d\n")
    with pytest.raises(BadInput, match=r"bad\.txt, line 2"):
        run("train", str(tmp_path / "bad.txt"), "--out", out)
    (tmp_path / "blank.txt").write_text("\n\n")
    with pytest.raises(BadInput, match="nothing to train"):
        run("train", str(tmp_path / "blank.txt"), "--out", out)
    assert not Path(out).exists()
    for command in (["show", str(tmp_path)], ["encode", "--tokenizer", str(tmp_path)]):
        with pytest.raises(BadInput, match="not a tokenizer folder"):
            run(*command)
