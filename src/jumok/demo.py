"""The whole way in three minutes: train, score, translate, look."""

from __future__ import annotations

import math
import shutil
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jumok import api
from jumok import recipe as recipes
from jumok.data import grammar
from jumok.errors import BadInput
from jumok.files import remove_folder, replace_file
from jumok.inspect import terminal
from jumok.inspect.alignment import AlignmentScore, alignment_error_rate
from jumok.inspect.forced import word_links
from jumok.inspect.report import Translated, write_report
from jumok.tasks.metrics import corpus_scores
from jumok.training.run import RunFolder

TEST_SENTENCES = 500
SHOWN, DRAWN = 10, 3
MARKER = ".demo"
NAMES = {"fr": "French", "ko": "Korean"}
# Korean words carry their particles and endings: whole words would leave too many unknown
KEYS: dict[str, list[str]] = {"fr": [], "ko": ["tokenizer.kind=bpe", "tokenizer.vocabulary=3000"]}


def run_demo(language: str, run: Path | None, minutes: float) -> None:
    """Train an attention LSTM from English on the embedded corpus and show all there is to see of it."""
    if language not in grammar.LANGUAGES[1:]:
        raise BadInput(f"demo {language}: the embedded corpus has {' and '.join(grammar.LANGUAGES[1:])}")
    if not 0 < minutes < math.inf:
        raise BadInput(f"--minutes {minutes:g}: give a time above zero")
    run = run or Path("runs") / ("demo" if language == "fr" else f"demo-{language}")
    _make_room(run)
    screen = Console(highlight=False)
    direction = f"en-{language}"
    screen.print(
        f"[bold]Training an LSTM with attention on the embedded {direction} corpus (about {minutes:g} minutes)"
    )
    recipe = recipes.read(
        "demo", [f"data.train.grammar={direction}", f"data.valid.grammar={direction}", *KEYS[language]]
    )
    model = api.train(recipe, run, minutes=minutes, report=False)

    pairs = list(grammar.pairs("en", language, "test", TEST_SENTENCES))
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    outputs = model.translate(sources)
    scores = corpus_scores(outputs, references)
    screen.print(f"\n[bold]Scores on {len(pairs)} held-out sentences")
    for score in scores:
        screen.print(escape(str(score)))
    screen.print(escape(str(attention_error(model, pairs))))

    screen.print(f"\n[bold]{SHOWN} translations beside their references")
    shown = [Translated(*row) for row in zip(sources[:SHOWN], outputs, references, strict=False)]
    screen.print(_table(shown))

    screen.print("\n[bold]What it looked at")
    # three sentences short enough to be seen whole
    drawn = [source for source in sources if 5 <= len(source.split()) <= 9][:DRAWN]
    pictures = [model.attend(source) for source in drawn]
    for picture in pictures:
        terminal.show(picture, screen)
        screen.print()
    write_report(
        model.run.report,
        f"jumok demo: English → {NAMES[language]}",
        recipes.dump(model.recipe),
        model.run.events(),
        shown,
        pictures,
        scores,
        ("en", language),
    )
    screen.print(f"[bold]Report with curves and pictures:[/] {model.run.report}\n")
    screen.print("[bold]What to type next")
    jumok = _command()
    for command in (
        f'{jumok} translate --run {run} "I am a student."',
        f'{jumok} attend --run {run} "I am a student." --out attention.png',
        f"{jumok} train lstm-luong --source my.de --target my.en --run runs/mine",
    ):
        screen.print(f"  {command}", soft_wrap=True)


def _command() -> str:
    """How this very installation is called from the user's shell: the bare name only where the shell would find it."""
    if shutil.which("jumok"):
        return "jumok"
    beside = Path(sys.executable).with_name("jumok")
    if not beside.exists():
        return f"{Path(sys.executable).name} -m jumok"
    return str(beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside)


def _make_room(run: Path) -> None:
    """An older demo in the same place goes; anything else that lies there stays."""
    marker = run / MARKER
    if run.exists() and (not run.is_dir() or any(run.iterdir())):
        if not marker.exists():
            raise BadInput(f"{run} exists and is not an earlier demo: choose another place with --run")
        with RunFolder(run).locked():  # nobody is training in it
            for path in run.iterdir():
                if path.is_dir():
                    remove_folder(path)
                elif path.name != ".lock":
                    path.unlink()
    run.mkdir(parents=True, exist_ok=True)
    replace_file(marker, "made by jumok demo, which may replace this folder\n")


def attention_error(model: api.TrainedTranslator, pairs: list[grammar.Pair]) -> AlignmentScore:
    """How often a word's strongest attention is not where the grammar says the word comes from."""
    predicted = word_links(model, [pair.source for pair in pairs], [pair.target for pair in pairs])
    return alignment_error_rate(predicted, [set(pair.sure) for pair in pairs], [set(pair.possible) for pair in pairs])


def _table(rows: list[Translated]) -> Table:
    table = Table(show_lines=True, header_style="bold")
    for heading in ("source", "translation", "reference"):
        table.add_column(heading, ratio=1, overflow="fold")  # an ellipsis would swallow wide characters
    for row in rows:
        same = "green" if row.translation == row.reference else "yellow"
        table.add_row(escape(row.source), f"[{same}]{escape(row.translation)}[/]", escape(row.reference or ""))
    return table
