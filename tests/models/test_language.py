"""Language models: the past alone decides, a step is the whole, neighbours do not matter, the equations hold."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.data.batch import PAD, UNKNOWN, Sequences
from jumok.errors import BadInput
from jumok.models.language import LanguageModel, RecurrentLanguageModel, build_language_model
from jumok.recipe import RecurrentLanguageSection, Seq2SeqSection, TransformerLanguageSection
from jumok.search import SearchOptions, generate

VOCABULARY = 23
KINDS: dict[str, dict[str, Any]] = {
    "rnn": {"cell": "rnn"},
    "lstm": {"cell": "lstm", "embedding": 12},
    "gru": {"cell": "gru", "tie_embeddings": False, "written_out": True},
    "transformer": {},
    "transformer-learned": {"position": "learned", "max_positions": 40, "tie_embeddings": False},
    "transformer-relative": {"position": "relative", "norm": "post", "activation": "relu"},
    "transformer-grouped": {"position": "sinusoidal", "key_value_heads": 2, "norm_kind": "rms", "activation": "swiglu"},
}


def model_of(kind: str, **more: Any) -> LanguageModel:
    """A small model with every bias moved off its start, so that it counts."""
    options = {**KINDS[kind], **more}
    section: Any = (
        TransformerLanguageSection(width=16, heads=4, layers=2, feed_forward=24, **options)
        if kind.startswith("transformer")
        else RecurrentLanguageSection(**{"embedding": 16, "width": 16, **options})
    )
    model = build_language_model(section, VOCABULARY)
    for name, parameter in model.named_parameters():
        if "bias" in name or "relative" in name:
            nn.init.normal_(parameter, std=0.5)
    return model.eval()


def log_probs(model: LanguageModel, ids_BT: Tensor) -> Tensor:
    return F.log_softmax(model.head(model(ids_BT)), dim=-1)


def random_ids(rows: int, length: int) -> Tensor:
    return torch.randint(4, VOCABULARY, (rows, length))


every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@torch.no_grad()
def test_the_future_cannot_change_the_past(kind: str) -> None:
    model, ids = model_of(kind), random_ids(2, 12)
    changed = ids.clone()
    changed[:, 7:] = random_ids(2, 5)
    before, after = log_probs(model, ids), log_probs(model, changed)
    torch.testing.assert_close(before[:, :7], after[:, :7], atol=1e-6, rtol=1e-6)
    assert not torch.equal(ids, changed)
    assert (before[:, 8:] - after[:, 8:]).abs().max() > 1e-4, "and the past does change the future"


@every_kind
@torch.no_grad()
def test_stepping_after_a_prompt_equals_reading_the_whole(kind: str) -> None:
    """Prompts of different lengths in one batch, read in one pass, then a token at a time with the cache."""
    model, steps = model_of(kind), 6
    prompts = [random_ids(1, length)[0].tolist() for length in (1, 5, 3)]
    more = random_ids(3, steps)
    memory = model.encode(Sequences.pad(prompts))
    cache = model.start(memory, 3, steps)
    for step in range(steps):
        fed = more[:, step - 1] if step else torch.full((3,), 2)  # what the search feeds first is not read
        found, cache = model.step(fed, torch.full((3,), step), memory, cache)
        assert found.dtype == torch.float32
        for row, prompt in enumerate(prompts):
            whole = torch.tensor([[*prompt, *more[row, :step].tolist()]])
            torch.testing.assert_close(found[row], log_probs(model, whole)[0, -1], atol=1e-5, rtol=1e-5)


@every_kind
@torch.no_grad()
def test_a_row_does_not_depend_on_its_neighbours(kind: str) -> None:
    model, ids = model_of(kind), random_ids(4, 9)
    together = log_probs(model, ids)
    for row in range(4):
        torch.testing.assert_close(log_probs(model, ids[row : row + 1])[0], together[row], atol=1e-5, rtol=1e-5)


@every_kind
@torch.no_grad()
def test_rows_are_kept_repeated_reordered_and_joined(kind: str) -> None:
    model = model_of(kind)
    prompts = [random_ids(1, length)[0].tolist() for length in (4, 2, 6, 3)]
    parts, texts, position = [], [], torch.zeros(0, dtype=torch.long)
    for group, steps in ((prompts[:2], 3), (prompts[2:], 1)):
        memory = model.encode(Sequences.pad(group))
        cache = model.start(memory, 2, 8)
        rows = [list(prompt) for prompt in group]
        for step in range(steps):
            tokens = random_ids(1, 2)[0]
            _, cache = model.step(tokens, torch.full((2,), step), memory, cache)
            if step:
                rows = [[*row, token] for row, token in zip(rows, tokens.tolist(), strict=True)]
        chosen = torch.tensor([1, 0, 1])
        parts.append(model.select(memory, cache, chosen))
        texts += [rows[index] for index in chosen]
        position = torch.cat([position, torch.full((3,), steps)])
    memory, cache = model.join(parts)
    for _ in range(4):
        tokens = random_ids(1, 6)[0]
        found, cache = model.step(tokens, position, memory, cache)
        position += 1
        texts = [[*text, token] for text, token in zip(texts, tokens.tolist(), strict=True)]
        for row, text in enumerate(texts):
            expected = log_probs(model, torch.tensor([text]))[0, -1]
            torch.testing.assert_close(found[row], expected, atol=1e-5, rtol=1e-5)


@every_kind
@torch.no_grad()
def test_reading_on_equals_reading_at_once(kind: str) -> None:
    model, ids = model_of(kind), random_ids(2, 20)
    whole, past, parts = model(ids), None, []
    for start, stop in ((0, 7), (7, 8), (8, 20)):
        hidden, past = model.read(ids[:, start:stop], past)
        parts.append(hidden)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("beam", [1, 3])
@every_kind
@torch.no_grad()
def test_the_search_goes_on_from_prompts_as_it_would_alone(kind: str, beam: int) -> None:
    model = model_of(kind).double()  # in float32 two words may be as likely but for the last digit
    prompts = [random_ids(1, length)[0].tolist() for length in (1, 7, 4)]
    options = SearchOptions(beam=beam, max_length=8)
    together = generate(model, Sequences.pad(prompts), options)
    for row, prompt in enumerate(prompts):
        (alone,) = generate(model, Sequences.pad([prompt]), options)
        assert alone[0].tokens == together[row][0].tokens
        text = torch.tensor([[*prompt, *alone[0].tokens, 3]])
        scores = log_probs(model, text[:, :-1])[0].gather(1, text[0, 1:, None])[len(prompt) - 1 :]
        assert alone[0].log_probability == pytest.approx(float(scores.sum()), abs=1e-4)
        assert together[row][0].log_probability == pytest.approx(alone[0].log_probability, abs=1e-4)


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_a_recurrent_language_model_is_pytorchs_own(cell: str) -> None:
    """Outputs and gradients, with copied weights: embedding, stacked layers, tied output layer."""
    model = model_of(cell if cell != "gru" else "lstm", cell=cell, layers=3, embedding=16, tie_embeddings=True)
    assert isinstance(model, RecurrentLanguageModel)
    kinds: dict[str, Any] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
    reference = kinds[cell](16, 16, num_layers=3, batch_first=True)
    vectors = model.embedding.weight.detach().clone().requires_grad_()
    with torch.no_grad():
        for number, layer in enumerate(model.layers):
            for name, parameter in layer.named_parameters():
                getattr(reference, name.split(".")[-1].replace("l0", f"l{number}")).copy_(parameter)
    ids, targets = random_ids(3, 10), random_ids(3, 10)
    hidden, _ = reference(F.embedding(ids, vectors) * 4.0)
    expected = F.cross_entropy(F.linear(3.0 * hidden, vectors, model.bias.detach()).flatten(0, 1), targets.flatten())
    found = F.cross_entropy(model.head(model(ids)).flatten(0, 1), targets.flatten())
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    expected.backward()
    found.backward()
    torch.testing.assert_close(model.embedding.weight.grad, vectors.grad, atol=1e-5, rtol=1e-5)
    first = model.layers[0].get_parameter("layers.0.weight_hh_l0")
    torch.testing.assert_close(first.grad, reference.weight_hh_l0.grad, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_tied_embeddings_are_one_parameter(kind: str) -> None:
    tied, separate = model_of(kind, tie_embeddings=True), model_of(kind, tie_embeddings=False)
    assert not any(name == "weight" for name, _ in tied.named_parameters())
    assert any(name == "weight" for name, _ in separate.named_parameters())
    ids = random_ids(1, 4)
    tied.head(tied(ids)).sum().backward()
    gradient = tied.embedding.weight.grad
    assert gradient is not None
    assert (gradient.abs().sum(1) > 0).all(), "every word, read or not, is reached through the output layer"


def test_dropout_has_one_mask_for_all_positions() -> None:
    model = model_of("lstm", dropout=0.5).train()
    assert isinstance(model, RecurrentLanguageModel)
    masked = model._locked(torch.ones(4, 50, 16))
    assert torch.equal(masked, masked[:, :1].expand_as(masked))
    assert set(masked.unique().tolist()) == {0.0, 2.0}
    assert (masked != masked[:1]).any(), "but its own for each row"


def test_a_dropped_word_is_unseen_everywhere() -> None:
    model = model_of("rnn", word_dropout=0.5).train()
    ids = random_ids(1, 6).repeat(3, 40)
    embedded = model.embed(ids).detach()
    plain = model.embedding(ids).detach()
    for word in ids.unique():
        shares = (embedded / plain)[ids == word]
        assert shares.unique().numel() == 1
        assert shares.flatten()[0].item() in (0.0, 2.0)
    assert torch.equal(model.eval().embed(ids), plain)


def test_a_word_dropped_from_a_transformer_is_the_unknown_one_everywhere() -> None:
    model = model_of("transformer", word_dropout=0.5).train()
    ids = torch.arange(VOCABULARY).repeat(3, 4)
    embedded, plain = model.embed(ids).detach(), model.embedding(ids).detach()
    unknown = model.embedding(torch.tensor(UNKNOWN)).detach()
    dropped = {word: bool((embedded[ids == word] == unknown).all()) for word in range(VOCABULARY) if word != UNKNOWN}
    for word, gone in dropped.items():
        assert gone or torch.equal(embedded[ids == word], plain[ids == word]), word
    assert 1 <= sum(dropped.values()) < len(dropped) - 1
    assert not dropped[PAD], "padding is not a word"
    assert torch.equal(model.eval().embed(ids), plain)


def test_a_text_that_begins_with_dropped_words_has_ordinary_gradients() -> None:
    """Zero vectors would stay zero through every pre-norm layer and blow its gradient up."""
    section = TransformerLanguageSection(width=32, heads=4, layers=6, feed_forward=64, word_dropout=0.5, dropout=0.0)
    model = build_language_model(section, VOCABULARY).train()
    ids = torch.arange(VOCABULARY)[4:, None].expand(-1, 8)  # in about half of the rows every word is dropped
    F.cross_entropy(model.head(model(ids)).flatten(0, 1), ids.flatten()).backward()
    sizes = {name: float(part.grad.norm()) for name, part in model.named_parameters() if part.grad is not None}
    assert max(sizes.values()) < 100, sizes


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(BadInput, match="seq2seq is no language model"):
        build_language_model(Seq2SeqSection(), 9)
    model = model_of("rnn")
    with pytest.raises(BadInput, match="coverage"):
        model.start(model.encode(Sequences.pad([[3]])), 1, 4, coverage=True)
    with pytest.raises(BadInput, match="max_positions"):
        model_of("transformer-learned")(random_ids(1, 41))
