"""Language tags: words of the vocabulary that no text can spell."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumok.errors import BadInput
from jumok.text.pipeline import KINDS
from jumok.text.tags import find_tag, with_tags
from jumok.text.tokenizer import Tokenizer, train_tokenizer

LINES = ["I am here <2de> <2fr>.", "<2de>", "so are you, 2de", "나는 <2ko> 학생입니다."] * 2
ALL = pytest.mark.parametrize("kind", KINDS)


@ALL
def test_text_that_spells_a_tag_is_not_the_tag(kind: str) -> None:
    plain = train_tokenizer(LINES, kind, 300)
    tagged = with_tags(plain, ["2de", "2ko"])
    assert tagged.size == plain.size + 2
    assert tagged.tags == {"2de": plain.size, "2ko": plain.size + 1}
    texts = [*LINES, "<2de>", " <2de>x", "<2ko> <2ko>"]
    assert tagged.encode(texts) == plain.encode(texts), "what the text becomes does not change"


@ALL
def test_tags_leave_no_text_behind_and_can_be_printed(kind: str) -> None:
    tagged = with_tags(train_tokenizer(LINES, kind, 300), ["2de", "2ko"])
    (ids,) = tagged.encode(["so are you, 2de"])
    row = [tagged.tags["2ko"], *ids]
    assert tagged.decode([row]) == tagged.decode([ids])
    assert tagged.pieces(row) == ["<2ko>", *tagged.pieces(ids)]
    assert tagged.word_of_piece(row)[1:] == tagged.word_of_piece(ids)


@ALL
def test_they_are_saved_with_the_vocabulary(kind: str, tmp_path: Path) -> None:
    plain = train_tokenizer(LINES, kind, 300)
    tagged = with_tags(plain, ["2de", "2ko"])
    tagged.save(tmp_path)
    again = Tokenizer.load(tmp_path)
    assert again.tags == tagged.tags
    assert again.fingerprint == tagged.fingerprint != plain.fingerprint
    assert with_tags(again, ["2ko", "2de"]) is again
    more = with_tags(again, ["2fr", "2de"])
    assert more.tags == {**tagged.tags, "2fr": tagged.size}


def test_a_folder_whose_tags_do_not_fit_is_refused(tmp_path: Path) -> None:
    with_tags(train_tokenizer(LINES, "bpe", 300), ["2de"]).save(tmp_path)
    about = tmp_path / "about.json"
    about.write_text(about.read_text().replace('"2de"', '"2xx"'))
    with pytest.raises(BadInput, match="does not belong"):
        Tokenizer.load(tmp_path)


def test_a_tag_is_found_by_every_spelling_and_unknown_ones_name_the_known() -> None:
    plain = train_tokenizer(LINES, "bpe", 300)
    tagged = with_tags(plain, ["2de", "2ko"])
    for spelling in ("<2de>", "2de", "de", " 2de "):
        assert find_tag(tagged, spelling) == (tagged.tags["2de"],)
    with pytest.raises(BadInput, match='no tag "fr": this model knows 2de, 2ko'):
        find_tag(tagged, "fr")
    with pytest.raises(BadInput, match=r"--tag .*2de, 2ko"):
        find_tag(tagged, None)
    assert find_tag(with_tags(plain, ["2de"]), None) == (plain.size,)
    assert find_tag(plain, None) == ()
    with pytest.raises(BadInput, match="without language tags"):
        find_tag(plain, "de")
