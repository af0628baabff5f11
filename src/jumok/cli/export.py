"""`jumok export`: a run as other engines and libraries keep their models, checked there before it is called done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from jumok.errors import BadInput

app = typer.Typer(help="Write a run as other libraries and engines keep their models.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Write a run as other libraries and engines keep their models."""


RUN = typer.Option(..., "--run", help="The run folder to write out.")
OUT = typer.Option(..., "--out", help="The folder to make.")
PRECISION = typer.Option("float32", help="float32 or int8.")
PROBE = typer.Option(
    None, help="Sentences, one a line, to compare translations of. Without: the grammar's, or drawn ones."
)


@app.command("hf")
def huggingface(run: Path = RUN, out: Path = OUT) -> None:
    """For `transformers`: a translator as Marian, a BERT, a ViT; with tokenizer and model card."""
    from jumok.interop.export_huggingface import export_huggingface
    from jumok.interop.marian_export import export_marian
    from jumok.training.run import RunFolder

    folder = RunFolder.open(run)
    write = export_marian if folder.recipe().task == "translation" else export_huggingface
    _told(out, write(folder, out))


@app.command("ct2")
def ctranslate2(run: Path = RUN, out: Path = OUT, precision: str = PRECISION, probe: Path | None = PROBE) -> None:
    """For CTranslate2: a Transformer that translates."""
    from jumok.interop.ctranslate2 import export_ct2
    from jumok.training.run import RunFolder

    _told(out, export_ct2(RunFolder.open(run), out, precision, _sentences(probe)))


@app.command("onnx")
def onnx(run: Path = RUN, out: Path = OUT, precision: str = PRECISION, probe: Path | None = PROBE) -> None:
    """For onnxruntime: a translator (encoder, and a step of the decoder), a BERT, a ViT, a text reader."""
    from jumok.interop.onnx_export import export_onnx
    from jumok.training.run import RunFolder

    _told(out, export_onnx(RunFolder.open(run), out, _sentences(probe), precision))


def _sentences(probe: Path | None) -> list[str]:
    from jumok.data.readers import read_lines

    if probe is None:
        return []
    found = [line for line in read_lines(probe) if line.strip()]
    if not found:
        raise BadInput(f"--probe {probe}: there is no sentence in it. Give one a line, or leave --probe out")
    return found


def _told(out: Path, notes: Sequence[str]) -> None:
    for note in notes:
        typer.echo(note)
    typer.echo(f"\nexported: {out}")
