"""`jumok recipes`: what ships with the package, each key explained."""

from __future__ import annotations

import json

import typer


def recipes(
    name: str | None = typer.Argument(None, help="A recipe to print with every key explained."),
    schema: bool = typer.Option(False, "--schema", help="Print the JSON schema of recipe files."),
) -> None:
    """List the shipped recipes, or print one with every key explained."""
    from jumok import recipe

    if schema:
        typer.echo(json.dumps(recipe.Recipe.model_json_schema(), indent=2, ensure_ascii=False))
    elif name is not None:
        typer.echo(f"# {recipe.about(name)}\n{recipe.explain(recipe.read(name))}", nl=False)
    else:
        names = recipe.names()
        for known in names:
            typer.echo(f"{known:{max(map(len, names)) + 2}}{recipe.about(known)}")
        typer.echo("\nEvery key explained: jumok recipes NAME > my.yaml   Train one: jumok train NAME --run runs/x")
