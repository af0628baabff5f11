"""Labelled texts: the right columns of every file that people bring, and every fault with its line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import secrets
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from jumok.data.examples import Example
from jumok.data.labelled import Fields, describe_fields, read_examples, resolve_fields
from jumok.errors import BadInput

SHARED = Path("/work/shared/data")
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(content: str | bytes, name: str = "a.tsv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


def rows(*files: Path, fields: Fields | None = None, labelled: bool = True) -> list[tuple[str, str | None, str | None]]:
    return [(row.text, row.second, row.label) for row in read_examples(files, fields, labelled)]


def refused(*files: Path, fields: Fields | None = None, labelled: bool = True) -> str:
    with pytest.raises(BadInput) as caught:
        list(read_examples(files, fields, labelled))
    return str(caught.value)


# ---------------------------------------------------------------- columns


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("sentence\tlabel", Fields("sentence", None, "label")),
        ("id\tdocument\tlabel", Fields("document", None, "label")),
        ("index\tsentence1\tsentence2\tlabel", Fields("sentence1", "sentence2", "label")),
        ("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", Fields("#1 String", "#2 String", "Quality")),
        ("id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate", Fields("question1", "question2", "is_duplicate")),
        ("index\tquestion\tsentence\tlabel", Fields("question", "sentence", "label")),
        ("index\tsentence1\tsentence2\tlabel1\tgold_label", Fields("sentence1", "sentence2", "gold_label")),
        ("genre\tfilename\tyear\tid\tscore\tsentence1\tsentence2", Fields("sentence1", "sentence2", "score")),
        ("Premise\tHypothesis\tLabel", Fields("Premise", "Hypothesis", "Label")),
        ("review\tsentiment", Fields("review", None, "sentiment")),
        ("label\ttitle\tcontent", Fields("content", None, "label")),
        ("번호\t문장\t라벨", Fields("문장", None, "라벨")),
        ("phrase\tlabel", Fields("phrase", None, "label")),  # of two columns, the one that is left
    ],
)
def test_known_headers(write: Write, header: str, expected: Fields) -> None:
    cells = header.split("\t")
    file = write(header + "\n" + "\n".join("\t".join(f"{cell} of {row}" for cell in cells) for row in "xyz") + "\n")
    found = resolve_fields([file])
    assert found == expected
    assert resolve_fields([file], found) == found
    asked = (expected.text, expected.second, expected.label)
    wanted = [tuple(None if name is None else f"{name} of {row}" for name in asked) for row in "xyz"]
    assert rows(file) == wanted == rows(file, fields=found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("good film\tpos\nbad film, very bad\tneg\nno film at all\tpos\n", Fields(0, None, 1)),
        ("1\tgood film\n0\tbad film\n", Fields(1, None, 0)),
        ("0.25\tgood film\n3.5\tbad\n1.125\tworse\n7\tx y\n9\tz\n", Fields(1, None, 0)),
        ("a man sleeps\tsomeone rests\tyes\nit rains\tthe sun shines\tno\n", Fields(0, 1, 2)),
        ("sentence\tstars\nso good\t5\nbad\t1\n", Fields("sentence", None, "stars")),
        ("satz\twert\nso good\t5\nbad\t1\n", None),  # a header like any row: two words over which nothing is known
        ("What is this?\tquestion\nDo it.\tcommand\nWhy?\tquestion\nA stone.\tstatement\n", Fields(0, None, 1)),
        ("1\tgood film\tpos\n2\tbad film\tneg\n", None),  # a number first is no text
        ("a1\tgood film\tpos\na2\tbad film\tneg\n", None),
        ("pos\tneg\nneg\tpos\n", None),
        ("one column\nof texts\n", None),
        ("comment\treview\tlabel\nx\ty\tz\n", None),
    ],
)
def test_guesses_only_where_it_is_clear(write: Write, text: str, expected: Fields | None) -> None:
    file = write(text)
    if expected is not None:
        assert resolve_fields([file]) == expected
        assert len(rows(file)) == text.count("\n") - (expected.text == "sentence")
    elif text.startswith("satz"):
        assert rows(file)[0] == ("satz", None, "wert")
    else:
        message = refused(file)
        assert "a.tsv, line 1: which column is the " in message
        assert "data.train.fields." in message
        assert '"comment"' in message or '(as "' in message


def test_columns_by_number_and_by_name(write: Write) -> None:
    cola = write("gj04\t1\t\tThe doll wriggled.\ngj04\t0\t*\tDoll the wriggled.\n")
    assert 'There are: 0 (as "gj04"), 1 (as "1"), 2 (as ""), 3 (as "The doll wriggled.")' in refused(cola)
    expected = [("The doll wriggled.", None, "1"), ("Doll the wriggled.", None, "0")]
    assert rows(cola, fields=Fields(text=3, label=1)) == expected
    assert rows(cola, fields=Fields(text="3", label="1")) == expected  # as a command line gives them
    assert describe_fields(Fields(text=3, label=1)) == "text: column 3, label: column 1"
    named = write("foo\tBar\tsentence1\tsentence2\n1\tb\ts\tt\n2\tb\ts\tt\n", "b.tsv")
    fields = Fields(text="bar", label="foo")  # no second text: the first one was said
    assert rows(named, fields=fields) == [("b", None, "1"), ("b", None, "2")]
    assert rows(named, fields=Fields(text=1, second="sentence2", label=0))[0] == ("b", "t", "1")
    assert 'no column "Barr". Did you mean "Bar"?' in refused(named, fields=Fields(text="Barr", label="foo"))
    assert "no column 4: there are 4, counted from 0" in refused(named, fields=Fields(text=4, label="foo"))
    assert "no column -1" in refused(named, fields=Fields(text=-1, label="foo"))
    assert "are the same column" in refused(named, fields=Fields(text=0, label="foo"))
    assert 'no header, so the column "text" cannot be found' in refused(cola, fields=Fields(text="text", label=1))
    twice = write("text\ttext\tlabel\na\tb\tc\n", "c.tsv")
    assert 'columns 0 and 1 are both called "text"' in refused(twice, fields=Fields(text="text"))
    assert rows(twice, fields=Fields(text=1)) == [("b", None, "c")]
    assert describe_fields(Fields("document", "x", "y")) == (
        'text: column "document", second text: column "x", label: column "y"'
    )


def test_of_two_columns_one_was_said(write: Write) -> None:
    file = write("yes\tno\nno\tyes\n")
    assert rows(file, fields=Fields(label=0)) == [("no", None, "yes"), ("yes", None, "no")]
    assert resolve_fields([file], Fields(text=0)) == Fields(0, None, 1)


def test_without_labels(write: Write) -> None:
    lines = write("first text\nsecond text\n", "a.txt")
    assert rows(lines, labelled=False) == [("first text", None, None), ("second text", None, None)]
    pairs = write("a longer first text\ta second one, too\nb is here\tc is there\nd e f\tg h i\nj k l\tm n\n", "b.tsv")
    assert rows(pairs, labelled=False)[1] == ("b is here", "c is there", None)
    known = write("id\tsentence\tlabel\n1\tx\t\n2\ty\t\n", "c.tsv")
    assert rows(known, labelled=False) == [("x", None, None), ("y", None, None)]  # the empty label is not read
    assert resolve_fields([known], Fields("sentence", None, "gone"), labelled=False) == Fields("sentence", None, None)
    assert "line 2: the label is missing" in refused(known)
    assert rows(write("text\nx\n", "d.txt"), labelled=False) == [("x", None, None)]


def test_several_files_agree(write: Write) -> None:
    one = write("sentence\tlabel\nx\t1\n")
    two = write(gzip.compress(b"label\tsentence\r\n0\ty\r\n"), "b.tsv.gz")
    three = write('{"label": 1, "sentence": "z"}\n', "c.jsonl")
    assert rows(one, two, three) == [("x", None, "1"), ("y", None, "0"), ("z", None, "1")]
    assert [(row.file, row.line) for row in read_examples([one, two])] == [(str(one), 2), (str(two), 2)]
    other = write("text\tlabel\nx\t1\n", "d.tsv")
    assert 'd.tsv, line 1: the header has no column "sentence"' in refused(one, other)
    with pytest.raises(BadInput, match=r"d\.tsv"):
        resolve_fields([one, other])
    with pytest.raises(BadInput, match="no file"):
        resolve_fields([])


# ---------------------------------------------------------------- formats


def test_json(write: Write) -> None:
    file = write(
        '{"text": "a", "label": 1}\n{"label": true, "text": "b", "more": [null]}\n{"text": "", "label": 2.50}\n\n',
        "a.jsonl",
    )
    assert rows(file) == [("a", None, "1"), ("b", None, "true"), ("", None, "2.50")]
    nested = write('{"premise": "a", "hypothesis": "b", "labels": {"label": 3.7, "binary": 1}}\n', "b.json")
    assert rows(nested, fields=Fields("premise", "hypothesis", "labels.label")) == [("a", "b", "3.7")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"text": "a", "label": 1}\n{"text": "a"\n', "line 2, column 13: not JSON"),
        ('{"text": "a", "label": 1}\n{"text": "a"}\n', 'line 2: no key "label"'),
        ('{"text": "a", "label": 1}\n{"text": null, "label": 1}\n', 'line 2: "text" is null, not text'),
        ('{"text": "a", "label": [1]}\n', 'line 1: "label" is an array, not text'),
        ('{"text": "a", "label": {"b": {"c": {"d": 1}}}}\n', "which column is the label"),
        ('{"text": "a", "label": NaN}\n', "line 1: not JSON (NaN is no JSON number)"),
        ('{"text": "a", "label": 1}\n\n{"text": "a", "label": 1}\n', "line 2: blank"),
        ('{"text": "a", "label": " "}\n', "line 1: the label is missing"),
        ('{"text": "\\ud800", "label": 1}\n', 'line 1: "text" has half of a surrogate pair'),
        ('[{"text": "a", "label": 1}]\n', "line 1: an object is needed, this is an array"),
        ('{"a": {"b": "c"}, "\\udc00": 1}\n', 'There are: "a.b".'),
        ("{}\n", "line 1: an object without keys"),
        ("[" * 100_000, "not JSON (too many brackets"),
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
    ],
)
def test_bad_json(write: Write, text: str, message: str) -> None:
    assert message in refused(write(text, "a.jsonl"))


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (
            "sentence\tlabel\na\t1\nb\n",
            "a.tsv",
            "line 3: 1 column where the first row has 2 columns (separated by tabs)",
        ),
        ("sentence\tlabel\na\t1\nb\tc\t1\n", "a.tsv", "line 3: 3 columns where the first row has 2"),
        ("sentence\tlabel\na\t1\n\nb\t1\n", "a.tsv", "line 3: blank"),
        ("sentence\tlabel\na\t1\nb\t \nc\t1", "a.tsv", 'line 3: the label is missing (column "label" is empty)'),
        ("sentence\tlabel\n", "a.tsv", "there is a header and no row"),
        ("sentence\tlabel\n\n\n", "a.tsv", "there is a header and no row"),
        ("", "a.tsv", "a.tsv: the file is empty"),
        ("\n \n", "a.csv", "a.csv: the file is empty"),
        ("text\tlabel\nx\t\xff\n".encode("latin-1"), "a.tsv", "line 2, byte 3: not valid UTF-8"),
        ("\t" * 5000, "a.tsv", "more than 1000 columns"),
        ('text,label\n"a",1\n"b"c,1\n', "a.csv", 'line 3: after the closing quote of cell 0 stands "c,1"'),
        ('text,label\n"a\nb",1\n"c\nd,1\n', "a.csv", "line 4: a quote is opened and not closed"),
        (
            'text,label\n"a\nb",1\nc\n',
            "a.csv",
            "line 4: 1 column where the first row has 2 columns (separated by commas)",
        ),
    ],
)
def test_bad_tables(write: Write, text: str | bytes, name: str, message: str) -> None:
    assert message in refused(write(text, name))


def test_a_quote_in_a_tsv_is_a_character(write: Write) -> None:
    file = write('\ufeffid\tdocument\tlabel\r\n1\t"good" film\t1\r\n2\t"\t0\r\n3\t\t1\r\n\r\n')
    assert rows(file) == [
        ('"good" film', None, "1"),
        ('"', None, "0"),
        ("", None, "1"),
    ]  # an empty text is given as it is


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_csv_is_what_the_csv_module_writes(write: Write, delimiter: str) -> None:
    seed = secrets.randbelow(2**31)
    generator = random.Random(seed)
    for _ in range(50):
        texts = ["".join(generator.choices('ab ,;"\n한\u2028\x00', k=generator.randrange(9))) for _ in range(20)]
        examples = [(text, generator.choice(["1", "0"])) for text in texts]
        stream = io.StringIO()
        quoting = generator.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
        writer = csv.writer(stream, delimiter=delimiter, quoting=quoting, lineterminator="\n")
        writer.writerows([("text", "label"), *examples])
        file = write(stream.getvalue(), "a.csv")
        assert [(row.text, row.label) for row in read_examples([file])] == examples, f"seed {seed}"


def test_a_long_line_is_not_copied_often(write: Write) -> None:
    size = 4 << 20
    for name, line in {
        "a.tsv": "x" * size + "\t1\n",
        "b.csv": '"' + 'x ""' * (size // 4) + '",1\n',
        "c.jsonl": json.dumps({"text": "x" * size, "label": 1}) + "\n",
    }.items():
        start = "" if name == "c.jsonl" else "text\tlabel\n" if name == "a.tsv" else "text,label\n"
        file = write(start + line * 2, name)
        del line
        tracemalloc.start()
        try:
            assert sum(len(row.text) > size // 2 for row in read_examples([file])) == 2
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 10 * size, f"{name}: {peak / size:.1f} times the line"


# ---------------------------------------------------------------- anything at all


def test_only_the_files_beginning_is_in_memory(write: Write) -> None:
    many = write("sentence\tlabel\n" + "a text of some words\t1\n" * 40_000)
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_examples([many])) == 40_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def test_any_bytes_give_examples_or_bad_input(write: Write) -> None:
    seed = secrets.randbelow(2**31)
    generator = random.Random(seed)
    valid = {
        "a.tsv": 'id\tdocument\tlabel\n1\t좋은 "영화"\t1\n2\t\t0\n3\tbad film\t0\n'.encode(),
        "b.csv": b'text,label\n"a, ""b""\nc",1\nd,0\n',
        "c.jsonl": b'{"text": "a\\u00e9", "label": 1}\n{"text": "b", "label": {"x": true}}\n',
        "d.txt": b"good film\tpos\nbad film\tneg\nother film\tpos\n",
    }
    valid["e.tsv.gz"] = gzip.compress(valid["a.tsv"])
    choices = [None, Fields(), Fields(text=0), Fields(text="text", label="label"), Fields(text=1, label=0)]
    read = 0
    for case in range(800):
        name = generator.choice(list(valid))
        data = mutated(valid[name], generator)
        file = write(data, name)
        try:
            examples = list(read_examples([file], generator.choice(choices), labelled=generator.random() < 0.7))
        except BadInput as error:
            str(error).encode()  # it can be printed
        else:
            read += 1
            assert examples, f"seed {seed}, case {case}"
            assert all(isinstance(row, Example) for row in examples), f"seed {seed}, case {case}"
    assert 80 < read < 720, f"seed {seed}: {read} were read"


def mutated(data: bytes, generator: random.Random) -> bytes:
    """A valid file with some damage, or none."""
    for _ in range(generator.choice([0, 1, 1, 2, 5])):
        place = generator.randrange(len(data) + 1)
        length = generator.randrange(1, 6)
        piece = generator.choice(
            [b"", b"\t", b"\n", b'"', b",", b"{", b"[", b"\xff", b"\x00", b"\\ud800", b"null", generator.randbytes(3)]
        )
        data = data[:place] + piece + data[place + generator.choice([0, length]) :]
    return data


# ---------------------------------------------------------------- files that are really there


@pytest.mark.skipif(not (SHARED / "glue").is_dir(), reason="the shared data sets are not here")
@pytest.mark.parametrize(
    ("name", "fields", "count"),
    [
        ("glue/CoLA/dev.tsv.gz", Fields(3, None, 1), 1043),
        ("glue/MRPC/dev.tsv.gz", Fields("#1 String", "#2 String", "Quality"), 408),
        ("glue/RTE/dev.tsv.gz", Fields("sentence1", "sentence2", "label"), 277),
        ("glue/SST-2/dev.tsv.gz", Fields("sentence", None, "label"), 872),
        ("glue/SST-2/test-labeled.tsv.gz", Fields("sentence", None, "label"), 1821),
        ("glue/STS-B/train.tsv.gz", Fields("sentence1", "sentence2", "score"), 5749),
        ("korean-nlu/korsts-test.tsv.gz", Fields("sentence1", "sentence2", "score"), 1379),
        ("korean-nlu/kornli-xnli.dev.ko.tsv.gz", Fields("sentence1", "sentence2", "gold_label"), 2490),
        ("nsmc/ratings_test.txt.gz", Fields("document", None, "label"), 50_000),
    ],
)
def test_published_sets(name: str, fields: Fields, count: int) -> None:
    file = SHARED / name
    if "CoLA" not in name:
        assert resolve_fields([file]) == fields
    examples = list(read_examples([file], fields))
    assert len(examples) == count
    assert (len({row.label for row in examples}) <= 3) != (fields.label == "score")
    assert sum(not row.text.strip() for row in examples) == (3 if "nsmc" in name else 0)
