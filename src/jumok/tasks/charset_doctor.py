"""Pictures whose text the charset has not: what people are told names the first, a file in the cache has them all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from jumok.data.folders import default_cache, put
from jumok.data.images.raw import shown
from jumok.data.images.store import ImageStore
from jumok.text.charset import Charset
from jumok.text.outside import each_outside, report_outside

COLUMNS = "picture\ttext\twhy"


def told_outside(store: ImageStore, charset: Charset, max_length: int) -> str:
    """What is to be said of the texts of these pictures; nothing where all can be learned as they are."""

    def samples() -> Iterator[tuple[str, str]]:
        return ((store.names[row], store.classes[label]) for row, label in enumerate(store.labels))

    report = report_outside(charset, samples(), max_length)
    lines = report.lines()
    if not report.fine and not report.names_all:
        rows = ("\t".join(map(shown, row)) for row in each_outside(charset, samples(), max_length))
        lines.append(_kept("\n".join([COLUMNS, *rows]) + "\n"))
    return "\n".join(lines)


def _kept(table: str) -> str:
    path = default_cache() / "outside" / f"{hashlib.sha256(table.encode(errors='replace')).hexdigest()[:16]}.tsv"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        put(path, table)
    except OSError as error:  # it is the texts that must be mended, with or without the list
        return f"the list of all of them could not be written to {path}: {error.strerror or error}"
    return f"all of them are listed in {path}"
