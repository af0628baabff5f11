"""`jumok forecast`: what comes after the end of a series."""

from __future__ import annotations

from pathlib import Path

import typer

from jumok.errors import BadInput


def forecast(
    run: Path = typer.Option(..., "--run", help="A run folder of a forecaster."),
    csv: list[Path] | None = typer.Option(None, "--csv", help="Continue this file instead of the series learned from."),
    column: str | None = typer.Option(None, "--column", help="Its column, by name or number. (default: the recipe's)"),
    time: str | None = typer.Option(None, "--time", help="Its column with the times. (default: the recipe's)"),
    horizon: int | None = typer.Option(None, "--horizon", help="How many values to forecast. (default: the recipe's)"),
    out: Path | None = typer.Option(None, "--out", help="Write a picture (.png, .svg) or the numbers (.csv, .json)."),
    history: int | None = typer.Option(None, "--history", min=2, help="How many known values the picture shows."),
    dark: bool = typer.Option(False, "--dark", help="A dark picture."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
) -> None:
    """Forecast beyond the end of a series, beside the last value and the season before; CSV on standard output."""
    from jumok import api
    from jumok.inspect.forecast_plot import check_forecast_path, write_forecast

    if out is not None:
        check_forecast_path(out)
    if not csv and (column or time):
        raise BadInput("--column and --time belong to --csv: without a file the series of the run is continued")
    model = api.load_forecaster(run, device)
    outlook = model.outlook(model.read(csv, column, time) if csv else None, horizon)
    if out is None:
        typer.echo(outlook.to_csv(), nl=False)
    else:
        write_forecast(outlook, out, history=history, dark=dark)
        typer.echo(f"written: {out}")
