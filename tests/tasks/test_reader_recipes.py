"""Recipes of models that read texts: each combination that makes no sense is refused with its keys and a way out."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from jumok import recipe as recipes
from jumok.errors import BadInput
from jumok.tasks.build import build_task

READER = "model.reader={width: 32, heads: 4}"


@pytest.mark.parametrize(
    ("name", "keys", "words"),
    [
        # metrics
        (
            "classify",
            ["training.metric=bleu"],
            ["bleu is not measured by task: classification", "accuracy or f1 or matthews"],
        ),
        (
            "similarity",
            ["training.metric=accuracy"],
            ["accuracy is not measured by task: regression", "pearson or spearman"],
        ),
        ("tag", ["training.metric=matthews"], ["matthews is not measured by task: tagging", "loss or accuracy or f1"]),
        ("answer", ["training.metric=accuracy"], ["accuracy is not measured by task: answering", "exact or f1"]),
        ("bert-tiny", ["training.metric=f1"], ["f1 is not measured by task: pretraining", "loss or accuracy"]),
        ("lstm", ["training.metric=accuracy"], ["accuracy is not measured by task: translation", "bleu"]),
        ("lstm-lm", ["training.metric=accuracy"], ["accuracy is not measured by task: language", "loss"]),
        ("classify", ["training.metric=acuracy"], ["training.metric", "accuracy"]),
        # data
        ("lstm", ["data.train.examples=a.tsv"], ["examples are for tasks with labels", "task: translation"]),
        ("bert-tiny", ["data.train.examples=a.tsv"], ["learns from text"]),
        ("classify", ["data.train.grammar=en-fr"], ["task classification learns from examples", "en, fr, ko"]),
        ("tag", ["data.train={source: a, target: b}"], ["task tagging learns from examples"]),
        ("answer", ["data.train.text=a.txt"], ["plain text is for language models", "task: answering"]),
        ("classify", ["data.train={examples: a, grammar: en}"], ["give exactly one of", "examples"]),
        ("classify", ["data.train.fields.lable=2"], ["lable", '"data.train.0.fields.label"']),
        ("classify", ["data.train=null"], ["data.train"]),
        ("bert-tiny", ["data.documents=pages"], ["data.documents", "blank"]),
        ("answer", ["data.stride=0"], ["data.stride", "greater than or equal to 1"]),
        # windows
        ("bert-tiny", ["data.window=513"], ["model.max_positions 512 is less than data.window 513"]),
        (
            "classify",
            ["model.position=learned", "model.max_positions=64"],
            ["data.max_length 128 is more than model.max_positions 64"],
        ),
        # masking
        ("bert-tiny", ["masking.hidden=0.8", "masking.other=0.3"], ["hidden 0.8 and other 0.3 are more than all"]),
        ("bert-tiny", ["masking.rate=0"], ["masking.rate", "greater than 0"]),
        ("bert-tiny", ["masking.rate=1"], ["masking.rate", "less than 1"]),
        ("bert-tiny", ["masking.sentences=nxet"], ["masking.sentences", "next"]),
        ("bert-tiny", ["masking.whole_word=true"], ["whole_word", '"masking.whole_words"']),
        # training
        ("tag", ["training.r_drop=1"], ["training.r_drop", "task: tagging"]),
        ("similarity", ["training.r_drop=1"], ["training.r_drop", "task: regression"]),
        ("classify", ["training.bpe_dropout=0.1"], ["training.bpe_dropout", "task: classification"]),
        ("similarity", ["training.class_weights=balanced"], ["class_weights is about labels", "task: regression"]),
        ("bert-tiny", ["training.class_weights={a: 1.0}"], ["class_weights is about labels", "task: pretraining"]),
        ("classify", ["training.class_weights=even"], ["training.class_weights", "balanced"]),
        ("classify-lstm", ["training.freeze=1"], ["training.freeze is about the layers of a BERT", "recurrent"]),
        ("tag-lstm", ["training.layer_decay=0.9"], ["training.layer_decay is about the layers of a BERT"]),
        ("transformer-tiny", ["training.freeze=1"], ["training.freeze", "transformer"]),
        ("classify", ["training.freeze=5"], ["training.freeze 5: the model has 4 layers"]),
        ("classify", ["training.freeze=-1"], ["training.freeze"]),
        ("classify", ["training.layer_decay=1.2"], ["training.layer_decay", "less than or equal to 1"]),
        ("classify", ["training.layer_decay=0"], ["training.layer_decay", "greater than 0"]),
        # models
        ("classify", ["model.pooling=last"], ["model.pooling", "mean"]),
        ("classify", ["model.heads=5"], ["width 256", "heads 5"]),
        ("classify-lstm", ["model.width=33"], ["width 33 must be even"]),
        ("transformer-tiny", ["model.width=64", READER], ["reader.width 32 is not the decoder's width 64"]),
        (
            "transformer-tiny",
            ["model.width=32", READER, "model.tie_embeddings=all", "tokenizer.joint=true"],
            ["tie_embeddings: all", "reader"],
        ),
        (
            "transformer-tiny",
            ["model.width=32", "model.reader={widht: 32}"],
            ["model.reader.widht", '"model.reader.width"'],
        ),
        ("classify", ['start=""'], ["start"]),
    ],
)
def test_what_makes_no_sense_is_explained(name: str, keys: list[str], words: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        recipes.read(name, keys)
    for word in words:
        assert word in str(caught.value), str(caught.value)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("classify", ["training.r_drop=1"]),
        ("classify", ["training.freeze=4", "training.layer_decay=0.8", "training.class_weights=balanced"]),
        ("tag", ["training.class_weights={O: 0.1}"]),
        ("bert-tiny", ["masking.hidden=0.9", "masking.other=0.1"]),
        ("bert-tiny", ["masking.hidden=1", "masking.other=0"]),
        ("bert-tiny", ["data.window=512"]),
        ("bert-modern-small", ["data.window=2048"]),
        ("transformer-tiny", ["model.width=32", READER, "model.tie_embeddings=target"]),
    ],
)
def test_what_makes_sense_is_read_and_written(name: str, keys: list[str], tmp_path: Path) -> None:
    recipe = recipes.read(name, keys)
    file = tmp_path / "copy.yaml"
    file.write_text(recipes.dump(recipe), encoding="utf-8")
    assert recipes.read(str(file)) == recipe
    file.write_text(recipes.explain(recipe), encoding="utf-8")
    assert recipes.read(str(file)) == recipe


@pytest.mark.parametrize(
    ("name", "keys", "words"),
    [
        ("classify", ["model={kind: seq2seq}"], ["seq2seq cannot learn task: classification", "bert or recurrent"]),
        ("bert-tiny", ["model={kind: recurrent}"], ["recurrent cannot learn task: pretraining", "use bert"]),
        ("lstm", ["model={kind: bert}"], ["bert cannot learn task: translation"]),
        ("classify", ["data.train.grammar=xx"], ['no "xx"']),
        ("tag", ["data.train.grammar=xx"], ['no "xx"']),
    ],
)
def test_what_is_found_out_when_the_task_is_built(name: str, keys: list[str], words: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        build_task(recipes.read(name, keys), torch.device("cpu"), lambda _: None)
    for word in words:
        assert word in str(caught.value)
