"""`jumok lab`: claims of the literature, each measured in about a minute."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jumok.errors import BadInput, Failure

if TYPE_CHECKING:
    from jumok.lab.experiment import Verdict
    from jumok.lab.results import Result
    from jumok.lab.runner import Event

app = typer.Typer(
    name="lab", help="Check claims of the literature: each is an experiment of about a minute.", no_args_is_help=True
)
FOLDER = Path("runs/lab")
Seeds = Annotated[int, typer.Option(help="How often, with seeds 1 to N.")]
Out = Annotated[Path, typer.Option(help="Folder for figures, numbers and the page lab.html.")]
Jobs = Annotated[int | None, typer.Option(help="How many at a time, each on one thread. (default: one a core)")]
Effort = Annotated[float, typer.Option(help="Below 1: fewer updates, for a first look that proves nothing.")]


@app.command("list")
def list_experiments() -> None:
    """All experiments, with what each is about."""
    from rich.table import Table

    from jumok.cli.check_view import console
    from jumok.lab import catalogue

    table = Table("", "name", "what", "from", box=None, pad_edge=False)
    for module in catalogue.modules():
        experiment = catalogue.load(module)
        table.add_row(str(experiment.number), catalogue.name_of(module), experiment.title, experiment.source)
    out = console()
    out.print(table)
    out.print("\nNext: jumok lab show scaling, jumok lab run scaling")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="A name or number from `jumok lab list`.")],
    out: Out = FOLDER,
) -> None:
    """What an experiment claims, where the claim is from, the file that measures it, and its verdicts if it was run."""
    import sys

    from jumok.lab import catalogue
    from jumok.lab.results import code_of, read_result

    module = catalogue.find(name)
    experiment = catalogue.load(module)
    code = sys.modules[module]
    typer.echo(f"{experiment.number} {catalogue.name_of(module)}: {experiment.title}\n")
    typer.echo(inspect.cleandoc(code.__doc__ or ""))
    typer.echo(f"\n{experiment.about}\n\nfrom: {experiment.source}\nfile: {code.__file__}")
    result = read_result(out, catalogue.name_of(module))
    if result is not None and result.verdicts:
        other = "" if result.code == code_of(module) else " with other code"
        typer.echo(f"\nmeasured in {out}{other}, seeds: {', '.join(map(str, result.judged))}")
        _print_verdicts(result)
    else:
        typer.echo(f"\nMeasure it: jumok lab run {catalogue.name_of(module)}")


@app.command()
def run(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(help="Names or numbers from `jumok lab list`.")],
    seeds: Seeds = 1,
    out: Out = FOLDER,
    jobs: Jobs = None,
    effort: Effort = 1.0,
) -> None:
    """Measure these experiments anew."""
    from jumok.lab import catalogue

    _run(context, list(dict.fromkeys(catalogue.find(name) for name in names)), seeds, out, jobs, effort, again=True)


@app.command("all")
def run_all(
    context: typer.Context,
    seeds: Seeds = 1,
    out: Out = FOLDER,
    jobs: Jobs = None,
    effort: Effort = 1.0,
    again: Annotated[bool, typer.Option("--again", help="Measure also what is in the folder already.")] = False,
) -> None:
    """Measure every experiment. Killed, it goes on where it was: what is in the folder and still true is kept."""
    from jumok.lab import catalogue

    _run(context, catalogue.modules(), seeds, out, jobs, effort, again)


def _run(
    context: typer.Context,
    modules: Sequence[str],
    seeds: int,
    out: Path,
    jobs: int | None,
    effort: float,
    again: bool,
) -> None:
    for option, value in (("--seeds", seeds), ("--jobs", 1 if jobs is None else jobs)):
        if value < 1:
            raise BadInput(f"{option} {value}: give 1 or more")
    if not 0 < effort <= 1:
        raise BadInput(f"--effort {effort:g}: give a number above 0, 1 at most")
    from jumok.lab.report import counted
    from jumok.lab.runner import Failed, Finished, run_lab

    debug = bool(context.find_root().params.get("debug"))
    failed: list[str] = []
    verdicts: list[Verdict] = []
    first_look = ""
    for event in run_lab(modules, seeds, out, jobs, effort, again):
        _tell(event, debug)
        if isinstance(event, Failed):
            failed.append(event.name)
        elif isinstance(event, Finished):
            verdicts += event.result.verdicts
            first_look = event.result.first_look and f", at {event.result.first_look}"
    if verdicts:
        held = sum(verdict.holds for verdict in verdicts)
        typer.echo(
            f"{counted(len(verdicts), 'claim')}: {held} hold, {len(verdicts) - held} do not{first_look}. "
            f"Page: {out}/lab.html"
        )
    if failed:
        raise Failure(f"not measured: {', '.join(dict.fromkeys(failed))} (`jumok --debug lab …` shows where)")


def _tell(event: Event, debug: bool) -> None:
    from jumok.lab.runner import Failed, Finished

    if isinstance(event, Finished):
        experiment = event.experiment
        typer.echo(f"\n{experiment.number} {event.result.name}: {experiment.title}")
        _print_verdicts(event.result)
        typer.echo(f"  figure: {event.picture}\n")
    elif isinstance(event, Failed):
        seed = "" if event.seed is None else f", seed {event.seed}"
        typer.echo(f"{event.name}{seed} failed: {event.problem}", err=True)
        if debug:
            typer.echo(event.details, err=True)
    else:
        typer.echo(f"[{event.done}/{event.of}] {event.name}, seed {event.seed}: {event.seconds:.0f} s", err=True)


def _print_verdicts(result: Result) -> None:
    if result.first_look:
        typer.echo(f"  {typer.style(result.first_look, bold=True)}, which proves nothing:")
    for verdict in result.verdicts:
        word, colour = ("holds", "blue") if verdict.holds else ("does not hold", "yellow")
        typer.echo(f"  {typer.style(f'{word:13}', fg=colour, bold=True)}  {verdict.claim}\n{'':17}{verdict.because}")
        if verdict.alone:
            typer.echo(f"{'':17}({verdict.agreement})")
