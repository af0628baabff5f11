"""CTranslate2 as an engine: the hypotheses that our own search finds, or a refusal that names the option."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from ct2_runs import ending, small_run
from seeded import seed as seed
from translators import translator

from jumok.errors import BadInput
from jumok.interop.ctranslate2 import Chosen, engine_folder
from jumok.interop.ctranslate2_spec import save_model
from jumok.layers.tap import Tap
from jumok.models.build import build
from jumok.recipe import TransformerSection
from jumok.search import SearchOptions
from jumok.tasks.engine import Engine
from jumok.tasks.engine_ct2 import CTranslate2Engine

pytest.importorskip("ctranslate2")
CPU = torch.device("cpu")
PLAIN = SearchOptions(beam=5, nbest=3, patience=1.0, max_length=30)
Rows = list[tuple[list[int], SearchOptions]]


class Both:
    def __init__(self, path: Path, seed: int, ends: bool = True) -> None:
        run = small_run(path, seed, ends)
        self.model = Chosen.of(run, print).model()
        self.here = Engine([self.model], CPU)
        self.there = CTranslate2Engine([self.model], CPU, engine_folder(run, "float32", print), threads=2)
        self.random = random.Random(seed)

    def rows(self, count: int, options: SearchOptions = PLAIN) -> Rows:
        draw = self.random.randrange
        return [([draw(4, 40) for _ in range(draw(1, 15))], options) for _ in range(count)]

    def agree(self, rows: Rows, size: int = 8) -> None:
        """The same n-best but for ties: where tokens differ, scores do not."""
        ours, theirs = dict(self.here.search(rows, size)), dict(self.there.search(rows, size))
        assert sorted(theirs) == list(range(len(rows)))
        same = 0
        for place in range(len(rows)):
            assert len(ours[place]) == len(theirs[place])
            for one, other in zip(ours[place], theirs[place], strict=True):
                assert other.score == pytest.approx(one.score, abs=1e-4)
                if one.tokens == other.tokens:
                    assert other.log_probability == pytest.approx(one.log_probability, abs=1e-3)
                    assert other.finished == one.finished
                    same += 1
        assert same >= 0.97 * sum(len(found) for found in ours.values())


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    torch.set_num_threads(1)
    drawn = random.randrange(2**31)
    print("seed", drawn)
    return Both(tmp_path_factory.mktemp("engine") / "run", drawn)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"beam": 1, "nbest": 1},
        {"beam": 2, "nbest": 2},
        {"length_penalty": 0.0},
        {"length_penalty": 0.6, "nbest": 5},
        {"patience": 2.0},
        {"patience": 0.7},
        {"patience": 1.0, "stopping": "transformers"},
        {"patience": 0.6, "stopping": "transformers", "length_penalty": 0.4},
        {"beam": 1, "nbest": 1, "patience": None, "stopping": "transformers", "max_length": 6},
        {"max_length": None, "max_ratio": 1.0, "max_extra": 4},
    ],
    ids=lambda changes: " ".join(f"{name} {value}" for name, value in changes.items()) or "plain",
)
def test_the_same_hypotheses(both: Both, changes: dict[str, Any]) -> None:
    both.agree(both.rows(40, replace(PLAIN, **changes)))


def test_rows_with_options_of_their_own(both: Both) -> None:
    rows = both.rows(30)
    changes = [{"nbest": 1}, {"max_length": 3}, {"max_length": 1}, {"beam": 1, "nbest": 1}, {"length_penalty": 0.5}]
    both.agree([(source, replace(PLAIN, **both.random.choice(changes))) for source, _ in rows])


def test_most_of_it_is_done_there(both: Both) -> None:
    rows = both.rows(40, replace(PLAIN, max_length=60))
    list(both.there.search(rows, 8))
    assert len(both.there.left) < 20


def test_the_longest_length_is_ours(tmp_path: Path, seed: int) -> None:
    """A model that never ends by itself: every hypothesis is closed with <eos>, and says that it was cut."""
    both = Both(tmp_path / "run", seed, ends=False)
    rows = both.rows(6, replace(PLAIN, max_length=9))
    both.agree(rows)
    found = dict(both.there.search(rows, 4))
    assert all(len(one.tokens) == 8 and not one.finished for each in found.values() for one in each)


def test_what_never_comes_does_not_come(both: Both) -> None:
    """Forbidden ids are no part of any output, also where the model likes them best."""
    rows = both.rows(10)
    liked = next(one.tokens[0] for _, found in both.there.search(rows, 8) for one in found if one.tokens)
    asked = replace(PLAIN, forbidden=(*PLAIN.forbidden, liked))
    for _, found in both.there.search([(source, asked) for source, _ in rows], 8):
        assert not any(liked in one.tokens for one in found)
    assert both.there.left


def test_positions_beyond_the_table_and_empty_sources(both: Both) -> None:
    there = both.there.positions
    both.there.positions = 10
    both.agree([*both.rows(10), ([], PLAIN), ([5] * 20, PLAIN)])
    both.there.positions = there


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"sample": True, "beam": 1, "nbest": 1}, "--sample"),
        ({"required": ((5, 6),)}, "--require"),
        ({"forbidden_phrases": ((5, 6),)}, "--forbid"),
        ({"forbidden": (0, 2, 3)}, "forbidden"),
        ({"prefix": (5,)}, "--prefix"),
        ({"coverage_penalty": 0.2}, "--coverage-penalty"),
        ({"no_repeat_ngram": 3}, "--no-repeat-ngram"),
        ({"min_length": 4}, "--min-length"),
        ({"patience": None}, r"search\.patience"),
        ({"patience": 2.0, "stopping": "transformers"}, r"search\.stopping"),
        ({"patience": None, "stopping": "transformers"}, r"search\.patience"),
        ({"patience": 0.2}, r"search\.patience"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_it_cannot_do_is_refused(both: Both, changes: dict[str, Any], named: str) -> None:
    with pytest.raises(BadInput, match=named):
        list(both.there.search(both.rows(3, replace(PLAIN, **changes)), 8))


def test_ensembles_devices_and_watchers_are_refused(both: Both) -> None:
    folder = both.there.folder
    with pytest.raises(BadInput, match="not 2 together"):
        CTranslate2Engine([both.model, both.model], CPU, folder)
    with pytest.raises(BadInput, match="--device meta"):
        CTranslate2Engine([both.model], torch.device("meta"), folder)
    tap = next(module for module in both.model.modules() if isinstance(module, Tap))
    handle = tap.register_forward_hook(lambda *_: None)
    assert tap.watched
    with pytest.raises(BadInput, match="what it looks at"):
        list(both.there.search(both.rows(1), 8))
    handle.remove()


def test_a_translator_with_it(tmp_path: Path, seed: int) -> None:
    translating = translator("transformer", max_ratio=2.0)
    section = translating.model.section  # type: ignore[attr-defined]
    assert isinstance(section, TransformerSection)
    translating.model = ending(build(section, translating.source.size, translating.target.size), seed)
    translating.models = (translating.model,)
    translating.engine = Engine(translating.models, CPU)
    expected = translating.nbest(["the dog sees the cat .", "", "she reads ."], nbest=2)
    save_model(translating.model, translating.source, translating.target, tmp_path, "float32")
    (tmp_path / "jumok.json").write_text('{"positions": 1024}')
    translating.engine = CTranslate2Engine(translating.models, CPU, tmp_path)
    found = translating.nbest(["the dog sees the cat .", "", "she reads ."], nbest=2)
    scores = [one.score for each in expected for one in each]
    assert [one.score for each in found for one in each] == pytest.approx(scores, abs=1e-4)
    assert isinstance(found[0][0].text, str)
