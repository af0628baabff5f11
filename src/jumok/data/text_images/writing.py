"""Pictures and their texts, written as data sets that `sources.py` reads: a folder with a labels file, or an LMDB.

    images/00000001.png …        labels.tsv: images/00000001.png⇥text
    data.mdb                     num-samples, image-000000001, label-000000001 …

A data set is made under another name and renamed when all of it is there, so one that was interrupted is never taken
for a whole one. What is there already is not written over.
"""

from __future__ import annotations

import contextlib
import errno
import io
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from jumok.data.folders import TEMPORARY
from jumok.data.images.raw import Pixels, shown
from jumok.data.text_images.label_files import picture_text
from jumok.data.text_images.lmdb_files import COUNT, DATA, IMAGE, LABEL, MISSING
from jumok.errors import BadInput
from jumok.files import check_folder_place, disk_errors_named, flush_file, flush_folder, remove_folder

Sample = tuple[Pixels, str]  # (H, W, 1) grey or (H, W, 3) RGB, and the text in it
LABELS = "labels.tsv"
HEADER = "path\ttext"
WRITTEN_AT_ONCE = 1000  # samples of a transaction
FIRST_SIZE = 1 << 26  # bytes that an LMDB may have, until it is full and gets twice as many


def write_text_images(folder: str | Path, samples: Iterable[Sample]) -> int:
    """A folder with pictures and a labels file; how many there are."""
    with _whole(Path(folder)) as place:
        (place / "images").mkdir()
        lines = []
        for number, (data, text) in enumerate(_encoded(samples), 1):
            if "\n" in text or "\r" in text:
                raise BadInput(f"sample {number}: a text with the end of a line in it, which {LABELS} cannot hold")
            name = f"images/{number:08d}.png"
            (place / name).write_bytes(data)
            lines.append(f"{name}\t{text}")
        if any(line.count("\t") > 1 for line in lines):
            lines.insert(0, HEADER)  # so that there are two columns, and the other tabs belong to the text
        (place / LABELS).write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
        flush_file(place / LABELS)
    return len(lines) - (lines[:1] == [HEADER])


def write_lmdb(folder: str | Path, samples: Iterable[Sample]) -> int:
    """An LMDB in the layout of `lmdb_files.py`; how many pictures there are."""
    try:
        import lmdb
    except ImportError:
        raise BadInput(f"{shown(folder)}: {MISSING}") from None
    count = 0
    with _whole(Path(folder)) as place:
        database = lmdb.open(str(place), map_size=FIRST_SIZE, lock=False)

        def put(items: dict[bytes, bytes]) -> None:
            try:
                with database.begin(write=True) as transaction:
                    for key, value in items.items():
                        transaction.put(key, value)
            except lmdb.MapFullError:  # nothing of the transaction was written
                database.set_mapsize(2 * database.info()["map_size"])
                put(items)

        try:
            items: dict[bytes, bytes] = {}
            for count, (data, text) in enumerate(_encoded(samples), 1):
                items |= {IMAGE % count: data, LABEL % count: text.encode("utf-8")}
                if not count % WRITTEN_AT_ONCE:
                    put(items)
                    items = {}
            put(items | {COUNT: str(count).encode()})
            database.sync(True)
        except lmdb.DiskError as error:
            raise OSError(errno.ENOSPC, str(error)) from None
        finally:
            database.close()
        flush_file(place / DATA)
    return count


def _encoded(samples: Iterable[Sample]) -> Iterator[tuple[bytes, str]]:
    """As PNG, which loses nothing; and the text as it will be read."""
    number = 0
    for number, (pixels, text) in enumerate(samples, 1):
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] not in (1, 3) or not pixels.size:
            raise ValueError(f"sample {number}: pixels are (H, W, 1 or 3) in uint8, not {pixels.shape} {pixels.dtype}")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise BadInput(f"sample {number}: the text {text!a} has half of a surrogate pair") from None
        out = io.BytesIO()
        picture = Image.fromarray(np.ascontiguousarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels))
        picture.save(out, "PNG", compress_level=1)  # higher levels take several times as long for a tenth
        yield out.getvalue(), picture_text(text, f"sample {number}")
    if not number:
        raise BadInput("there are no pictures to write")


@contextlib.contextmanager
def _whole(folder: Path) -> Iterator[Path]:
    """A new folder to write to, which takes its name when all went well, and else is gone."""
    check_folder_place(folder)
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{shown(folder)}: there is something in it already. Choose another place, or take it away")
    temporary = folder.absolute().parent / f"{TEMPORARY}{folder.name}-{uuid.uuid4().hex}"
    with disk_errors_named("writing pictures", folder, "Nothing of it was kept; make room or choose another place."):
        try:
            temporary.mkdir(parents=True)
            yield temporary
            if folder.exists():
                folder.rmdir()  # empty; Windows does not rename over it
            temporary.rename(folder)
            flush_folder(temporary.parent)
        finally:
            remove_folder(temporary)
