"""The three encoder–decoders: a step is the whole, neighbours do not matter, the equations hold, and they learn."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.data.batch import END, PAD, START, Sequences, source_batch, target_batch
from jumok.errors import BadInput
from jumok.layers.attention import attention_weights
from jumok.layers.tap import Tap
from jumok.models.decoder import BahdanauDecoder, LuongDecoder
from jumok.models.encoder import reading_order
from jumok.models.seq2seq import Seq2Seq
from jumok.recipe import Seq2SeqSection

KINDS: list[dict[str, Any]] = [
    {"attention": "none"},
    {"attention": "luong"},
    {"attention": "luong", "input_feeding": True},
    {"attention": "bahdanau", "scorer": "additive"},
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"bidirectional": True, "tie_embeddings": True},
    {"reverse_source": True, "layers": 1},
    {"reverse_source": True, "bidirectional": True, "written_out": True, "tie_embeddings": True, "embedding": 16},
]


def model_of(**options: Any) -> Seq2Seq:
    """A small model with every bias moved off its start, so that it counts."""
    model = Seq2Seq(Seq2SeqSection(**{"width": 16, "embedding": 12, "max_source": 20, **options}), 30, 31)
    for name, parameter in model.named_parameters():
        if "bias" in name:
            nn.init.normal_(parameter, std=0.5)
    return model.eval()


def random_rows(lengths: list[int], vocabulary: int = 30) -> list[list[int]]:
    return [torch.randint(4, vocabulary, (length,)).tolist() for length in lengths]


def log_probs(model: Seq2Seq, source: Sequences, ids: Tensor) -> Tensor:
    return F.log_softmax(model.head(model(source, ids)), dim=-1)


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_stepping_equals_teacher_forcing(kind: dict[str, Any], options: dict[str, Any], cell: str) -> None:
    model = model_of(cell=cell, **kind, **options)
    source, ids = source_batch(random_rows([3, 7, 1])), target_batch(random_rows([5, 4, 6])).ids[:, :-1]
    expected = log_probs(model, source, ids)
    memory = model.encode(source)
    cache = model.start(memory, rows=3, capacity=ids.size(1))
    for position in range(ids.size(1)):
        found, cache = model.step(ids[:, position], torch.full((3,), position), memory, cache)
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, expected[:, position], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("scorer", ["dot", "scaled-dot", "general", "additive", "location"])
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_a_row_does_not_depend_on_padding_or_neighbours(kind: dict[str, Any], scorer: str) -> None:
    model = model_of(**{**kind, "scorer": scorer}, bidirectional=True)
    sources, targets = random_rows([9, 2, 5]), random_rows([3, 8, 5])
    together = log_probs(model, source_batch(sources), target_batch(targets).ids)
    for row in range(3):
        alone = log_probs(model, source_batch([sources[row]]), target_batch([targets[row]]).ids)
        torch.testing.assert_close(alone[0], together[row, : alone.size(1)], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_select_keeps_repeats_and_reorders_rows(kind: dict[str, Any]) -> None:
    model = model_of(**kind)
    sources, ids = random_rows([4, 6, 2]), torch.randint(4, 31, (3, 4))
    memory = model.encode(source_batch(sources))
    cache = model.start(memory, 3, 4)
    for position in range(2):
        _, cache = model.step(ids[:, position], torch.full((3,), position), memory, cache)
    for rows in ([2, 0, 0, 1], [1], [1, 2, 0], [0, 1, 2]):
        chosen, chosen_cache = model.select(memory, cache, torch.tensor(rows))
        found, _ = model.step(ids[rows, 2], torch.full((len(rows),), 2), chosen, chosen_cache)
        expected = log_probs(model, source_batch([sources[row] for row in rows]), ids[rows, :3])[:, 2]
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
        again, _ = model.select(chosen, chosen_cache, torch.arange(len(rows)))
        assert again is chosen  # one sentence's hypotheses changing places costs no copy


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_join_puts_rows_of_several_batches_at_several_positions_together(kind: dict[str, Any]) -> None:
    model = model_of(**kind, bidirectional=True)
    sources, ids = random_rows([4, 9, 2, 6, 3]), torch.randint(4, 31, (5, 5))
    kept = kind["attention"] != "none"

    def begun(rows: list[int], steps: int, coverage: bool) -> tuple[Any, Any]:
        memory = model.encode(source_batch([sources[row] for row in rows]))
        cache = model.start(memory, len(rows), 5, coverage=coverage)
        for position in range(steps):
            _, cache = model.step(ids[rows, position], torch.full((len(rows),), position), memory, cache)
        return memory, cache

    parts = [begun([0, 1], 3, False), begun([2], 0, kept), begun([3, 4], 1, kept)]
    steps = torch.tensor([3, 3, 0, 1, 1])
    memory, cache = model.select(*model.join(parts), torch.tensor([0, 2, 3, 4, 2]))  # the longest source has left
    memory, cache = model.join([(memory, cache)])
    order = [0, 2, 3, 4, 2]
    assert memory.mask is None or memory.mask.size(1) == 7  # cut to the longest of those that stay, with its <eos>
    assert len(set(memory.owner.tolist())) == 4  # the two rows of one sentence, and nobody else, share an owner
    found, cache = model.step(ids[order, steps[order]], steps[order], memory, cache)
    for row, place in enumerate(order):
        known = ids[[place], : int(steps[place]) + 1]
        expected = log_probs(model, source_batch([sources[place]]), known)[0, -1]
        torch.testing.assert_close(found[row], expected, atol=1e-5, rtol=1e-5)
    if kept:
        counted = torch.tensor([1.0, 1.0, 2.0, 2.0, 1.0])  # row 0 kept none before it was joined
        torch.testing.assert_close(model.coverage(cache).sum(1), counted)


@pytest.mark.parametrize("kind", KINDS[1:])
@torch.no_grad()
def test_coverage_is_the_sum_of_the_weights(kind: dict[str, Any]) -> None:
    model = model_of(**kind)
    source, ids = source_batch(random_rows([3, 6])), torch.randint(4, 31, (2, 4))
    (tap,) = (module for module in model.modules() if isinstance(module, Tap))
    weights: list[Tensor] = []
    tap.register_forward_hook(lambda _, inputs, __: weights.append(attention_weights(*inputs[:2], *inputs[3:])))
    memory = model.encode(source)
    cache = model.start(memory, 2, 4, coverage=True)
    for position in range(4):
        _, cache = model.step(ids[:, position], torch.full((2,), position), memory, cache)
    torch.testing.assert_close(model.coverage(cache), torch.cat(weights, dim=1).sum(1))
    assert not model.coverage(cache)[0, 4:].any()


def test_coverage_without_attention_is_refused() -> None:
    model = model_of(attention="none")
    with pytest.raises(BadInput, match="attention"):
        model.start(model.encode(source_batch(random_rows([2]))), 1, 5, coverage=True)


def test_without_attention_the_state_is_all_the_decoder_gets() -> None:
    memory = model_of(attention="none").encode(source_batch(random_rows([4, 6])))
    assert memory.keys is None
    assert memory.values is None
    assert [tuple(part.shape) for part in memory.state] == [(2, 2, 16)] * 2


@torch.no_grad()
def test_luong_equations() -> None:
    """s̃_t = tanh(W_c [a_t; s_t] + b_c), one position at a time, the cell being PyTorch's."""
    model = model_of(attention="luong", scorer="general", layers=1)
    assert isinstance(model.decoder, LuongDecoder)
    decoder, ids = model.decoder, torch.tensor([[START, 5, 9, 7]])
    encoded = model.encoder(source_batch(random_rows([6])))
    (h,), (s, c) = encoded.outputs, (part[0] for part in encoded.state)
    found = decoder(model.embedding(ids), decoder.remember(encoded))
    cell = decoder.recurrent.layers[0]
    for position, y in enumerate(model.embedding(ids)[0]):
        s, c = torch.lstm_cell(y[None], (s, c), cell.weight_ih_l0, cell.weight_hh_l0, cell.bias_ih_l0, cell.bias_hh_l0)
        alpha = torch.softmax(h @ decoder.scorer.weight.weight.T @ s[0], dim=0)
        expected = torch.tanh(decoder.combine.weight @ torch.cat((alpha @ h, s[0])) + decoder.combine.bias)
        torch.testing.assert_close(found[0, position], expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_bahdanau_equations() -> None:
    """The previous state looks, the context goes into the cell, maxout over [s_t; c_t; y_(t-1)] comes out."""
    model = model_of(attention="bahdanau", scorer="additive", cell="gru", layers=1, bidirectional=True)
    assert isinstance(model.decoder, BahdanauDecoder)
    decoder, ids = model.decoder, torch.tensor([[START, 5, 9, 7]])
    encoded = model.encoder(source_batch(random_rows([6])))
    (h,), bridge, scorer = encoded.outputs, decoder.bridge.maps[0], decoder.scorer
    s = torch.tanh(bridge.weight @ torch.cat((encoded.state[0][0, 0], encoded.state[0][1, 0])) + bridge.bias)
    found = decoder(model.embedding(ids), decoder.remember(encoded))
    cell = decoder.recurrent.layers[0]
    for position, y in enumerate(model.embedding(ids)[0]):
        energy = torch.tanh(scorer.query.weight @ s + scorer.query.bias + h @ scorer.key.weight.T)
        context = torch.softmax(energy @ scorer.score.weight[0], dim=0) @ h
        read = torch.cat((y, context))
        s = torch.gru_cell(read[None], s[None], cell.weight_ih_l0, cell.weight_hh_l0, cell.bias_ih_l0, cell.bias_hh_l0)[
            0
        ]
        out = decoder.readout.weight @ torch.cat((s, context, y)) + decoder.readout.bias
        torch.testing.assert_close(found[0, position], out.view(-1, 2).max(dim=1).values, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_input_feeding_reads_the_last_attentional_state() -> None:
    """With the fed columns of the cell at zero it is Luong without feeding; with them, a later step changes."""
    plain, feeding = model_of(layers=1), model_of(layers=1, input_feeding=True)
    weights = {name: tensor.clone() for name, tensor in plain.state_dict().items()}
    name = "decoder.recurrent.layers.0.weight_ih_l0"
    fed = torch.randn(weights[name].size(0), 16)
    source, ids = source_batch(random_rows([5, 3])), torch.randint(4, 31, (2, 4))
    expected = plain(source, ids)
    feeding.load_state_dict({**weights, name: torch.cat((weights[name], torch.zeros_like(fed)), dim=1)})
    torch.testing.assert_close(feeding(source, ids), expected, atol=1e-5, rtol=1e-5)
    feeding.load_state_dict({**weights, name: torch.cat((weights[name], fed), dim=1)})
    found = feeding(source, ids)
    torch.testing.assert_close(found[:, 0], expected[:, 0], atol=1e-5, rtol=1e-5)
    assert not torch.allclose(found[:, 1], expected[:, 1], atol=1e-3)


@torch.no_grad()
def test_a_reversed_source_keeps_its_end_and_its_positions() -> None:
    source = source_batch([[10, 11, 12], [13], []])
    reversed_ids = source.ids.gather(1, reading_order(source))
    assert reversed_ids.tolist() == [[12, 11, 10, END], [13, END, PAD, PAD], [END, PAD, PAD, PAD]]
    model, straight = model_of(reverse_source=True), model_of()
    straight.load_state_dict(model.state_dict())
    mine = model.encode(source)
    theirs = straight.encode(Sequences(reversed_ids, source.lengths))
    torch.testing.assert_close(mine.state, theirs.state)
    assert mine.values is not None
    assert theirs.values is not None
    torch.testing.assert_close(mine.values[0], theirs.values[0, [2, 1, 0, 3]])  # word s is at position s again


def test_scheduled_sampling_mixes_true_words_with_its_own() -> None:
    model = model_of().double()  # no two words as likely but for the last digit
    source, ids = source_batch(random_rows([5, 3, 4])), target_batch(random_rows([6, 6, 6])).ids
    forced = model(source, ids)
    torch.manual_seed(3)
    nearly = model(source, ids, teacher_forcing=1.0 - 1e-12)
    torch.testing.assert_close(nearly, forced, atol=1e-5, rtol=1e-5)
    # Never the true word: the target cannot matter beyond <sos>, and it is what a greedy search would read.
    free = model(source, ids, teacher_forcing=0.0)
    torch.testing.assert_close(free, model(source, torch.full_like(ids, 7).index_fill_(1, torch.tensor(0), START), 0.0))
    own = model.head(free).argmax(-1)
    torch.testing.assert_close(free, model(source, torch.cat((ids[:, :1], own[:, :-1]), dim=1)), atol=1e-5, rtol=1e-5)
    torch.manual_seed(4)
    half = model(source, ids, teacher_forcing=0.5)
    torch.manual_seed(4)
    torch.testing.assert_close(half, model(source, ids, teacher_forcing=0.5), rtol=0, atol=0)
    half.sum().backward()
    assert all(
        parameter.grad is not None
        for name, parameter in model.named_parameters()
        if name != "bias" and name != "weight"
    )


def test_tied_embeddings_share_one_tensor() -> None:
    """Nothing is stored twice, so a checkpoint needs no special case."""
    model = model_of(tie_embeddings=True)
    assert sum(tensor.shape == (31, 12) for tensor in model.state_dict().values()) == 1
    model.head(model(source_batch(random_rows([3])), torch.tensor([[START, 5]]))).sum().backward()
    assert model.embedding.weight.grad is not None
    assert model.embedding.weight.grad[30].any()  # a word that was not read: its gradient comes from the output


@torch.no_grad()
def test_the_tap_sees_all_of_a_row_at_once_or_step_by_step() -> None:
    for kind in KINDS[1:]:
        model = model_of(**kind)
        (tap,) = (module for module in model.modules() if isinstance(module, Tap))
        weights: list[Tensor] = []
        hook = tap.register_forward_hook(
            lambda _, inputs, __, seen=weights: seen.append(attention_weights(*inputs[:2], *inputs[3:]))
        )
        model(source_batch(random_rows([3, 6])), torch.randint(4, 31, (2, 5)))
        hook.remove()
        together = torch.cat(weights, dim=1)
        assert together.shape == (2, 5, 7)
        assert not together[0, :, 4:].any()
        torch.testing.assert_close(together.sum(-1), torch.ones(2, 5))


@pytest.mark.parametrize("teacher_forcing", [1.0, 0.5])
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_words_unseen_in_training_are_seen_later(kind: dict[str, Any], teacher_forcing: float) -> None:
    """Unseen means that which word it was makes no difference."""
    model = model_of(**kind, dropout=0.0, target_word_dropout=0.999).train()
    source, ids = source_batch(random_rows([3, 7, 1])), torch.randint(4, 30, (3, 4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jumok.layers.dropout.keep_mask", lambda shape, p: torch.zeros(shape))
        unseen = [model(source, words, teacher_forcing) for words in (ids, ids.flip(0))]
        assert torch.equal(*unseen)
    model.eval()
    assert not torch.allclose(model(source, ids), model(source, ids.flip(0)), atol=1e-4)


# ---------------------------------------------------------------- they learn


def learn(updates: int, longest: int, turned: bool, **options: Any) -> float:
    """Train on random sequences, copied or reversed, until it can; token accuracy of greedy generation on others."""
    torch.manual_seed(1)
    section = Seq2SeqSection(**{"width": 64, "embedding": 32, "layers": 1, "dropout": 0.0, **options})
    model = Seq2Seq(section, 14, 14)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)

    def batch(rows: int) -> tuple[Sequences, Sequences]:
        words = random_rows(torch.randint(1, longest + 1, (rows,)).tolist(), 14)
        return source_batch(words), target_batch([row[::-1] if turned else row for row in words])

    @torch.no_grad()
    def accuracy() -> float:
        source, target = batch(200)
        found = model.eval().head(model(source, target.ids[:, :-1], teacher_forcing=0.0)).argmax(-1)
        real = target.ids[:, 1:] != PAD
        return float((found == target.ids[:, 1:])[real].float().mean())

    for update in range(updates):
        for group in optimizer.param_groups:
            group["lr"] = 5e-3 * (1 - update / updates)
        source, target = batch(64)
        model.train()
        logits = model.head(model(source, target.ids[:, :-1]))
        loss = F.cross_entropy(logits.flatten(0, 1), target.ids[:, 1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if update % 40 == 39 and (right := accuracy()) > 0.97:
            return right
    return accuracy()


@pytest.mark.parametrize("kind", KINDS[1:])
def test_attention_learns_to_reverse(kind: dict[str, Any]) -> None:
    assert learn(250, longest=7, turned=True, bidirectional=True, **kind) > 0.95


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn"])
def test_the_plain_model_learns_to_copy(cell: str) -> None:
    assert learn(450, longest=4, turned=False, attention="none", cell=cell) > 0.95


def test_every_combination_builds() -> None:
    """All switches of the recipe go together, or the recipe itself refuses them."""
    for cell, attention, scorer, bidirectional, tied in itertools.product(
        ("rnn", "lstm", "gru"),
        ("none", "luong", "bahdanau"),
        ("dot", "scaled-dot", "general", "additive", "location"),
        (False, True),
        (False, True),
    ):
        options = {"cell": cell, "attention": attention, "scorer": scorer}
        model = model_of(**options, bidirectional=bidirectional, tie_embeddings=tied)
        assert model.head(model(source_batch(random_rows([2])), torch.tensor([[START]]))).shape == (1, 1, 31)
