"""Pictures out of tars and zips, without a file written; parts of them; and each way they can be bad."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import random
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from PIL import Image

from jumok.data.images import archives
from jumok.data.images.archives import members
from jumok.data.images.raw import shown
from jumok.data.images.sources import open_images
from jumok.errors import BadInput

PACKED: dict[str, Callable[[bytes], bytes]] = {
    ".tar": bytes,
    ".tar.gz": gzip.compress,
    ".tgz": gzip.compress,
    ".tar.xz": lzma.compress,
    ".tar.bz2": bz2.compress,
    ".tar.zst": lambda data: zstandard.ZstdCompressor().compress(data),
    "-without-a-suffix": lzma.compress,
}


def png() -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.random.default_rng().integers(0, 256, (8, 7, 3), np.uint8)).save(out, "PNG")
    return out.getvalue()


def tar(files: dict[str, bytes], kind: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as archive:
        for name, data in files.items():
            header = tarfile.TarInfo(name.rstrip("/"))
            header.size = len(data)
            if name.endswith("/"):
                header.type = tarfile.DIRTYPE
            archive.addfile(header, io.BytesIO(data))
    return out.getvalue()


def zipped(files: dict[str, bytes], **options: Any) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", **options) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def two_parts() -> dict[str, bytes]:
    names = ["test/cat/0.png", "test/dog/0.png", "train/dog/deep/1.png", "train/cat/2.png", "train/dog/3.png"]
    return {"test/": b"", "test/cat/": b"", **{name: png() for name in names}, "train/readme.txt": b"x"}


def put(place: Path, data: bytes) -> Path:
    place.write_bytes(data)
    return place


@pytest.fixture(params=[*PACKED, ".zip", "-zip-deflated.zip"])
def packed(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, bytes]]:
    files = two_parts()
    suffix = request.param
    if suffix.endswith(".zip"):
        how = zipfile.ZIP_DEFLATED if "deflated" in suffix else zipfile.ZIP_STORED
        data = zipped(files, compression=how)
    else:
        data = PACKED[suffix](tar(files))
    return put(tmp_path / f"pictures{suffix}", data), files


def test_a_part_of_an_archive(packed: tuple[Path, dict[str, bytes]], tmp_path: Path) -> None:
    path, files = packed
    before = sorted(tmp_path.rglob("*"))
    source = open_images([path / "train"])
    found = list(source)
    assert [(image.name, image.label, image.data) for image in found] == [
        (f"{path}/{name}", name.split("/")[1], data)
        for name, data in files.items()
        if name.endswith("png") and "train" in name
    ]
    assert source.passed_over == 1
    assert [image.label for image in open_images([f"{path}/test", f"{path}/train"])] == [
        "cat",
        "dog",
        "dog",
        "cat",
        "dog",
    ]
    assert [image.label for image in open_images([f"{path}/train/dog"])] == ["deep", None]
    (one,) = open_images([path / "train/cat/2.png"])
    assert (one.name, one.label, one.data) == (f"{path}/train/cat/2.png", None, files["train/cat/2.png"])
    assert sorted(tmp_path.rglob("*")) == before  # nothing was unpacked


def test_a_part_that_is_not_there(packed: tuple[Path, dict[str, bytes]]) -> None:
    path, _ = packed
    with pytest.raises(BadInput, match=r'no "trian" in the archive\. Did you mean "train"\?'):
        list(open_images([path / "trian"]))
    with pytest.raises(BadInput, match=r'no "train/cow" in the archive\. (Did you mean|Known: cat, dog)'):
        list(open_images([path / "train" / "cow"]))
    with pytest.raises(BadInput, match=r"test and train are no classes\. Say which part is meant: .*/test or .*/train"):
        list(open_images([path]))


def test_faults_of_folders_are_told_in_archives_too(tmp_path: Path) -> None:
    for number, (files, words) in enumerate(
        [
            ({"cat/1.png": png(), "dog/": b""}, r"/dog: a class folder without an image"),
            ({"cat/1.png": png(), "dog/x.txt": b"x"}, r"/dog: a class folder without an image"),
            ({"cat/1.txt": b"x"}, r"no image in it \(1 other files, as cat/1\.txt\)"),
            ({}, r"no image in it"),
            ({"all/cat/1.png": png(), "all/dog/2.png": png()}, r'all images lie in folders of "all"'),
        ]
    ):
        for path in (
            put(tmp_path / f"{number}.tar.gz", gzip.compress(tar(files))),
            put(tmp_path / f"{number}.zip", zipped(files)),
        ):
            with pytest.raises(BadInput, match=words):
                list(open_images([path]))


def test_odd_names_are_read(tmp_path: Path) -> None:
    files = {name: png() for name in ("./cat/1.png", "dog//./2.png", "dog/3..png")}
    for path in (put(tmp_path / "x.tar", tar(files)), put(tmp_path / "x.zip", zipped(files))):
        found = list(open_images([path]))
        assert [image.label for image in found] == ["cat", "dog", "dog"]
        assert [image.data for image in found] == list(files.values())
        assert all(image.name.startswith(f"{path}/") for image in found)


@pytest.mark.parametrize(
    "name",
    [
        "../../cat/2.png", "/cat/1.png", "dog/../cat/4.png", "dog/../../../etc/6.png", "..", "cat/..",
        "..\\..\\cat\\7.png", "C:\\cat\\8.png", "cat/..\\..\\9.png", "\\cat\\10.png",
    ],
)  # fmt: skip
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    """Also behind pictures that are good, and in a part of the archive that was not asked for; nothing is written."""
    files = {"cat/1.png": png(), "dog/1.png": png(), name: png()}
    inside = tmp_path / "a" / "b" / "c"
    inside.mkdir(parents=True)
    for path in (put(inside / "x.tar", tar(files)), put(inside / "x.zip", zipped(files))):
        before = sorted(tmp_path.rglob("*"))
        for asked in (path, path / "cat"):
            with pytest.raises(BadInput, match=r"would lie outside") as refused:
                list(open_images([asked]))
            assert str(path) in str(refused.value)
            names = {name, name.replace("\\", "/")}  # a zip of Windows
            assert any(f'"{shown(one)}"' in str(refused.value) for one in names)
        assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kind", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_long_names_and_hangul(kind: int, tmp_path: Path) -> None:
    files = {f"고양이/{'아주 긴 이름 ' * 20}{number}.png": png() for number in range(3)} | {"개/1.png": png()}
    found = list(open_images([put(tmp_path / "x.tar.xz", lzma.compress(tar(files, kind)))]))
    assert [(image.label, image.data) for image in found] == [
        (name.split("/")[0], data) for name, data in files.items()
    ]


def test_a_tar_of_the_old_kind(tmp_path: Path) -> None:
    data = bytearray(tar({"cat/1.png": png()}, tarfile.USTAR_FORMAT))
    header = data[:512]
    header[257:500] = bytes(243)  # before 1988 there was nothing here
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    assert len(list(open_images([put(tmp_path / "x.tar", bytes(header + data[512:]))]))) == 1


def test_names_of_a_zip_from_a_mac_and_from_windows(tmp_path: Path) -> None:
    picture = png()
    data = zipped({"XXXXXX/1.png": picture, "cat_2.png": picture})
    data = data.replace(b"XXXXXX", "개미".encode()).replace(b"cat_2.png", b"cat\\2.png")
    assert [image.label for image in open_images([put(tmp_path / "x.zip", data)])] == ["개미", "cat"]


def test_names_of_a_zip_from_a_korean_windows(tmp_path: Path) -> None:
    """In its code page and without a word about it; western names of the old kind stay what they were."""
    names = ["고양이/1.png", "개/사진 2.png", "똠양꿍/3.png", "cat/4.png"]
    picture = png()
    data = zipped({f"{number}" * len(name.encode("cp949")): picture for number, name in enumerate(names)})
    for number, name in enumerate(names):
        stored = name.encode("cp949")
        data = data.replace(f"{number}".encode() * len(stored), stored)
    path = put(tmp_path / "x.zip", data)
    assert [image.name for image in open_images([path])] == [f"{path}/{name}" for name in names]
    assert [image.label for image in open_images([path])] == ["고양이", "개", "똠양꿍", "cat"]
    (one,) = open_images([path / "고양이"])
    assert one.data == picture
    western = ["Müller", "España", "Ångström", "café"]
    for name in western:
        stored = f"{name}/1.png".encode("cp437")
        old = put(tmp_path / "old.zip", zipped({"X" * len(stored): picture}).replace(b"X" * len(stored), stored))
        assert [image.label for image in open_images([old])] == [name]


@pytest.mark.parametrize("kind", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_a_name_in_a_tar_that_is_no_utf8_is_shown(kind: int, tmp_path: Path) -> None:
    files = {os.fsdecode(b"cat/\xb0\xed.png"): png()}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind, errors="surrogateescape") as archive:
        for name, data in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
    path = put(tmp_path / "x.tar", out.getvalue())
    (image,) = open_images([path])
    assert (image.name, image.label) == (f"{path}/cat/\\xb0\\xed.png", "cat")
    assert [image.data] == list(files.values())
    put(path, out.getvalue()[: out.getvalue().index(b"IEND")])
    with pytest.raises(BadInput, match=r"damaged or cut off in cat/\\xb0\\xed\.png"):
        list(open_images([path]))


def test_links_cannot_be_followed_in_a_stream(tmp_path: Path) -> None:
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            header = tarfile.TarInfo("cat/2.png")
            header.type, header.linkname = kind, "/etc/passwd"
            archive.addfile(header)
        with pytest.raises(BadInput, match=r"x\.tar/cat/2\.png: a link, which cannot be followed in a stream"):
            list(open_images([put(tmp_path / "x.tar", out.getvalue())]))


@pytest.mark.parametrize("suffix", PACKED)
def test_a_tar_that_was_cut_off_is_never_taken_for_a_whole_one(suffix: str, tmp_path: Path) -> None:
    files = {f"cat/{number}.png": png() for number in range(6)}
    plain = tar(files)
    end = plain.rindex(b"IEND") // 512 * 512 + 512  # where the last picture ends; zeros follow
    whole = PACKED[suffix](plain)
    cuts = {random.randrange(1, len(whole) - 1) for _ in range(20)}
    if suffix == ".tar":
        cuts = {random.randrange(1, end) for _ in range(20)} | {end, end - 512, 512, 1024}
    for cut in sorted(cuts):
        path = put(tmp_path / f"x{suffix}", whole[:cut])
        with pytest.raises(BadInput, match=r"(damaged or cut off|the file is empty|neither an image)") as caught:
            list(open_images([path]))
        assert str(caught.value).startswith(f"{path}: ")
    path = put(tmp_path / f"x{suffix}", whole)
    assert len(list(open_images([path]))) == 6


def test_a_scratched_header_in_the_middle_is_no_end(tmp_path: Path) -> None:
    files = {f"cat/{number}.png": png() for number in range(4)}
    data = bytearray(tar(files))
    data[data.index(b"cat/2.png") + 1] ^= 0x55
    with pytest.raises(BadInput, match=r"x\.tar: damaged or cut off after cat/1\.png"):
        list(open_images([put(tmp_path / "x.tar", bytes(data))]))


def test_bad_zips_are_named(tmp_path: Path) -> None:
    files = {f"cat/{number}.png": png() for number in range(4)}
    whole = zipped(files)
    with pytest.raises(BadInput, match=r"x\.zip: damaged or cut off at its end, where the table of contents is"):
        open_images([put(tmp_path / "x.zip", whole[:-60])])
    scratched = bytearray(whole)
    scratched[whole.index(b"IDAT") + 9] ^= 0xFF
    with pytest.raises(BadInput, match=r"damaged or cut off in cat/0\.png"):
        list(open_images([put(tmp_path / "x.zip", bytes(scratched))]))
    locked = bytearray(whole)
    locked[6] |= 1
    for place in range(len(locked) - 4):
        if locked[place : place + 4] == b"PK\x01\x02":
            locked[place + 8] |= 1
    with pytest.raises(BadInput, match=r"cat/0\.png: locked with a password"):
        list(open_images([put(tmp_path / "x.zip", bytes(locked))]))


def test_a_file_that_claims_to_be_huge_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_BYTES", 1000)
    files = {"cat/1.png": bytes(5000)}
    for path in (
        put(tmp_path / "x.tar.xz", lzma.compress(tar(files))),
        put(tmp_path / "x.zip", zipped(files, compression=zipfile.ZIP_DEFLATED)),
    ):
        with pytest.raises(BadInput, match=r"cat/1\.png: 5,000 bytes, more than a picture may have here"):
            list(open_images([path]))


def test_a_long_tar_takes_little_memory(tmp_path: Path) -> None:
    picture = bytes(20_000)
    path = put(tmp_path / "x.tar.gz", gzip.compress(tar({f"cat/{number}.png": picture for number in range(1500)}), 1))
    tracemalloc.start()
    assert sum(1 for _ in open_images([path])) == 1500
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3_000_000  # of 30 MB


def test_the_key_of_an_archive(tmp_path: Path) -> None:
    path = put(tmp_path / "x.tar", tar({"a/cat/1.png": png(), "b/cat/1.png": png()}))
    keys = [open_images([path / "a"]).key, open_images([path / "b"]).key]
    assert open_images([f"{path}/a/"]).key == keys[0]
    os.utime(path, ns=(1, 1))
    keys.append(open_images([path / "a"]).key)
    put(path, tar({"a/cat/1.png": png(), "a/cat/2.png": png()}))
    keys.append(open_images([path / "a"]).key)
    assert len(set(keys)) == 4


def test_members_are_given_in_order_and_files_are_closed(tmp_path: Path) -> None:
    files = two_parts()
    path = put(tmp_path / "x.tar", tar(files))
    found = members(path)
    assert next(found).parts == ("test",)
    found.close()  # type: ignore[attr-defined]
    assert ["/".join(member.parts) for member in members(path)] == [name.rstrip("/") for name in files]
