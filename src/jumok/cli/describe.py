"""`jumok describe`: what a model is made of."""

from __future__ import annotations

from pathlib import Path

import typer


def describe(
    what: str = typer.Argument(..., help="A shipped recipe's name, a YAML file or a run folder.", metavar="RECIPE|RUN"),
    overrides: list[str] | None = typer.Argument(
        None, help="Of a recipe, keys to change: model.width=256 …", metavar="[KEY=VALUE]..."
    ),
    out: Path | None = typer.Option(None, "--out", help="Draw it: .svg, .png or .html."),
    dark: bool = typer.Option(False, "--dark", help="A dark picture (.png, .svg)."),
) -> None:
    """Show a model's parts with their shapes and parameters, in the terminal or as a drawing."""
    from jumok import recipe
    from jumok.errors import BadInput
    from jumok.inspect.architecture_page import check_drawing_path, write_drawing
    from jumok.inspect.describe import describe_recipe, describe_run

    if out is not None:
        check_drawing_path(out)
    if Path(what).is_dir():
        if overrides:
            raise BadInput(f"{what} is a run, whose model is as it is: keys can be changed for a recipe only")
        described = describe_run(Path(what))
    elif "/" in what and not Path(what).exists():
        raise BadInput(
            f"there is no run folder {what}, and no recipe in a file of that name. Make a run with: jumok train RECIPE "
            f"--run {what}. Recipes are listed by: jumok recipes"
        )
    else:
        described = describe_recipe(recipe.read(what, overrides or []), Path(what).stem if "/" in what else what)
    if out is None:
        typer.echo(str(described), nl=False)
    else:
        write_drawing(described, out, dark=dark)
        typer.echo(f"{described.title}, {described.parameters:,} parameters\nwritten: {out}")
