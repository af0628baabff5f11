"""Recipes: strict, self-describing, and helpful when a key is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from jumok import recipe as recipes
from jumok.errors import BadInput
from jumok.recipe.reading import _sections, matching


def every_section(section: type[BaseModel]) -> list[type[BaseModel]]:
    inner = [s for field in section.model_fields.values() for s in _sections(field.annotation)]
    return [section, *(deeper for s in inner for deeper in every_section(s))]


@pytest.mark.parametrize("name", recipes.names())
def test_a_shipped_recipe_explained_and_read_back_is_the_same(name: str, tmp_path: Path) -> None:
    recipe = recipes.read(name)
    file = tmp_path / "copy.yaml"
    file.write_text(recipes.explain(recipe), encoding="utf-8")
    assert recipes.read(str(file)) == recipe
    file.write_text(recipes.dump(recipe), encoding="utf-8")
    assert recipes.read(str(file)) == recipe


def test_the_five_recipes_are_there() -> None:
    assert {"rnn", "lstm", "gru", "lstm-bahdanau", "lstm-luong"} <= set(recipes.names())


def test_every_key_has_a_description() -> None:
    for section in every_section(recipes.Recipe):
        for name, field in section.model_fields.items():
            assert field.description, f"{section.__name__}.{name}"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("model.widht=3", ['"model.widht"', '"model.width"']),
        ("trainin.updates=3", ['"trainin"', '"training"']),
        ("data.train.sorce=x", ["sorce", '"data.train.0.source"']),
        ("training.updates=many", ["training.updates", "whole number", "many"]),
        ("model.dropout=1.5", ["model.dropout", "less than 1"]),
        ("model.attention=loung", ["model.attention", "luong"]),
        ("seed=-1", ["seed"]),
        ("model.width.x=3", ["model.width"]),
        ("model.width", ["key=value"]),
        ("model.width=[", ["model.width", "YAML"]),
        ("data.train.3.weight=2", ["no entry 3"]),
        ("model.input_feeding=true", ["input_feeding", "luong"]),
    ],
)
def test_a_wrong_override_names_the_key_and_the_way_out(override: str, words: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        recipes.read("lstm", [override])
    for word in words:
        assert word in str(caught.value)


def test_naming_files_replaces_the_grammar() -> None:
    recipe = recipes.read("lstm", ["data.train.source=a.de", "data.train.target=a.en"])
    assert recipe.data.train[0].grammar is None
    assert (recipe.data.train[0].source, recipe.data.train[0].target) == (["a.de"], ["a.en"])
    assert recipe.data.valid == [], "the grammar would say nothing about these files"
    kept = recipes.read("lstm", ["data.train.source=a", "data.train.target=b", "data.valid.pairs=7"])
    assert len(kept.data.valid) == 1


@pytest.mark.parametrize(
    "corpus",
    [
        {},
        {"source": "a"},
        {"source": ["a", "b"], "target": ["c"]},
        {"grammar": "en-fr", "file": "x.tsv"},
    ],
)
def test_a_corpus_is_exactly_one_kind(corpus: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(yaml.safe_dump({"data": {"train": corpus}}), encoding="utf-8")
    with pytest.raises(BadInput, match=r"data\.train"):
        recipes.read(str(file))


def test_patterns_become_the_files_they_match(tmp_path: Path) -> None:
    for name in ("2.de", "1.de", "1.en", "2.en", "odd[1].de", "1.fr"):
        (tmp_path / name).touch()
    (tmp_path / "3.de").mkdir()

    def corpus(source: str, target: str) -> recipes.Corpus:
        named = [f"data.train.source={tmp_path / source}", f"data.train.target={tmp_path / target}"]
        return recipes.read("lstm", named).data.train[0]

    def files(*names: str) -> list[str]:
        return [str(tmp_path / name) for name in names]

    several = corpus("[12].de", "?.en")
    assert (several.source, several.target) == (files("1.de", "2.de"), files("1.en", "2.en"))
    assert corpus("odd[1].de", "1.fr").source == files("odd[1].de"), "a file of that very name"
    with pytest.raises(BadInput, match=r"source has 2 file\(s\) and target has 1"):
        corpus("?.de", "*.fr")
    with pytest.raises(BadInput, match=r"\*\.ko: no file matches"):
        corpus("?.de", "*.ko")
    text = recipes.read("lstm-lm", [f'data.train.text=["{tmp_path}/*.fr", "{tmp_path}/2.*"]']).data.train[0].text
    assert text == files("1.fr", "2.de", "2.en")


def test_a_folder_stands_for_what_is_in_it(tmp_path: Path) -> None:
    for name in ("new/a/1.png", "new/a/deep/2.png", "new/ab/3.png", "new/4.png", "other/5.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def found(pattern: str, folders: bool = True) -> list[Path]:
        return [Path(path).relative_to(tmp_path) for path in matching(f"{tmp_path}/{pattern}", folders)]

    assert found("new/**") == [Path("new")]
    assert found("new/**/*") == [Path("new/4.png"), Path("new/a"), Path("new/ab")], "a folder beside one of its letters"
    assert found("**/*.png") == [
        Path(name) for name in ("new/4.png", "new/a/1.png", "new/a/deep/2.png", "new/ab/3.png", "other/5.png")
    ]
    assert found("new/a/**", folders=False) == [Path("new/a/1.png"), Path("new/a/deep/2.png")]


def test_files_that_are_no_recipes(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match='Did you mean "lstm"'):
        recipes.read("lsmt")
    file = tmp_path / "r.yaml"
    for content, message in (
        (b"- a\n", "mapping"),
        (b"a: [\n", "r\\.yaml, line 2, column 1: not valid YAML: [^\n]+$"),
        (b"a: b: c\n", "r\\.yaml, line 1, column 5: not valid YAML: mapping values are not allowed here$"),
        (b"a: \x00\n", "r\\.yaml: not valid YAML: [^\n]+$"),
        (b"\xff\xfe", "UTF-8"),
        (b"seed: 1\n", "data"),
    ):
        file.write_bytes(content)
        with pytest.raises(BadInput, match=message):
            recipes.read(str(file))


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("model.width=abc", "model.width: it must be a whole number (given: 'abc')"),
        ("model.heads=3.5", "model.heads: it must be a whole number (given: 3.5)"),
        ("model.dropout=x", "model.dropout: it must be a number (given: 'x')"),
        ("exact=perhaps", "exact: it must be true or false (given: 'perhaps')"),
        ("training.updates=0", "training.updates: it must be greater than or equal to 1 (given: 0)"),
    ],
)
def test_wrong_values_are_told_in_plain_words(override: str, told: str) -> None:
    with pytest.raises(BadInput) as caught:
        recipes.read("transformer-tiny", [override])
    assert told in str(caught.value)
