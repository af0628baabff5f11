"""Labels files as people write them: what parts path and text, and every fault with its line."""

from __future__ import annotations

import contextlib
import io
import json
import random
import unicodedata
from collections.abc import Callable

import pytest

from jumok.data.images.csv_list import Unasked
from jumok.data.readers import text_lines
from jumok.data.text_images.label_files import read_labels
from jumok.errors import BadInput
from jumok.recipe import FieldsSection

Texts = Callable[..., list[str]]


def read(
    text: str | bytes, file: str = "labels.txt", fields: FieldsSection | None = None
) -> list[tuple[str, str | None]]:
    data = text.encode() if isinstance(text, str) else text
    lines = text_lines(io.BytesIO(data), file)
    return [(path, label) for _, path, label in read_labels(file, lines, fields or FieldsSection())]


def named(texts: list[str]) -> list[tuple[str, str]]:
    return [(f"images/{number}.png", text) for number, text in enumerate(texts)]


def icdar(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def test_a_tab(texts: Texts) -> None:
    rows = named(texts(40, without="\t"))
    assert read("".join(f"{path}\t{text}\n" for path, text in rows)) == rows


def test_tabs_in_texts_are_kept_where_others_have_none(texts: Texts) -> None:
    rows = named([*texts(40), "plain", "a\tb\tc"])
    assert read("".join(f"{path}\t{text}\n" for path, text in rows)) == rows
    assert read("1.png\ta\tb") == [("1.png", "a\tb")]
    assert read("path\ttext\n1.png\ta\tb\n2.png\tc\td") == [("1.png", "a\tb"), ("2.png", "c\td")]


def test_the_first_blank(texts: Texts) -> None:
    rows = named(["first", *texts(40)])
    assert read("".join(f"{path} {text}\n" for path, text in rows)) == rows
    assert read('1.png Tea, "you" said\n2.png ') == [("1.png", 'Tea, "you" said'), ("2.png", "")]


def test_icdar(texts: Texts) -> None:
    rows = named(texts(40))
    lines = "".join(f'{path}, "{icdar(text)}"\r\n' for path, text in rows)
    for name in ("gt.txt", "gt.csv"):
        assert read(b"\xef\xbb\xbf" + lines.encode(), name) == rows
    assert read('word_1, "a"\nword_2, b"\nword_3, ""\n') == [("word_1", "a"), ("word_2", 'b"'), ("word_3", "")]
    assert read("1.png,Tea room\n2.png, \n") == [("1.png", "Tea room"), ("2.png", "")]


def test_csv(texts: Texts) -> None:
    rows = named([*texts(40), "two\nlines"])
    quoted = [(path, '"' + text.replace('"', '""') + '"') for path, text in rows]
    body = "".join(f"{path},{text}\n" for path, text in quoted)
    assert read(body, "labels.csv") == rows
    for header in ("path,text", "File_Name,LABEL", "image,word", "filename,transcription", "이미지,텍스트"):
        assert read(f"{header}\n{body}", "labels.csv") == rows
    wide = "".join(f"7;{text};{path}\n" for path, text in quoted)
    assert read(f"id;word;filename\n{wide}", "labels.csv") == rows
    assert read(wide, "labels.csv", FieldsSection(text=2, label=1)) == rows
    assert read(f"id;b;c\n{wide}", "labels.csv", FieldsSection(text="c", label="b")) == rows


def test_jsonl(texts: Texts) -> None:
    rows = named([*texts(40), "two\nlines"])
    for keys, fields in (
        (("file_name", "text"), None),
        (("image", "word"), None),
        (("path", "label"), None),
        (("where", "what"), FieldsSection(text="where", label="what")),
        (("path", "what"), FieldsSection(label="what")),
    ):
        lines = [json.dumps({"id": 7, **dict(zip(keys, row, strict=True))}) for row in rows]
        assert read("\n".join(lines), "labels.jsonl", fields) == rows
    assert read('{"path": "1.png", "text": 5.000}', "x.jsonl") == [("1.png", "5.000")]  # as it is written


def test_a_text_is_composed_and_stripped() -> None:
    text = f"\u3000 각  {unicodedata.normalize('NFD', '닭 é')} \u00a0"
    assert read(f"1.png\t{text}\n") == [("1.png", "각  닭 é")]


def test_which_column_is_the_path() -> None:
    assert read("tea\t1.png\nroom\t2.png\n") == [("1.png", "tea"), ("2.png", "room")]
    assert read("1.png\ta.jpg\n2.png\tb.jpg\n") == [("1.png", "a.jpg"), ("2.png", "b.jpg")]
    assert read("plain\ttea\nother\troom\n") == [("plain", "tea"), ("other", "room")]
    assert read("path label\nplain tea\n") == [("plain", "tea")]
    assert read("label\tsplit\tpath\ntea\t-\t1.png\n") == [("1.png", "tea")]
    assert read("1.png\t.9\ttea\n2.png\t.8\troom\n", fields=FieldsSection(label=2)) == [
        ("1.png", "tea"),
        ("2.png", "room"),
    ]


def test_paths_with_blanks_need_a_tab() -> None:
    assert read("my tea.png\tgreen tea\nmy.png\tx\n") == [("my tea.png", "green tea"), ("my.png", "x")]


def test_a_header_without_texts_is_for_reading() -> None:
    assert read("path,width\n1.png,7\n", "x.csv") == [("1.png", None)]
    assert read('{"path": "1.png"}\n{"path": "2.png"}', "x.jsonl") == [("1.png", None), ("2.png", None)]


def test_blank_lines_at_the_end_are_nothing() -> None:
    for file, line in (("x.txt", "1.png\ta"), ("x.csv", "1.png,a"), ("x.jsonl", '{"path": "1.png", "text": "a"}')):
        assert read(f"{line}\n\n \n", file) == [("1.png", "a")]


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("x.txt", "", r"x\.txt: there is no picture in this labels file: it is empty"),
        ("x.txt", "\n \n", r"x\.txt: there is no picture in this labels file"),
        ("x.csv", "", r"x\.csv: there is no picture in this labels file"),
        ("x.csv", "path,text\n", r"x\.csv: there is no picture in this labels file"),
        ("x.jsonl", "", r"x\.jsonl: there is no picture in this labels file"),
        ("x.txt", "1.png\ta\n2.png\n3.png\tc\n", r'x\.txt, line 2: no label: "2\.png" stands alone, without a tab'),
        ("x.txt", "1.png\n2.png\tb\n3.png\tc\n", r'x\.txt, line 1: no label: "1\.png" stands alone, without a tab'),
        ("x.txt", "1.png a\n2.png\n", r'x\.txt, line 2: no label: "2\.png" stands alone, without a blank'),
        ("x.txt", "1.png\n2.png\n", r"x\.txt, line 1: no label"),
        ("x.csv", "1.png\n2.png\n", r"x\.csv, line 1: no label: .* without a comma"),
        ("x.txt", '1.png, "a"\n2.png\n', r'x\.txt, line 2: no label: "2\.png" stands alone, without a comma'),
        (
            "x.txt",
            '1.png, "a"\n2.png, "b\n',
            r'x\.txt, line 2: a quote is opened before the text and not closed .*: "b',
        ),
        ("x.txt", "1.png\ta\n\tb\n", r"x\.txt, line 2: the path of the picture is missing"),
        ("x.txt", "1.png\ta\n\n3.png\tc\n", r"x\.txt, line 2: blank, but there are lines after it"),
        (
            "x.txt",
            "1.png\ta\tx\n2.png\tb\ty\n",
            r'line 1: which column is the text\? .*2 "x"\. Name the .* data\.train\.fields\.text=N \(the path\)',
        ),
        ("x.tsv", "a\tb\tpath\n1\t2\n", r"x\.tsv, line 2: 2 columns where 3 are expected"),
        ("x.csv", "1.png,a\n2.png\n", r"x\.csv, line 2: 1 column where the first row has 2"),
        ("x.csv", "path,path,text\n1.png,2.png,a\n", r'two columns are called "path"'),
        ("x.csv", '1.png,"a\n2.png,b\n', r"x\.csv, line 1: a quote is opened and not closed"),
        (
            "x.jsonl",
            '{"path": "1.png", "text": "a"}\n{"path": "2.png"}',
            r'x\.jsonl, line 2: no label: .*no key "text"',
        ),
        ("x.jsonl", '{"path": "1.png"}\n{"path": "2.png", "text": "b"}', r"x\.jsonl, line 2: here is a text"),
        (
            "x.jsonl",
            '{"path": "1.png", "text": "a"}\n{"text": "b"}',
            r"x\.jsonl, line 2: the path of the picture is missing",
        ),
        (
            "x.jsonl",
            '{"where": "1.png", "text": "a"}',
            r"x\.jsonl, line 1: which key is the path .*where, text.* data\.train\.fields\.text=NAME",
        ),
        ("x.jsonl", '{"path": "1.png", "text": null}', r'x\.jsonl, line 1: "text" is null, not text'),
        ("x.jsonl", '{"path": "1.png", "text": "\\ud800"}', r"x\.jsonl, line 1: .*surrogate"),
        ("x.jsonl", '{"path": "1.png"', r"x\.jsonl, line 1, column 17: not JSON"),
        ("x.txt", b"1.png\ta\n2.png\t\xb0\xa1\n", r"x\.txt, line 2, byte 7: not valid UTF-8 .*CP949"),
        ("x.txt", "1.png\ta\n".encode("utf-16"), r"x\.txt, line 1, byte 1: not valid UTF-8, this looks like UTF-16"),
        ("x.txt", f"1.png\ta\n2.png\t{'가나' * 5001}\n", r'x\.txt, line 2: a text of 10,002 characters \("가나'),
    ],
)
def test_faults_are_told_with_their_line(file: str, text: str | bytes, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        read(text, file)


@pytest.mark.parametrize(
    ("file", "text", "fields", "words"),
    [
        ("x.csv", "path,text\n1.png,a\n", FieldsSection(label="txet"), r'no column "txet"\. Did you mean "text"\?'),
        (
            "x.csv",
            "path,text\n1.png,a\n",
            FieldsSection(label=2),
            r"data\.train\.fields\.label: no column 2: there are 2",
        ),
        ("x.csv", "1.png,a\n", FieldsSection(label="text"), r'fields\.label: no header, so "text" cannot be found'),
        (
            "x.csv",
            "path,text\n1.png,a\n",
            FieldsSection(text="text", label="text"),
            r"path and text are the same column",
        ),
        ("x.csv", "where,what\n1.png,a\n", FieldsSection(label="what"), r"which column is the path of the picture\?"),
        (
            "x.jsonl",
            '{"path": "1.png", "t": "a"}',
            FieldsSection(label="tt"),
            r'there is no key "tt"\. Did you mean "t"',
        ),
        ("x.jsonl", '{"path": "1.png"}', FieldsSection(label="path"), r'path and text are the same key, "path"'),
        ("x.jsonl", '{"where": "1.png"}', Unasked(), r"There are: where\. Call it path$"),
        ("x.txt", "1.png\ta\tx\n2.png\tb\ty\n", Unasked(), r"Name the columns path and text in a first line$"),
    ],
)
def test_faults_of_fields_are_told(file: str, text: str, fields: FieldsSection, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        read(text, file, fields)


def test_a_text_of_the_greatest_length_is_kept() -> None:
    assert read(f"1.png\t{'가' * 10_000}\n") == [("1.png", "가" * 10_000)]


def test_whatever_a_file_holds_is_read_or_told() -> None:
    pieces = ["1.png", "2.jpg", "\t", " ", ",", '"', "\n", "\r\n", "path", "text", ";", "{", "}", ":", "\\", "가", "\0"]
    for _ in range(2000):
        data = "".join(random.choices(pieces, k=random.randint(0, 15))).encode()
        if random.random() < 0.2:
            data += random.randbytes(3)
        with contextlib.suppress(BadInput):
            for path, text in read(data, random.choice(["x.txt", "x.csv", "x.tsv", "x.jsonl"])):
                assert path
                assert text is None or text == text.strip()
