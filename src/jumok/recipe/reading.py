"""Reading recipes: shipped ones by name, files by path, with overrides; errors in the user's own keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from glob import glob
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from jumok.errors import BadInput, did_you_mean, shortly
from jumok.recipe.kinds import model_kind
from jumok.recipe.whole import Recipe

PATTERN = re.compile(r"[*?[]")
BROUGHT = ("source", "target", "file", "text", "examples", "images")  # keys of a corpus that name a user's own files
EMBEDDED = ("grammar", "drawn", "rendered")  # those that need none


def names() -> list[str]:
    """The recipes that ship with the package."""
    return sorted(p.name.removesuffix(".yaml") for p in _folder().iterdir() if p.name.endswith(".yaml"))


def _folder() -> Any:
    return resources.files("jumok") / "recipes"


def read(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """A shipped recipe by name, or a YAML file by path, with `key.path=value` overrides."""
    text, origin = _text(name)
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadInput(f"{origin}{yaml_fault(error)}") from None
    if not isinstance(raw, dict):
        raise BadInput(f"{origin}: a recipe is a mapping of keys (data:, model:, …), this is {type(raw).__name__}")
    for override in overrides:
        _override(raw, override)
    _drop_foreign_validation(raw, overrides)
    _find_files(raw)
    return check(raw, origin)


def yaml_fault(error: yaml.YAMLError) -> str:
    """Where and why a text is not YAML, in one line, to follow on its name: the parser's own words take five."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
    reason = getattr(error, "problem", None) or " ".join(str(error).split())
    return f"{where}: not valid YAML: {reason}"


def _drop_foreign_validation(raw: dict[str, Any], overrides: Sequence[str]) -> None:
    """Who brings training files is not validated on the recipe's own grammar: it would say nothing about them."""
    keys = [override.partition("=")[0].split(".") for override in overrides]
    brings_files = any(key[:2] == ["data", "train"] and key[-1] in BROUGHT for key in keys)
    names_validation = any(key[:2] == ["data", "valid"] for key in keys)
    valid = raw["data"].get("valid") if isinstance(raw.get("data"), dict) else None
    corpora = valid if isinstance(valid, list) else [valid]
    if (
        brings_files
        and not names_validation
        and all(isinstance(one, dict) and any(key in one for key in EMBEDDED) for one in corpora)
    ):
        raw["data"]["valid"] = None


def _find_files(raw: dict[str, Any]) -> None:
    """Patterns (`shards/*.de.gz`) become the files they match today, in the order of their names: a run that goes on
    learns from the same ones."""
    data = raw["data"] if isinstance(raw.get("data"), dict) else {}
    named = [data.get("train"), data.get("valid")]
    corpora: list[Any] = [corpus for one in named for corpus in (one if isinstance(one, list) else [one])]
    for corpus in corpora:
        for key in BROUGHT if isinstance(corpus, dict) else ():
            patterns = corpus.get(key) if isinstance(corpus.get(key), list) else [corpus.get(key)]
            if any(isinstance(pattern, str) and PATTERN.search(pattern) for pattern in patterns):
                corpus[key] = [file for pattern in patterns for file in matching(pattern, folders=key == "images")]


def matching(pattern: Any, folders: bool = False) -> list[Any]:
    """The files that a pattern matches, in the order of their names; what is no pattern is itself. With `folders`, a
    folder stands for all that is in it: `new/**` matches that too, and nothing is to be read twice."""
    if not isinstance(pattern, str) or not PATTERN.search(pattern) or Path(pattern).exists():
        return [pattern]
    found = sorted(path for path in glob(pattern, recursive=True) if folders or Path(path).is_file())
    whole = {Path(path) for path in found if Path(path).is_dir()} if folders else set()
    found = [path for path in found if whole.isdisjoint(Path(path).parents)]
    if not found:
        raise BadInput(f"{pattern}: no file matches this pattern")
    return found


def task_of(name: str) -> str | None:
    """What a recipe is for, before it is read with all that a command line adds to it."""
    try:
        raw = yaml.safe_load(_text(name)[0])
    except yaml.YAMLError:
        return None  # `read` says what is wrong with it
    found = raw.get("task") if isinstance(raw, dict) else None
    return found if isinstance(found, str) else None


def about(name: str) -> str:
    """What a recipe is, in its own words: its first comment line."""
    first = _text(name)[0].partition("\n")[0]
    return first.removeprefix("#").strip() if first.startswith("#") else name


def _text(name: str) -> tuple[str, str]:
    path = Path(name)
    if name in names():
        return (_folder() / f"{name}.yaml").read_text(encoding="utf-8"), f"recipe {name}"
    if not path.is_file():
        hint = did_you_mean(name, names())
        raise BadInput(f'no recipe "{name}": it is neither a file nor a shipped recipe.{hint} See: jumok recipes')
    try:
        return path.read_text(encoding="utf-8"), name
    except UnicodeDecodeError as error:
        raise BadInput(f"{name}: not UTF-8 at byte {error.start}") from None


def check(raw: dict[str, Any], origin: str) -> Recipe:
    """Turn pydantic's errors into sentences about the user's keys."""
    try:
        return Recipe.model_validate(raw)
    except ValidationError as error:
        lines = [_explain_error(alternatives, raw) for alternatives in _by_key(error.errors())]
        raise BadInput(f"{origin}: " + "\n  ".join(lines)) from None


PLAINER = {  # pydantic's words, from here to the end of its sentence
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid boolean": "true or false",
    "a valid string": "a text",
    "a valid list": "a list",
    "a valid tuple": "a list, as in [32,128]",
    "a valid dictionary": "a mapping {key: value}",
}
MEMBER = re.compile(r"(literal|dict|list|tuple)\[.*\]|int|float|str|bool", re.DOTALL)  # of a union, in pydantic's words
MUST = "it must be "


def plainer(item: Any) -> str:
    """What is wrong with a value, in a sentence without pydantic's words."""
    message = str(item["msg"]).removeprefix("Value error, ").replace("Input should be ", MUST, 1)
    for theirs, ours in PLAINER.items():
        if theirs in message:
            message = message.partition(theirs)[0] + ours
    return message


def _by_key(errors: Sequence[Any]) -> Iterator[list[Any]]:
    """What may be of several kinds has an error for each: together, and only those that went furthest into the value.
    The kinds are no keys of the user's, and leave the location."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for number, item in enumerate(errors):
        location = [part for part in item["loc"] if not (isinstance(part, str) and part.startswith("function-"))]
        kind = next((n for n, part in enumerate(location) if n > 1 and MEMBER.fullmatch(str(part))), None)
        key = (number,) if kind is None else ("union", *location[:kind])
        if kind is not None:
            del location[kind]
        groups.setdefault(key, []).append({**item, "loc": tuple(location)})
    for alternatives in groups.values():
        furthest = max(len(item["loc"]) for item in alternatives)
        yield [item for item in alternatives if len(item["loc"]) == furthest]


def _explain_error(alternatives: Sequence[Any], raw: Any) -> str:
    item = alternatives[0]
    location = list(item["loc"])
    if len(location) > 1 and location[0] == "model":  # pydantic names the kind of the model too: no key of the user's
        del location[1]
    path = ".".join(str(part) for part in location)
    if item["type"] == "extra_forbidden":
        section = _section_at(location[:-1], raw)
        before = path.removesuffix(str(location[-1]))
        return f'unknown key "{path}".{did_you_mean(str(location[-1]), section.model_fields, before)}'
    if item["type"] == "missing":
        return f'missing key "{path}"'
    if item["type"] == "union_tag_invalid":
        kind, known = item["ctx"]["tag"], [part.strip("' ") for part in item["ctx"]["expected_tags"].split(",")]
        return f'model.kind: no model "{kind}".{did_you_mean(kind, known)} There are: {", ".join(known)}'
    message = ", or ".join([plainer(item), *(plainer(other).removeprefix(MUST) for other in alternatives[1:])])
    given = "" if isinstance(item["input"], dict | list) else f" (given: {shortly(item['input'])})"
    if path and not message.startswith(f"{path}:"):  # a check of the whole section names the keys by itself
        message = f"{path}: {message}"
    return f"{message}{given}"


def _section_at(location: Sequence[str | int], raw: Any) -> type[BaseModel]:
    """The section a key path leads to."""
    section: type[BaseModel] = Recipe
    for part in location:
        if isinstance(part, int):
            continue
        choices = list(_sections(section.model_fields[part].annotation))
        kind = model_kind(raw[part]) if part == "model" else None
        section = next((s for s in choices if part == "model" and s.model_fields["kind"].default == kind), choices[0])
    return section


def _sections(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _sections(argument)


def _override(raw: dict[str, Any], override: str) -> None:
    """Apply one `a.b.c=value`; the value is read as YAML."""
    path, equals, text = override.partition("=")
    if not equals or not path:
        raise BadInput(f'"{override}" is not an override: write key=value, for example model.width=512')
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadInput(f"{path}={text}{yaml_fault(error)}") from None
    assign(raw, path.split("."), value)


def assign(raw: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    """Set a key in nested mappings. `data.train.source` means the first corpus; naming files replaces the grammar."""
    place: Any = raw
    data = raw.get("data")
    for part in ("train", "valid"):
        if isinstance(data, dict) and isinstance(data.get(part), dict):
            data[part] = [data[part]]  # so that data.train.0.source works for the shortcut too
    for depth, key in enumerate(keys):
        if isinstance(place, list) and not key.isdigit():
            place = place[0] if place else {}
        last = depth == len(keys) - 1
        index: Any = int(key) if isinstance(place, list) else key
        if isinstance(place, list) and not 0 <= index < len(place):
            raise BadInput(f'"{".".join(keys)}": there is no entry {index} (the list has {len(place)})')
        if not isinstance(place, dict | list):
            raise BadInput(f'"{".".join(keys)}": "{".".join(keys[:depth])}" has no keys of its own')
        if last:
            if key in BROUGHT and isinstance(place, dict):
                for embedded in EMBEDDED:
                    place.pop(embedded, None)
            if key == "csv" and isinstance(place, dict):
                place.pop("generated", None)
            place[index] = value
        else:
            if isinstance(place, dict) and place.get(index) in (None, []):
                place[index] = {}
            place = place[index]
