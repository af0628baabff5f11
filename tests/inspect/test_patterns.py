"""What heads look at: heads made by hand are found, and all numbers are those of plain loops."""

from __future__ import annotations

import io
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from seeded import seed as seed

from jumok.data.batch import Sequences
from jumok.errors import BadInput
from jumok.inspect import patterns as module
from jumok.inspect.patterns import BROAD, LIFT, PATTERNS, SHARE, HeadPattern, Patterns, head_patterns, named
from jumok.inspect.patterns_picture import draw, picture
from jumok.inspect.record import record
from jumok.layers.multihead import MultiHeadAttention
from jumok.models.bert import Bert, HiddenWords
from jumok.models.language import build_language_model
from jumok.models.transformer import Transformer
from jumok.recipe import BertSection, TransformerLanguageSection, TransformerSection

VOCABULARY, START, END = 16, 2, 3
SURE = 200.0  # a score that leaves nothing for the others


def bert(**keys: Any) -> Bert:
    sizes = {"width": 16, "heads": 2, "layers": 2, "feed_forward": 16, "segments": 0, "max_positions": 32}
    return Bert(BertSection(**{**sizes, **keys}), VOCABULARY)


def lively(model: Any) -> Any:
    """Weights so large that heads differ."""
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def attention(model: Bert, layer: int = 0) -> MultiHeadAttention:
    found = model.encoder.blocks[layer].attention
    assert isinstance(found, MultiHeadAttention)
    return found


def some_rows(seed: int, count: int = 9) -> list[list[int]]:
    """Of few words, so that they come again; some with two texts."""
    chance = random.Random(seed)
    rows = []
    for _ in range(count):
        words = [chance.randint(4, 9) for _ in range(chance.randint(0, 8))]
        second = [*(chance.randint(4, 9) for _ in range(chance.randint(1, 4))), END] if chance.random() < 0.4 else []
        rows.append([START, *words, END, *second])
    return rows


# ---------------------------------------------------------------- heads made by hand


@torch.no_grad()
def looking_by_distance(*distances: int) -> Bert:
    """A head for each distance, which looks there wherever that is."""
    model = bert(heads=len(distances), layers=1, position="relative")
    attention(model).query.weight.zero_()
    assert model.encoder.relative is not None
    model.encoder.relative.weight.weight.zero_()
    for head, distance in enumerate(distances):
        bucket = model.encoder.relative.bucket(torch.tensor(distance))
        model.encoder.relative.weight.weight[bucket, head] = SURE
    return model


def test_heads_that_look_a_step_away_are_found(seed: int) -> None:
    rows = some_rows(seed)
    found = head_patterns(looking_by_distance(1, -1, 0, 5), rows, START, END)
    assert [one.name for one in found.heads[:3]] == ["next", "previous", "self"], f"seed {seed}"
    for one in found.heads[:3]:
        assert one.weights[one.name] == pytest.approx(1.0, abs=1e-6)
    # at one end of each row there is no such token, and the head looks everywhere: the entropy of that is log n
    ends = sum(math.log(len(row)) for row in rows) / sum(map(len, rows))
    assert [one.entropy for one in found.heads[:3]] == pytest.approx([ends, ends, 0.0], abs=1e-5)
    assert found.asked["next"] == found.asked["previous"] == sum(len(row) - 1 for row in rows)
    assert found.max_difference < 1e-4


@torch.no_grad()
def looking_by_word(wanted: int | None) -> Bert:
    """Every token looks at this word, wherever it stands; None: at the places of the word that it is itself."""
    model = bert(width=VOCABULARY, heads=1, layers=1, position="none")
    model.embedding.weight.copy_(torch.eye(VOCABULARY))
    head = attention(model)
    head.key.weight.copy_(torch.eye(VOCABULARY))
    head.query.weight.copy_(SURE * torch.eye(VOCABULARY) if wanted is None else torch.zeros(VOCABULARY, VOCABULARY))
    if wanted is not None:
        head.query.bias[wanted] = SURE
    return model


def test_heads_that_look_at_special_tokens_are_found(seed: int) -> None:
    rows = some_rows(seed)
    for wanted, name in ((START, "first"), (END, "separators")):
        found = head_patterns(HiddenWords(looking_by_word(wanted)), rows, START, END)
        assert [one.name for one in found.heads] == [name], f"seed {seed}"
        assert found.heads[0].weights[name] == pytest.approx(1.0, abs=1e-6)
        assert found.heads[0].weights["rest"] == pytest.approx(0.0, abs=1e-6)
    assert found.uniform["separators"] == pytest.approx(
        sum(row.count(END) for row in rows) / sum(map(len, rows)), abs=1e-9
    )


def test_the_same_word_elsewhere() -> None:
    found = head_patterns(looking_by_word(None), [[START, 5, 6, 5, 7, 5, END], [START, 8, END]], START, END)
    (head,) = found.heads
    assert head.weights["same"] == pytest.approx(2 / 3, abs=1e-5)  # two of three places, from each of the three
    assert head.weights["self"] == pytest.approx((4 + 3 / 3 + 3) / 10, abs=1e-5)
    assert (found.asked["same"], found.uniform["same"]) == (3, pytest.approx(2 / 7))
    assert found.lift(head, "same") == pytest.approx(7 / 3, abs=1e-4)
    separators = head_patterns(looking_by_word(None), [[START, 5, END, 6, END]], START, END)
    assert separators.asked["same"] == 0  # two separators are no word
    assert separators.uniform["same"] is separators.heads[0].weights["same"] is None


def test_who_looks_everywhere_alike_is_broad_and_has_no_lift(seed: int) -> None:
    model = bert()
    for layer in range(2):
        torch.nn.init.zeros_(attention(model, layer).query.weight)
    found = head_patterns(model, some_rows(seed), START, END)
    for one in found.heads:
        assert one.name == "broad"
        assert one.spread == pytest.approx(1.0, abs=1e-5)
        lifts = [found.lift(one, pattern) for pattern in PATTERNS]
        assert [lift for lift in lifts if lift is not None] == pytest.approx(
            [1.0] * sum(lift is not None for lift in lifts), abs=1e-4
        ), f"seed {seed}"


# ---------------------------------------------------------------- against plain loops


def kinds_of(row: list[int], t: int, s: int) -> set[str]:
    found = {"next"} if s == t + 1 else {"previous"} if s == t - 1 else {"self"} if s == t else set()
    found |= {"first"} if s == 0 and row[0] == START else set()
    found |= {"separators"} if row[s] == END else set()
    found |= {"same"} if s != t and row[s] == row[t] and row[t] not in (START, END) else set()
    return found or {"rest"}


def by_loops(maps: list[list[Any]], rows: list[list[int]], layer: int, head: int) -> dict[str, float | None]:
    """Means for one head, from maps (H, T, S) of each layer and row."""
    total = dict.fromkeys(PATTERNS, 0.0)
    tokens = dict.fromkeys(PATTERNS, 0)
    for row, of_row in zip(rows, maps, strict=True):
        for t in range(len(row)):
            kinds = [kinds_of(row, t, s) for s in range(len(row))]
            for pattern in PATTERNS:
                there = [s for s in range(len(row)) if pattern in kinds[s]]
                tokens[pattern] += bool(there) or pattern == "rest"
                total[pattern] += sum(float(of_row[layer][head, t, s]) for s in there)
    return {pattern: total[pattern] / tokens[pattern] if tokens[pattern] else None for pattern in PATTERNS}


@pytest.mark.parametrize("keys", [{}, {"position": "rotary", "norm": "pre", "key_value_heads": 1}], ids=str)
def test_the_numbers_are_those_of_plain_loops(keys: Any, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows = lively(bert(**keys)), some_rows(seed)
    maps = []
    for row in rows:
        with torch.inference_mode(), record(model.eval()) as seen:
            model(Sequences.pad([row]))
        maps.append([seen.weights(f"encoder.{layer}.self")[0] for layer in range(2)])
    found = head_patterns(model, rows, START, END)
    assert (found.texts, found.tokens) == (len(rows), sum(map(len, rows)))
    for one in found.heads:
        expected = by_loops(maps, rows, one.layer, one.head)
        assert one.weights == pytest.approx(expected, abs=1e-5), f"seed {seed}, {one.layer}, {one.head}"
        every = [part for of_row in maps for part in of_row[one.layer][one.head]]
        entropies = [float(-torch.xlogy(weights, weights).sum()) for weights in every]
        assert one.entropy == pytest.approx(sum(entropies) / len(entropies), abs=1e-5), f"seed {seed}"
    monkeypatch.setattr(module, "CELLS", 1)  # each text by itself
    alone = head_patterns(model, rows, START, END)
    assert alone.uniform == pytest.approx(found.uniform)
    for one, other in zip(alone.heads, found.heads, strict=True):
        assert one.weights == pytest.approx(other.weights, abs=1e-5), f"seed {seed}"


def test_an_encoder_of_a_transformer_too(seed: int) -> None:
    sizes = {"width": 12, "heads": 3, "feed_forward": 16, "encoder_layers": 2, "decoder_layers": 1}
    model = lively(Transformer(TransformerSection(**sizes), VOCABULARY, VOCABULARY))
    rows = [row[1:] for row in some_rows(seed)]  # a source has no first token of its own
    found = head_patterns(model, rows, START, END)
    assert [(one.layer, one.head) for one in found.heads] == [(layer, head) for layer in (0, 1) for head in range(3)]
    assert found.asked["first"] == 0
    assert found.max_difference < 1e-4, f"seed {seed}"


def test_the_model_is_left_as_it_was_and_segments_count(seed: int) -> None:
    model = lively(bert(segments=2, dropout=0.5)).train()
    rows = some_rows(seed)
    before = head_patterns(model, rows, START, END)
    assert model.training
    assert not any(hasattr(one, "watched") and one.watched for one in model.modules())
    assert head_patterns(model, rows, START, END) == before  # no dropout
    assert head_patterns(model, rows, START, END, segments=[[0] * len(row) for row in rows]) == before
    assert head_patterns(model, rows, START, END, segments=[[1] * len(row) for row in rows]) != before


# ---------------------------------------------------------------- names, words, pictures


def test_a_name_needs_a_share_and_a_lift() -> None:
    nothing: dict[str, float | None] = dict.fromkeys(PATTERNS, 0.1)
    assert named({**nothing, "next": SHARE}, nothing, 0.3) == "next"
    assert named({**nothing, "next": SHARE - 0.01}, nothing, 0.3) == "mixed"
    assert named({**nothing, "next": SHARE - 0.01}, nothing, BROAD) == "broad"
    assert named({**nothing, "next": SHARE}, {**nothing, "next": SHARE / LIFT + 0.01}, 0.3) == "mixed"
    assert named({**nothing, "next": 0.5, "self": 0.6}, {**nothing, "self": 0.25}, 0.3) == "next"  # more above it
    assert named({**nothing, "rest": 1.0, "same": None}, {**nothing, "same": None}, 0.3) == "mixed"


def test_what_cannot_be_looked_at_is_refused() -> None:
    with pytest.raises(BadInput, match="no text"):
        head_patterns(bert(), [], START, END)
    with pytest.raises(BadInput, match="text 2 of 2 has no token"):
        head_patterns(bert(), [[START, END], []], START, END)
    with pytest.raises(BadInput, match="not as many segments"):
        head_patterns(bert(), [[START, END]], START, END, segments=[[0]])
    with pytest.raises(BadInput, match="end at 32 tokens"):
        head_patterns(bert(), [[START, *[5] * 40, END]], START, END)
    language = build_language_model(TransformerLanguageSection(width=8, heads=2, layers=1, feed_forward=8), 10)
    with pytest.raises(BadInput, match="TransformerLanguageModel has neither"):
        head_patterns(language, [[START, END]], START, END)


def made(layers: int, heads: int) -> Patterns:
    uniform: dict[str, float | None] = {**dict.fromkeys(PATTERNS, 0.1), "same": None}
    found = [
        HeadPattern(layer, head, {**uniform, "next": 0.9}, 0.5, 0.2, "next")
        for layer in range(layers)
        for head in range(heads)
    ]
    return Patterns(3, 30, {**dict.fromkeys(PATTERNS, 30), "same": 0}, uniform, 1e-7, tuple(found))


@pytest.mark.parametrize(("layers", "heads"), [(1, 1), (2, 4), (12, 12)])
def test_it_is_drawn_whatever_the_size(layers: int, heads: int) -> None:
    with Image.open(io.BytesIO(picture(made(layers, heads)))) as image:
        assert min(image.size) > 300


def test_the_ending_decides_what_is_written(tmp_path: Path) -> None:
    patterns = made(2, 2)
    for name, dark in (("x.png", False), ("again.png", False), ("dark.png", True), ("x.svg", False), ("x.json", False)):
        draw(patterns, tmp_path / name, dark)
    light, again, dark_one = ((tmp_path / name).read_bytes() for name in ("x.png", "again.png", "dark.png"))
    assert light == again != dark_one
    assert "</svg>" in (tmp_path / "x.svg").read_text(encoding="utf-8")
    kept = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert len(kept["heads"]) == 4
    assert kept["heads"][0]["lift"] == {**dict.fromkeys(PATTERNS, 1.0), "next": pytest.approx(9.0), "same": None}
    with pytest.raises(BadInput, match=r"none of \.png"):
        draw(patterns, tmp_path / "x.gif")


def test_the_table_for_the_terminal() -> None:
    lines = made(2, 4).summary().splitlines()
    assert "8 heads" in lines[0]
    assert [line.split()[:3] for line in lines[4:12]] == [[str(n // 4), str(n % 4), "0.90*"] for n in range(8)]
    assert all(line.endswith("next") for line in lines[4:12])
    assert lines[3].split() == ["uniform", *["0.10"] * 5, "-", "0.10", "1.00"]
    assert lines[13].startswith("8 next.")
    assert "same 0 of 30" in lines[14]
