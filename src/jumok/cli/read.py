"""`jumok read`: what stands in pictures of words, or in the boxes of a page; a broken one is told and passed over."""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import select
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import typer

from jumok.cli.predict import DEVICE, RUN
from jumok.cli.typed import options_as_typed
from jumok.cli.words import TRUST, WORDS, known_words
from jumok.errors import BadInput

if TYPE_CHECKING:
    from jumok.cli.predict_notes import Animated
    from jumok.data.images.raw import RawImage
    from jumok.tasks.text_reader import Read, TextReader

BLOCK = 1 << 16  # bytes of a pipe


def read(
    images: list[str] | None = typer.Argument(
        None,
        help="Pictures of words, folders or patterns of them, a zip, an LMDB, a labels file. (default: stdin, a path a "
        "line)",
    ),
    run: Path = RUN,
    as_json: bool = typer.Option(False, "--json", help="Print JSON, an object a line."),
    as_csv: bool = typer.Option(False, "--csv", help="Print CSV with a header."),
    characters: bool = typer.Option(False, "--characters", help="Tell how sure the model is of each character."),
    fast: bool = typer.Option(False, "--fast", help="Read with the CTC head of a model that has one: faster."),
    sure: float = typer.Option(
        1.0, help="Take words from the CTC head that it is this sure of (0.9), write only the others: nearly as fast."
    ),
    beam: int = typer.Option(1, help="Readings followed at once, of models that write character by character."),
    words: list[Path] | None = WORDS,
    trust: float | None = TRUST,
    turn: bool = typer.Option(False, "--turn", help="Try pictures more than twice as high as wide turned, too."),
    precision: str = typer.Option("float32", help="float32, bfloat16 or int8: less is faster, with small differences."),
    boxes: Path | None = typer.Option(
        None,
        "--boxes",
        help="The picture is a page, its words are here: JSON, a list of x, y, width, height, or of four corners.",
    ),
    device: str = DEVICE,
) -> None:
    """Read the word in each picture: its name, the text, and how sure the model is."""
    from jumok import api
    from jumok.cli.predict_notes import Animated
    from jumok.inspect.healthy import require_numbers
    from jumok.layers.packed import known_precision
    from jumok.streaming import open_output
    from jumok.tasks.text_reader import TextReader, Way

    if as_json and as_csv:
        raise BadInput("give --json or --csv, not both")
    if (task := api.task_of(run)) != "recognition":
        raise BadInput(f"{run} has learned {task}: to read words in pictures, name a run of task: recognition")
    if boxes is not None and len(images or []) != 1:
        raise BadInput(f"--boxes {boxes}: name the one page that they are of")
    known = known_words(words, trust)
    reader = api.load(run, device)
    assert isinstance(reader, TextReader)
    require_numbers(reader.model)
    way = Way(fast, beam, turn, known_precision(precision), sure, known)
    form = Form(as_json, as_csv, characters, turn, boxes is not None)
    with options_as_typed("fast", "sure", "beam", "precision"):
        reader.check(way)
    broken: list[str] = []
    animated = Animated()
    with open_output(None) as output:
        if as_csv:
            output.write([form.head()])
        for name, one, box in _read(reader, images or [], boxes, way, broken, animated):
            output.write([form.line(name, one, box)])  # at once: whatever happens next, what was read is not lost
    animated.tell()
    if broken:
        what = "input" if boxes is None else "box"  # not each of them is a picture: a pattern may match nothing
        count = f"{len(broken)} {what}{('s' if boxes is None else 'es') * (len(broken) > 1)}"
        raise BadInput(f"{count} could not be read (named above)")


def _read(
    reader: TextReader, paths: Sequence[str], boxes: Path | None, way: Any, broken: list[str], animated: Animated
) -> Iterator[tuple[str, Read, Any]]:
    """Names, what was read, and the boxes where there are some."""
    from jumok.data.images.picture import BadPicture

    given: list[Any] = []  # the boxes of those that the reader has taken
    groups = _groups(paths, broken) if boxes is None else [_boxed(reader, paths[0], boxes, given, broken, animated)]
    for group in groups:
        for number, seen in enumerate(reader.stream(group if boxes is not None else animated.seen(group), way)):
            if isinstance(seen.read, BadPicture):
                _tell(seen.read, broken)
            else:
                yield seen.image.name, seen.read, given[number] if boxes is not None else None


def _boxed(
    reader: TextReader, path: str, file: Path, given: list[Any], broken: list[str], animated: Animated
) -> Iterator[RawImage]:
    from jumok.data.images.folders import read_file
    from jumok.data.images.raw import RawImage, shown
    from jumok.data.text_images.boxes import BadBox, boxed, read_boxes

    boxes = read_boxes(file)
    page = RawImage(shown(path), None, read_file(Path(path)))
    for found in boxed(next(animated.seen([page])), boxes, reader.model.section.channels, shown(file)):
        if isinstance(found, BadBox):
            _tell(found, broken)
            continue
        box, image = found
        given.append(box.given)
        yield image


# ---------------------------------------------------------------- what is read


def _groups(paths: Sequence[str], broken: list[str]) -> Iterator[Iterator[RawImage]]:
    """What is named on the command line; or by the lines of a pipe, as many of them together as are there: what stays
    open and says nothing for a while must not hold back what it has said before."""
    if paths:
        yield _pictures(paths, broken, patterns=True)
        return
    if sys.stdin.isatty():
        raise BadInput("name pictures, a folder or a pattern; or pipe paths in, one a line")
    pipe = _Pipe(sys.stdin)
    while pipe.is_open:
        yield _pictures(pipe.now(), broken, patterns=False)


class _Pipe:
    """The lines of a pipe, in groups."""

    def __init__(self, file: TextIO) -> None:
        self._lines = _arriving(file)
        self.is_open = True

    def now(self) -> Iterator[str]:
        """The next lines, up to where one would have to wait for more."""
        for line in self._lines:
            if line is None:
                return
            if path := line.rstrip("\r\n"):
                yield path
        self.is_open = False


def _arriving(file: TextIO) -> Iterator[str | None]:
    """Lines, and None before each wait."""
    try:
        number = file.fileno() if os.name == "posix" else None  # elsewhere nobody tells whether there is something
    except (OSError, ValueError):
        number = None
    if number is None:
        yield from file
        return
    decoder = codecs.getincrementaldecoder(file.encoding)(file.errors or "strict")
    text = io.IncrementalNewlineDecoder(decoder, translate=True)
    begun, data = "", b"begun"
    while data:
        if not select.select([number], [], [], 0)[0]:
            yield None
        data = os.read(number, BLOCK)
        *lines, begun = (begun + text.decode(data, final=not data)).split("\n")
        yield from lines
    yield begun


def _pictures(paths: Iterable[str], broken: list[str], patterns: bool) -> Iterator[RawImage]:
    """What cannot be opened is told, and the rest goes on: an error here would take with it the pictures that are being
    decoded."""
    from jumok.recipe.reading import matching

    for path in paths:
        try:
            found = matching(path, folders=True) if patterns else [path]
            for one in found:
                yield from _opened(Path(one), broken)
        except BadInput as error:
            _tell(error, broken)


def _opened(path: Path, broken: list[str]) -> Iterator[RawImage]:
    """The pictures of a file; or all below a folder or in an archive, whatever labels say there."""
    from jumok.cli.predict_images import pictures_in
    from jumok.data.images.folders import read_file, stamp_of
    from jumok.data.images.raw import RawImage, shown
    from jumok.data.text_images.sources import open_text_images

    if os.path.islink(path):
        stamp_of(path)  # one that leads nowhere is told as that, not as a misspelt name
    try:
        files = list(pictures_in(path)) if path.is_dir() else []
    except OSError as error:
        raise BadInput(f"{shown(path)}: cannot be read: {error.strerror or error}") from None
    if not files:  # a file; or a folder with an LMDB; or one with nothing in it, which is told there
        if (archive := _archive(path)) is not None:
            yield from archive
            return
        source = open_text_images([path])
        yield from source
        for note in source.notes():
            typer.echo(f"note: {note}", err=True)
    for file in files:
        try:
            if file.is_symlink():
                stamp_of(file)
            yield RawImage(shown(file), None, read_file(file))
        except BadInput as error:
            _tell(error, broken)


def _archive(path: Path) -> Iterable[RawImage] | None:
    """All pictures of an archive, or of the part of one that is named; None for all else, also for labels in it."""
    from jumok.data.images.archives import archive_kind
    from jumok.data.images.csv_list import Unasked
    from jumok.data.images.raw import is_image_name
    from jumok.data.images.sources import existing
    from jumok.data.text_images.in_archives import ArchiveTexts
    from jumok.data.text_images.label_names import is_list_name

    place, part = existing(path)
    if not place.is_file() or is_image_name(place.name) or archive_kind(place) is None:
        return None
    if part and is_list_name(part[-1]):
        return None
    return ArchiveTexts(place, part, Unasked(), None, labelled=False)


def _tell(error: BadInput, broken: list[str]) -> None:
    broken.append(str(error))
    typer.echo(f"error: {error}", err=True)


# ---------------------------------------------------------------- what is told


class Form:
    """How a reading is written: TSV, CSV or JSON."""

    def __init__(self, as_json: bool, as_csv: bool, characters: bool, turn: bool, boxes: bool) -> None:
        self.as_json, self.as_csv, self.characters, self.turn, self.boxes = as_json, as_csv, characters, turn, boxes

    def head(self) -> str:
        more = {"turned": self.turn, "box": self.boxes, "confidences": self.characters}
        return _row(["image", "text", "confidence", *(name for name, wanted in more.items() if wanted)])

    def line(self, name: str, read: Read, box: Any) -> str:
        if self.as_json:
            about: dict[str, Any] = {"image": name, "text": read.text, "confidence": round(read.confidence, 6)}
            if self.turn:
                about["turned"] = read.turned
            if self.boxes:
                about["box"] = box
            if self.characters:
                about["characters"] = [[character, round(sure, 6)] for character, sure in read.characters]
            return json.dumps(about, ensure_ascii=False)
        cells = [name, read.text, f"{read.confidence:.4f}"]
        cells += [str(read.turned)] * self.turn + [json.dumps(box)] * self.boxes
        if self.as_csv:
            return _row([*cells, *[" ".join(f"{sure:.4f}" for _, sure in read.characters)] * self.characters])
        if self.characters:
            cells += [cell for character, sure in read.characters for cell in (character, f"{sure:.4f}")]
        return "\t".join(cells)


def _row(cells: Sequence[str]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="").writerow(cells)
    return file.getvalue()
