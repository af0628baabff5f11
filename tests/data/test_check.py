"""The check finds what was planted, on the line where it was planted, and nothing in clean text."""

from __future__ import annotations

import json
import random
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.data.check import KINDS, CheckReport, check_pairs
from jumok.data.suspicion import scripts, suspicions, visible


def clean(count: int) -> list[tuple[str, str]]:
    """Korean and English of usual proportions, all different."""
    return [
        (f"사람 {index}명이 오늘 아침에 학교에 갔습니다.", f"{index} people went to school this morning, all of them.")
        for index in range(count)
    ]


def planted(kind: str, pair: tuple[str, str], limit: int = 5) -> CheckReport:
    """A clean corpus with one pair at a random line; checks that this line, and only it, is reported."""
    line = random.randint(1, 60)
    rows = clean(60)
    rows[line - 1] = pair
    report = check_pairs(rows, limit)
    assert [example.line for example in report.finding(kind).examples] == [line], f"planted at line {line}"
    assert report.finding(kind).count == 1
    return report


def test_clean_text_has_no_findings() -> None:
    assert check_pairs(clean(300)).findings == []


def test_counts() -> None:
    report = check_pairs([("a b c", "가나 다"), ("", "라"), ("dd", "  ")])
    assert (report.pairs, report.source.words, report.target.words) == (3, 4, 3)
    assert (report.source.characters, report.target.characters) == (7, 7)
    assert (report.source.blank, report.target.blank) == (1, 1)
    assert (report.source.longest, report.source.longest_line) == (5, 1)
    assert (report.source.script, report.target.script) == ("Latin", "Hangul")
    assert report.finding("empty").count == 2
    assert [example.note for example in report.finding("empty").examples] == ["source blank", "target blank"]


@pytest.mark.parametrize(
    ("kind", "pair"),
    [
        ("empty", ("", "Nothing was on the other side of this one.")),
        ("identical", ("사람 people went", "사람 people went")),
        ("script", ("This is not Korean at all", "This is not Korean at all, is it")),
        ("script", ("사람이 오늘 아침에 학교에 갔습니다.", "Люди пошли сегодня утром в школу, все они.")),
        ("length-ratio", ("사람이 오늘 아침에 학교에 갔습니다.", "They went there. " * 20)),
        ("length-ratio", ("사람이 오늘 아침에 학교에 갔습니다. " * 5, "Yes.")),
        ("control", ("사람이 오늘 아침에 \x07학교에 갔습니다.", "The people went to school this morning.")),
        ("control", ("사람이 오늘 아침에 학교에 갔습니다.", "The people went\u2028to school this morning.")),
        ("replacement", ("사람이 오늘 아침에 학교에 갔습니\ufffd.", "The people went to school this morning.")),
        ("mojibake", ("사람이 오늘 아침에 학교에 갔습니다.", "The people didnâ€™t go to school this morning.")),
        ("mojibake", ("사람이 오늘 아침에 카페에 갔습니다.", "The people went to the cafÃ© this morning.")),
        ("not-nfc", (unicodedata.normalize("NFD", "사람이 학교에 갔습니다."), "People went to school this morning.")),
        ("untrimmed", ("사람이 오늘 아침에 학교에 갔습니다. ", "The people went to school this morning.")),
        ("long", ("사람이 오늘 아침에 학교에 갔습니다. " * 60, "The people went to school this morning. " * 60)),
    ],
)
def test_planted_trouble_is_found_on_its_line(kind: str, pair: tuple[str, str]) -> None:
    planted(kind, pair)


def test_every_kind_has_a_test() -> None:
    marks = test_planted_trouble_is_found_on_its_line.pytestmark  # type: ignore[attr-defined]
    assert {kind for kind, _ in marks[0].args[1]} | {"repeated-pair", "repeated-source"} == set(KINDS)


def test_korean_that_was_read_as_latin() -> None:
    broken = "한국어 문장".encode("euc-kr").decode("latin-1")
    assert "mojibake" in dict(suspicions(broken))


@pytest.mark.parametrize(
    "text", ["NÃO É ÃO", "Ça, c'est où? «Là-bas»", "Grüße aus Köln", "Ŷ Ângela", "한국어 문장", "日本語"]
)
def test_real_accents_are_no_mojibake(text: str) -> None:
    assert "mojibake" not in dict(suspicions(text))


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.sampled_from(["", " ", "a", "b", "c d"]), st.sampled_from(["", "x", "y"])), max_size=30)
)
def test_repeats_agree_with_a_plain_count(rows: list[tuple[str, str]]) -> None:
    report = check_pairs(rows, limit=100, first_line=2)
    pairs: dict[tuple[str, str], int] = {}
    sources: dict[str, int] = {}
    again, other = [], []
    for line, (source, target) in enumerate(rows, 2):
        if not source.strip() or not target.strip():
            continue
        if (source, target) in pairs:
            again.append((line, f"as line {pairs[source, target]}"))
        elif source in sources:
            other.append((line, f"as line {sources[source]}"))
        pairs.setdefault((source, target), line)
        sources.setdefault(source, line)
    assert [(example.line, example.note) for example in report.finding("repeated-pair").examples] == again
    assert [(example.line, example.note) for example in report.finding("repeated-source").examples] == other


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(st.text(max_size=80), st.text(max_size=80)), max_size=20), limit=st.integers(0, 4))
def test_any_text_gives_a_report(rows: list[tuple[str, str]], limit: int) -> None:
    report = check_pairs(rows, limit)
    assert sum(report.histogram.source) == sum(report.histogram.target) == report.pairs == len(rows)
    for finding in report.findings:
        assert finding.count >= len(finding.examples)
        assert len(finding.examples) == min(limit, finding.count)
    assert json.loads(json.dumps(report.to_json()))["pairs"] == len(rows)


def test_the_worst_ratios_are_shown_first_and_all_are_counted() -> None:
    rows = clean(200)
    for line, times in ((10, 20), (20, 60), (30, 40)):
        rows[line - 1] = (rows[line - 1][0], "word " * times * 3)
    finding = check_pairs(rows, limit=2).finding("length-ratio")
    assert [example.line for example in finding.examples] == [20, 30]
    assert finding.count == 3


def test_examples_of_huge_lines_are_short() -> None:
    report = check_pairs([*clean(5), ("가" * 1_000_000, "x" * 1_000_000)])
    assert all(len(example.source) <= 200 for finding in report.findings for example in finding.examples)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("123 %", ()),
        ("hello", ("Latin",)),
        ("Привет", ("Cyrillic",)),
        ("これは日本語です", ("Kana", "Han")),
        ("中文", ("Han",)),
        ("مرحبا", ("Arabic",)),
        ("Ελλάδα", ("Greek",)),
        ("LG전자의 새로운 제품이 나왔습니다", ("Hangul", "Latin")),
        ("नमस्ते", ("Devanagari",)),
    ],
)
def test_scripts(text: str, expected: tuple[str, ...]) -> None:
    assert scripts(text) == expected


def test_japanese_without_kana_is_no_wrong_script() -> None:
    rows = [(f"これは{index}番目の文です", "x y") for index in range(20)]
    assert check_pairs([*rows, ("東京都", "x z")]).finding("script").count == 0


@given(text=st.text())
def test_visible_text_cannot_steer_a_terminal(text: str) -> None:
    shown = visible("\x1b[2J\u202e" + text, 30)
    assert shown.isprintable()
    assert shown.startswith("\\x1b[2J\\u202e")
