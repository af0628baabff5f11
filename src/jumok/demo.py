"""The whole way in three minutes: train, score, translate, look."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
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
# By name: what it is, the recipe of its demo, and the one for a user's own data
MODELS = {
    "lstm": ("an LSTM with attention", "demo", "lstm-luong"),
    "transformer": ("a small Transformer", "demo-transformer", "transformer-small"),
}
# Korean words carry their particles and endings: whole words would leave too many unknown
KEYS: dict[str, list[str]] = {"fr": [], "ko": ["tokenizer.kind=bpe", "tokenizer.vocabulary=3000"]}


@dataclass(frozen=True)
class Choice:
    """What a demo trains: a kind of model, and into which language."""

    model: str = "lstm"
    language: str = "fr"

    @classmethod
    def of(cls, words: Sequence[str]) -> Choice:
        """In any order: `fr`, `transformer`, `transformer ko` …"""
        chosen: dict[str, str] = {}
        for word in words:
            kind = "model" if word in MODELS else "language"
            if (word not in MODELS and word not in NAMES) or kind in chosen:
                raise BadInput(f"demo {' '.join(words)}: say one of {', '.join(MODELS)}, and one of {', '.join(NAMES)}")
            chosen[kind] = word
        return cls(**chosen)

    @property
    def folder(self) -> Path:
        """runs/demo, runs/demo-ko, runs/demo-transformer …"""
        parts = [
            "demo",
            *([self.model] if self.model != "lstm" else []),
            *([self.language] if self.language != "fr" else []),
        ]
        return Path("runs") / "-".join(parts)


def run_demo(choice: Choice, run: Path | None, minutes: float) -> None:
    """Train a small model from English on the embedded corpus and show all there is to see of it."""
    if not 0 < minutes < math.inf:
        raise BadInput(f"--minutes {minutes:g}: give a time above zero")
    run = run or choice.folder
    language = choice.language
    _make_room(run)
    screen = Console(highlight=False)
    direction = f"en-{language}"
    name, recipe_name, next_recipe = MODELS[choice.model]
    screen.print(f"[bold]Training {name} on the embedded {direction} corpus (about {minutes:g} minutes)")
    keys = [f"data.train.grammar={direction}", f"data.valid.grammar={direction}", *KEYS[language]]
    recipe = recipes.read(recipe_name, keys)
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
        f"{jumok} train {next_recipe} --source my.de --target my.en --run runs/mine",
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
