"""One step of attention, written out: from the score to the word, with the model's own numbers under the papers' names.

Recurrent models (Bahdanau et al. 2015, Luong et al. 2015): the six steps for target word t,

    e^t → α^t = softmax(e^t) → a_t = Σ_s α^t_s h_s → [a_t; s_t] → s̃_t → ŷ_t

Multi-head attention (Vaswani et al. 2017), for one head of one layer:

    q, k, v → q·k/√d_k → mask → softmax → Σ_s α_s v_s

Nothing is computed here that the model has not: hooks keep what went into its layers and what came out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from jumok.data.batch import END, START, source_batch, target_batch
from jumok.errors import BadInput, did_you_mean
from jumok.inspect.attention import END_MARK
from jumok.inspect.healthy import require_numbers
from jumok.inspect.tokens import Read, Tokens, Vocabulary
from jumok.inspect.view import View
from jumok.layers.attention import attention_weights, causal_mask
from jumok.layers.tap import Tap
from jumok.models.decoder import BahdanauDecoder, FeedingDecoder, LuongDecoder
from jumok.models.encoder_decoder import EncoderDecoder
from jumok.models.seq2seq import HIDDEN_SCALE, Seq2Seq
from jumok.models.transformer import Transformer
from jumok.tasks.translator import Translator

Numbers = NDArray[np.float32]
BEST = 5  # words of a prediction that are shown
Call = tuple[tuple[Any, ...], Tensor]  # what went into a module, and what came out


@dataclass(frozen=True, eq=False)
class Step:
    """Numbers with a name: a number for each key (or word), a vector, or a vector for each key."""

    symbol: str
    name: str
    formula: str
    values: Numbers  # (n,) or (keys, d)
    labels: tuple[str, ...] = ()  # of the n numbers, or of the rows; (): a vector

    def as_dictionary(self) -> dict[str, Any]:
        values = np.where(np.isfinite(self.values), self.values, np.nan).astype(float)
        return {
            "symbol": self.symbol,
            "name": self.name,
            "formula": self.formula,
            "labels": list(self.labels),
            "values": [_plain(row) for row in values] if values.ndim == 2 else _plain(values),
        }


@dataclass(frozen=True, eq=False)
class Steps:
    """All steps for one query: the word that is written then, or the one that looks (kind "self")."""

    sentence: str
    written: tuple[str, ...]  # the tokens of the side that looks
    place: int  # which of them it is about
    title: str
    steps: tuple[Step, ...]
    best: tuple[tuple[str, float], ...] = ()  # what the model finds likeliest here, with probabilities

    def __getitem__(self, symbol: str) -> Step:
        return next(step for step in self.steps if step.symbol == symbol)

    def as_dictionary(self) -> dict[str, Any]:
        return {
            "sentence": self.sentence,
            "written": list(self.written),
            "place": self.place,
            "title": self.title,
            "steps": [step.as_dictionary() for step in self.steps],
            "best": [[word, probability] for word, probability in self.best],
        }

    def __str__(self) -> str:
        from jumok.inspect.steps_picture import printed

        return printed(self)

    def _repr_html_(self) -> str:
        """In a notebook: the page, in a frame of its own."""
        from jumok.inspect.html import framed
        from jumok.inspect.steps_picture import steps_page

        return framed(steps_page(self), 720)


@torch.inference_mode()
def steps_of(
    translator: Translator,
    sentence: str,
    word: str,
    target: str | Sequence[int] | None = None,
    view: View | None = None,
    tokens: bool = False,
    ended: bool = True,
) -> Steps:
    """The steps for a target word, given by its number (from 1) or as it is written; with `tokens` for a token.

    `<eos>` is the last of them, unless the model's own translation was cut. Where no translation is given, it is the
    model's own. `view` chooses a Transformer's layer, head (without one: 0) and kind; for "self" the word is one of the
    source. Of a translation given as token ids, `ended` says whether the model ended it itself.
    """
    view = view or View()
    model = translator.model.eval()
    tap = view.tap(model)
    require_numbers(model)
    translator.refuse_long([sentence])
    cut = translator.source.encode_with_offsets(sentence.strip()).ids
    text = target if isinstance(target, str) else None
    written = [int(id) for id in target or ()] if text is None else translator.target.encode([text])[0]
    if target is None:
        best = translator.nbest([sentence])[0][0]
        written, ended = list(best.ids), best.finished
    words = Vocabulary(translator.source, translator.target)
    read = Read((*translator.before, *cut, END), (START, *written), words, sentence.strip(), text, ended)
    queries, keys = read.sides(view.kind)
    assert queries is not None
    assert keys is not None
    place = _place(queries, word, tokens)
    source = source_batch([[*translator.before, *cut]]).to(translator.device)
    if isinstance(model, Transformer):
        target_ids = target_batch([written]).ids[:, :-1].to(translator.device)
        head = view.head or 0
        steps, prediction = _multi_head(model, tap, head, place, keys, lambda: model(source, target_ids))
        where = f"{tap.name}, head {head} of {tap.heads}"
    else:
        assert isinstance(model, Seq2Seq)
        steps, prediction = _recurrent(model, tap, [START, *written[:place]], keys, source, translator)
        where = f"{type(model.decoder).__name__.removesuffix('Decoder')} et al. 2015"
        if isinstance(model.decoder, FeedingDecoder):
            where = "Luong et al. 2015, with input feeding"
    likely = () if view.kind == "self" else _best(translator, prediction[place if prediction.dim() > 1 else ...])
    return Steps(sentence.strip(), queries.tokens, place, f"{_said(queries, place)}: {where}", tuple(steps), likely)


# ---------------------------------------------------------------- recurrent models

SCORES = {
    "Dot": "{s} · h_s",
    "ScaledDot": "{s} · h_s / √d",
    "General": "{s} · W h_s",
    "Additive": "v · tanh(W {s} + U h_s)",
    "Location": "(W_a {s})_s",
}


def _recurrent(
    model: Seq2Seq, tap: Tap, read: Sequence[int], keys: Tokens, source: Any, translator: Translator
) -> tuple[list[Step], Tensor]:
    """Word by word as in a search, up to the step that is asked for."""
    decoder = model.decoder
    combine = decoder.combine if isinstance(decoder, LuongDecoder) else None
    if isinstance(decoder, BahdanauDecoder):
        combine = decoder.readout
    assert combine is not None
    with kept(tap) as looked, kept(combine) as combined:
        memory = model.encode(source)
        cache = model.start(memory, 1, len(read))
        for position, token in enumerate(read):
            at = torch.tensor([[token], [position]], device=translator.device)
            log_probs, cache = model.step(at[0], at[1], memory, cache)
    (query, key, _, mask, scorer), value = looked[-1]
    (together,), out = combined[-1]
    score = SCORES.get(type(scorer).__name__, "score({s}, h_s)")
    scores, weights = scorer(query, key)[0, 0], attention_weights(query, key, mask, scorer)[0, 0]
    labels = keys.tokens
    if isinstance(decoder, BahdanauDecoder):
        query_name, value_name, hidden, hidden_name = "s_(t-1)", "c_t", decoder.maxout(together), "t_t"
        joined = ("[s_t; c_t; y_(t-1)]", "s_t = cell([y_(t-1); c_t], s_(t-1)), and both beside the last word's vector")
        made = "maxout(W [s_t; c_t; y_(t-1)] + b), the readout"
    else:
        query_name, value_name, hidden, hidden_name = "s_t", "a_t", torch.tanh(out), "s̃_t"
        joined = ("[a_t; s_t]", "what was seen, and the state that looked")
        made = "tanh(W_c [a_t; s_t] + b_c)"
    probabilities = log_probs[0].exp()
    bridge = "" if isinstance(model.project, nn.Identity) else " P"  # from the state's width to that of word vectors
    steps = [
        Step("e^t", "score", f"e^t_s = {score.format(s=query_name)}", _numbers(scores), labels),
        Step("α^t", "attention distribution", "α^t = softmax(e^t)", _numbers(weights), labels),
        Step(value_name, "attention value", f"{value_name} = Σ_s α^t_s h_s", _numbers(value.reshape(-1))),
        Step(joined[0], "concatenation", joined[1], _numbers(together.reshape(-1))),
        Step(hidden_name, "attentional state", f"{hidden_name} = {made}", _numbers(hidden.reshape(-1))),
        _predicted(
            translator, probabilities, f"ŷ_t = softmax(W_y {hidden_name} + b_y), W_y = {HIDDEN_SCALE:g} W{bridge}"
        ),
    ]
    return steps, probabilities


def _predicted(translator: Translator, probabilities: Tensor, formula: str) -> Step:
    best = _best(translator, probabilities)
    values = np.array([probability for _, probability in best], dtype=np.float32)
    return Step("ŷ_t", "prediction", formula, values, tuple(word for word, _ in best))


# ---------------------------------------------------------------- multi-head attention


def _multi_head(
    model: EncoderDecoder, tap: Tap, head: int, place: int, keys: Tokens, forward: Callable[[], Tensor]
) -> tuple[list[Step], Tensor]:
    """All positions at once, as in training: what the causal mask hides is there, and hidden."""
    with kept(tap) as looked:
        hidden = forward()
    rotary = isinstance(model, Transformer) and model.section.position == "rotary"
    steps = head_steps(tap, looked[-1], head, place, keys.tokens, rotary)
    return steps, model.head(hidden[0]).float().softmax(dim=-1)


def head_steps(
    tap: Tap, call: Call, head: int, place: int, labels: Sequence[str], rotary: bool = False, row: int = 0
) -> list[Step]:
    """The steps of one head for one query, out of what went through its tap (`kept`), of any model. `labels` name the
    keys; what comes behind them is padding. `row`: which text of the batch."""
    (query, key, value, mask, scorer, bias, causal, _), output = call
    count, width, labels = len(labels), query.size(-1), tuple(labels)
    weights = attention_weights(query, key, mask, scorer, bias, causal)
    scores = scorer(query, key)[row, head, place, :count]
    turned = ", turned by its position" if rotary and tap.kind != "cross" else ""
    looks, seen = ("x", "m") if tap.kind == "cross" else ("x", "x")
    steps = [
        Step("q", "query", f"q = {looks} W^Q{turned} (d_k = {width})", _numbers(query[row, head, place])),
        Step("k", "keys", f"k_s = {seen}_s W^K{turned}", _numbers(key[row, head, :count]), labels),
        Step("v", "values", f"v_s = {seen}_s W^V", _numbers(value[row, head, :count]), labels),
        Step("q·k/√d_k", "scaled scores", f"q · k_s / √{width}", _numbers(scores), labels),
    ]
    if bias is not None:
        added = bias[row if len(bias) > 1 else 0, head, place, :count]
        steps.append(Step("+ b", "with the bias of distance", "q · k_s / √d_k + b_s", _numbers(scores + added), labels))
        scores = scores + added
    open_ = torch.ones_like(scores, dtype=torch.bool)
    if mask is not None:
        open_ &= mask[row].reshape(-1, mask.size(-1))[0, :count]
    if causal:
        open_ &= causal_mask(query.size(-2), key.size(-2), query.device)[place, :count]
    masked = scores.masked_fill(~open_, float("-inf"))
    hides = "−∞ for what comes later" if causal else "−∞ for padding: none here"
    return [
        *steps,
        Step("mask", "masked scores", hides, _numbers(masked), labels),
        Step("softmax", "attention weights", "α = softmax over s", _numbers(weights[row, head, place, :count]), labels),
        Step("Σ", "attention value", "Σ_s α_s v_s, before W^O", _numbers(output[row, head, place])),
    ]


# ---------------------------------------------------------------- parts


@contextmanager
def kept(module: nn.Module) -> Iterator[list[Call]]:
    """What goes into a module and what comes out, call by call."""
    calls: list[Call] = []
    handle = module.register_forward_hook(lambda _module, inputs, output: calls.append((inputs, output)))
    try:
        yield calls
    finally:
        handle.remove()


def _numbers(tensor: Tensor) -> Numbers:
    return np.asarray(tensor.detach().to("cpu", torch.float32).numpy())


def _plain(values: Any) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def _best(translator: Translator, probabilities: Tensor) -> tuple[tuple[str, float], ...]:
    found = probabilities.topk(min(BEST, len(probabilities)))
    names = translator.target.pieces(found.indices.tolist())
    return tuple(zip(names, found.values.tolist(), strict=True))


def _place(side: Tokens, wanted: str, by_tokens: bool) -> int:
    """The token that is meant: the first piece of a word, or the token itself."""
    texts = side.text.split()
    starts: dict[int, str] = {}  # place of the first piece of each word, and the word
    before: int | None = None
    for place, word in enumerate(side.words):
        if by_tokens or word is None or word != before:
            named = not by_tokens and word is not None and word < len(texts)  # a blank by itself is no text
            starts[place] = texts[word] if named and word is not None else side.tokens[place]
        before = word
    numbered = list(starts)
    if wanted.isdecimal() and 1 <= int(wanted) <= len(numbered):
        return numbered[int(wanted) - 1]
    for same in (lambda a, b: a == b, lambda a, b: _bare(a) == _bare(b)):
        found = next((place for place, text in starts.items() if same(text, wanted)), None)
        if found is not None:
            return found
    listed = ", ".join(f"{number} {text}" for number, text in enumerate(starts.values(), 1))
    kind = "token" if by_tokens else "word"
    hint = "" if wanted.isdecimal() else did_you_mean(wanted, set(starts.values())).partition(" Known:")[0]
    raise BadInput(f"--steps {wanted}: no such {kind}.{hint} There are: {listed}")


def _bare(text: str) -> str:
    """Without case, blanks and marks around it: "student" is meant by who sees "student."."""
    return text.casefold().strip("▁.,;:!?\"'«»()… ") or text


def _said(side: Tokens, place: int) -> str:
    """As in: word 3, "étudiant." (its token "▁étu")."""
    word = side.words[place]
    texts = side.text.split()
    if word is None or word >= len(texts):
        return f'"{side.tokens[place]}"' if side.tokens[place] != END_MARK else END_MARK
    text = texts[word]
    pieces = sum(other == word for other in side.words)
    piece = "" if pieces == 1 else f' (its piece "{side.tokens[place]}", one of {pieces})'
    return f'word {word + 1}, "{text}"{piece}'
