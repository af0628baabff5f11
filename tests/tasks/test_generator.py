"""A language model that writes: after any prompt, alone or among others, at once or as it comes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from seeded import seed  # noqa: F401  fresh weights in every run
from torch import nn

from jumok.data.batch import END
from jumok.errors import BadInput
from jumok.models.language import build_language_model
from jumok.recipe import RecurrentLanguageSection, TransformerLanguageSection
from jumok.tasks.generator import GenerateOptions, Generator, Written
from jumok.text.pipeline import KINDS
from jumok.text.tokenizer import Tokenizer, train_tokenizer

LINES = ["A dog sleeps.", "The queen saw a dog!", "나는 학생입니다.", "👩‍👧 and 🇰🇷 naïve"]
TOKENIZERS = {kind: train_tokenizer(LINES, kind, 300) for kind in KINDS}
MODELS = ("lstm", "transformer")


def generator_of(kind: str, tokenizer: Tokenizer | None = None, window: int = 24) -> Generator:
    """Weights that are large enough for decided opinions, and a bias against ending at once.

    In float64: the edge between two words that are drawn, or the best two, can be nearer than float32 is exact.
    """
    tokenizer = tokenizer or TOKENIZERS["bpe"]
    section: Any = (
        TransformerLanguageSection(width=16, heads=2, layers=2, feed_forward=16)
        if kind == "transformer"
        else RecurrentLanguageSection(cell="lstm", embedding=16, width=16, layers=1)
    )
    model = build_language_model(section, tokenizer.size).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    with torch.no_grad():
        model.bias[END] -= 3.0
    return Generator(model, tokenizer, window, torch.device("cpu"))


@pytest.mark.parametrize("kind", MODELS)
def test_streamed_text_is_the_text(kind: str) -> None:
    generator = generator_of(kind)
    for options in (
        GenerateOptions(max_tokens=60, lines=3),
        GenerateOptions(max_tokens=60, lines=4, sample=True, seed=5, count=2),
    ):
        (found,) = generator.continuations(["A dog"], options)
        for sample, one in enumerate(found):
            assert "".join(generator.stream("A dog", options, sample)) == one.text
            assert str(one) == "A dog" + one.text


@pytest.mark.parametrize("kind", MODELS)
def test_prompts_are_answered_as_if_alone(kind: str) -> None:
    generator = generator_of(kind)
    prompts = ["", "A dog", "The queen saw a dog!\n나는"]
    for options in (
        GenerateOptions(max_tokens=40, lines=2),
        GenerateOptions(max_tokens=40, sample=True, temperature=0.9, top_k=9, top_p=0.9, seed=3, count=2),
        GenerateOptions(max_tokens=8, beam=3, count=2),
    ):
        together = generator.continuations(prompts, options)
        for prompt, found in zip(prompts, together, strict=True):
            assert generator.continuations([prompt], options) == [found]
            assert len(found) == options.count
            assert all(len(one.ids) <= options.max_tokens for one in found)


def test_a_seed_decides_a_sample_and_another_one_another() -> None:
    generator = generator_of("lstm")
    texts = [generator.generate("A", 30, temperature=1.0, seed=number) for number in (1, 2, 1)]
    assert texts[0] == texts[2] != texts[1]
    assert generator.generate("A", 30) == generator.generate("A", 30, sample=False), "greedy, unless told"
    two = generator.continuations(["A"], GenerateOptions(max_tokens=30, sample=True, count=2, seed=1))[0]
    assert two[0].text != two[1].text
    assert str(two[0]) == texts[0], "the first of several is the one"


def test_lines_go_on_until_enough_have_ended() -> None:
    generator = generator_of("lstm")
    with torch.no_grad():
        generator.model.bias[END] += 12.0  # about every second token
    (found,) = generator.continuations(["A dog"], GenerateOptions(max_tokens=500, lines=5, sample=True, seed=1))
    assert found[0].finished
    assert found[0].text.count("\n") == 4
    assert found[0].ids.count(END) == 4


def test_beyond_its_window_a_transformer_goes_on_from_half_of_it() -> None:
    """By hand: the likeliest token each time, after the context that the rule says."""
    generator = generator_of("transformer", window=12)
    with torch.no_grad():
        generator.model.bias[END] -= 100.0
    (found,) = generator.continuations(["A dog"], GenerateOptions(max_tokens=40))
    assert not found[0].finished
    context, expected = [END, *generator.tokenizer.encode(["A dog"])[0]], []
    with torch.no_grad():
        for _ in range(40):
            if len(context) == 12:
                context = context[-6:]
            logits = generator.model.head(generator.model(torch.tensor([context])))[0, -1].float().log_softmax(-1)
            logits[[0, 1, 2]] = -torch.inf
            context.append(int(logits.argmax()))
            expected.append(context[-1])
    assert list(found[0].ids) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_generated_text_continues_the_prompt_as_the_tokenizer_writes_it(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    for line in LINES:
        (ids,) = tokenizer.encode([line])
        whole = tokenizer.decode([ids])[0]
        for cut in range(len(ids) + 1):
            prompt = tokenizer.decode([ids[:cut]])[0]
            if tokenizer.encode([prompt])[0] != ids[:cut]:
                continue  # half a character cannot be typed
            written = Written(tokenizer, prompt)
            text = "".join(written.add(id) for id in ids[cut:]) + written.rest()
            assert prompt + text == whole


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_piece_of_a_stream_is_half_a_character(data: st.DataObject) -> None:
    tokenizer = TOKENIZERS["byte"]
    texts = data.draw(st.lists(st.sampled_from("a 나👩é\n가🇰"), max_size=12))
    rows = tokenizer.encode("".join(texts).split("\n"))
    ids = [id for row in rows for id in (*row, END)][:-1]
    written = Written(tokenizer, "")
    pieces = [written.add(id) for id in ids]
    assert written.rest() == ""
    assert "".join(pieces) == "".join(texts)
    assert not any("\ufffd" in piece for piece in pieces)


def test_a_character_that_is_never_finished_is_marked_at_the_end() -> None:
    tokenizer = TOKENIZERS["byte"]
    half = tokenizer.encode(["각"])[0][:1]
    written = Written(tokenizer, "a")
    assert written.add(half[0]) == ""
    assert written.rest() == "\ufffd"


def test_a_space_at_the_end_of_a_prompt_is_not_doubled() -> None:
    written = Written(TOKENIZERS["bpe"], "A ")
    dog = TOKENIZERS["bpe"].encode(["dog"])[0]
    assert "A " + "".join(written.add(id) for id in dog) == "A dog"


def test_unknown_and_padding_are_never_written() -> None:
    generator = generator_of("lstm", TOKENIZERS["word"])
    with torch.no_grad():
        generator.model.bias[:3] += 50.0
        generator.model.bias[END] -= 100.0
    (found,) = generator.continuations(["zebra"], GenerateOptions(max_tokens=20))
    assert found[0].ids
    assert min(found[0].ids) >= END


def test_no_sequence_comes_twice_if_that_is_wanted() -> None:
    generator = generator_of("lstm")
    with torch.no_grad():
        generator.model.bias[END] -= 100.0
    (found,) = generator.continuations([""], GenerateOptions(max_tokens=60, no_repeat_ngram=2))
    pairs = list(zip(found[0].ids, found[0].ids[1:], strict=False))
    assert len(pairs) == 59
    assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_tokens": 0}, "max_tokens 0"),
        ({"max_tokens": 10**9}, "max_tokens 1000000000: give at most 99999"),
        ({"count": 10**9, "sample": True}, "count 1000000000: give at most 10000"),
        ({"beam": 10**9}, "beam 1000000000: give at most 10000"),
        ({"count": 2}, "Sample"),
        ({"count": 3, "beam": 2}, "beam"),
        ({"lines": 2, "beam": 2}, "best line"),
        ({"beam": 0}, "beam 0"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, int], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        GenerateOptions(**options)  # type: ignore[arg-type]


def test_what_is_asked_at_most_can_be_searched() -> None:
    most = GenerateOptions(max_tokens=99_999)
    assert most.options(most.max_tokens, 0).max_length == 100_000


def test_impossible_sampling_is_refused() -> None:
    generator = generator_of("lstm")
    for options in ({"temperature": 0.0}, {"top_p": 1.5}, {"top_k": -1}, {"temperature": 0.5, "beam": 2}):
        with pytest.raises(BadInput):
            generator.generate("A", **options)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="list of prompts"):
        generator.continuations("A dog", GenerateOptions())
    with pytest.raises(BadInput, match="beam 1"):
        next(generator.stream("A", GenerateOptions(beam=2)))


def test_a_prompt_longer_than_the_window_is_named() -> None:
    long = "A dog sleeps. " * 9
    transformer, recurrent = generator_of("transformer", window=12), generator_of("lstm", window=12)
    with pytest.raises(BadInput, match=r"prompt 2 has \d+ tokens, the model looks back at 12"):
        transformer.continuations(["A", long], GenerateOptions())
    assert not transformer.fits(long)
    assert recurrent.fits(long)
    assert recurrent.generate(long, 3).startswith(long)


def test_perplexity_of_lines() -> None:
    generator = generator_of("transformer")
    found = generator.perplexity(LINES)
    assert found.lines == 4
    assert found.per_token > 1
    with pytest.raises(BadInput, match="splitlines"):
        generator.perplexity("A dog")
    with pytest.raises(BadInput, match="stride 0"):
        generator.perplexity(LINES, 0)
