"""`jumok positions`: how a model is told where a word stands."""

from __future__ import annotations

from pathlib import Path

import typer


def positions(
    kind: str | None = typer.Option(
        None,
        "--kind",
        help="Without a run: sinusoidal (default), sinusoidal-halves (all sines first), learned (as training begins) "
        "or rotary. Relative positions need a run.",
    ),
    run: Path | None = typer.Option(None, "--run", help="A run folder: show the positions it was trained with."),
    width: int | None = typer.Option(None, "--width", help="Without a run: numbers in each position. (default: 128)"),
    length: int | None = typer.Option(
        None, "--length", help="How many positions to show. (default: 128; of a run, twice as many as training had)"
    ),
    trained: int | None = typer.Option(
        None, "--trained", help="Mark what lies beyond this length. (default: half of --length; of a run, its own)"
    ),
    out: Path | None = typer.Option(None, "--out", help="Write a picture: .png, .svg, .html or .json."),
    dark: bool = typer.Option(False, "--dark", help="A dark picture (.png, .svg)."),
) -> None:
    """Show position vectors, how alike positions are by their distance, and what lies beyond the length of training,
    in the terminal or into a file."""
    from jumok.cli.typed import options_as_typed
    from jumok.errors import BadInput
    from jumok.inspect.pictures import check_picture_path
    from jumok.inspect.positions import formula, positions_of
    from jumok.inspect.positions_picture import FILES, show, write_positions

    if out is not None:
        check_picture_path(out, FILES)
    with options_as_typed("kind", "width", "length", "trained"):
        if run is None:
            sizes = {"width": 128 if width is None else width, "length": 128 if length is None else length}
            found = [formula(kind or "sinusoidal", trained=trained, **sizes)]
        else:
            for name, value in (("--kind", kind), ("--width", width)):
                if value is not None:
                    raise BadInput(f"{name} goes without --run: a run has the positions it was trained with")
            from jumok import api

            found = positions_of(api.load(run, "cpu"), length, trained)
    if out is None:
        show(found)
    else:
        write_positions(found, out, dark=dark)
        typer.echo(f"written: {out}")
