"""Files that can be continued: whole lines stay, half ones go, and what does not fit is refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.errors import BadInput, Failure
from jumok.streaming.output import Begun, Complete, note_of, open_output


class Killed(Exception):
    pass


def about(**settings: Any) -> Any:
    return lambda: {"input": {"lines": 9, "sha256": "x"}, "settings": {"beam": 4, "too_long": "error", **settings}}


def write(path: Path, groups: Sequence[list[str]], stop: int | None = None, **options: Any) -> int:
    """All of a translation, or what is written of it before a kill. Returns where it began."""
    begun: Begun
    try:
        with open_output(path, about=options.pop("about", about()), **options) as begun:
            for number, lines in enumerate(groups[begun.done :], begun.done):
                if number == stop:
                    raise Killed
                begun.write(lines)
    except Killed:
        pass
    return begun.done


@given(
    counts=st.lists(st.integers(1, 3), min_size=1, max_size=12),
    kills=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 30)), max_size=4),
    numbered=st.booleans(),
)
def test_after_any_kills_the_file_is_that_of_an_uninterrupted_run(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], kills: list[tuple[int, int]], numbered: bool
) -> None:
    folder = tmp_path_factory.mktemp("output")
    if numbered:
        groups = [[f"{n}\tline {n}.{k} é" for k in range(count)] for n, count in enumerate(counts, 1)]
    else:
        groups = [[f"line {n} é" if n % 3 else ""] for n in range(len(counts))]
    whole, part = folder / "whole", folder / "part"
    write(whole, groups, numbered=numbered)
    assert not note_of(whole).exists()
    for stop, lost in kills:
        write(part, groups, stop=stop, resume=True, numbered=numbered)
        if not note_of(part).exists():
            break
        size = part.stat().st_size
        with part.open("r+b") as file:  # a kill in the middle of a write
            file.truncate(max(0, size - lost))
    if note_of(part).exists() or not part.exists():
        write(part, groups, resume=True, numbered=numbered)
    assert part.read_bytes() == whole.read_bytes()
    assert not note_of(part).exists()


def test_an_unfinished_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, [["a"], ["b"]], stop=1)
    with pytest.raises(BadInput, match="go on with --resume, or delete it"):
        write(path, [["a"], ["b"]])
    assert path.read_text() == "a\n"
    path.unlink()
    write(path, [["a"], ["b"]])
    assert path.read_text() == "a\nb\n", "deleted means begun anew, whatever the note says"


@pytest.mark.parametrize("made_of", [about(), None], ids=["from a file", "from a pipe"])
def test_what_was_there_stays_until_the_first_line(tmp_path: Path, made_of: Any) -> None:
    path = tmp_path / "out"
    path.write_text("old\n")
    write(path, [["a"], ["b"]], stop=0, about=made_of)
    assert path.read_text() == "old\n"
    assert not note_of(path).exists(), "beside the old lines it would make them the beginning of the new ones"
    with open_output(path, about=made_of) as begun:
        assert path.read_text() == "old\n"
        begun.write(["a"])
        assert path.read_text() == "a\n"
    write(path, [], about=made_of)
    assert path.read_text() == "", "an empty input is an empty output"
    write(tmp_path / "new", [["a"]], stop=0, about=made_of)
    assert list(tmp_path.iterdir()) == [path], "what got no line does not begin to exist"


def test_what_comes_from_a_pipe_does_not_overwrite_an_unfinished_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, [["a"], ["b"]], stop=1)
    with pytest.raises(BadInput, match="go on with --resume, or delete it"):
        write(path, [["c"]], about=None)
    assert write(path, [["a"], ["b"]], resume=True) == 1
    assert path.read_text() == "a\nb\n"


def test_a_finished_file_is_overwritten_and_never_continued(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, [["a"], ["b"]])
    write(path, [["c"]])
    assert path.read_text() == "c\n"
    with pytest.raises(Complete):
        write(path, [["c"]], resume=True, complete=lambda sentences: sentences == 1)
    with pytest.raises(BadInput, match=r"out\.progress\.json is missing"):
        write(path, [["c"], ["d"]], resume=True, complete=lambda sentences: sentences == 2)
    assert path.read_text() == "c\n"


def test_other_settings_or_another_input_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, [["a"], ["b"]], stop=1)
    with pytest.raises(BadInput, match="different now: beam"):
        write(path, [["a"], ["b"]], resume=True, about=about(beam=5))

    def other() -> dict[str, Any]:
        return {**about()(), "input": {"lines": 8, "sha256": "y"}}

    with pytest.raises(BadInput, match="different now: input"):
        write(path, [["a"], ["b"]], resume=True, about=other)
    assert write(path, [["a"], ["b"]], resume=True, about=about(too_long="skip")) == 1, (
        "no sentence was too long so far"
    )


def test_a_damaged_note_is_named(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, [["a"], ["b"]], stop=1)
    for content in ("{", "[]", json.dumps({"format": 1})):
        note_of(path).write_text(content)
        with pytest.raises(BadInput, match="damaged"):
            write(path, [["a"], ["b"]], resume=True)
    note_of(path).write_text(json.dumps({"format": 99}))
    with pytest.raises(BadInput, match="another version"):
        write(path, [["a"], ["b"]], resume=True)


def test_what_is_read_is_never_written(tmp_path: Path) -> None:
    path, other = tmp_path / "text", tmp_path / "other"
    path.write_text("a\n")
    other.hardlink_to(path)
    for sources in ((path,), (None, tmp_path / "none", other)):
        with pytest.raises(BadInput, match="the very file"), open_output(path, *sources, about=about()):
            pass
    assert path.read_text() == "a\n"


def test_a_folder_a_device_and_a_pipe(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--output"):
        write(tmp_path, [["a"]])
    with pytest.raises(BadInput, match="--resume needs"), open_output(tmp_path / "out", resume=True):
        pass


def test_a_full_disk_is_a_failure_with_a_way_out() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs /dev/full")
    with pytest.raises(Failure, match="--resume"):
        write(full, [["a"]], about=None)
