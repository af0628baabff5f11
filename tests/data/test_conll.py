"""Tagged sentences, and tags as spans: what is a word, what is none, and every fault with its line."""

from __future__ import annotations

import gzip
import json
import random
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from jumok.data.conll import Columns, read_tagged, tag_column
from jumok.data.examples import Tagged
from jumok.data.tag_spans import Span, is_scheme, spans
from jumok.errors import BadInput

SHARED = Path("/work/shared/data/conll")
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(content: str | bytes, name: str = "a.conll") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


def read(file: Path, columns: Columns = (None, None), tagged: bool = True) -> list[tuple[str, str]]:
    return [(" ".join(row.words), " ".join(row.tags)) for row in read_tagged([file], columns, tagged)]


TWO = [("Seoul is big", "B-LOC O O"), ("# 1", "O B-NUM")]


@pytest.mark.parametrize(
    "text",
    [
        "Seoul NP B-LOC\nis V O\nbig A O\n\n# # O\n1 N B-NUM\n",  # "#" is a word
        "Seoul\tNP\tB-LOC\r\nis\tV\tO\r\nbig\tA\tO\r\n\r\n#\t#\tO\r\n1\tN\tB-NUM",
        "\n\n-DOCSTART- -X- O\n\nSeoul  NP   B-LOC\nis V O \nbig A O\n \n\n\n# # O\n1 N B-NUM\n\n\n",
        "-DOCSTART-\n# text = Seoul is big\nSeoul NP B-LOC\nis V O\nbig A O\n\n# newdoc x\n# # O\n1 N B-NUM\n",
        "# text = Seoul is big\nSeoul\tNP\tB-LOC\nis\tV\tO\nbig\tA\tO\n\n#made by hand\n#\t#\tO\n1\tN\tB-NUM\n",
        "# id 7\nSeoul NP B-LOC\nis V O\nbig A O\n-DOCSTART- -X- O\n# # O\n1 N B-NUM\n",
    ],
)
def test_columns(write: Write, text: str) -> None:
    file = write(text)
    assert read(file) == TWO
    assert read(file, (0, 1)) == [("Seoul is big", "NP V A"), ("# 1", "# N")]
    assert read(file, (-3, 2)) == TWO
    assert read(file, tagged=False) == [(words, "") for words, _ in TWO]
    assert read(write(gzip.compress(text.encode()), "b.gz")) == TWO
    numbers = text.splitlines()
    assert [numbers[row.line - 1].split()[0] for row in read_tagged([file])] == ["Seoul", "#"]


def test_words_with_spaces_between_tabs(write: Write) -> None:
    file = write("New York\tB-LOC\n\u3000\tO\n는\u00a0\tO\n")
    assert [row.words for row in read_tagged([file])] == [("New York", "\u3000", "는\u00a0")]
    assert [row.words for row in read_tagged([write("a\u00a0b O\n\u3000 O\n")])] == [("a\u00a0b", "\u3000")]


def test_conll_u(write: Write) -> None:
    line = "{}\t{}\t_\t{}\t_\t_\t_\t_\t_\t_\n".format
    text = "# sent_id = 1\n# text = vámonos al mar\n" + line("1-2", "vámonos", "_") + line(1, "vamos", "VERB")
    text += line(2, "nos", "PRON") + line("2.1", "ya", "ADV") + line("3-4", "al", "_") + line(3, "a", "ADP")
    assert read(write(text)) == [("vamos nos a", "VERB PRON ADP")], "FORM and UPOS, where nobody says otherwise"
    assert read(write(text), (0, None)) == [("1 2 3", "VERB PRON ADP")]
    assert read(write(text), (None, -1)) == [("vamos nos a", "_ _ _")]
    assert read(write(text), tagged=False) == [("vamos nos a", "")]
    (row,) = read_tagged([write(text)])
    written = text.splitlines()
    assert [written[line - 1].split("\t")[1] for line in row.lines] == list(row.words)
    assert "column 3 (UPOS) of 10" in tag_column(write(text))
    assert "column 9 of 10" in tag_column(write(text), (None, -1))


def test_ten_columns_without_numbers_are_no_conll_u(write: Write) -> None:
    text = "".join("\t".join([word, *"abcdefgh", tag]) + "\n" for word, tag in (("Seoul", "NP"), ("is", "V")))
    assert read(write(text)) == [("Seoul is", "NP V")]
    assert "column 9 of 10" in tag_column(write(text))
    assert tag_column(write('{"tokens": ["a"], "ner_tags": ["O"]}\n', "a.jsonl")) == '"ner_tags"'


def test_every_word_knows_its_line(write: Write) -> None:
    (first, second) = read_tagged([write("# id 1\na O\nb O\n\n\nc O\n")])
    assert (list(first.lines), list(second.lines)) == ([2, 3], [6])


def test_what_is_no_conll(write: Write) -> None:
    """A table of texts, and plain text: said so, and what is wanted instead."""
    table = "text\tlabel\nA warm film.\tgood\nLong and dull.\tbad\nI left early.\tbad\n"
    plain = "The cat sleeps.\nThe dog does not.\n"
    for text, words in (
        (table, "like a table of texts"),
        (plain, "looks like plain text"),
        ("one\ntwo\n", "A CoNLL file"),
    ):
        with pytest.raises(BadInput, match=words) as caught:
            read(write(text))
        assert "a.conll" in str(caught.value)
        assert "blank line" in str(caught.value)
    assert len(read(write(table, "t.tsv"), tagged=False)) == 1
    with pytest.raises(BadInput) as caught:
        read(write("a O\n\nb O\nc\n"))
    assert "plain text" not in str(caught.value), "one sentence was read well"


def test_words_alone(write: Write) -> None:
    assert read(write("Seoul\n#\n#big\n\nyes\n"), tagged=False) == [("Seoul # #big", ""), ("yes", "")]


def test_json(write: Write) -> None:
    rows = [{"tokens": ["Seoul", "is", "big"], "ner_tags": ["B-LOC", "O", "O"]}, {"words": ["#", 1], "tags": [3, 4]}]
    file = write("".join(json.dumps(row) + "\n" for row in rows), "a.jsonl")
    assert read(file) == [TWO[0], ("# 1", "3 4")]
    assert list(read_tagged([file], tagged=False))[1] == Tagged(("#", "1"), (), 2, str(file))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a N O\nb O\n", "line 2: 2 columns where the first word has 3 (between spaces)"),
        ("a\tO\nb O\n", "line 2: 1 column where the first word has 2 (between tabs)"),
        ("a O\n# note of someone\n", "line 2: 4 columns where"),  # no comment inside of a sentence
        ("a\tO\nb\t\n", "line 2: the tag is missing (column 1 is empty)"),
        ("a\tO\n\tO\n", "line 2: the word is missing (column 0 is empty)"),
        ("\na\nb\n", "line 2: a word and its tag are needed, but the line has one column only"),
        ("", "there is no sentence"),
        ("\n-DOCSTART- -X- O\n\n", "there is no sentence"),
        ("a O\n\nb \udcff\n", "line 3, byte 3: not valid UTF-8"),
        ("a " * 5000, "line 1: more than 1000 columns"),
        ("a\t" * 5000, "line 1: more than 1000 columns"),
    ],
)
def test_bad_columns(write: Write, text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(write(text.encode("utf-8", "surrogateescape")))
    assert message in str(caught.value)
    assert "a.conll" in str(caught.value)


def test_columns_that_are_not_there(write: Write) -> None:
    file = write("a N O\n")
    for columns, message in {(3, -1): "column 3 for the word: there are 3", (0, -4): "column -4 for the tag"}.items():
        with pytest.raises(BadInput, match=message):
            read(file, columns)
    with pytest.raises(BadInput, match="both would be column 2"):
        read(file, (2, -1))
    assert read(file, (1, 7), tagged=False) == [("N", "")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"words": ["a", "b"], "tags": ["O"]}', "line 2: 2 words and 1 tags"),
        ('{"words": ["a"]}', 'line 2: no key "tags" or "labels"'),
        (
            '{"tags": ["a"]}',
            'line 2: no key "words" or "tokens" with the words of the sentence. Keys that are there: "tags"',
        ),
        ('{"words": "a", "tags": "O"}', 'line 2: "words" is text; an array'),
        ('{"words": ["a", null], "tags": ["O", "O"]}', 'line 2: "words"[1] is null'),
        ('{"words": ["a", ""], "tags": ["O", "O"]}', 'line 2: "words"[1] is empty'),
        ('{"words": [], "tags": []}', "line 2: a sentence without words"),
        ('{"words": ["a"', "line 2, column 15: not JSON"),
        ('["a"]', "line 2: an object is needed, this is an array"),
    ],
)
def test_bad_json(write: Write, row: str, message: str) -> None:
    file = write('{"words": ["a"], "tags": ["O"]}\n' + row + "\n", "a.jsonl")
    sentences = read_tagged([file])
    assert next(sentences).words == ("a",)
    with pytest.raises(BadInput) as caught:
        next(sentences)
    assert message in str(caught.value)


# ---------------------------------------------------------------- spans


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("", []),
        ("O O", []),
        ("B-PER I-PER O B-LOC", [("PER", 0, 2), ("LOC", 3, 4)]),  # IOB2
        ("I-PER I-PER O I-LOC", [("PER", 0, 2), ("LOC", 3, 4)]),  # IOB1
        ("I-PER I-PER B-PER I-PER", [("PER", 0, 2), ("PER", 2, 4)]),  # IOB1: B- where two touch
        ("B-PER E-PER O S-LOC S-LOC", [("PER", 0, 2), ("LOC", 3, 4), ("LOC", 4, 5)]),  # IOBES
        ("B-PER I-PER L-PER U-LOC", [("PER", 0, 3), ("LOC", 3, 4)]),  # BILOU
        ("B-PER I-LOC I-LOC", [("PER", 0, 1), ("LOC", 1, 3)]),  # another type begins a span
        ("O I-PER O E-PER I-PER", [("PER", 1, 2), ("PER", 3, 4), ("PER", 4, 5)]),
        ("B-PER B-PER", [("PER", 0, 1), ("PER", 1, 2)]),
        ("B-a-b I-a-b I-a", [("a-b", 0, 2), ("a", 2, 3)]),
        ("B I O B", [("", 0, 2), ("", 3, 4)]),
        ("NN B-NP XX I-NP", [("NP", 1, 2), ("NP", 3, 4)]),
    ],
)
def test_spans(tags: str, expected: list[Span]) -> None:
    assert spans(tags.split()) == expected


def test_spans_there_and_back() -> None:
    seed = secrets.randbelow(2**31)
    generator = random.Random(seed)
    schemes = {"IOB2": "BIIB", "IOBES": "BIES", "BILOU": "BILU"}  # first, inside, last, single
    for _ in range(300):
        length = generator.randrange(12)
        expected: list[Span] = []
        place = 0
        while place < length:
            end = min(length, place + generator.randrange(1, 5))
            if generator.random() < 0.7:
                expected.append((generator.choice(["PER", "LOC", "X-Y"]), place, end))
            place = end
        for scheme, (first, inside, last, single) in schemes.items():
            tags = ["O"] * length
            for kind, start, end in expected:
                letters = single if end - start == 1 else first + inside * (end - start - 2) + last
                tags[start:end] = [f"{letter}-{kind}" for letter in letters]
            assert spans(tags) == expected, f"seed {seed}: {scheme} {tags}"
            assert is_scheme(tags) == bool(expected), f"seed {seed}: {tags}"


def test_spans_are_those_of_conlleval() -> None:
    """The two tables of the script, for B I E S O."""

    def ends(before: str, tag: str, kind_before: str, kind: str) -> bool:
        pairs = ["BB", "BS", "BO", "IB", "IS", "IO"]
        return before in "ES" or before + tag in pairs or (before != "O" and kind_before != kind)

    def begins(before: str, tag: str, kind_before: str, kind: str) -> bool:
        pairs = ["EE", "EI", "SE", "SI", "OE", "OI"]
        return tag in "BS" or before + tag in pairs or (tag != "O" and kind_before != kind)

    seed = secrets.randbelow(2**31)
    generator = random.Random(seed)
    for _ in range(500):
        tags = [generator.choice(["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in "xy")]) for _ in range(8)]
        expected, begin, before, kind_before = [], 0, "O", ""
        for place, tag in enumerate([*tags, "O"]):
            letter, _, kind = tag.partition("-")
            if before != "O" and ends(before, letter, kind_before, kind):
                expected.append((kind_before, begin, place))
            if letter != "O" and begins(before, letter, kind_before, kind):
                begin = place
            before, kind_before = letter, kind
        assert spans(tags) == expected, f"seed {seed}: {tags}"


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ({"O", "B-PER", "I-PER"}, True),
        ({"O", "I-PER"}, True),
        ({"S-PER"}, True),
        ({"B", "I", "O"}, True),
        ({"B", "I"}, True),
        ({"O"}, False),
        (set(), False),
        ({"NN", "VB", "O"}, False),
        ({"B-PER", "NN"}, False),
        ({"S", "E"}, False),
        ({"B-"}, False),
    ],
)
def test_is_scheme(tags: set[str], expected: bool) -> None:
    assert is_scheme(tags) is expected


# ---------------------------------------------------------------- anything at all


def test_any_bytes_give_sentences_or_bad_input(write: Write) -> None:
    seed = secrets.randbelow(2**31)
    generator = random.Random(seed)
    valid = {
        "a.txt": "# text = x\nSeoul NP B-LOC\nis V O\n\n-DOCSTART- -X- O\n\n# # O\n한 N B-NUM\n".encode(),
        "b.tsv": "#x\nSeoul\tB-LOC\nis so\tO\n\n#\tO\n한\tB-NUM\n".encode(),
        "c.jsonl": b'{"words": ["a", "b"], "tags": ["O", 1]}\n{"tokens": ["a"], "labels": ["\\u00e9"]}\n',
    }
    valid["d.gz"] = gzip.compress(valid["a.txt"])
    pieces = [b"", b"\t", b"\n", b" ", b"#", b"# ", b'"', b"]", b"{", b"\xff", b"\x00", b"\\ud800", b"null", b"\n\n"]
    read_well = 0
    for case in range(800):
        name = generator.choice(list(valid))
        data = valid[name]
        for _ in range(generator.choice([0, 1, 1, 2, 5])):
            place = generator.randrange(len(data) + 1)
            data = (
                data[:place]
                + generator.choice([*pieces, generator.randbytes(3)])
                + data[place + generator.randrange(4) :]
            )
        columns = generator.choice([(0, -1), (0, -1), (0, 1), (-1, 0), (0, 5)])
        try:
            sentences = list(read_tagged([write(data, name)], columns, tagged=generator.random() < 0.7))
        except BadInput as error:
            str(error).encode()
        else:
            read_well += 1
            assert sentences, f"seed {seed}, case {case}"
            for row in sentences:
                assert all(row.words), f"seed {seed}, case {case}"
                assert len(row.tags) in (0, len(row.words)), f"seed {seed}, case {case}"
    assert 80 < read_well < 720, f"seed {seed}: {read_well} were read"


# ---------------------------------------------------------------- files that are really there


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data sets are not here")
@pytest.mark.parametrize(
    ("name", "sentences", "words", "count"),  # as the shared tasks say
    [("conll2000.test.txt.gz", 2012, 47377, 23852), ("conll2002.esp.testb.gz", 1517, 51533, 3559)],
)
def test_published_sets(name: str, sentences: int, words: int, count: int) -> None:
    rows = list(read_tagged([SHARED / name]))
    assert len(rows) == sentences
    assert sum(len(row.words) for row in rows) == words
    assert sum(len(spans(row.tags)) for row in rows) == count
    assert is_scheme(tag for row in rows for tag in row.tags)
    assert not is_scheme(tag for row in read_tagged([SHARED / name], (0, 1)) for tag in row.tags)
