"""Labelled data of the grammar: balanced, distinct, split by content, the same everywhere."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from itertools import chain

import pytest

from jumok.data import grammar
from jumok.data.examples import Example, Question, Tagged
from jumok.data.grammar import LANGUAGES, SPLITS
from jumok.data.grammar.sampler import Sampler
from jumok.data.grammar_tasks import (
    KINDS,
    LABELS,
    ROLES,
    TAGS,
    fingerprint,
    grammar_examples,
    grammar_pairs,
    grammar_questions,
    grammar_similarity,
    grammar_tagged,
)
from jumok.data.grammar_tasks.walk import concepts_of
from jumok.errors import BadInput

Maker = Callable[[str, str, int, int], Iterator[Example | Tagged | Question]]
MAKERS: dict[str, Maker] = {
    "examples": grammar_examples,
    "pairs": grammar_pairs,
    "similarity": grammar_similarity,
    "tagged": grammar_tagged,
    "questions": partial(grammar_questions, share_unanswerable=0.2),
}
GOLDEN = {
    ("examples", "en"): "c4e58873cb2acf8f",
    ("examples", "fr"): "47a92795c1c697c1",
    ("examples", "ko"): "686d913d4e802581",
    ("pairs", "en"): "4d6800592c431cac",
    ("pairs", "fr"): "f7be59b16857fa2c",
    ("pairs", "ko"): "2510236763934ecd",
    ("similarity", "en"): "7f17e1da5cc0f270",
    ("similarity", "fr"): "147c93ffb7d748a0",
    ("similarity", "ko"): "6d893e51bd6baddf",
    ("tagged", "en"): "f3051c36fbff3663",
    ("tagged", "fr"): "e1de8fdad7df7b2d",
    ("tagged", "ko"): "405f0a478f1f8637",
    ("questions", "en"): "f7397119c50d7515",
    ("questions", "fr"): "f58960bb1f192e3b",
    ("questions", "ko"): "a39a9b5a53c36e81",
}


def fresh() -> int:
    return random.SystemRandom().randrange(1_000_000)


def texts_of(made: Example | Tagged | Question) -> list[str]:
    """The sentences of what was made."""
    if isinstance(made, Tagged):
        return [" ".join(made.words)]
    if isinstance(made, Question):
        return made.context.replace(". ", ".\n").splitlines()
    return [made.text] + ([made.second] if made.second is not None else [])


def digest(maker: Maker, language: str) -> str:
    """Of the first hundred for training; what comes from no file has no lines."""
    made = "\n".join(repr(one).replace(", lines=()", "") for one in maker(language, "train", 100, 1))
    return blake2b(made.encode(), digest_size=8).hexdigest()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", MAKERS)
def test_the_same_on_every_machine(name: str, language: str) -> None:
    assert digest(MAKERS[name], language) == GOLDEN[name, language]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", MAKERS)
def test_distinct_counted_and_not_the_same_for_another_seed(name: str, language: str) -> None:
    seed = fresh()
    made = list(MAKERS[name](language, "train", 150, seed))
    assert len(set(made)) == 150, seed
    assert made[:20] == list(MAKERS[name](language, "train", 20, seed)), seed
    assert made[:20] != list(MAKERS[name](language, "train", 20, seed + 1)), seed


@pytest.mark.parametrize("name", MAKERS)
def test_no_sentence_is_in_two_splits(name: str) -> None:
    seed = fresh()
    language = LANGUAGES[seed % 3]
    sizes = {"train": 600, "valid": 60, "test": 60}
    sentences = {
        split: set(chain.from_iterable(map(texts_of, MAKERS[name](language, split, sizes[split], seed + place))))
        for place, split in enumerate(SPLITS)
    }
    for one, other in (("train", "valid"), ("train", "test"), ("valid", "test")):
        assert not sentences[one] & sentences[other], (language, seed)


@pytest.mark.parametrize("language", LANGUAGES)
def test_labels_are_balanced(language: str) -> None:
    seed = fresh()
    kinds = Counter(example.label for example in grammar_examples(language, "train", 600, seed))
    assert kinds == dict.fromkeys(KINDS, 100), seed
    labels = Counter(example.label for example in grammar_pairs(language, "train", 300, seed))
    assert labels == dict.fromkeys(LABELS, 100), seed


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_closing_mark_tells_no_kind(language: str) -> None:
    marks: dict[str, set[str | None]] = {}
    for example in grammar_examples(language, "train", 300, fresh()):
        marks.setdefault(example.text[-1], set()).add(example.label)
    assert marks == {
        "?": {"yes-no question", "open question"},
        ".": {"statement", "negation", "comparison", "order"},
    }


def test_not_alone_tells_no_negation() -> None:
    seed = fresh()
    denied = Counter(
        example.label
        for example in grammar_examples("en", "train", 3000, seed)
        if {"not", "no", "cannot"} & set(example.text.lower().rstrip(".?").split())
    )
    assert denied["negation"] == 500, seed
    assert denied["statement"] > 10, seed
    assert denied["yes-no question"] > 10, seed


@pytest.mark.parametrize("language", LANGUAGES)
def test_tags_are_iob2_and_cover_the_words(language: str) -> None:
    seed = fresh()
    used: Counter[str] = Counter()
    for made in grammar_tagged(language, "train", 1500, seed):
        assert len(made.words) == len(made.tags)
        assert all(word and " " not in word for word in made.words)
        assert set(made.tags) <= set(TAGS)
        for before, tag in zip(("O", *made.tags), made.tags, strict=False):
            assert tag[0] != "I" or before[1:] == tag[1:], (made, seed)
        assert made.tags[-1] == "O"  # the closing mark
        assert made.words[-1] in (".", "?")
        used.update(tag[2:] for tag in made.tags if tag[0] == "B")
    assert set(used) == set(ROLES), (used, seed)


def test_roles_of_known_sentences() -> None:
    train = {" ".join(made.words): made.tags for made in grammar_tagged("en", "train", 3)}
    valid = {" ".join(made.words): made.tags for split in SPLITS for made in grammar_tagged("en", split, 3)}
    hungry = {**train, **valid}["A dog devoured his treat , because he was hungry ."]
    assert hungry == ("B-WHO", "I-WHO", "O", "B-WHAT", "I-WHAT", "O", "O", "B-WHO", "O", "O", "O")


def test_places_of_english_start_with_their_preposition() -> None:
    seed = fresh()
    for made in grammar_tagged("en", "train", 800, seed):
        for word, tag in zip(made.words, made.tags, strict=True):
            if tag == "B-WHERE":
                assert word in ("in", "at", "on", "to", "here", "outside", "everywhere"), (made, seed)
            if tag == "B-WHOM":
                assert word in ("to", "for", "with"), (made, seed)


@pytest.mark.parametrize("language", LANGUAGES)
def test_scores_spread_and_mean_what_they_say(language: str) -> None:
    seed = fresh()
    scores = [float(example.label or "nan") for example in grammar_similarity(language, "train", 400, seed)]
    assert min(scores) == 0.0, seed
    assert max(scores) == 5.0, seed
    assert all(Counter(round(score) for score in scores)[whole] >= 10 for whole in range(6)), seed
    for example in grammar_similarity(language, "train", 200, seed):
        assert example.second is not None
        if example.label == "0.0" and language == "en":
            shared = set(example.text.lower().strip(".").split()) & set(example.second.lower().strip(".").split())
            assert not {word for word in shared if word in grammar.vocabulary("en")} - {"have"}, (example, seed)


def test_concepts_are_read_off_a_tree_as_the_sampler_wrote_them() -> None:
    seed = fresh()
    for size in (8, 11, 25):
        sampler = Sampler(seed, size)
        for _ in range(300):
            sentence = sampler.sentence()
            assert sorted(concepts_of(sentence)) == sorted(sentence.concepts), (seed, size)


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_bad_arguments_are_told(maker: Maker) -> None:
    with pytest.raises(BadInput, match='no language "eng"'):
        next(maker("eng", "train", 1, 1))
    with pytest.raises(BadInput, match='Did you mean "train"'):
        next(maker("en", "trian", 1, 1))
    with pytest.raises(BadInput, match="-1"):
        next(maker("en", "train", -1, 1))
    with pytest.raises(BadInput, match="share"):
        next(grammar_questions("en", "train", 1, share_unanswerable=1.5))
    assert not list(maker("en", "train", 0, 1))


def test_the_fingerprint_is_another_than_that_of_the_grammar() -> None:
    assert fingerprint() != grammar.fingerprint()
    assert len(fingerprint()) == 32
