"""A folder for each class: what is a class, what is passed over, what is refused, and when the key changes."""

from __future__ import annotations

import os
import unicodedata
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jumok.data.images.picture import pixels_of
from jumok.data.images.sources import open_images
from jumok.errors import BadInput


def png() -> bytes:
    out = BytesIO()
    Image.fromarray(np.random.default_rng().integers(0, 256, (4, 5, 3), np.uint8)).save(out, "PNG")
    return out.getvalue()


def fill(root: Path, *names: str) -> dict[str, bytes]:
    """Pictures under these names; a name that ends with a stroke is an empty folder."""
    written = {}
    for name in names:
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        written[name] = png()
        path.write_bytes(written[name])
    return written


def test_a_class_is_the_first_folder_and_pictures_may_lie_deeper(tmp_path: Path) -> None:
    written = fill(tmp_path, "dog/2.png", "dog/10.JPG", "cat/young/a.png", "cat/young/white/b.png", "cat/c.png")
    found = list(open_images([tmp_path]))
    assert [(image.name, image.label) for image in found] == [
        (f"{tmp_path}/cat/c.png", "cat"),
        (f"{tmp_path}/cat/young/a.png", "cat"),
        (f"{tmp_path}/cat/young/white/b.png", "cat"),
        (f"{tmp_path}/dog/10.JPG", "dog"),
        (f"{tmp_path}/dog/2.png", "dog"),
    ]
    for image in found:
        assert image.data == written[os.path.relpath(image.name, tmp_path)]
        assert pixels_of(image, 3).shape == (4, 5, 3)


def test_pictures_in_no_folder_have_no_label(tmp_path: Path) -> None:
    fill(tmp_path, "b.png", "a.png")
    assert [(image.name, image.label) for image in open_images([tmp_path])] == [
        (f"{tmp_path}/a.png", None),
        (f"{tmp_path}/b.png", None),
    ]
    (tmp_path / "notes").mkdir()  # no class: none has pictures
    assert len(list(open_images([tmp_path]))) == 2


def test_other_files_are_passed_over_and_counted(tmp_path: Path) -> None:
    fill(
        tmp_path,
        "cat/1.png",
        "cat/.2.png",
        "dog/3.png",
        ".git/4.png",
        "__MACOSX/cat/5.png",
        "cat/.ipynb_checkpoints/6.png",
    )
    for name in ("cat/notes.txt", "dog/.DS_Store", "README.md", "dog/Thumbs.db"):
        (tmp_path / name).write_text("x")
    source = open_images([tmp_path])
    assert [Path(image.name).name for image in source] == ["1.png", "3.png"]
    assert source.passed_over == 5


def test_links_are_followed_and_not_for_ever(tmp_path: Path) -> None:
    fill(tmp_path / "elsewhere", "1.png")
    fill(tmp_path / "set", "cat/2.png")
    (tmp_path / "set" / "dog").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "set" / "cat" / "again").symlink_to(tmp_path / "set")
    found = [(Path(image.name).name, image.label) for image in open_images([tmp_path / "set"])]
    assert ("1.png", "dog") in found
    assert ("2.png", "cat") in found
    assert len(found) <= 3  # a folder that is reached by two ways may be seen twice
    (tmp_path / "set" / "dog" / "gone.png").symlink_to(tmp_path / "nowhere")
    with pytest.raises(BadInput, match=r"dog/gone\.png: a link to something that is not there"):
        open_images([tmp_path / "set"])


def test_decomposed_names_of_a_mac_are_the_same_class(tmp_path: Path) -> None:
    fill(tmp_path / "here", "고양이/1.png", "개/1.png")
    fill(tmp_path / "mac", f"{unicodedata.normalize('NFD', '고양이')}/1.png", "개/1.png")
    here, mac = ({image.label for image in open_images([tmp_path / name])} for name in ("here", "mac"))
    assert here == mac == {"고양이", "개"}


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["cat/1.png", "dog/"], r"/dog: a class folder without an image\. Take it out"),
        (["cat/1.png", "dog/", "bird/"], r"/bird: a class folder without an image, as is dog\."),
        (["cat/1.png", "a/", "b/deep/", "c/"], r"/a: a class folder without an image, as are 2 others\."),
        (
            ["train/cat/1.png", "test/cat/2.png"],
            r": test and train are no classes\. Say which part is meant: .*/test or .*/train$",
        ),
        (["train/1.png"], r": train is no class\. Say which part is meant: .*/train$"),
        (
            ["flowers/rose/1.png", "flowers/lily/2.png"],
            r': all images lie in folders of "flowers".*Name that folder: .*/flowers$',
        ),
        (["cat/"], r": no image in it\. Pictures are known by their suffix"),
    ],
)
def test_folders_that_are_no_classes(names: list[str], words: str, tmp_path: Path) -> None:
    fill(tmp_path, *names)
    with pytest.raises(BadInput, match=words) as caught:
        open_images([tmp_path])
    assert str(caught.value).startswith(str(tmp_path))


def test_a_folder_without_pictures_says_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "1.txt").write_text("x")
    with pytest.raises(BadInput, match=r"no image in it \(1 other files, as cat/1\.txt\)"):
        open_images([tmp_path])


def test_a_class_that_cannot_be_shown_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, "dog/1.png")
    name = os.fsencode(tmp_path) + b"/c\xe9t"
    try:
        os.mkdir(name)
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    (Path(os.fsdecode(name)) / "1.png").write_bytes(png())
    with pytest.raises(BadInput, match=r"the label 'c\\udce9t' has letters that cannot be shown") as caught:
        open_images([tmp_path])
    str(caught.value).encode()  # the message itself can be


def test_a_name_that_is_no_utf8_is_read_and_shown(tmp_path: Path) -> None:
    """As `unzip` leaves the names of a Korean Windows."""
    (tmp_path / "cat").mkdir()
    path = os.fsencode(tmp_path) + b"/cat/\xb0\xed.png"
    data = png()
    try:
        Path(os.fsdecode(path)).write_bytes(data)
    except OSError:
        pytest.skip("this file system takes only UTF-8")
    for given in (tmp_path, Path(os.fsdecode(path))):
        (image,) = open_images([given])
        assert image.name == f"{tmp_path}/cat/\\xb0\\xed.png"
        assert image.data == data
    (tmp_path / os.fsdecode(b"cat/\xb0\xed")).mkdir()
    Path(os.fsdecode(path)).rename(tmp_path / os.fsdecode(b"cat/\xb0\xed/\xb0.png"))
    (image,) = open_images([tmp_path / os.fsdecode(b"cat/\xb0\xed")])
    assert (image.name, image.data) == (f"{tmp_path}/cat/\\xb0\\xed/\\xb0.png", data)
    (tmp_path / os.fsdecode(b"cat/\xb0\xed/\xb0.png")).rename(tmp_path / os.fsdecode(b"cat/\xb0\xed/\xb0.txt"))
    with pytest.raises(BadInput, match=r"no image in it \(1 other files, as cat/\\xb0\\xed/\\xb0\.txt\)"):
        open_images([tmp_path])


def test_a_part_of_a_folder_is_just_a_folder(tmp_path: Path) -> None:
    fill(tmp_path, "train/cat/1.png", "train/dog/2.png", "test/cat/3.png")
    assert [image.label for image in open_images([tmp_path / "train"])] == ["cat", "dog"]


def test_the_key_changes_when_files_change_and_only_then(tmp_path: Path) -> None:
    fill(tmp_path, "cat/1.png", "dog/2.png")
    keys = [open_images([tmp_path]).key]
    assert open_images([str(tmp_path) + "/"]).key == keys[0]
    (tmp_path / "notes.txt").write_text("no picture")
    assert open_images([tmp_path]).key == keys[0]
    (tmp_path / "cat" / "3.png").write_bytes(png())
    keys.append(open_images([tmp_path]).key)
    (tmp_path / "cat" / "3.png").rename(tmp_path / "dog" / "3.png")
    keys.append(open_images([tmp_path]).key)
    os.utime(tmp_path / "dog" / "3.png", ns=(1, 1))
    keys.append(open_images([tmp_path]).key)
    (tmp_path / "dog" / "3.png").unlink()
    keys.append(open_images([tmp_path]).key)
    assert len(set(keys)) == 4
    assert keys[-1] == keys[0]


def test_a_picture_that_went_away_meanwhile_is_named(tmp_path: Path) -> None:
    fill(tmp_path, "cat/1.png", "cat/2.png")
    source = open_images([tmp_path])
    (tmp_path / "cat" / "2.png").unlink()
    with pytest.raises(BadInput, match=r"cat/2\.png: no such file"):
        list(source)
