"""A Transformer whose source a BERT reads: it is used, stored once, and searches as it scores, in every company."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from invariance import differences, ways
from safetensors.torch import load_file, save_file

from jumok.data.batch import END, START, Sequences, source_batch, target_batch
from jumok.models.build import build
from jumok.models.transformer import Transformer
from jumok.recipe import BertSection, TransformerSection
from jumok.search import SearchOptions, generate
from jumok.tasks.scoring import log_probabilities
from jumok.training.checkpoint import load_weights, stored_tensors

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
SOURCES, TARGETS = 37, 30
READERS: list[dict[str, Any]] = [{}, {"position": "rotary", "norm": "pre", "layers": 1}]


def model_of(**keys: Any) -> Transformer:
    reader = BertSection(**{"width": 16, "heads": 2, "layers": 2, "feed_forward": 24, "max_positions": 64, **keys})
    section = TransformerSection(width=16, heads=2, decoder_layers=2, feed_forward=24, reader=reader)
    model = build(section, SOURCES, TARGETS)
    assert isinstance(model, Transformer)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.15 * torch.randn_like(parameter))
    return model.eval()


def random_rows(lengths: list[int], words: int) -> list[list[int]]:
    return [torch.randint(5, words, (length,)).tolist() for length in lengths]


@pytest.mark.parametrize("keys", READERS, ids=str)
@torch.no_grad()
def test_the_decoder_looks_at_what_the_bert_has_read(keys: dict[str, Any]) -> None:
    """[CLS] before each sentence, as the BERT is used to; its place is not looked at."""
    model, rows = model_of(**keys), random_rows([3, 7, 1], SOURCES)
    assert model.reader is not None
    memory = model.encode(source_batch(rows))
    for number, row in enumerate(rows):
        hidden = model.reader(Sequences.pad([[START, *row, END]]))[0, 1:]
        for layer, block in enumerate(model.decoder.blocks):
            expected = block.cross.project(hidden[None])
            for part in (0, 1):
                found = memory.store[layer, part, number, : len(row) + 1]
                torch.testing.assert_close(found, (expected.key, expected.value)[part][0], **CLOSE)


def test_all_of_it_learns_and_is_stored_once(tmp_path: Path) -> None:
    model = model_of()
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    assert len(names) == len(set(names))
    assert not [name for name in names if name.startswith(("encoder.", "source_embedding."))]
    pointers = [tensor.data_ptr() for tensor in model.state_dict().values()]
    assert len(pointers) == len(set(pointers))
    ids = target_batch(random_rows([4, 2], TARGETS)).ids[:, :-1]
    model(source_batch(random_rows([5, 3], SOURCES)), ids).square().sum().backward()
    without = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert without == ["bias", "reader.pooler.weight", "reader.pooler.bias"], "the output layer and the pooler"
    file = tmp_path / "model.safetensors"
    save_file(stored_tensors(model), file)
    again = model_of()
    load_weights(again, load_file(file), "here")
    source = source_batch(random_rows([6, 2], SOURCES))
    with torch.no_grad():
        assert torch.equal(again(source, ids), model(source, ids))


@torch.no_grad()
def test_a_copy_reads_with_its_own_weights() -> None:
    model = model_of()
    copy = deepcopy(model)
    assert copy.reader is not None
    assert copy.encoder is copy.reader.encoder
    assert copy.source_embedding is copy.reader.embedding
    source, ids = source_batch(random_rows([4], SOURCES)), torch.randint(4, TARGETS, (1, 3))
    before = model(source, ids)
    for parameter in copy.reader.parameters():
        parameter.add_(1.0)
    assert torch.equal(model(source, ids), before)
    assert not torch.equal(copy(source, ids), before)


@pytest.mark.parametrize("beam", [1, 3])
def test_every_way_of_searching_gives_the_same(beam: int) -> None:
    model, rows = model_of(), random_rows([3, 8, 1, 5, 5, 2], SOURCES)
    options = SearchOptions(beam=beam, max_length=8)
    (_, expected), *others = ways(model, rows, options, size=4)
    for name, found in others:
        wrong = [one for one in differences(model, rows, options, expected, found) if not one.tie]
        assert not wrong, name


def test_what_a_search_sums_up_is_what_scoring_says() -> None:
    model, rows = model_of(), random_rows([3, 8, 1], SOURCES)
    found = generate(model, source_batch(rows), SearchOptions(beam=4, nbest=3, max_length=9))
    for row, hypotheses in zip(rows, found, strict=True):
        for one in hypotheses:
            (each,) = log_probabilities([model], [row], [list(one.tokens)], torch.device("cpu"))
            assert one.log_probability == pytest.approx(sum(each), abs=1e-4)


@torch.no_grad()
def test_neighbours_and_padding_do_not_count() -> None:
    model, rows, targets = model_of(), random_rows([3, 8, 1], SOURCES), random_rows([4, 2, 6], TARGETS)
    together = model(source_batch(rows), target_batch(targets).ids[:, :-1])
    for number, (row, target) in enumerate(zip(rows, targets, strict=True)):
        alone = model(source_batch([row]), target_batch([target]).ids[:, :-1])[0]
        torch.testing.assert_close(together[number, : len(alone)], alone, **CLOSE)
