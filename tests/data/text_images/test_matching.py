"""Lines and pictures brought together: where a path leads, and from where it is counted."""

from __future__ import annotations

import unicodedata

import pytest

from jumok.data.text_images.label_files import Labelled
from jumok.data.text_images.matching import Root, composed, match, name_below
from jumok.errors import BadInput


@pytest.mark.parametrize(
    ("base", "path", "name"),
    [
        ("", "a/1.png", "a/1.png"),
        ("b", "./a//1.png", "b/a/1.png"),
        ("b/c", "../1.png", "b/1.png"),
        ("b", "a\\1.png", "b/a/1.png"),
        ("b", "/root/a/1.png", "a/1.png"),  # the root is /root
        ("b", "..1.png", "b/..1.png"),
        ("b", "../../1.png", None),
        ("", "..", None),
        ("", "/rooted/1.png", None),
        ("", "/root/../1.png", None),
        ("", "C:\\1.png", None),
    ],
)
def test_where_a_path_leads(base: str, path: str, name: str | None) -> None:
    assert name_below(base, path, "/root") == name


def test_the_base_that_finds_the_most_is_meant() -> None:
    there = {"1.png", "a/1.png", "a/2.png"}
    rows = [Labelled(1, "1.png", "one"), Labelled(2, "2.png", "two")]
    root = Root("x", ("", "b", "a"), lambda name: name if name in there else None)
    assert match("gt.txt", rows, root) == [("a/1.png", "one"), ("a/2.png", "two")]
    with pytest.raises(BadInput, match=r"gt\.txt: 1 of the 3 pictures that it names are not there: line 3: 3\.png\."):
        match("gt.txt", [*rows, Labelled(3, "3.png", "three")], root)


def test_composed_names_are_equal() -> None:
    assert composed(unicodedata.normalize("NFD", "차/각.png")) == "차/각.png"
