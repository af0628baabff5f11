"""The report of a language model: what the model writes is shown beside the text, and nothing in it can run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jumok.inspect.language_report import SHOWN, samples
from jumok.inspect.report import report
from jumok.tasks.generator import Continuation, GenerateOptions


class Writer:
    """Stands for a generator: greedy says one thing, sampling another."""

    def fits(self, prompt: str) -> bool:
        return "long" not in prompt

    def continuations(self, prompts: Sequence[str], wanted: GenerateOptions) -> list[list[Continuation]]:
        text = " <script>alert(1)</script>" if wanted.sample else " and so on"
        return [[Continuation(prompt, text, True)] for prompt in prompts]


def shown(lines: list[str]) -> str:
    model: Any = Writer()
    return samples(model, lines).content


def test_beginnings_are_of_lines_that_have_more() -> None:
    content = shown(["", "one two three", "= Title =", "a dog sees the <b>cat</b> today", "a long one does not fit in"])
    assert content.count("<tr><td") == 1
    assert '<td data-label="beginning">a dog sees</td>' in content
    assert "and so on" in content
    assert '<td data-label="the text">the &lt;b&gt;cat&lt;/b&gt; today</td>' in content
    assert "<script>alert" not in content
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in content


def test_a_few_are_enough_and_none_is_no_section() -> None:
    assert shown(["a dog sees the cat today"] * 50).count("<tr><td") == SHOWN
    model: Any = Writer()
    page = report("run", extra=[samples(model, ["short", ""])])
    assert "How it goes on" not in page
    assert "How it goes on" in report("run", extra=[samples(model, ["a dog sees the cat"])])
