"""The folder of an export: written anew over an older one of its kind, and over nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from jumok.errors import BadInput
from jumok.interop.export_folder import MARK, check_out, new_folder


def exported(out: Path, kind: str = "hf", text: str = "card") -> None:
    with new_folder(out, kind) as folder:
        (folder / "README.md").write_text(text)
        (folder / "target").mkdir()
        (folder / "target" / "tokenizer.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(bytes(3_000_000))


def test_an_export_is_written_anew(tmp_path: Path) -> None:
    exported(tmp_path / "out")
    exported(tmp_path / "out", text="another")
    assert (tmp_path / "out" / "README.md").read_text() == "another"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


@pytest.mark.parametrize("name", ["notes.txt", ".git/HEAD", "target/more.json"])
def test_what_came_since_is_named_and_stays(tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    exported(out)
    (out / name).parent.mkdir(exist_ok=True)
    (out / name).write_text("mine")
    with pytest.raises(BadInput, match=f"{name} came there, or changed"):
        exported(out, text="another")
    assert (out / name).read_text() == "mine"
    assert (out / "README.md").read_text() == "card"


def test_what_was_changed_since_is_named(tmp_path: Path) -> None:
    out = tmp_path / "out"
    exported(out)
    (out / "README.md").write_text("card, by hand")
    with pytest.raises(BadInput, match=r"README\.md came there, or changed"):
        check_out(out, "hf")
    exported(tmp_path / "other")
    with (tmp_path / "other" / "model.safetensors").open("r+b") as weights:  # as large as before
        weights.seek(2_000_000)
        weights.write(b"learned on")
    with pytest.raises(BadInput, match=r"model\.safetensors came there, or changed"):
        check_out(tmp_path / "other", "hf")


def test_another_kind_is_not_replaced(tmp_path: Path) -> None:
    exported(tmp_path / "out")
    with pytest.raises(BadInput, match=r"an export of another kind \(hf\)"):
        check_out(tmp_path / "out", "ct2")


@pytest.mark.parametrize("mark", [None, "", "[]", "{}", '{"kind": "hf"}', '{"kind": "hf", "files": 3}'])
def test_a_folder_of_something_else_is_refused(tmp_path: Path, mark: str | None) -> None:
    (tmp_path / "thing").write_text("mine")
    if mark is not None:
        (tmp_path / MARK).write_text(mark)
    with pytest.raises(BadInput, match="no export of jumok"):
        check_out(tmp_path, "hf")
