import math

import pytest

from jumok.errors import BadInput
from jumok.search.options import SearchOptions, max_length_for, normalised


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"beam": 0}, "beam"),
        ({"beam": -3}, "beam"),
        ({"beam": 2, "nbest": 3}, "nbest"),
        ({"nbest": 0}, "nbest"),
        ({"length_penalty": -0.5}, "length_penalty"),
        ({"length_penalty": math.nan}, "length_penalty"),
        ({"max_length": 0}, "max_length"),
        ({"max_extra": -1}, "max_extra"),
        ({"max_ratio": math.inf}, "max_ratio"),
        ({"max_ratio": 1e9}, "max_ratio: must be a number from 0 to 1000"),
        ({"max_extra": 10**9}, "max_extra: must be from 0 to 100000"),
        ({"max_length": 10**9}, "max_length 1000000000: give at most 100000"),
        ({"min_length": 10**9}, "min_length 1000000000: give at most 100000"),
        ({"beam": 10**9}, "beam 1000000000: give at most 10000"),
        ({"patience": 0.0}, "patience"),
        ({"stopping": "soon"}, "stopping: 'soon' is none of exact, transformers"),
        ({"prefix": (4, -1)}, "prefix"),
        ({"forbidden": (-1,)}, "forbidden"),
        ({"coverage_penalty": -0.1}, "coverage_penalty"),
        ({"coverage_penalty": math.nan}, "coverage_penalty"),
        ({"min_length": 0}, "min_length"),
        ({"min_length": 6, "max_length": 5}, "min_length 6 exceeds max_length 5"),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram"),
        ({"sample": True, "temperature": 0.0}, "temperature"),
        ({"sample": True, "temperature": math.inf}, "temperature"),
        ({"sample": True, "top_k": -1}, "top_k"),
        ({"sample": True, "top_p": 0.0}, "top_p"),
        ({"sample": True, "top_p": 1.1}, "top_p"),
        ({"sample": True, "beam": 4}, "sampling draws one output, a beam of 4"),
        ({"sample": True, "required": ((4,),)}, "required phrases are placed by beam search"),
        ({"temperature": 0.7}, "sample=True"),
        ({"required": ((),)}, "required"),
        ({"required": ((4, -5),)}, "required"),
        ({"required": (4, 5)}, "required: each phrase is a tuple of token ids, 4 is not"),
        ({"forbidden_phrases": ((),)}, "forbidden_phrases"),
        ({"required": ((4, 5),), "forbidden": (5,)}, "holds the forbidden token 5"),
        (
            {"required": ((4, 5, 6),), "forbidden_phrases": ((5, 6),)},
            r"\[4, 5, 6\] holds the forbidden phrase",
        ),
        ({"prefix": (4, 5), "forbidden_phrases": ((4, 5),)}, "the prefix .* holds the forbidden phrase"),
        ({"required": ((4, 5, 4, 5),), "no_repeat_ngram": 2}, "repeats 2 tokens"),
        ({"required": ((5, 6, 7), (5, 6, 8)), "no_repeat_ngram": 2}, "need 2 tokens twice"),
        ({"required": ((5, 6, 7),), "prefix": (5, 6, 8), "no_repeat_ngram": 2}, "need 2 tokens twice"),
    ],
)
def test_impossible_options_are_named(wrong, named):
    with pytest.raises(BadInput, match=named):
        SearchOptions(**wrong)


def test_the_limit_is_the_stated_one_or_follows_the_source():
    assert SearchOptions(max_length=7).limit(100) == 7
    assert SearchOptions(max_ratio=1.5, max_extra=4).limit(5) == 11
    assert SearchOptions(max_ratio=1000.0).limit(100_000) == 100_000, "room for all of it is made beforehand"
    with pytest.raises(BadInput, match="max_length"):
        SearchOptions().limit(None)


def test_an_output_has_room_for_its_end():
    assert max_length_for(0, 2.0, 0) == 1
    assert max_length_for(10, 2.0, 20) == 40


def test_the_score_divides_by_length_to_the_power():
    assert normalised(-6.0, 3, 1.0) == -2.0
    assert normalised(-6.0, 3, 0.0) == -6.0
    assert normalised(-6.0, 4, 0.5) == -3.0
