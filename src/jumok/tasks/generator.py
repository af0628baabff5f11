"""A trained language model that writes: prompts in, continuations out.

A line of the training text ends in `<eos>`, so what is generated ends where the model ends the line. A prompt is read
after the `<eos>` of a line before it; its own line ends are `<eos>` too, and its last line is open.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from jumok.data.batch import END, PAD, START, UNKNOWN, Sequences
from jumok.errors import BadInput
from jumok.models.language import LanguageModel
from jumok.recipe.sections import LONGEST_OUTPUT, WIDEST_BEAM
from jumok.search import Decoding, Hypothesis, SearchOptions, Token, generate
from jumok.tasks.perplexity import Perplexity, measure
from jumok.text.tokenizer import Tokenizer

NEVER = (PAD, START, UNKNOWN)  # there is no text for them
MOST_TOKENS = LONGEST_OUTPUT - 1  # and <eos>


@dataclass(frozen=True)
class GenerateOptions:
    """What is to be written."""

    max_tokens: int = 100  # of each continuation
    lines: int = 1  # stop when so many lines have ended
    count: int = 1  # continuations of each prompt: samples, or the best of a beam
    beam: int = 1
    sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    no_repeat_ngram: int = 0

    def __post_init__(self) -> None:
        for name in ("max_tokens", "lines", "count", "beam"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} {getattr(self, name)}: give 1 or more")
        for name, limit in {"max_tokens": MOST_TOKENS, "count": WIDEST_BEAM, "beam": WIDEST_BEAM}.items():
            if getattr(self, name) > limit:
                raise BadInput(f"{name} {getattr(self, name)}: give at most {limit}")
        if self.count > 1 and not self.sample and self.count > self.beam:
            raise BadInput(f"count {self.count}: there is one likeliest text. Sample, or search with a beam as wide")
        if self.beam > 1 and self.lines > 1:
            raise BadInput(f"beam {self.beam} searches for the best line: it cannot write {self.lines} of them")

    def options(self, max_tokens: int, stream: int) -> SearchOptions:
        return SearchOptions(
            beam=self.beam,
            nbest=1 if self.sample else self.count,
            max_length=max_tokens + 1,  # with <eos>
            forbidden=NEVER,
            no_repeat_ngram=self.no_repeat_ngram,
            sample=self.sample,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            seed=self.seed,
            stream=stream,
        )


@dataclass(frozen=True)
class Continuation:
    prompt: str
    text: str  # what comes after the prompt, with the space between them where there is one
    finished: bool  # the model ended it; False: it was cut at max_tokens
    ids: tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.prompt + self.text


class Written:
    """Text from tokens as they come, never half a character."""

    def __init__(self, tokenizer: Tokenizer, prompt: str) -> None:
        self.tokenizer = tokenizer
        last = prompt.rpartition("\n")[2]
        self.first = not last.strip()  # at the beginning of a line no space comes before a word
        self.spaced = last[-1:].isspace() and tokenizer.kind not in ("byte", "character")
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, token: int) -> str:
        """The characters that are whole now."""
        if token == END:
            text = self.rest() + "\n"
            self.first = True
            return text
        text = self.decoder.decode(self.tokenizer.written(token, first=self.first))
        text = text.removeprefix(" ") if self.spaced else text
        self.first = self.spaced = False
        return text

    def rest(self) -> str:
        """What is left of a character that was never finished."""
        text = self.decoder.decode(b"", final=True)
        self.decoder.reset()
        return text


@dataclass
class _Row:
    """One continuation on its way."""

    context: list[int]  # what the model reads next: prompt and what was written, or the end of them
    stream: int
    tokens: int  # still to be written, at most
    lines: int
    ids: list[int] = field(default_factory=list)
    finished: bool = False

    @property
    def open(self) -> bool:
        return self.tokens > 0 and not self.finished

    def take(self, found: Hypothesis) -> None:
        more = [*found.tokens, END] if found.finished else found.tokens
        self.lines -= found.finished
        self.finished = self.lines == 0
        self.ids += found.tokens if self.finished else more
        self.context += more
        self.tokens -= len(more) if more else self.tokens


class Generator:
    def __init__(self, model: LanguageModel, tokenizer: Tokenizer, window: int, device: torch.device) -> None:
        self.model, self.tokenizer, self.window, self.device = model, tokenizer, window, device

    @property
    def limit(self) -> int | None:
        """How many tokens the model can look back at; a recurrent one has no such number."""
        return None if self.model.carries else self.window

    def generate(
        self,
        prompt: str = "",
        max_tokens: int = 100,
        *,
        lines: int = 1,
        beam: int = 1,
        sample: bool | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> str:
        """The prompt and how the model goes on: the likeliest words; sampled ones as soon as one of the last four (or
        `sample`) is given."""
        given = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
        chosen = {name: value for name, value in given.items() if value is not None}
        sampled = bool(chosen) if sample is None else sample
        wanted = GenerateOptions(max_tokens=max_tokens, lines=lines, beam=beam, sample=sampled, **chosen)  # type: ignore[arg-type]
        return str(self.continuations([prompt], wanted)[0][0])

    def continuations(self, prompts: Sequence[str], wanted: GenerateOptions) -> list[list[Continuation]]:
        """For each prompt `wanted.count` continuations; of a beam, the best first."""
        if isinstance(prompts, str):
            raise BadInput("continuations() takes a list of prompts: write [prompt]")
        contexts = [self._context(prompt, number) for number, prompt in enumerate(prompts)]
        if wanted.beam > 1:
            return self._searched(prompts, contexts, wanted)
        rows = [
            [_Row(list(context), sample, wanted.max_tokens, wanted.lines) for sample in range(wanted.count)]
            for context in contexts
        ]
        for _ in self._write([row for group in rows for row in group], wanted):
            pass
        return [
            [self._told(prompt, row.ids, row.finished) for row in group]
            for prompt, group in zip(prompts, rows, strict=True)
        ]

    def stream(self, prompt: str, wanted: GenerateOptions, sample: int = 0) -> Iterator[str]:
        """What comes after the prompt, as it is written; whole characters only. `sample`: which one of its count."""
        if wanted.beam > 1:
            raise BadInput("a beam knows its best text only at the end: use beam 1 to see it as it comes")
        row = _Row(self._context(prompt), sample, wanted.max_tokens, wanted.lines)
        written = Written(self.tokenizer, prompt)
        for token in self._write([row], wanted, follow=True):
            text = written.add(token)
            if text:
                yield text
        if rest := written.rest():
            yield rest

    def perplexity(self, lines: Iterable[str], stride: int | None = None) -> Perplexity:
        """How well the model predicts these lines, as one text."""
        if isinstance(lines, str):
            raise BadInput("perplexity() takes a list of lines: write text.splitlines()")
        if stride is not None and stride < 1:
            raise BadInput(f"stride {stride}: give 1 or more")
        return measure(self.model, self.tokenizer, lines, self.window, self.device, stride)

    def fits(self, prompt: str) -> bool:
        """Whether the model can look back at all of it and has room to write."""
        return self._room(self._ids(prompt)) > 0

    # ------------------------------------------------------------ how

    def _ids(self, prompt: str) -> list[int]:
        """`<eos>` and the prompt's tokens."""
        *whole, last = self.tokenizer.encode(prompt.split("\n"))
        return [END, *(id for row in whole for id in (*row, END)), *last]

    def _context(self, prompt: str, number: int = 0) -> list[int]:
        ids = self._ids(prompt)
        if self._room(ids) <= 0:
            raise BadInput(
                f"prompt {number + 1} has {len(ids) - 1} tokens, the model looks back at {self.limit} (data.window) "
                "and needs room to write: shorten the prompt"
            )
        return ids

    def _searched(
        self, prompts: Sequence[str], contexts: list[list[int]], wanted: GenerateOptions
    ) -> list[list[Continuation]]:
        options = [wanted.options(min(wanted.max_tokens, self._room(context)), 0) for context in contexts]
        self.model.eval()
        found = generate(self.model, Sequences.pad(contexts), options, device=self.device)
        return [
            [self._told(prompt, best.tokens, best.finished) for best in hypotheses]
            for prompt, hypotheses in zip(prompts, found, strict=True)
        ]

    def _room(self, context: list[int]) -> int:
        """How many tokens can be written after these before the model's window is full."""
        return sys.maxsize if self.limit is None else self.limit - len(context)

    def _write(self, rows: list[_Row], wanted: GenerateOptions, follow: bool = False) -> Iterator[int]:
        """Write all rows, side by side; gives the tokens of the first as they come, if that is asked for.

        In rounds: a round ends at a line's end, or where the model's window is full; then the last half of it is what
        the next round looks back at.
        """
        self.model.eval()
        turn = 0
        while going := [row for row in rows if row.open]:
            for row in going:
                if not self._room(row.context):
                    row.context = row.context[-(self.window // 2) :]
            options = [
                wanted.options(min(row.tokens, self._room(row.context)), row.stream + turn * wanted.count)
                for row in going
            ]
            decoding = Decoding(self.model, device=self.device, events=follow)
            names = decoding.add(Sequences.pad([row.context for row in going]), options)
            while not decoding.done:
                for event in decoding.step():
                    if isinstance(event, Token) and event.row == names[0]:
                        yield event.token
            for row, name in zip(going, names, strict=True):
                row.take(decoding.results[name][0])
            if follow and going[0].ids[-1:] == [END]:
                yield END
            turn += 1

    def _told(self, prompt: str, ids: Sequence[int], finished: bool) -> Continuation:
        written = Written(self.tokenizer, prompt)
        text = "".join([written.add(token) for token in ids]) + written.rest()
        return Continuation(prompt, text, finished, tuple(ids))
