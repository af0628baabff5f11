"""`jumok tokenizer`: make a vocabulary, see how it cuts text, look inside."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import astuple
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(name="tokenizer", help="Train a tokenizer, cut text with it, look inside.", no_args_is_help=True)

LINES_AT_ONCE = 1000
SHOWN_PIECES = 24


@app.command()
def train(
    files: Annotated[
        list[str], typer.Argument(help="Plain text, one sentence a line (.gz, .xz, .zst too; - is stdin).")
    ],
    out: Annotated[Path, typer.Option(help="Folder to write the tokenizer to.")],
    kind: Annotated[
        str,
        typer.Option(
            help="bpe, unigram, word, space (at spaces only), character, byte (byte-level BPE), or wordpiece (BERT's)."
        ),
    ] = "bpe",
    vocabulary: Annotated[int, typer.Option(min=8, help="Largest number of tokens.")] = 8000,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Lower-case all text.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a tokenizer that is there already.")] = False,
) -> None:
    """Learn a vocabulary from text files. Give both languages' files for a joint one."""
    from jumok.data.readers import read_lines
    from jumok.errors import BadInput
    from jumok.text.tokenizer import train_tokenizer

    if (out / "tokenizer.json").is_file() and not force:
        raise BadInput(f"{out} holds a tokenizer already: choose another --out, or replace it with --force")
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / "tokenizer.json").is_file())):
        raise BadInput(f"{out}: is there already and is not a tokenizer folder; choose another --out")
    tokenizer = train_tokenizer((line for file in files for line in read_lines(file)), kind, vocabulary, lowercase)
    try:
        tokenizer.save(out)
    except OSError as error:
        raise BadInput(f"{out}: cannot write the tokenizer: {error.strerror or error}") from None
    typer.echo(f"{out}: {tokenizer.kind} tokenizer of {tokenizer.size:,} tokens")
    typer.echo(f"use it: jumok train RECIPE tokenizer.source={out} … or look inside: jumok tokenizer show {out}")


@app.command()
def encode(
    folder: Annotated[Path, typer.Option("--tokenizer", help="Folder of the tokenizer.")],
    ids: Annotated[bool, typer.Option("--ids", help="Print token numbers instead of pieces.")] = False,
) -> None:
    """Cut lines from standard input into pieces, one line out for each line in."""
    from jumok.data.readers import read_lines
    from jumok.text.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(folder)
    for lines in _chunks(read_lines("-")):
        for row in tokenizer.encode(lines):
            sys.stdout.write(" ".join(map(str, row) if ids else tokenizer.pieces(row)) + "\n")


def _chunks(lines: Iterator[str]) -> Iterator[list[str]]:
    """One line at a time for a person at a keyboard, many at once for a file."""
    size = 1 if sys.stdin.isatty() else LINES_AT_ONCE
    while chunk := list(islice(lines, size)):
        yield chunk


@app.command()
def show(
    folder: Annotated[Path, typer.Argument(help="Folder of the tokenizer.")],
    text: Annotated[str, typer.Argument(help="A sentence to cut.")] = "A dog devoured his treat, 한글 too.",
) -> None:
    """Kind, size, what it promises, some of its pieces, and how it cuts a sentence."""
    from jumok.text.pipeline import PROMISES
    from jumok.text.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(folder)
    special = tokenizer.pieces(sorted(id for id in astuple(tokenizer.specials) if id is not None))
    first = [id for id in range(tokenizer.size) if not tokenizer.is_special(id)]
    some = [first[place] for place in range(0, len(first), max(1, len(first) // SHOWN_PIECES))][:SHOWN_PIECES]
    encoded = tokenizer.encode_with_offsets(text)
    unknown = encoded.ids.count(tokenizer.specials.unknown)
    rows = {
        "kind": tokenizer.kind + (", lower-cased" if tokenizer.lowercase else ""),
        "size": f"{tokenizer.size:,} tokens, {len(special)} of them special: {' '.join(special)}",
        "read back": PROMISES[tokenizer.kind],
        "some pieces": " ".join(tokenizer.pieces(some)),
        "text": text,
        "pieces": " ".join(encoded.tokens) + (f"   ({unknown} unknown)" if unknown else ""),
        "ids": " ".join(map(str, encoded.ids)),
        "reads back": tokenizer.decode([encoded.ids])[0],
    }
    for name, value in rows.items():
        typer.echo(f"{name:<12} {value}")
