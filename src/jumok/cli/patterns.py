"""`jumok patterns`: what the heads of a model look at."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from jumok.errors import BadInput

MOST = 1000  # texts, by itself: more do not change the means


def patterns(
    file: Path = typer.Argument(..., help="Texts, one a line."),
    run: Path = typer.Option(..., "--run", help="A run folder of a model that reads texts (a BERT, or made from one)."),
    out: Path | None = typer.Option(None, "--out", help="Draw it here: .png, .svg, or .json."),
    dark: bool = typer.Option(False, "--dark", help="For a dark page."),
    most: int = typer.Option(MOST, min=1, help="Read so many texts at most."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
) -> None:
    """Which head looks at the next word, the one before, separators, the same word? Measured on your texts, drawn."""
    from itertools import islice

    from jumok import api
    from jumok.data.readers import read_lines
    from jumok.data.rows import about_cut, framed
    from jumok.inspect.patterns import head_patterns
    from jumok.inspect.patterns_picture import draw

    if out is not None and (out.is_dir() or not out.absolute().parent.is_dir()):
        raise BadInput(f"--out {out}: name a file in a folder that exists")
    if out is not None and out.suffix not in (".png", ".svg", ".json"):
        raise BadInput(f"--out {out}: name a .png, .svg or .json file")
    texts = [line for line in islice(read_lines(file), most) if line.strip()]
    if not texts:
        raise BadInput(f"{file}: there are no texts in it")
    model = api.load(run, device)
    if not isinstance(model, api.TrainedReader):
        raise BadInput(
            f"{run} has learned {model.recipe.task}: patterns are those of a BERT, or of a run made from one"
        )
    if model.recipe.model.kind != "bert":
        raise BadInput(f"{run}: model.kind {model.recipe.model.kind} has no attention to look at")
    specials, limit = model.tokenizer.specials, model.limit
    framed_rows = [framed(ids, None, specials, limit) for ids in model.tokenizer.encode(texts)]
    rows, cut = [row for row, _, _ in framed_rows], sum(shortened for _, _, shortened in framed_rows)
    found = head_patterns(model.model, rows, specials.start, specials.end, model.device)
    if out is not None:
        draw(found, out, dark)
    typer.echo(json.dumps(found.to_json(), ensure_ascii=False, indent=1) if as_json else found.summary())
    if out is not None and not as_json:
        typer.echo(f"picture: {out}")
    if cut:
        key = "data.window" if model.recipe.task == "pretraining" else "data.max_length"
        typer.echo(f"note: {about_cut(cut, len(texts), limit, key)}", err=True)
