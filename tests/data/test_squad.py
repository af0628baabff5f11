"""Questions about texts: every way to write them, and every fault with its place in the JSON."""

from __future__ import annotations

import copy
import gzip
import json
import random
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jumok.data.examples import Answer, Question
from jumok.data.squad import read_questions, split_by_article
from jumok.errors import BadInput

KORQUAD = Path("/work/shared/data/korquad/KorQuAD_v1.0_dev.json.gz")
Write = Callable[..., Path]

CONTEXT = "서울은 대한민국의 수도이다. 서울에는 한강이 흐른다."
SQUAD: dict[str, Any] = {
    "version": "v2.0",
    "data": [
        {
            "title": "서울",
            "paragraphs": [
                {
                    "context": CONTEXT,
                    "qas": [
                        {
                            "id": "q1",
                            "question": "수도는?",
                            "is_impossible": False,
                            "answers": [
                                {"text": "서울", "answer_start": 0},
                                {"text": "서울은", "answer_start": 0},
                                {"text": "서울", "answer_start": 0},
                            ],
                        },
                        {
                            "id": "q2",
                            "question": "인구는?",
                            "is_impossible": True,
                            "answers": [],
                            "plausible_answers": [{"text": "한강", "answer_start": 21}],
                        },
                    ],
                }
            ],
        },
        {
            "title": "Paris",
            "paragraphs": [
                {
                    "context": "Paris is on the Seine 🗼 river.",
                    "qas": [{"id": 3, "question": "Where?", "answers": [{"text": "river", "answer_start": 24}]}],
                }
            ],
        },
    ],
}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(content: Any, name: str = "a.json") -> Path:
        path = tmp_path / name
        content = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


def refused(*files: Path, answered: bool = True) -> str:
    with pytest.raises(BadInput) as caught:
        read_questions(files, answered)
    return str(caught.value)


def test_squad(write: Write) -> None:
    file = write(SQUAD)
    questions = read_questions([file])
    assert questions[0] == Question(
        "수도는?", CONTEXT, (Answer("서울", 0), Answer("서울은", 0)), "q1", "서울", str(file)
    )
    assert questions[1].answers == ()
    assert [question.identity for question in questions] == ["q1", "q2", "3"]
    assert [question.title for question in questions] == ["서울", "서울", "Paris"]
    for question in questions:
        for answer in question.answers:
            assert question.context[answer.start : answer.start + len(answer.text)] == answer.text
    pretty = "\n\n" + json.dumps(SQUAD, indent=1, ensure_ascii=False).replace("\n", "\r\n")
    for other in (write(pretty, "b.json"), write(gzip.compress(("\ufeff" + pretty).encode()), "c.json.gz")):
        assert [(row.question, row.answers) for row in read_questions([other])] == [
            (row.question, row.answers) for row in questions
        ]
    assert all(not question.answers for question in read_questions([file], answered=False))


def test_flat(write: Write) -> None:
    base = {"question": "수도는?", "context": CONTEXT}
    rows: list[dict[str, Any]] = [
        {**base, "id": 1, "answers": [{"text": "서울", "answer_start": 0}, {"text": "한강", "start": 21}]},
        {**base, "id": 2, "answer": "한강", "start": 21, "title": "t"},
        {**base, "id": 3, "answers": {"text": ["서울"], "answer_start": [16]}},
        {**base, "id": 4, "answers": {"text": [], "answer_start": []}},
        {**base, "id": 5, "answer": None},
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    for name in ("a.jsonl", "a.json", "a.txt"):
        questions = read_questions([write(text, name)])
        assert [[answer.start for answer in row.answers] for row in questions] == [[0, 21], [21], [16], [], []]
        assert [row.title for row in questions] == ["", "t", "", "", ""]
    unanswered = write("".join(json.dumps({**base, "id": number}) + "\n" for number in range(3)), "b.jsonl")
    assert len(read_questions([unanswered], answered=False)) == 3
    assert "b.jsonl, line 1, answers: is missing" in refused(unanswered)


def place_of(path: str) -> tuple[list[str | int], str]:
    steps: list[str | int] = []
    for part in path.split("."):
        name, _, number = part.partition("[")
        steps.append(name)
        if number:
            steps.append(int(number[:-1]))
    return steps, path


QUESTION = "data[0].paragraphs[0].qas[0]"
MISSING = "missing"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("data", MISSING, 'data: is missing. Keys that are there: "version"'),
        ("data", {}, "data: an array is needed, not an object"),
        ("data", [], "there is no question in it"),
        ("data[1]", 3, "data[1]: an object is needed, not a number"),
        ("data[1].title", [], "data[1].title: is an array, not text"),
        ("data[1].paragraphs", MISSING, "data[1].paragraphs: is missing"),
        ("data[0].paragraphs[0].context", MISSING, "data[0].paragraphs[0].context: is missing"),
        ("data[0].paragraphs[0].context", " ", "data[0].paragraphs[0].context: is empty"),
        ("data[0].paragraphs[0].context", "\ud800", "context: has half of a surrogate pair"),
        (f"{QUESTION}.id", MISSING, f"{QUESTION}.id: is missing"),
        (f"{QUESTION}.id", "q2", 'the id "q2" was there before: '),
        (f"{QUESTION}.question", None, f"{QUESTION}.question: is null, not text"),
        (f"{QUESTION}.answers", MISSING, f"{QUESTION}.answers: is missing"),
        (f"{QUESTION}.answers[1]", "x", f"{QUESTION}.answers[1]: an object is needed, not text"),
        (f"{QUESTION}.answers[0].answer_start", MISSING, f"{QUESTION}.answers[0].answer_start: is missing"),
        (f"{QUESTION}.answers[0].answer_start", True, "answer_start: a whole number is needed, not true or false"),
        (f"{QUESTION}.answers[0].answer_start", "0", "answer_start: a whole number is needed, not text"),
        (f"{QUESTION}.answers[0].answer_start", 0.5, "answer_start: a whole number is needed, not 0.5"),
        (f"{QUESTION}.answers[0].text", "", f"{QUESTION}.answers[0].text: an empty answer"),
        (f"{QUESTION}.is_impossible", True, 'question "q1" is_impossible, and yet it has an answer'),
        (f"{QUESTION}.is_impossible", "no", "is_impossible: true or false is needed, not text"),
        (
            f"{QUESTION}.answers[0]",
            {"text": "한강", "answer_start": 20},
            f'{QUESTION}.answers[0]: question "q1": the answer "한강" is not at 20 of the context, where " 한" stands. '
            "It is at 21: correct answer_start",
        ),
        (f"{QUESTION}.answers[0].answer_start", 5, "It is there more than once, first at 0"),
        (f"{QUESTION}.answers[0].answer_start", -28, "is not at -28 of the context"),
        (f"{QUESTION}.answers[0].answer_start", 10**30, "is not at a number of many digits of the context"),
        (f"{QUESTION}.answers[0].text", "부산", "It is nowhere in the context"),
    ],
)
def test_faults(write: Write, path: str, value: Any, message: str) -> None:
    whole = copy.deepcopy(SQUAD)
    steps, _ = place_of(path)
    target: Any = whole
    for step in steps[:-1]:
        target = target[step]
    if value is MISSING:
        del target[steps[-1]]
    else:
        target[steps[-1]] = value
    found = refused(write(whole))
    assert message in found
    assert "a.json" in found


def test_more_faults(write: Write) -> None:
    assert "a.json: the file is empty" in refused(write(""))
    assert "a.json, line 2, column 1: not JSON" in refused(write("{\nx"))
    assert "a.json: an object is needed, not an array" in refused(write("[]"))
    assert "not JSON (too many brackets" in refused(write("[" * 100_000))
    assert "not JSON" in refused(write('{"data": ' + "1" * 5000 + "}"))
    assert "line 1: a quote" not in refused(write("no JSON", "b.jsonl"))
    assert "b.jsonl, line 1, column 1: not JSON" in refused(write("no JSON", "b.jsonl"))
    assert "the id" in refused(write(SQUAD), write(SQUAD, "c.json"))
    row = {"id": 1, "question": "?", "context": "abc", "answers": {"text": ["a"], "answer_start": []}}
    assert '1 in "text" and 0 in "answer_start"' in refused(write(row, "d.jsonl"))
    assert "no file" in refused()


# ---------------------------------------------------------------- splitting


def test_split_by_article() -> None:
    seed = secrets.randbelow(2**31)
    generator = random.Random(seed)
    questions = [
        Question("?", f"context {number}", identity=str(number), title=f"title {generator.randrange(40)}")
        for number in range(600)
    ]
    first, second = split_by_article(questions, 0.2, seed)
    assert sorted(map(str, first + second)) == sorted(map(str, questions))
    assert not {row.title for row in first} & {row.title for row in second}, f"seed {seed}"
    assert 90 < len(second) < 150, f"seed {seed}"
    shuffled = generator.sample(questions, len(questions))
    assert set(split_by_article(shuffled, 0.2, seed)[1]) == set(second), f"seed {seed}"
    assert [row for row in questions if row in set(second)] == second
    assert any(set(split_by_article(questions, 0.2, seed + more)[1]) != set(second) for more in (1, 2, 3))
    for share in (0.001, 0.999):
        assert all(split_by_article(questions, share, seed)), f"seed {seed}: neither part is empty"


def test_split_without_titles_goes_by_context() -> None:
    questions = [Question("?", f"context {number // 5}", identity=str(number)) for number in range(50)]
    first, second = split_by_article(questions, 0.3, 1)
    assert len(second) == 15
    assert not {row.context for row in first} & {row.context for row in second}


def test_split_refuses() -> None:
    one = [Question("?", "c", identity=str(number), title="t") for number in range(5)]
    with pytest.raises(BadInput, match="5 questions on 1 article"):
        split_by_article(one, 0.5, 1)
    for share in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(BadInput, match="between 0 and 1"):
            split_by_article([*one, Question("?", "d", title="u")], share, 1)


# ---------------------------------------------------------------- anything at all


def test_any_bytes_give_questions_or_bad_input(write: Write) -> None:
    seed = secrets.randbelow(2**31)
    generator = random.Random(seed)
    row = {"id": 2, "question": "수도는?", "context": CONTEXT, "answer": "한강", "start": 21}
    valid = {
        "a.json": json.dumps(SQUAD, ensure_ascii=False).encode(),
        "b.json": json.dumps(SQUAD, indent=1).encode(),
        "c.jsonl": "".join(json.dumps({**row, "id": number}) + "\n" for number in range(3)).encode(),
    }
    valid["d.json.gz"] = gzip.compress(valid["a.json"])
    pieces = [b"", b"\n", b'"', b",", b"{", b"[", b"]", b"1", b"\xff", b"\x00", b"\\ud800", b"null", b"-", b"1e400"]
    read_well = 0
    for case in range(600):
        name = generator.choice(list(valid))
        data = valid[name]
        for _ in range(generator.choice([0, 1, 1, 2, 5])):
            place = generator.randrange(len(data) + 1)
            data = (
                data[:place]
                + generator.choice([*pieces, generator.randbytes(2)])
                + data[place + generator.randrange(4) :]
            )
        read_well += _reads(write(data, name), generator.random() < 0.5, f"seed {seed}, case {case}")
    for case in range(600):  # valid JSON of another shape
        whole = copy.deepcopy(SQUAD)
        for _ in range(generator.choice([1, 1, 2])):
            _change_somewhere(whole, generator)
        read_well += _reads(write(whole), True, f"seed {seed}, changed {case}")
    assert 100 < read_well < 1100, f"seed {seed}: {read_well} were read"


def _reads(file: Path, answered: bool, what: str) -> bool:
    try:
        questions = read_questions([file], answered)
    except BadInput as error:
        str(error).encode()
        return False
    assert questions, what
    for question in questions:
        for answer in question.answers:
            assert question.context[answer.start : answer.start + len(answer.text)] == answer.text, what
    return True


def _change_somewhere(whole: Any, generator: random.Random) -> None:
    target = whole
    while True:
        keys = list(target) if isinstance(target, dict) else list(range(len(target)))
        if not keys:
            return
        key = generator.choice(keys)
        if isinstance(target[key], dict | list) and generator.random() < 0.85:
            target = target[key]
            continue
        if generator.random() < 0.3:
            del target[key]
        else:
            target[key] = generator.choice([None, "", "서울", 0, -1, 2.5, True, [], {}, ["x"], {"\ud800": 1}, "\udc00"])
        return


@pytest.mark.skipif(not KORQUAD.is_file(), reason="the shared data sets are not here")
def test_korquad() -> None:
    questions = read_questions([KORQUAD])
    assert len(questions) == 5774
    assert len({question.title for question in questions}) == 140
    assert all(len(question.answers) == 1 for question in questions)
    _, second = split_by_article(questions, 0.1, 1)
    assert abs(len(second) - 577) < 60
