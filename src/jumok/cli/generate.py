"""`jumok generate`: a language model goes on where a prompt ends."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jumok.cli.typed import options_as_typed

if TYPE_CHECKING:
    from jumok.tasks.generator import Continuation, GenerateOptions, Generator

AT_ONCE = 32  # prompts of standard input that are written to side by side


def generate(
    prompts: list[str] | None = typer.Argument(None, help="Beginnings, each in quotes. Without them, stdin's lines."),
    run: Path = typer.Option(..., "--run", help="A run folder of a language model."),
    max_tokens: int = typer.Option(100, help="Longest continuation, in tokens; at most 99999."),
    lines: int = typer.Option(1, help="Stop when so many lines have ended."),
    count: int = typer.Option(1, help="Continuations of each prompt (with --sample, or a beam as wide)."),
    sample: bool = typer.Option(False, "--sample", help="Draw each token instead of taking the likeliest."),
    temperature: float = typer.Option(1.0, help="Sampling: below 1 more sober, above 1 wilder."),
    top_k: int = typer.Option(0, help="Sampling: only from this many likeliest tokens; 0: from all."),
    top_p: float = typer.Option(1.0, help="Sampling: only from the likeliest that together have this probability."),
    seed: int = typer.Option(0, help="Sampling: the same seed gives the same text."),
    beam: int = typer.Option(1, help="Hypotheses kept at each step; 1 is greedy."),
    no_repeat_ngram: int = typer.Option(0, help="No so many tokens twice in the same order; 0: they may."),
    as_json: bool = typer.Option(False, "--json", help="Print a JSON object for each continuation."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
) -> None:
    """Write on from a prompt. On a terminal the text appears as it is written."""
    from jumok import api
    from jumok.streaming import Source, open_output
    from jumok.tasks.generator import GenerateOptions

    with options_as_typed(*(field.name for field in fields(GenerateOptions))):
        wanted = GenerateOptions(
            max_tokens, lines, count, beam, sample, temperature, top_k, top_p, seed, no_repeat_ngram
        )
        wanted.options(max_tokens, 0)  # numbers out of range are told before a model is loaded
    model = api.load_language_model(run, device)
    live = sys.stdout.isatty() and beam == 1 and not as_json
    with open_output(None) as output:
        for chunk in Source(prompts or ()).chunks(AT_ONCE):
            texts = [sentence.text for sentence in chunk.sentences]
            if live:
                for prompt in texts:
                    _show(model, prompt, wanted)
                continue
            for found in model.continuations(texts, wanted):
                output.write([_told(one, as_json, lines > 1) for one in found])


def _told(one: Continuation, as_json: bool, apart: bool) -> str:
    if as_json:
        return json.dumps({"prompt": one.prompt, "text": one.text, "finished": one.finished}, ensure_ascii=False)
    return f"{one}\n" if apart else str(one)  # several lines are set apart by an empty one


def _show(model: Generator, prompt: str, wanted: GenerateOptions) -> None:
    """Each continuation on the terminal as it comes, with nothing in it that could drive the terminal."""
    from jumok.inspect.attention import visible

    for sample in range(wanted.count):
        for text in chain([prompt], model.stream(prompt, wanted, sample)):
            typer.echo("\n".join(visible(line) for line in text.split("\n")), nl=False)
        typer.echo()
