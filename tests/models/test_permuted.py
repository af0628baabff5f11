"""Permuted reading: any order at once as one by one, who sees whom, what is written, looked at again, and recorded."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from jumok.errors import BadInput
from jumok.inspect.record import record
from jumok.models import permuted
from jumok.models.permuted import NO_CHARACTER, PermutedRecognizer, earlier
from jumok.models.recognizer import first_end
from jumok.recipe.recognition import CharsetSection, RecognizerSection
from jumok.text.charset import Charset
from jumok.text.special import END, PAD, START

LETTERS = Charset.of(CharsetSection(sets=("latin",)))
HANGUL = Charset.of(CharsetSection(sets=("digits", "hangul")))
CLOSE = {"atol": 1e-5, "rtol": 1e-4}
SMALL: dict[str, Any] = {
    "image": (16, 40),
    "channels": 1,
    "patch": (8, 4),
    "width": 24,
    "heads": 2,
    "layers": 1,
    "feed_forward": 32,
    "decoder_heads": 3,
    "max_length": 6,
    "dropout": 0.0,
}


def model_of(charset: Charset = LETTERS, **keys: Any) -> PermutedRecognizer:
    """Every weight off its start, so that it counts."""
    model = PermutedRecognizer(RecognizerSection(**{**SMALL, **keys}), charset)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def images_of(count: int, wide: int = 40) -> Tensor:
    """Columns of random greys: noise alone would look the same in all."""
    return torch.randint(0, 256, (count, 1, 1, wide), dtype=torch.uint8).repeat(1, 1, 16, 1)


def words_of(charset: Charset, lengths: list[int]) -> tuple[Tensor, Tensor]:
    ids = torch.full((len(lengths), SMALL["max_length"] + 1), PAD)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.randint(4, charset.size, (length,))
        ids[row, length] = END
    return ids, torch.tensor(lengths)


def seen_by_one(model: PermutedRecognizer, hidden_1SD: Tensor, position: int, known: dict[int, int]) -> Tensor:
    """The query of one position in one picture when these characters are there and nothing else is: (1, 1, D)."""
    embedded = [model.embedding(torch.tensor([START]))]
    embedded += [model.embedding(torch.tensor([id])) + model.positions[place] for place, id in known.items()]
    content = [block.content(torch.cat(embedded)[None]) for block in model._blocks]
    return model.decoded(model.queries(1, position, position + 1), content, model.pictures(hidden_1SD), None)


# ---------------------------------------------------------------- orders


@pytest.mark.parametrize("charset", [LETTERS, HANGUL], ids=["letters", "jamo"])
@pytest.mark.parametrize("layers", [1, 2])
def test_all_orders_at_once_are_each_order_one_by_one(charset: Charset, layers: int) -> None:
    model = model_of(charset, decoder_layers=layers, permutations=4).double()
    ids, lengths = words_of(charset, [6, 0, 3, 1, 4])
    hidden = model.encoder(images_of(5).double())
    orders = model.orders(lengths)
    found = model.log_probs(hidden, ids, lengths, orders)
    for row, length in enumerate(lengths.tolist()):
        for number in range(4):
            known: dict[int, int] = {}
            for position in orders[row, number].argsort()[: length + 1].tolist():
                one = seen_by_one(model, hidden[row : row + 1], position, known)
                expected = model.head.log_probs(one)[0, 0, ids[row, position]]
                torch.testing.assert_close(found[row, number, position], expected)
                known[position] = int(ids[row, position])
            assert (found[row, number, length + 1 :] == 0).all()


def test_what_comes_later_in_an_order_is_not_seen() -> None:
    """One character is changed: those before it in the order stay as they are, those after it do not."""
    model = model_of(permutations=6).double()
    ids, lengths = words_of(LETTERS, [6, 4, 5])
    hidden, orders = model.encoder(images_of(3).double()), model.orders(lengths)
    before = model.log_probs(hidden, ids, lengths, orders)
    for place in range(4):
        other = ids.clone()
        other[:, place] = 4 + (ids[:, place] - 4 + torch.randint(1, 52, (3,))) % 52
        after = model.log_probs(hidden, other, lengths, orders)
        is_later = orders > orders[..., place : place + 1]
        is_earlier = orders < orders[..., place : place + 1]
        assert torch.equal(before[is_earlier], after[is_earlier])
        real = torch.arange(7) <= lengths[:, None, None]
        changed = (before != after)[is_later & real.expand_as(is_later)]
        assert changed.all()


def test_orders_are_left_to_right_its_mirror_and_random_ones_with_theirs() -> None:
    model = model_of(permutations=6)
    lengths = torch.tensor([6, 0, 3, 5])
    orders = model.orders(lengths)
    assert orders.shape == (4, 6, 7)
    ranks = orders.argsort(dim=-1)
    for row, length in enumerate(lengths.tolist()):
        walks = [walk[:length].tolist() for walk in ranks[row]]
        assert walks[0] == list(range(length))
        for number in (0, 2, 4):
            assert walks[number + 1] == walks[number][::-1]
            assert sorted(walks[number]) == list(range(length))
        for walk in ranks[row]:
            assert walk[length:].tolist() == list(range(length, 7))  # <eos> after the characters, then padding
    torch.testing.assert_close(model.left_to_right(lengths), orders[:, 0])


def test_random_orders_are_each_as_likely_and_rows_have_their_own() -> None:
    model = model_of(permutations=3)
    orders = model.orders(torch.full((3000,), 3))[:, 2, :3].argsort(dim=-1)
    numbers = (orders * torch.tensor([9, 3, 1])).sum(dim=-1)
    _, counts = numbers.unique(return_counts=True)
    assert len(counts) == 6
    assert (counts.float() / 3000 - 1 / 6).abs().max() < 0.05


def test_one_order_is_left_to_right() -> None:
    model = model_of(permutations=1)
    lengths = torch.tensor([2, 5])
    assert torch.equal(model.orders(lengths), model.left_to_right(lengths)[:, None])


def test_who_sees_whom() -> None:
    """Position 2, then 0, then <eos> at 1 … as numbers 2, 3, 1: columns are <sos> and the characters at 0 and 1."""
    mask = earlier(torch.tensor([2.0, 3.0, 1.0]))
    assert mask.tolist() == [[True, False, False], [True, True, False], [True, False, False]]


def test_the_loss_is_the_mean_over_orders_and_the_weighted_columns() -> None:
    model = model_of(ctc=0.3)
    images, (ids, lengths) = images_of(4), words_of(LETTERS, [3, 0, 6, 2])
    model.train()
    drawn: list[Tensor] = []
    original = model.orders
    model.orders = lambda lengths: drawn.append(original(lengths)) or drawn[0]  # type: ignore[assignment, func-returns-value, method-assign]
    losses = model.losses(images, ids, lengths)
    hidden = model.encoder(images)
    expected = -model.log_probs(hidden, ids, lengths, drawn[0]).sum(dim=2).mean(dim=1)
    torch.testing.assert_close(losses["characters"], expected, **CLOSE)
    torch.testing.assert_close(losses["loss"], losses["characters"] + 0.3 * losses["ctc"])
    assert model.ctc is not None
    torch.testing.assert_close(losses["ctc"], model.ctc.losses(model.encoder.columns(hidden), ids, lengths), **CLOSE)


def test_where_nothing_is_learned_it_is_left_to_right() -> None:
    model = model_of(ctc=0.0)
    images, (ids, lengths) = images_of(2), words_of(LETTERS, [3, 5])
    assert model.losses(images, ids, lengths).keys() == {"loss"}
    first, second = (model.losses(images, ids, lengths)["loss"] for _ in range(2))
    assert torch.equal(first, second)
    order = model.left_to_right(lengths)[:, None]
    expected = -model.log_probs(model.encoder(images), ids, lengths, order).sum(dim=2)[:, 0]
    torch.testing.assert_close(first, expected, **CLOSE)


# ---------------------------------------------------------------- reading


def eager_to_end(model: PermutedRecognizer, much: float) -> PermutedRecognizer:
    with torch.no_grad():
        model.head.map.bias[END] += much
    return model


def of_different_lengths(model: PermutedRecognizer, images: Tensor) -> PermutedRecognizer:
    """Its eyes wide open, and so eager to end that these pictures are words of several lengths."""
    with torch.no_grad():
        for block in model._blocks:
            for part in (block.cross.query, block.cross.key, block.cross.value):
                part.weight.mul_(8)
        model.head.map.weight.mul_(4)
    low, high = -100.0, 100.0
    for _ in range(30):  # too eager, or not enough: the mean length tells
        model.head.map.bias.data[END] = (low + high) / 2
        lengths = model.read(images).lengths
        if len(lengths.unique()) > 2:
            return model
        low, high = ((low + high) / 2, high) if lengths.float().mean() > 3 else (low, (low + high) / 2)
    raise AssertionError("all words are of one length")


@pytest.mark.parametrize("charset", [LETTERS, HANGUL], ids=["letters", "jamo"])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_step_at_a_time_is_all_at_once(charset: Charset, layers: int) -> None:
    """What was written has the probability that all of it at once has, and every choice is the best one there."""
    images = images_of(30).double()
    model = of_different_lengths(model_of(charset, refinements=0, decoder_layers=layers).double(), images)
    reading = model.read(images)
    ids = torch.cat([reading.ids, torch.full((30, 1), PAD)], dim=1).scatter(1, reading.lengths[:, None], END)
    order = model.left_to_right(reading.lengths)[:, None]
    found = model.log_probs(model.encoder(images), ids, reading.lengths, order)[:, 0]
    torch.testing.assert_close(found[:, :-1] * (reading.ids != PAD), reading.log_probs, **CLOSE)
    torch.testing.assert_close(found.gather(1, reading.lengths[:, None])[:, 0], reading.ending, **CLOSE)
    for row, length in enumerate(reading.lengths.tolist()):
        known: dict[int, int] = {}
        hidden = model.encoder(images[row : row + 1])
        for place in range(min(length + 1, 6)):  # the last place has nothing to choose
            log_probs = model.head.log_probs(seen_by_one(model, hidden, place, known))[0, 0]
            log_probs[list(NO_CHARACTER)] = float("-inf")
            assert log_probs.argmax() == ids[row, place]
            known[place] = int(ids[row, place])


def test_words_end_at_the_longest() -> None:
    model = eager_to_end(model_of(refinements=2), -1000)
    reading = model.read(images_of(3))
    assert reading.lengths.tolist() == [6, 6, 6]
    assert (reading.ids > END).all()
    assert (reading.ending < -500).all()
    empty = eager_to_end(model_of(), 1000).read(images_of(3))
    assert empty.lengths.tolist() == [0, 0, 0]
    assert (empty.ids == PAD).all()
    assert (empty.log_probs == 0).all()
    assert (empty.ending > -0.1).all()


def test_looked_at_again_with_all_others_known() -> None:
    images = images_of(20).double()
    model = of_different_lengths(model_of(refinements=0).double(), images)
    first = model.read(images)
    model.section = model.section.model_copy(update={"refinements": 1})
    again = model.read(images)
    assert not torch.allclose(first.log_probs, again.log_probs)
    hidden = model.encoder(images)
    for row, length in enumerate(first.lengths.tolist()):
        refined: list[int] = []
        for place in range(7):
            known = {other: int(first.ids[row, other]) for other in range(length) if other != place}
            log_probs = model.head.log_probs(seen_by_one(model, hidden[row : row + 1], place, known))[0, 0]
            log_probs[list(NO_CHARACTER)] = float("-inf")
            chosen = END if place == 6 else int(log_probs.argmax())
            if chosen == END:
                torch.testing.assert_close(again.ending[row], log_probs[END], **CLOSE)
                break
            torch.testing.assert_close(again.log_probs[row, place], log_probs[chosen], **CLOSE)
            refined.append(chosen)
        assert again.ids[row, : again.lengths[row]].tolist() == refined


def test_what_stands_behind_the_end_is_hidden() -> None:
    model = model_of()
    pictures = model.pictures(model.encoder(images_of(4)))
    ids = torch.randint(4, LETTERS.size, (4, 7))
    ids[:, 6] = END
    ids[torch.arange(4), torch.tensor([0, 2, 5, 3])] = END
    other = torch.where(torch.arange(7) > first_end(ids)[:, None], torch.randint(4, LETTERS.size, (4, 7)), ids)
    other[:, 6] = END
    for one, two in zip(model._refined(ids, pictures), model._refined(other, pictures), strict=True):
        assert torch.equal(one, two)


def test_a_mistake_is_mended_where_the_others_tell() -> None:
    """Trained to expect three equal letters whatever the picture: one that is wrong is outvoted by the other two."""
    model = PermutedRecognizer(RecognizerSection(**{**SMALL, "ctc": 0.0, "max_length": 3}), LETTERS)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    nothing = torch.zeros(32, 1, 16, 40, dtype=torch.uint8)
    for _ in range(150):
        letters = torch.randint(4, 10, (32, 1)).expand(-1, 3)
        ids = torch.cat([letters, torch.full((32, 1), END)], dim=1)
        loss = model.losses(nothing, ids, torch.full((32,), 3))["loss"].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    wrong = torch.tensor([[5, 5, 7, END], [8, 4, 8, END], [9, 6, 6, END]])
    with torch.no_grad():
        mended, _ = model._refined(wrong, model.pictures(model.encoder(nothing[:3])))
    assert [mended[0, 2], mended[1, 1], mended[2, 0]] == [5, 8, 6]
    assert (mended[:, 3] == END).all()


def test_fast_is_what_the_columns_say() -> None:
    model = model_of()
    images = images_of(5)
    assert model.ctc is not None
    expected = model.ctc.read(model.encoder.columns(model.encoder(images)))
    found = model.read(images, fast=True)
    assert torch.equal(found.ids, expected.ids)
    assert found.ids.shape == (5, 10)
    with pytest.raises(BadInput, match="no fast way to read"):
        model_of(ctc=0.0).read(images, fast=True)


@pytest.mark.parametrize("max_length", [3, 6, 10])  # fewer places than columns, and as many
def test_what_the_columns_are_sure_of_is_taken_from_them(max_length: int) -> None:
    model = model_of(max_length=max_length)
    images = images_of(24)
    columns, written = model.read(images, fast=True), model.read(images)
    confidence = (columns.log_probs.sum(dim=1) + columns.ending).exp()
    fits = columns.lengths <= max_length
    for sure in (0.0, float(confidence.median()), float(confidence[fits].max()) if fits.any() else 0.5):
        taken = (confidence >= sure) & fits
        found = model.read(images, sure=sure)
        assert found.ids.shape == (24, max_length)
        for row in range(24):
            expected = columns if taken[row] else written
            length = int(expected.lengths[row])
            assert int(found.lengths[row]) == length
            assert torch.equal(found.ids[row, :length], expected.ids[row, :length])
            assert (found.ids[row, length:] == PAD).all()
            torch.testing.assert_close(found.log_probs[row, :length], expected.log_probs[row, :length])
            assert (found.log_probs[row, length:] == 0).all()
            torch.testing.assert_close(found.ending[row], expected.ending[row])
    with pytest.raises(BadInput, match="no fast way to read"):
        model_of(ctc=0.0).read(images, sure=0.9)


def test_pictures_are_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than there is room for: each is read as ever."""
    model, images, seen = model_of(), images_of(24), []
    whole = {sure: model.read(images, sure=sure) for sure in (0.5, 1.0)}
    monkeypatch.setattr("jumok.models.recognizer.TOGETHER", 7)
    model.encoder.register_forward_hook(lambda _, given, __: seen.append(len(given[0])))
    for sure, expected in whole.items():
        found = model.read(images, sure=sure)
        assert torch.equal(found.ids, expected.ids)
        assert torch.equal(found.lengths, expected.lengths)
        torch.testing.assert_close(found.log_probs, expected.log_probs)
    assert seen == 2 * [7, 7, 7, 3]
    assert not model.read(images[:0]).ids.numel()


# ---------------------------------------------------------------- where it looked


@pytest.mark.parametrize("refinements", [0, 1, 2])
def test_where_each_character_looked_is_recorded(refinements: int) -> None:
    model = eager_to_end(model_of(refinements=refinements, decoder_layers=2), -2)
    images = images_of(3)
    with record(model) as seen:
        reading = model.read(images)
    assert {"encoder.0.self", "decoder.0.cross", "decoder.1.cross", "decoder.0.causal"} <= set(seen.names())
    assert seen.max_difference < 1e-5
    weights = seen.weights("decoder.1.cross")
    steps = 7 if refinements else min(7, int(reading.lengths.max()) + 1)
    assert weights.shape == (3, 3, steps, 20)  # heads, positions, patches: of the last time that it looked
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, 3, steps))
    characters = seen.weights("decoder.0.causal")
    assert characters.shape == (3, 3, steps, steps)  # <sos> and the characters
    places = torch.arange(steps - 1)
    itself = characters[:, :, places, places + 1]
    assert (itself == 0).all()  # no position sees what stands there
    with record(model, kinds=("cross",)) as seen:
        model.read(images)
    assert set(seen.names()) == {"decoder.0.cross", "decoder.1.cross"}


def test_recording_changes_nothing() -> None:
    model, images = model_of(), images_of(2)
    plain = model.read(images)
    with record(model):
        watched = model.read(images)
    assert torch.equal(plain.ids, watched.ids)
    torch.testing.assert_close(plain.log_probs, watched.log_probs)


# ------------------------------------------------------------ what is left out on a CPU


def often_ending(count: int, **keys: Any) -> tuple[PermutedRecognizer, Tensor]:
    """A model whose words end at places of their own, some early, some late; and pictures."""
    model, images = model_of(max_length=20, image=(16, 96), ctc=0, **keys), images_of(count, 96)
    hidden_BSD = model.encoder(images)
    pictures = model.pictures(hidden_BSD)
    ids_BS = torch.randint(4, LETTERS.size, (count, model.places))
    ids_BS[:, 0] = START
    state_BTD = model.decoded(model.queries(count), model.content(ids_BS), pictures, None)
    (scores_BTV,) = model.head.scores(state_BTD)
    rest_BT = scores_BTV[..., 4:].amax(dim=-1) - scores_BTV[..., END]
    bias = model.head.map.bias
    with torch.no_grad():
        bias[END] += rest_BT.flatten().quantile(0.15)  # about every seventh place is the last
    return model, images


@torch.no_grad()
def test_words_that_have_ended_are_left_out_and_nothing_else_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: set[int] = set()
    for _ in range(10):
        model, images = often_ending(40)
        found = model.read(images)
        monkeypatch.setattr(permuted, "FEWER", -1.0)  # all rows to the end
        monkeypatch.setattr(permuted, "ROOMS", ())  # all places
        whole = model.read(images)
        monkeypatch.undo()
        assert torch.equal(found.ids, whole.ids)
        assert torch.equal(found.lengths, whole.lengths)
        torch.testing.assert_close(found.log_probs, whole.log_probs, **CLOSE)
        torch.testing.assert_close(found.ending, whole.ending, **CLOSE)
        lengths |= set(found.lengths.tolist())
    assert len(lengths) > 6
    assert min(lengths) < 5
    assert max(lengths) > 8


@torch.no_grad()
def test_a_word_that_becomes_longer_than_its_room_is_done_again() -> None:
    model, images = often_ending(30)
    model.head.map.bias[END] -= 4  # they seldom end now
    pictures = model.pictures(model.encoder(images))
    ids_BT, _ = model._written(pictures)
    ids_BT[:, 5:] = END  # cut off: looked at again, many do not end there
    found, log_probs = model._refined_by_length(ids_BT, pictures)
    whole, whole_log_probs = model._refined(ids_BT, pictures)
    ends = first_end(whole)
    assert int(ends.max()) >= permuted.ROOMS[0], "none became longer: nothing is tested"
    assert torch.equal(first_end(found), ends)
    for row, end in enumerate(ends.tolist()):
        assert torch.equal(found[row, : end + 1], whole[row, : end + 1])
        torch.testing.assert_close(log_probs[row, : end + 1], whole_log_probs[row, : end + 1], **CLOSE)


@torch.no_grad()
@pytest.mark.parametrize("refinements", [0, 1])
def test_who_watches_sees_all_words_at_every_call(refinements: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(50):
        model, images = often_ending(12, refinements=refinements, decoder_layers=1)
        computed: list[int] = []
        decoded = model.decoded
        with monkeypatch.context() as spied:
            spied.setattr(model, "decoded", lambda *parts: computed.append(len(parts[0])) or decoded(*parts))  # noqa: B023
            plain = model.read(images)
        if min(computed) < len(images):
            break
    else:
        raise AssertionError("nothing was left out")
    with record(model, kinds=("cross",)) as seen:
        watched = model.read(images)
    assert torch.equal(plain.ids, watched.ids)
    calls = [one.weights for one in seen.records]
    assert {len(weights) for weights in calls} == {len(images)}
    assert calls[-1].size(-2) == (model.places if refinements else 1)
