"""Scores of a test set: the alignments of a Transformer say which head they come from, and which would be best."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from journey import write_corpus

from jumok.api import TrainedTranslator
from jumok.data.pharaoh import format_pharaoh
from jumok.errors import BadInput
from jumok.evaluation import evaluate
from jumok.inspect.forced import word_links
from jumok.models.build import build
from jumok.recipe import Search, Seq2SeqSection, TransformerSection
from jumok.text.tokenizer import train_tokenizer


def translator(lines: list[str], section: TransformerSection | Seq2SeqSection) -> TrainedTranslator:
    torch.manual_seed(3)  # almost all weights make heads that look at different words: these do
    words = train_tokenizer(lines, "bpe", 300)
    model = build(section, words.size, words.size)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return TrainedTranslator(model, words, words, Search(beam=1, max_ratio=1.0, max_extra=1), 100, torch.device("cpu"))


def test_the_best_head_is_found_and_named(tmp_path: Path) -> None:
    source, reference, _ = write_corpus(tmp_path, 12)
    sources, references = (path.read_text(encoding="utf-8").splitlines() for path in (source, reference))
    section = TransformerSection(width=16, heads=2, feed_forward=16, encoder_layers=1, decoder_layers=2)
    model = translator([*sources, *references], section)
    gold = tmp_path / "gold"
    links = word_links(model, sources, references, layer=1, head=0)
    gold.write_text("".join(format_pharaoh(pairs) + "\n" for pairs in links), encoding="utf-8")
    result = evaluate(model, source, reference, gold)
    told = result.summary()
    assert "of decoder.0.cross, mean of 2 heads" in told
    assert "best on these very alignments: decoder.1.cross, head 0, AER 0.0000" in told
    assert "--alignment-layer 1 --alignment-head 0" in told
    found = result.to_json()["alignment"]
    assert (found["best"]["layer"], found["best"]["head"], found["best"]["error_rate"]) == (1, 0, 0.0)
    assert found["error_rate"] > 0.05
    chosen = evaluate(model, source, reference, gold, layer=1, head=0)
    assert chosen.alignment is not None
    assert chosen.alignment.error_rate == 0
    with pytest.raises(BadInput, match="head 7: layer 1 has heads 0 to 1"):
        evaluate(model, source, reference, gold, layer=1, head=7)


def test_a_recurrent_model_has_nothing_to_choose(tmp_path: Path) -> None:
    source, reference, gold = write_corpus(tmp_path, 5)
    lines = source.read_text(encoding="utf-8").splitlines()
    result = evaluate(translator(lines, Seq2SeqSection(width=8, embedding=8, layers=1)), source, reference, gold)
    assert "AER" in result.summary()
    assert "best on these" not in result.summary()
    assert "best" not in result.to_json()["alignment"]
