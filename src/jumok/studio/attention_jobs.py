"""What a loaded run does with a text while it is looked at: one pass through its network, and what it says in the end.

Each task has its own way to read (a sentence and its translation, a text or two, words, a question and a context, a
text with [MASK], or the beginning of one) and its own answer; a `Job` has both, so that who looks need not know the
task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from jumok.data.batch import END, START, source_batch, target_batch
from jumok.data.readers import read_pairs
from jumok.data.rows import Rows, framed
from jumok.errors import BadInput
from jumok.inspect.attention import END_MARK
from jumok.inspect.forced import Side
from jumok.inspect.tokens import Read, Tokens, Vocabulary, spelled
from jumok.models.bert import Bert
from jumok.models.language import TransformerLanguageModel
from jumok.recipe import Recipe
from jumok.tasks.answerer import Answerer, question_rows
from jumok.tasks.classifier import Classifier
from jumok.tasks.filler import MASK, Filler
from jumok.tasks.generator import GenerateOptions, Generator
from jumok.tasks.sources import read_items, texts_of
from jumok.tasks.tagger import Tagger, windows
from jumok.tasks.translator import Translator
from jumok.text.tokenizer import Encoded, Tokenizer

LIKELY = 3  # what is told besides the word itself
GUESSES = 5
SPECIAL: int | None = None  # the word number of a token that is no part of a text
CONTINUED = 24  # tokens that a language model goes on with
TASKS = ("translation", "language", "pretraining", "classification", "regression", "tagging", "answering")


@dataclass(frozen=True)
class Text:
    """What is asked about: a sentence and perhaps its translation; a text and perhaps a second one (a context)."""

    text: str
    second: str | None = None
    target: str | None = None
    tag: str | None = None


@dataclass(frozen=True)
class Event:
    """Something that may come out, and how likely it is; `likeliest` is what the model would rather say there."""

    name: str
    probability: float | None
    likeliest: tuple[tuple[str, float], ...] = ()
    group: str = ""  # which [MASK] it is for


@dataclass(frozen=True)
class Outcome:
    """What the model says, in words, and the probabilities of what the whole model would say."""

    text: str
    events: tuple[Event, ...] = ()


@dataclass(frozen=True)
class Sides:
    """The maps of one grid: which taps, which row of the batch, who looks at whom."""

    kind: str  # of the taps
    queries: Side
    keys: Side
    row: int = 0
    skipped: int = 0  # what a pretrained reader puts before every text


@dataclass(frozen=True, eq=False)
class Job:
    network: nn.Module
    sides: dict[str, Sides]  # by the name of the grid: "cross", "self", "causal"; "second": a text that is read apart
    forward: Callable[[], Tensor]  # the pass that is recorded: hidden states
    outcome: Callable[[Tensor, Outcome | None], Outcome]  # of these states; beside what the whole model said
    translator: Translator | None = None
    written: tuple[int, ...] = ()  # the translation's ids
    ended: bool = True
    notes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    rotary: bool = False
    sentence: str = ""


def job_of(model: Any, asked: Text) -> Job:
    """How this run reads this text. `model` is what `api.load` gives."""
    if not asked.text.strip():
        raise BadInput("there is no text to look at: write one")
    if isinstance(model, Translator):
        return _translating(model, asked)
    if isinstance(model, Generator) and isinstance(model.model, TransformerLanguageModel):
        return _continuing(model, asked)
    reader = getattr(getattr(model, "model", None), "reader", None)
    makers: list[tuple[type, Callable[[Any, Text], Job]]] = [
        (Classifier, _classifying), (Tagger, _tagging), (Answerer, _answering), (Filler, _filling),
    ]  # fmt: skip
    for kind, maker in makers:
        if isinstance(model, kind) and isinstance(reader, Bert):
            return maker(model, asked)
    raise BadInput(
        "this run has no attention over texts: choose a translator with attention, a BERT, or a transformer-lm"
    )


def example_of(recipe: Recipe) -> Text:
    """A text to begin with: of the grammar that the run has learned, where it has; else one in English."""
    corpus = recipe.data.train[0] if recipe.data.train else None
    if corpus is not None and corpus.grammar is not None and recipe.task in TASKS:
        few = corpus.model_copy(update={"pairs": 60})
        if recipe.task in ("translation", "language", "pretraining"):
            if recipe.task != "translation" and "-" not in corpus.grammar:
                few = few.model_copy(update={"grammar": f"{corpus.grammar}-fr" if corpus.grammar != "fr" else "fr-en"})
            found = [pair[0] for pair in islice(read_pairs(few, "test"), 60)]
            plain = [one for one in found if 6 <= len(one.split()) <= 9 and not one.endswith("?")]
            text = (plain or found)[0]
            return Text(_posed(recipe.task, text))
        texts = texts_of(read_items(recipe.task, few, "test")[0])
        return Text(texts[0], texts[1] if len(texts) > 1 else None)
    text, second = "The old man gives the red book to his daughter.", None
    if recipe.task == "answering":
        text, second = "Who gets the book?", text
    elif corpus is not None and corpus.fields.second is not None:
        second = "His daughter has a red book now."
    return Text(_posed(recipe.task, text), second)


def _posed(task: str, text: str) -> str:
    """The third word is to be guessed, or all after the fourth."""
    words = text.split()
    return {"pretraining": " ".join([*words[:2], MASK, *words[3:]]), "language": " ".join(words[:4])}.get(task, text)


# ---------------------------------------------------------------- translators


@torch.inference_mode()
def _translating(model: Translator, asked: Text) -> Job:
    tags = tuple(model.source.tags)
    translator = model.tagged(asked.tag or tags[0]) if tags else model
    network, sentence = translator.model.eval(), asked.text.strip()
    translator.refuse_long([sentence])
    cut = translator.source.encode_with_offsets(sentence).ids
    if not cut:
        raise BadInput("the model's vocabulary knows nothing of this text: write another")
    best = translator.nbest([sentence])[0][0]
    forced = None if asked.target is None or not asked.target.strip() else asked.target
    written, ended = list(best.ids), best.finished
    if forced is not None:
        written, ended = translator.target.encode([forced])[0], True
        if len(written) >= network.longest:
            raise BadInput(f"the translation has {len(written)} tokens, the model writes fewer than {network.longest}")
    words = Vocabulary(translator.source, translator.target)
    read = Read((*translator.before, *cut, END), (START, *written), words, sentence, forced, ended)
    source = source_batch([[*translator.before, *cut]]).to(translator.device)
    target = target_batch([written]).ids[:, :-1].to(translator.device)
    skipped = 1 if getattr(network, "reader", None) is not None else 0
    sides = {}
    for kind in ("cross", "self", "causal"):
        queries, keys = read.sides(kind)
        assert queries is not None
        assert keys is not None
        sides[kind] = Sides(kind, _side(queries), _side(keys), skipped=skipped if kind == "self" else 0)
    expected = [*written, END] if ended else written

    def outcome(hidden: Tensor, whole: Outcome | None) -> Outcome:
        own = best.text if whole is None else translator.nbest([sentence])[0][0].text
        probabilities = network.head(hidden[0, : len(expected)]).float().softmax(dim=-1)
        likely = probabilities.topk(min(LIKELY, probabilities.size(-1)), dim=-1)
        names = [translator.target.pieces(row) for row in likely.indices.tolist()]
        each = zip(sides["cross"].queries.tokens, expected, names, likely.values.tolist(), strict=True)
        return Outcome(own, tuple(
            Event(name, float(probabilities[place, id]), tuple(zip(others, shares, strict=True)))
            for place, (name, id, others, shares) in enumerate(each)
        ))  # fmt: skip

    rotary = getattr(network, "section", None) is not None and getattr(network.section, "position", "") == "rotary"
    return Job(
        network, sides, lambda: network(source, target), outcome, translator, tuple(written), ended, (), tags, rotary,
        sentence,
    )  # fmt: skip


def _side(tokens: Tokens) -> Side:
    return Side(tokens.tokens, tokens.words, tokens.text.split())


# ---------------------------------------------------------------- language models


@torch.inference_mode()
def _continuing(model: Generator, asked: Text) -> Job:
    """A line as the model reads it, after the <eos> of the line before; each token looks at those before it."""
    network, text = model.model.eval(), " ".join(asked.text.split("\n")).strip()
    assert isinstance(network, TransformerLanguageModel)
    cut = model.tokenizer.encode_with_offsets(text).ids
    if not cut:
        raise BadInput("the model's vocabulary knows nothing of this text: write another")
    wanted = GenerateOptions(max_tokens=CONTINUED)
    best = model.continuations([text], wanted)[0][0]
    ids = torch.tensor([[END, *cut]], device=model.device)
    side = _side(spelled(cut, model.tokenizer, text).marked(before=[END_MARK]))
    expected = [*cut, *(best.ids[:1] or (END,))]
    pieces = model.tokenizer.pieces(expected)

    def outcome(hidden: Tensor, whole: Outcome | None) -> Outcome:
        own = best if whole is None else model.continuations([text], wanted)[0][0]
        probabilities = network.head(hidden[0]).float().softmax(dim=-1)
        likely = probabilities.topk(min(LIKELY, probabilities.size(-1)), dim=-1)
        names = [model.tokenizer.pieces(row) for row in likely.indices.tolist()]
        each = zip(pieces, expected, names, likely.values.tolist(), strict=True)
        return Outcome(str(own), tuple(
            Event(name, float(probabilities[place, id]), tuple(zip(others, shares, strict=True)))
            for place, (name, id, others, shares) in enumerate(each)
        ))  # fmt: skip

    rotary = network.section.position == "rotary"
    return Job(network, {"causal": Sides("causal", side, side)}, lambda: network(ids), outcome, rotary=rotary)


# ---------------------------------------------------------------- readers of texts


def _reading(
    model: Any,
    rows: list[list[int]],
    segments: list[list[int]],
    sides: dict[str, Side],
    outcome: Callable[[Tensor, Outcome | None], Outcome],
    cut: bool = False,
) -> Job:
    """A row for each text; the same text looks and is looked at."""
    network = model.model.eval()
    packed = Rows.of(rows, segments)
    notes = (f"the text is longer than the {model.limit} tokens that the model reads: its end is left out",) * cut

    def forward() -> Tensor:
        words, parts = packed.batch(range(len(rows)))
        hidden: Tensor = network.reader(words.to(model.device), None if parts is None else parts.to(model.device))
        return hidden

    shown = {name: Sides("self", side, side, row) for row, (name, side) in enumerate(sides.items())}
    rotary = network.reader.section.position == "rotary"
    return Job(network, shown, forward, outcome, notes=notes, rotary=rotary)


def _framed_side(tokenizer: Tokenizer, texts: Sequence[tuple[str, Encoded]]) -> Side:
    """[CLS] first [SEP] second [SEP]: specials are words of their own."""
    start, end = tokenizer.pieces([tokenizer.specials.start, tokenizer.specials.end])
    tokens, words, known = [start], [SPECIAL], list[str]()
    for text, cut in texts:
        tokens += [*cut.tokens, end]
        words += [*(len(known) + word for word in cut.words), SPECIAL]
        known += text.split()
    return Side(tokens, words, known)


def _part(cut: Encoded, start: int, stop: int) -> Encoded:
    return Encoded(cut.ids[start:stop], cut.tokens[start:stop], cut.offsets[start:stop], cut.words[start:stop])


def _classifying(model: Classifier, asked: Text) -> Job:
    first, second = asked.text, asked.second if asked.second and asked.second.strip() else None
    if model.pairs is False:
        second = None
    if second is None and (model.pairs or model.model.apart):
        raise BadInput("this run has learned from two texts at a time: give the second one, too")
    texts = [(first, model.tokenizer.encode_with_offsets(first))]
    if second is not None:
        texts.append((second, model.tokenizer.encode_with_offsets(second)))
    together = [texts] if not model.model.apart else [[one] for one in texts]
    rows, segments, sides, shortened = [], [], {}, False
    for name, group in zip(("self", "second"), together, strict=False):
        others = group[1][1].ids if len(group) > 1 else None
        ids, parts, cut = framed(group[0][1].ids, others, model.tokenizer.specials, model.max_length)
        rows.append(ids)
        segments.append(parts)
        left = [parts.count(0) - 2, parts.count(1) - 1]
        shown = [(text, _part(whole, 0, count)) for (text, whole), count in zip(group, left, strict=False)]
        sides[name], shortened = _framed_side(model.tokenizer, shown), shortened or cut

    def outcome(hidden: Tensor, whole: Outcome | None) -> Outcome:
        (said,) = model.predict([first if second is None else (first, second)])
        return Outcome(said.label, tuple(Event(name, share) for name, share in said.probabilities.items()))

    return _reading(model, rows, segments, sides, outcome, shortened)


def _tagging(model: Tagger, asked: Text) -> Job:
    words = asked.text.split()
    window = windows(model.tokenizer, [words], model.max_length - 2, model.stride)[0][0]
    specials, names = model.tokenizer.specials, model.labels
    start, end = model.tokenizer.pieces([specials.start, specials.end])
    counts = [right - left for left, right in zip(window.places, [*window.places[1:], len(window.ids)], strict=True)]
    numbers = [word for word, count in zip(window.words, counts, strict=True) for _ in range(count)]
    side = Side([start, *model.tokenizer.pieces(window.ids), end], [SPECIAL, *numbers, SPECIAL], words)
    ids = [specials.start, *window.ids, specials.end]

    def outcome(hidden: Tensor, whole: Outcome | None) -> Outcome:
        places = torch.tensor(window.places, device=hidden.device) + 1
        shares = model.model.head(hidden[0, places]).float().softmax(dim=-1)
        best = shares.topk(min(LIKELY, len(names)), dim=-1)
        events = []
        for row, word in enumerate(window.words):
            likeliest = tuple((names[one], float(shares[row, one])) for one in best.indices[row].tolist())
            tag = likeliest[0][0] if whole is None else whole.events[row].group
            events.append(Event(words[word], float(shares[row, names.index(tag)]), likeliest, tag))
        said = [f"{event.name}/{event.likeliest[0][0]}" for event in events]
        return Outcome(" ".join(said), tuple(events))

    return _reading(model, [ids], [[0] * len(ids)], {"self": side}, outcome, len(window.words) < len(words))


def _answering(model: Answerer, asked: Text) -> Job:
    from jumok.data.examples import Question

    if not asked.second or not asked.second.strip():
        raise BadInput("a question needs a text in which the answer is: give it as the second one")
    question, context, tokenizer = asked.text, asked.second, model.tokenizer
    found = question_rows(tokenizer, [Question(question, context)], model.limits.max_length, model.limits.stride)
    best = model.answer(question, context, best=1).best
    whole_context, index = found.contexts[0], 0
    for number, (shift, first) in enumerate(zip(found.shift.tolist(), found.first.tolist(), strict=True)):
        last = first + int(found.rows.lengths[number]) - shift - 2
        offsets = whole_context.offsets[first : last + 1]
        if offsets and offsets[0][0] <= best.start < offsets[-1][1]:  # the window with the answer
            index = number
            break
    places, _ = found.rows.places([index])
    ids = found.rows.ids[places].tolist()
    shift, first = int(found.shift[index]), int(found.first[index])
    parts = [0] * shift + [1] * (len(ids) - shift)
    asked_cut = _part(tokenizer.encode_with_offsets(question), 0, shift - 2)
    seen = _part(whole_context, first, first + len(ids) - shift - 1)
    side = _framed_side(tokenizer, [(question, asked_cut), (context, seen)])

    def outcome(hidden: Tensor, whole: Outcome | None) -> Outcome:
        answered = model.answer(question, context, best=GUESSES if whole is None else 50)
        shares = {one.text: one.probability for one in (answered.best, *answered.others)}
        names = list(shares) if whole is None else [event.name for event in whole.events]
        return Outcome(answered.best.text, tuple(Event(name, shares.get(name)) for name in names))

    return _reading(model, [ids], [parts], {"self": side}, outcome, len(found.rows) > 1)


def _filling(model: Filler, asked: Text) -> Job:
    tokenizer, specials = model.tokenizer, model.tokenizer.specials
    pieces = asked.text.split(MASK)
    if len(pieces) > 1 and specials.mask is None:
        raise BadInput(f"this run's vocabulary (kind {tokenizer.kind}) has no {MASK}")
    start, end = tokenizer.pieces([specials.start, specials.end])
    ids, tokens, numbers = [specials.start], [start], [SPECIAL]
    known, hidden_at = list[str](), list[int]()
    for number, piece in enumerate(pieces):
        if number:
            hidden_at.append(len(ids))
            ids, tokens, numbers = [*ids, int(specials.mask or 0)], [*tokens, MASK], [*numbers, SPECIAL]
        cut = tokenizer.encode_with_offsets(piece)
        ids, tokens = [*ids, *cut.ids], [*tokens, *cut.tokens]
        numbers = [*numbers, *(len(known) + word for word in cut.words)]
        known += piece.split()
    shortened = len(ids) >= model.window and not hidden_at
    ids, tokens, numbers = ([*row[: model.window - 1], last] for row, last in
                            ((ids, specials.end), (tokens, end), (numbers, SPECIAL)))  # fmt: skip
    side = Side(tokens, numbers, known)

    def outcome(hidden: Tensor, whole: Outcome | None) -> Outcome:
        if not hidden_at:
            return Outcome("")
        guesses = model.fill(asked.text, GUESSES if whole is None else 1000)
        events = []
        for number, found in enumerate(guesses, 1):
            group = f"{MASK} {number}" if len(guesses) > 1 else MASK
            shares = {guess.token: guess.probability for guess in found}
            names = list(shares) if whole is None else [one.name for one in whole.events if one.group == group]
            events += [Event(name, shares.get(name), group=group) for name in names]
        return Outcome(guesses[0][0].text, tuple(events))

    return _reading(model, [ids], [[0] * len(ids)], {"self": side}, outcome, shortened)
