"""Tensors, pickles, links and archives that somebody made to do harm: refused in words, nothing executed, nothing
written, little memory used."""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hostile import bert_folder, refused, vit_folder
from image_runs import image_run
from safetensors.torch import load_file, save_file
from seeded import seed  # noqa: F401
from timm_layout import random_state

from jumok import api
from jumok.data.images.sources import open_images
from jumok.data.text_images.sources import open_text_images
from jumok.errors import BadInput, Failure
from jumok.files import sha256
from jumok.interop.export_huggingface import export_huggingface
from jumok.interop.run_folder import import_huggingface, import_timm

pytestmark = pytest.mark.usefixtures("seed")


def test_what_is_good_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests below can fail: their folders are right but for the one thing."""
    import_huggingface(bert_folder(tmp_path / "bert"), tmp_path / "first")
    import_huggingface(vit_folder(tmp_path / "vit", monkeypatch), tmp_path / "second")
    save_file(random_state({}), tmp_path / "model.safetensors")
    import_timm(tmp_path / "model.safetensors", tmp_path / "third", 2)


class Harm:
    """Whoever unpickles this writes a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.system, (f"touch '{self.file}'",)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.safetensors", "vocab.txt", "config.json"])
def test_a_pickle_is_never_run(tmp_path: Path, name: str) -> None:
    folder, proof = bert_folder(tmp_path / "bert"), tmp_path / "executed"
    if name == "pytorch_model.bin":
        (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(pickle.dumps(Harm(proof)))
    refused(folder, name)
    assert not proof.exists()
    pickle.loads((folder / name).read_bytes())  # it would have
    assert proof.exists()


def test_a_pickle_for_timm(tmp_path: Path) -> None:
    proof, file = tmp_path / "executed", tmp_path / "pytorch_model.bin"
    torch.save({"weights": Harm(proof)}, file)
    with pytest.raises(BadInput, match="can run programs"):
        import_timm(file, tmp_path / "run")
    with pytest.raises(BadInput, match="can run programs"):
        import_timm(tmp_path, tmp_path / "run")
    assert not proof.exists()


Header = dict[str, Any]


def parts_of(file: Path) -> tuple[Header, bytes]:
    whole = file.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    return json.loads(whole[8 : 8 + length]), whole[8 + length :]


def put(file: Path, header: Header | bytes, numbers: bytes, length: int | None = None) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    file.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + numbers)


def changed(header: Header, **changes: Any) -> Header:
    """One tensor says something else of itself."""
    name = next(iter(header.keys() - {"__metadata__"}))
    return {**header, name: {**header[name], **changes}}


def two_in_one_place(header: Header) -> Header:
    """Two tensors of one size that say they lie in the same place."""
    names = [name for name in header if name.endswith(("query.weight", "key.weight"))]
    return {**header, names[0]: header[names[1]]}


def doubled(header: Header) -> bytes:
    name = next(iter(header.keys() - {"__metadata__"}))
    return (json.dumps(header)[:-1] + f", {json.dumps(name)}: {json.dumps(header[name])}}}").encode()


HEADERS: dict[str, tuple[Callable[[Header], Header | bytes], str]] = {
    "a dtype that does not exist": (lambda header: changed(header, dtype="F99"), "dtype 'F99'"),
    "a dtype that is none": (lambda header: changed(header, dtype=[]), "dtype"),
    "another dtype": (lambda header: changed(header, dtype="F64"), "cannot lie in"),
    "a negative shape": (lambda header: changed(header, shape=[-1, -8]), "shape [-1, -8]"),
    "a huge shape": (lambda header: changed(header, shape=[10**12, 10**12]), "cannot lie in"),
    "a shape that overflows": (lambda header: changed(header, shape=[2**32, 2**32, 4]), "cannot lie in"),
    "sides without end": (lambda header: changed(header, shape=[1] * 10**5), "shape"),
    "a shape of words": (lambda header: changed(header, shape=["8"]), "shape"),
    "true is no size": (lambda header: changed(header, shape=[True]), "shape"),
    "no shape": (lambda header: changed(header, shape=None), "shape"),
    "offsets outside": (lambda header: changed(header, shape=[2**40], data_offsets=[0, 2**42]), "damaged"),
    "offsets backwards": (lambda header: changed(header, data_offsets=[64, 0]), "data_offsets"),
    "negative offsets": (lambda header: changed(header, data_offsets=[-64, 0]), "data_offsets"),
    "one offset": (lambda header: changed(header, data_offsets=[0]), "data_offsets"),
    "overlapping": (two_in_one_place, "overlap"),
    "one key twice": (doubled, "stands there twice"),
    "nothing in it": (lambda header: {}, "bytes, and"),
    "a name that drives the terminal": (
        lambda header: {
            f"\x1b]0;{name}" if "pooler" in name or "head" in name else name: header[name] for name in header
        },
        "can be printed",
    ),
    "more than is known": (lambda header: changed(header, more=1), "not just dtype"),
    "no tables": (lambda header: dict.fromkeys(header, 3), "not just dtype"),
    "strange metadata": (lambda header: {**header, "__metadata__": {"a": [1]}}, "__metadata__"),
    "deep": (lambda header: b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "damaged"),
    "deep lists": (lambda header: b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "damaged"),
    "many things": (lambda header: b'{"a":[' + b"[]," * (1 << 21) + b"[]]}", "objects and lists"),
    "not JSON": (lambda header: b"{" * 100, "damaged"),
    "no object": (lambda header: b"[1, 2]", "damaged"),
    "no text": (lambda header: b"\xff\xfe" * 50, "damaged"),
    "half a character": (lambda header: {**header, "\ud800": header[next(iter(header))]}, "damaged"),
}


@pytest.mark.parametrize("which", HEADERS)
def test_headers_that_lie(tmp_path: Path, which: str) -> None:
    file = bert_folder(tmp_path / "bert") / "model.safetensors"
    how, told = HEADERS[which]
    header, numbers = parts_of(file)
    put(file, how(header), numbers)
    refused(file.parent, str(file), told)


@pytest.mark.parametrize("length", [1 << 60, (1 << 64) - 1, 1 << 31, 100_000, 3, 0])
def test_lengths_that_lie(tmp_path: Path, length: int) -> None:
    file = bert_folder(tmp_path / "bert") / "model.safetensors"
    put(file, *parts_of(file), length=length)
    refused(file.parent, str(file), "damaged")


def test_a_header_that_is_there_but_too_long(tmp_path: Path) -> None:
    """A file with holes takes no room on the disk; what is read of it would take it in memory."""
    file = bert_folder(tmp_path / "bert") / "model.safetensors"
    file.write_bytes((1 << 36).to_bytes(8, "little"))
    os.truncate(file, (1 << 36) + 8)
    refused(file.parent, "more than any model needs")


def test_files_that_are_cut_off_or_too_long(tmp_path: Path) -> None:
    file = bert_folder(tmp_path / "bert") / "model.safetensors"
    whole = file.read_bytes()
    for cut in (0, 4, 8, 100, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:cut])
        refused(file.parent, str(file), "damaged")
    file.write_bytes(whole + b"more")
    refused(file.parent, "bytes, and")


def test_tensors_of_other_shapes(tmp_path: Path) -> None:
    file = bert_folder(tmp_path / "bert") / "model.safetensors"
    kept = load_file(file)
    for name, tensor in (("pooler.dense.weight", torch.ones(8, 9)), ("embeddings.LayerNorm.bias", torch.ones(()))):
        save_file({**kept, name: tensor}, file)
        refused(file.parent, name)
    save_file({**kept, "pooler.dense.bias": torch.full((8,), torch.nan)}, file)
    refused(file.parent, "not numbers")


PATHS = [
    "../../etc/passwd", "/etc/passwd", "../model.safetensors", "a/../model.safetensors", "..\\x.safetensors", "..", "",
    "C:\\x.safetensors", "x\x00.safetensors", "~/x.safetensors", "sub/x.safetensors", "x\n.safetensors",
    "y" * 300 + ".safetensors", "/dev/zero", "file:///etc/x.safetensors", ".", "model.bin",
]  # fmt: skip


@pytest.mark.parametrize("door", ["hf", "timm"])
def test_an_index_that_leads_out_of_the_folder(tmp_path: Path, door: str) -> None:
    folder = bert_folder(tmp_path / "bert")
    if door == "timm":
        (folder / "config.json").unlink()
    (folder / "model.safetensors").rename(tmp_path / "model.safetensors")
    for path in PATHS:
        index = {"weight_map": {"pooler.dense.bias": path}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        refused(folder, "is not the name of a safetensors file beside it", door=door)


def test_links_that_lead_out_of_the_folder(tmp_path: Path) -> None:
    folder, outside = bert_folder(tmp_path / "bert"), tmp_path / "outside.safetensors"
    (folder / "model.safetensors").rename(outside)
    index = {"weight_map": dict.fromkeys(load_file(outside), "part.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "part.safetensors").symlink_to(outside)
    refused(folder, "a link that leads out of the folder")
    (folder / "part.safetensors").unlink()
    (folder / "part.safetensors").symlink_to(folder / "part.safetensors")  # to itself
    refused(folder, "is missing")
    (folder / "part.safetensors").unlink()
    os.mkfifo(folder / "part.safetensors")  # who opens it waits for ever
    refused(folder, "is missing")


def test_the_cache_of_hugging_face_has_links_that_are_right(tmp_path: Path) -> None:
    blobs, folder = tmp_path / "blobs", tmp_path / "snapshots" / "0f3a"
    folder.parent.mkdir()
    bert_folder(folder)
    blobs.mkdir()
    (folder / "model.safetensors").rename(blobs / "abc")
    index = {"weight_map": dict.fromkeys(load_file(blobs / "abc"), "part.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "part.safetensors").symlink_to("../../blobs/abc")
    import_huggingface(folder, tmp_path / "run")


def test_timm_files_that_lie(tmp_path: Path) -> None:
    folder = tmp_path / "timm"
    folder.mkdir()
    file = folder / "model.safetensors"
    save_file(random_state({}), file)
    header, numbers = parts_of(file)
    for how, told in HEADERS.values():
        if how is not two_in_one_place:
            put(file, how(header), numbers)
            refused(folder, told, door="timm")


def test_the_checkpoint_of_a_run_that_lies(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Somebody else's run has checksums that are right; its tensors need not be."""
    run = image_run(tmp_path / "run")
    file = run.checkpoints / "step-0" / "model.safetensors"
    header, numbers = parts_of(file)
    whole = file.read_bytes()
    damaged = [whole[:-3], (1 << 60).to_bytes(8, "little") + whole[8:], b"", pickle.dumps(Harm(tmp_path / "executed"))]
    named = [changed(header, dtype="F99"), changed(header, shape=[-1]), two_in_one_place(header), b"[" * 100_000]
    named.append({**header, "scores.bias": {**header["scores.bias"], "dtype": "F4", "shape": [24]}})
    for content in (*damaged, *named):
        if isinstance(content, bytes) and content in damaged:
            file.write_bytes(content)
        else:
            put(file, content, numbers)
        checksums = file.with_name("checksums.json")
        told = {**json.loads(checksums.read_text()), file.name: sha256(file)}
        checksums.write_text(json.dumps(told))
        with pytest.raises(Failure, match=r"no checkpoint in .* is intact"):
            api.load(run.path, "cpu")
        with pytest.raises(Failure, match=r"no checkpoint in .* is intact"):
            export_huggingface(run, tmp_path / "out")
        assert "cannot be read" in capfd.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_archives_whose_files_would_lie_elsewhere(tmp_path: Path) -> None:
    """Nothing is unpacked, so nothing can be written anywhere; and such an archive is refused by the file's name."""
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    link = tarfile.TarInfo("evil/4.png")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with tarfile.open(inside / "link.tar", "w") as archive:
        archive.addfile(link)
    with pytest.raises(BadInput, match="a link, which cannot be followed"):
        list(open_images([inside / "link.tar"]))
    for name in ("../../../evil/1.png", "/evil/2.png", "x/../../evil/3.png"):
        with tarfile.open(inside / "x.tar", "w") as archive:
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
        with zipfile.ZipFile(inside / "x.zip", "w") as packed:
            packed.writestr(name, b"")
        before = sorted(tmp_path.rglob("*"))
        for kind in ("x.tar", "x.zip"):
            with pytest.raises(BadInput, match=re.escape(f'{inside / kind}: its file "{name}" would lie outside')):
                list(open_images([inside / kind]))
            with pytest.raises(BadInput, match=re.escape(f'"{name}" would lie outside')):
                list(open_text_images([inside / kind]))
        assert sorted(tmp_path.rglob("*")) == before
    assert not Path("/evil").exists()
