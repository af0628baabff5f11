"""The tokenizers of other people's BERTs: the same ids here as there."""

from __future__ import annotations

import json
import random
import secrets
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import varied_lines

from jumok.errors import BadInput
from jumok.interop.wordpiece import filled, tokenizer_of
from jumok.text.special import Specials
from jumok.text.tokenizer import Tokenizer
from jumok.text.wordpiece import NAMES

transformers = pytest.importorskip("transformers")
SMALL = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##a", "b", "##b", "[", "]", "mask", "e", "é"]


def write(folder: Path, tokens: list[str], **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", **config}))
    return folder


def whole(folder: Path, **changes: Any) -> dict[str, Any]:
    """Writes the newer file beside the older ones, as transformers does it."""
    theirs = transformers.BertTokenizer.from_pretrained(folder)
    content: dict[str, Any] = json.loads(theirs.backend_tokenizer.to_str())
    for path, value in changes.items():
        place = content
        *parts, last = path.split("__")
        for part in parts:
            place = place[part]
        place[last] = value
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    return content


def composed(line: str) -> bool:
    """Their class in Python composes what is left of a text before it is cut; the others, and Google's own, do not."""
    left = "".join(c for c in line if c not in varied_lines.DROPPED and not unicodedata.category(c).startswith("C"))
    return unicodedata.is_normalized("NFC", left)


def compare(folder: Path, count: int, lower: bool, strip: bool | None, chinese: bool) -> None:
    from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

    seed = secrets.randbelow(1 << 31)
    draw = random.Random(seed)
    options = {"do_lower_case": lower, "strip_accents": strip, "tokenize_chinese_chars": chinese}
    write(folder, varied_lines.vocabulary(draw), **options)
    lines = varied_lines.lines(count, draw)
    ours = tokenizer_of(folder)
    found = ours.encode(lines)
    known = [id != 100 for row in found for id in row]
    assert 0.9 < sum(known) / len(known) < 1, "most words are known, and not all"
    fast = transformers.BertTokenizerFast.from_pretrained(folder)
    slow = BertTokenizerLegacy(str(folder / "vocab.txt"), **options)
    strips = lower if strip is None else strip
    compared = 0
    for line, row, expected in zip(lines, found, fast(lines, add_special_tokens=False)["input_ids"], strict=True):
        assert row == expected, f"seed {seed}: {line!r}"
        # Python writes Σ at the end of a word as ς
        if (strips or composed(line)) and not (lower and "Σ" in line):
            compared += 1
            assert row == slow.encode(line, add_special_tokens=False), f"seed {seed}: {line!r}"
    assert compared > count // 2
    assert (ours.specials, ours.lowercase) == (Specials(0, 100, 101, 102, 103), lower)
    whole(folder)
    assert tokenizer_of(folder).encode(lines) == found, "the newer file says the same"
    (folder / "vocab.txt").unlink()
    (folder / "tokenizer_config.json").unlink()
    alone = tokenizer_of(folder)
    assert alone.encode(lines) == found
    alone.save(folder / "saved")
    assert Tokenizer.load(folder / "saved").encode(lines[:100]) == found[:100]


@pytest.mark.parametrize(
    ("lower", "strip", "chinese"),
    [(True, None, True), (False, None, True), (True, False, True), (False, True, True), (True, True, False)],
)
def test_the_ids_are_theirs(tmp_path: Path, lower: bool, strip: bool | None, chinese: bool) -> None:
    compare(tmp_path, 1000, lower, strip, chinese)


@pytest.mark.full
@pytest.mark.parametrize("chinese", [True, False])
@pytest.mark.parametrize("strip", [None, True, False])
@pytest.mark.parametrize("lower", [True, False])
def test_ten_thousand_lines(tmp_path: Path, lower: bool, strip: bool | None, chinese: bool) -> None:
    compare(tmp_path, 10_000, lower, strip, chinese)


def test_uncased_models_take_hangul_apart_as_they_always_did(tmp_path: Path) -> None:
    letters = [unicodedata.normalize("NFD", "가")[0], "##" + unicodedata.normalize("NFD", "가")[1], "가"]
    ours = tokenizer_of(write(tmp_path, [*SMALL, *letters]))
    assert ours.encode(["가 É"]) == [[15, 16, 13]]
    assert "takes Hangul apart" in json.loads(ours._about())["promise"]
    assert tokenizer_of(write(tmp_path, [*SMALL, *letters], strip_accents=False)).encode(["가 É"]) == [[17, 14]]


def test_a_mask_in_a_text_is_only_a_text(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    assert tokenizer_of(tmp_path).encode(["a [MASK]"]) == [[6, 10, 12, 11]]
    theirs = transformers.BertTokenizerFast.from_pretrained(tmp_path)
    assert theirs.encode("a [MASK]", add_special_tokens=False) == [6, 5], "the one exception"
    whole(tmp_path)
    assert tokenizer_of(tmp_path).encode(["a [MASK]"]) == [[6, 10, 12, 11]]


def test_cutting_off_and_padding_are_not_the_tokenizers_affair(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    short = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    filler = {"strategy": {"Fixed": 8}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0}
    whole(tmp_path, truncation=short, padding={**filler, "pad_type_id": 0, "pad_token": "[PAD]"})
    assert tokenizer_of(tmp_path).encode(["a a a a a a", "b"]) == [[6] * 6, [8]]


def test_words_that_were_added_are_found_as_they_find_them(tmp_path: Path) -> None:
    write(tmp_path, SMALL)
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path)
    theirs.add_tokens(["abba", "Bab", "a b"])
    theirs.add_special_tokens({"additional_special_tokens": ["[NAME]"]})
    folder = tmp_path / "more"
    theirs.save_pretrained(folder)
    lines = ["abba aabbab", "bab BAB xabbax", "a b a  b", "é abba.", "a"]
    expected = [theirs.encode(line, add_special_tokens=False) for line in lines]
    assert {15, 16, 17} <= {id for row in expected for id in row}
    ours = tokenizer_of(folder)
    assert ours.encode(lines) == expected
    assert ours.size == len(theirs) == 19
    assert ours.is_special(18)
    assert not {18} & set(ours.encode(["[NAME]"])[0])
    assert ours.decode([[15, 6, 18]]) == ["abba a"]
    more = filled(ours, 32)
    assert more.size == 32
    assert more.encode(lines) == expected
    # the older files alone
    write(folder, SMALL)
    (folder / "tokenizer.json").unlink()
    (folder / "added_tokens.json").write_text(json.dumps({"abba": 15, "Bab": 16, "a b": 17, "[NAME]": 18}))
    (folder / "special_tokens_map.json").write_text(json.dumps({"additional_special_tokens": ["[NAME]"]}))
    assert tokenizer_of(folder).encode(lines) == expected
    assert tokenizer_of(folder).is_special(18)


def test_a_line_that_is_there_twice_counts_where_it_is_last(tmp_path: Path) -> None:
    write(tmp_path, [*SMALL[:6], "a", *SMALL[6:]])
    ours = tokenizer_of(tmp_path)
    theirs = transformers.BertTokenizerFast.from_pretrained(tmp_path)
    assert ours.encode(["a b"]) == [theirs.encode("a b", add_special_tokens=False)] == [[7, 9]]
    assert ours.size == len(SMALL) + 1
    assert ours.is_special(6)


def test_special_tokens_by_other_names(tmp_path: Path) -> None:
    names = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
    write(tmp_path, [*names, "a", "s", "<", ">"], unk_token="<unk>", pad_token={"content": "<pad>"})
    told = {"cls_token": "<s>", "sep_token": {"content": "</s>"}, "mask_token": "<mask>"}
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(told))
    ours = tokenizer_of(tmp_path)
    assert ours.specials == Specials(0, 1, 2, 3, 4)
    assert ours.encode(["<s> a"]) == [[7, 6, 8, 5]]
    ours.save(tmp_path / "saved")
    assert Tokenizer.load(tmp_path / "saved").specials == ours.specials


def test_more_vectors_than_words(tmp_path: Path) -> None:
    ours = tokenizer_of(write(tmp_path, SMALL))
    more = filled(ours, 64)
    assert (more.size, more.specials, more.lowercase) == (64, ours.specials, ours.lowercase)
    lines = varied_lines.lines(50, random.Random(3))
    assert more.encode(lines) == ours.encode(lines)
    assert all(more.is_special(id) for id in range(ours.size, 64))
    assert 63 not in more.encode(more.pieces([63]))[0]
    assert not more.continues()[ours.size :].any()
    assert filled(ours, ours.size) is ours


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"normalizer__lowercase": False},
            "lowercase is false, but tokenizer_config.json beside it says do_lower_case",
        ),
        ({"normalizer__handle_chinese_chars": False}, "tokenize_chinese_chars true"),
        ({"normalizer__strip_accents": False}, "strip_accents"),
        ({"normalizer": {"type": "Nothing"}}, "its normalizer cannot be read"),
        ({"model__vocab__a": 8}, "vocab.txt, line 7"),
        ({"model__vocab__a": "x"}, "model.vocab"),
        ({"model__vocab__new": 3}, "have the same id"),
        ({"model__vocab__new": 2_000_000_000}, "highest id is 2,000,000,000"),
        ({"model__type": "BPE"}, "its model is 'BPE'"),
        ({"model__continuing_subword_prefix": "@@"}, "'@@'"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "cut by Whitespace"),
        ({"pre_tokenizer": None}, "cut by None"),
        ({"added_tokens": [{"id": "7"}]}, "added tokens are damaged"),
        ({"added_tokens": [{"id": 8, "content": "a", "special": False}]}, "in tokenizer.json it is id 8"),
        ({"added_tokens": [{"id": 6, "content": "a", "special": True}]}, 'special token "a" is something that a text'),
        ({"model": None}, "no model"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    write(tmp_path, SMALL, do_lower_case=True, strip_accents=None, tokenize_chinese_chars=True)
    whole(tmp_path, **changes)
    with pytest.raises(BadInput) as caught:
        tokenizer_of(tmp_path)
    assert told in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("vocab.txt", "", "empty"),
        ("vocab.txt", "a\nb\n", 'no special token "[PAD]"'),
        ("vocab.txt", "[UNK]\n[PAD]\n[CLS]\n[SEP]\n", "padding token has id 1"),
        ("vocab.txt", b"\xff\xfe", "not UTF-8"),
        ("tokenizer_config.json", "{", "not JSON"),
        ("tokenizer_config.json", "[]", "not a JSON object"),
        ("tokenizer_config.json", '{"do_lower_case": "no"}', "do_lower_case is 'no'"),
        ("tokenizer_config.json", '{"word_tokenizer_type": "mecab"}', "another program"),
        ("tokenizer_config.json", '{"added_tokens_decoder": {"x": {"content": "q"}}}', "added tokens are damaged"),
        ("tokenizer.json", "[" * 100_000, "not JSON"),
        ("added_tokens.json", '{"q": 99}', "vocab.txt"),
    ],
)
def test_damaged_files_are_named(tmp_path: Path, file: str, content: str | bytes, told: str) -> None:
    write(tmp_path, SMALL)
    (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BadInput) as caught:
        tokenizer_of(tmp_path)
    assert told in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_no_tokenizer_at_all(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"vocab.txt or tokenizer.json"):
        tokenizer_of(tmp_path)


def test_no_mask_is_no_mask(tmp_path: Path) -> None:
    assert tokenizer_of(write(tmp_path, [*NAMES[:4], "a"])).specials.mask is None
