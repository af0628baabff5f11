"""The command line. Thin: each command parses, calls one function, prints."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import typer
from typer.main import get_command

from jumok.cli import (
    ablate,
    align,
    attend,
    attribute,
    average,
    data,
    demo,
    describe,
    doctor,
    evaluate,
    export,
    fonts,
    forecast,
    gates,
    generate,
    imports,
    lab,
    ladder,
    look,
    patterns,
    positions,
    predict,
    read,
    recipes,
    render,
    runs,
    score,
    serve,
    studio,
    tokenizer,
    train,
    translate,
)
from jumok.errors import BadInput, JumokError, ReaderGone, ToldElsewhere

# Typer carries its own copy of click in newer versions: take the class from where Typer's own errors have it
UsageProblem = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

app = typer.Typer(
    name="jumok",
    help="주목 · attention: train sequence models on your own files, translate, and see what they look at.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        from jumok import __version__

        typer.echo(f"jumok {__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
    plugin: list[Path] = typer.Option(
        [], "--plugin", help="Run this Python file first: it registers scorers of yours."
    ),
) -> None:
    """주목 · attention: train sequence models on your own files, translate, and see what they look at."""
    context.obj = plugin
    for path in plugin:
        if not path.is_file():
            raise BadInput(f"--plugin {path}: there is no such file")
        try:
            runpy.run_path(str(path))
        except Exception as error:
            raise BadInput(f"--plugin {path}: {type(error).__name__}: {error}") from error


app.command("demo")(demo.demo)
app.command("recipes")(recipes.recipes)
app.command("doctor")(doctor.doctor)
app.command("train")(train.train)
app.command("verify-resume")(train.verify_resume)
app.command("runs")(runs.runs)
app.command("average")(average.average)
app.command("translate")(translate.translate)
app.command("generate")(generate.generate)
app.command("forecast")(forecast.forecast)
app.command("predict")(predict.predict)
app.command("embed")(predict.embed)
app.command("fill")(predict.fill)
app.command("read")(read.read)
app.command("render")(render.render)
app.command("fonts")(fonts.fonts)
app.command("evaluate")(evaluate.evaluate)
app.command("score")(score.score)
app.command("serve")(serve.serve)
app.command("studio")(studio.studio)
app.command("attend")(attend.attend)
app.command("describe")(describe.describe)
app.command("align")(align.align)
app.command("ablate")(ablate.ablate)
app.command("attribute")(attribute.attribute)
app.command("gates")(gates.gates)
app.command("positions")(positions.positions)
app.command("patterns")(patterns.patterns)
app.command("look")(look.look)
app.add_typer(lab.app, name="lab")
app.command("ladder")(ladder.ladder)
app.add_typer(data.app, name="data")
app.add_typer(tokenizer.app, name="tokenizer")
app.add_typer(imports.app, name="import")
app.add_typer(export.app, name="export")


def run(arguments: Sequence[str]) -> int:
    """Run a command and give its exit code: 0 done, 1 a failure, 2 bad input, 130 interrupted."""
    debug = "--debug" in arguments
    try:
        result = get_command(app).main(args=list(arguments), prog_name="jumok", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except typer.Exit as error:
        return error.exit_code
    except JumokError as error:
        if debug:
            traceback.print_exc()
        if not _is_told_elsewhere(error):
            print(f"jumok: {error}", file=sys.stderr)
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        print("jumok: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output (head, less) has gone: that is its right
        return 141
    except OSError as error:
        if debug:
            traceback.print_exc()
        print(f"jumok: {error.strerror or error}{f' ({error.filename})' if error.filename else ''}", file=sys.stderr)
        return 1
    except MemoryError:
        print(f"jumok: out of memory. {_less_memory(arguments)}", file=sys.stderr)
        return 1
    except Exception as error:
        if isinstance(error, UsageProblem):
            if not _is_another():
                error.show()  # type: ignore[attr-defined]
            return int(error.exit_code)  # type: ignore[attr-defined]
        if debug:
            traceback.print_exc()
        else:
            print(_unexpected(error, arguments), file=sys.stderr)
        return 1


def _is_told_elsewhere(error: JumokError) -> bool:
    """Processes that torchrun starts on one machine read the same input: what is wrong with it, the first one tells."""
    return isinstance(error, ReaderGone | ToldElsewhere) or (_is_another() and isinstance(error, BadInput))


def _is_another() -> bool:
    return os.environ.get("LOCAL_RANK", "0") != "0"


LESS_MEMORY = {
    "train": "Try a smaller training.batch_tokens or model.width",
    "verify-resume": "Try a smaller training.batch_tokens or model.width",
    "translate": "Try a smaller --batch, --beam or --max-length",
    "evaluate": "Try a smaller --batch or --beam",
    "generate": "Try a smaller --max-tokens, --count or --beam",
}


def _less_memory(arguments: Sequence[str]) -> str:
    """What needs less of it, by the command that ran out."""
    known = {each.name for each in app.registered_commands} | {each.name for each in app.registered_groups}
    command = next((word for word in arguments if word in known), "")  # of `tokenizer train` it is the first
    return LESS_MEMORY.get(command, "Free some, or give it less at once")


def _unexpected(error: Exception, arguments: Sequence[str]) -> str:
    """An error nobody foresaw: short, with the way to the whole of it."""
    if any(words in str(error).lower() for words in ("out of memory", "can't allocate memory")):
        return f"jumok: out of memory ({str(error).splitlines()[0]}). {_less_memory(arguments)}"
    text = (str(error).splitlines() or [""])[0]
    return f"jumok: unexpected {type(error).__name__}: {text}\nThis is a bug of jumok's. `jumok --debug …` shows where."
