"""Runs of every task that a BERT has, written for transformers: from text to number, the same scores there."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from seeded import seed  # noqa: F401
from torch import nn

from jumok import api
from jumok import recipe as recipes
from jumok.data.batch import Sequences
from jumok.data.rows import framed
from jumok.errors import BadInput, Failure
from jumok.interop import export_huggingface as exporting
from jumok.interop.export_huggingface import export_huggingface
from jumok.models.bert import Bert, HiddenWords
from jumok.models.reader import TextLabeller, WordLabeller
from jumok.recipe import BertSection
from jumok.tasks.vocabulary import save_tokenizers
from jumok.text.tokenizer import Tokenizer, train_tokenizer
from jumok.training import checkpoint
from jumok.training.run import RunFolder
from jumok.training.state import TrainState

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("seed")
LINES = [
    "The old man reads a Book, slowly.",
    "Where did she go?",
    "주목은 나무다",
    "a naïve café; 42 cups",
    "they read it",
] * 8
SIZE = 300
SMALL = {"width": 16, "heads": 2, "layers": 2, "feed_forward": 24, "max_positions": 40}
GIVEN: dict[str, dict[str, Any]] = {
    "pretraining": {"text": ["none.txt"]},
    "classification": {"examples": ["none.tsv"]},
    "regression": {"examples": ["none.tsv"]},
    "tagging": {"examples": ["none.conll"]},
    "answering": {"examples": ["none.json"]},
}
KEPT: dict[str, dict[str, Any]] = {
    "classification": {"labels": ["bad", "good", "so so"], "counts": [1, 1, 1]},
    "regression": {"mean": 2.5, "scale": 1.25, "lowest": 0, "highest": 5},
    "tagging": {"labels": ["B-PER", "I-PER", "O"], "counts": [1, 1, 1]},
    "answering": {"longest": 8, "unanswerable": True},
}


def some_text() -> str:
    return " ".join(random.sample(" ".join(LINES[:5]).split(), random.randint(1, 7)))


def network(task: str, section: BertSection, words: int, ordered: bool) -> nn.Module:
    if task == "pretraining":
        return HiddenWords(Bert(section, words), ordered)
    if task in ("tagging", "answering"):
        return WordLabeller(section, words, 3 if task == "tagging" else 2)
    return TextLabeller(section, words, 3 if task == "classification" else 1)


def reading_run(
    path: Path,
    task: str,
    tokenizer: str = "wordpiece",
    lowercase: bool = False,
    sentences: str = "none",
    two: bool = False,
    **model: Any,
) -> RunFolder:
    """A run of this task with random weights and a vocabulary that was learned here."""
    vocabulary = train_tokenizer(LINES, tokenizer, SIZE, lowercase)
    data = {"train": GIVEN[task], "valid": GIVEN[task]}
    data |= {"window": 32} if task == "pretraining" else {"max_length": 32, "stride": 8}
    raw: dict[str, Any] = {"task": task, "data": data, "model": {"kind": "bert", **SMALL, **model}}
    raw["tokenizer"] = {"kind": tokenizer, "vocabulary": SIZE, "lowercase": lowercase}
    if task == "pretraining":
        raw |= {"masking": {"sentences": sentences}, "training": {"label_smoothing": 0.0}}
    if task == "regression":
        raw["training"] = {"metric": "pearson"}
    recipe = recipes.check(raw, "test")
    run = RunFolder.create(path, recipe)
    save_tokenizers(run.tokenizer, {"text": vocabulary})
    assert isinstance(recipe.model, BertSection)
    made = network(task, recipe.model, vocabulary.size, sentences != "none")
    for parameter in made.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    checkpoint.write(run.checkpoints / "step-0", dict(made.state_dict()), None, TrainState(total=0))
    if task in KEPT:
        kept = {**KEPT[task], "pairs": two} if task in ("classification", "regression") else KEPT[task]
        (path / "labels.json").write_text(json.dumps(kept))
    return run


def theirs(out: Path, kind: str) -> tuple[Any, Any]:
    return transformers.AutoTokenizer.from_pretrained(out), getattr(transformers, kind).from_pretrained(out).eval()


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), atol=2e-5, rtol=2e-5)


@torch.no_grad()
@pytest.mark.parametrize("lowercase", [False, True], ids=["cased", "uncased"])
@pytest.mark.parametrize("pairs", [False, True], ids=["texts", "pairs"])
@pytest.mark.parametrize("segments", [2, 0], ids=["segments", "none"])
def test_labels_of_texts(tmp_path: Path, lowercase: bool, pairs: bool, segments: int) -> None:
    run = reading_run(tmp_path / "run", "classification", lowercase=lowercase, two=pairs, segments=segments)
    assert "checked" in export_huggingface(run, tmp_path / "out")[-1]
    tokenizer, model = theirs(tmp_path / "out", "BertForSequenceClassification")
    assert model.config.id2label == {0: "bad", 1: "good", 2: "so so"}
    assert tokenizer.model_max_length == 32
    for _ in range(5):
        texts = (some_text(), some_text() if pairs else None)
        expected = api.load(run.path, "cpu").scores([texts] if pairs else [texts[0]])
        close(model(**tokenizer(*texts, return_tensors="pt")).logits, expected)


@torch.no_grad()
def test_numbers_come_in_their_own_unit(tmp_path: Path) -> None:
    run = reading_run(tmp_path / "run", "regression")
    export_huggingface(run, tmp_path / "out")
    tokenizer, model = theirs(tmp_path / "out", "BertForSequenceClassification")
    texts = [some_text() for _ in range(5)]
    close(model(**tokenizer(texts, return_tensors="pt", padding=True)).logits[:, 0], api.load(run.path).measure(texts))
    assert model.config.problem_type == "regression"


@torch.no_grad()
@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_texts_that_are_read_apart_are_vectors_there(tmp_path: Path, pooling: str) -> None:
    run = reading_run(tmp_path / "run", "regression", two=True, pairs="apart", pooling=pooling)
    notes = export_huggingface(run, tmp_path / "out")
    (told,) = (note for note in notes if "cos(u, v)" in note)
    slope, shift = float(told.split("is ")[-1].split(" ·")[0]), float(told.split("+ ")[-1])
    tokenizer, model = theirs(tmp_path / "out", "BertModel")
    pair = (some_text(), some_text())
    said = [model(**tokenizer(text, return_tensors="pt")) for text in pair]
    u, v = (one.last_hidden_state.mean(1) if pooling == "mean" else one.pooler_output for one in said)
    number = slope * float(torch.cosine_similarity(u, v)) + shift
    assert number == pytest.approx(float(api.load(run.path).measure([pair])[0]), abs=1e-4)
    assert (tmp_path / "out" / "1_Pooling" / "config.json").is_file() == (pooling == "mean")


@torch.no_grad()
def test_tags_of_words(tmp_path: Path) -> None:
    run = reading_run(tmp_path / "run", "tagging")
    export_huggingface(run, tmp_path / "out")
    tokenizer, model = theirs(tmp_path / "out", "BertForTokenClassification")
    for _ in range(5):
        words = some_text().split()
        given = tokenizer(words, is_split_into_words=True, return_tensors="pt")
        best = model(**given).logits[0].argmax(-1).tolist()
        places = given.word_ids()
        tags = [model.config.id2label[best[places.index(number)]] for number in range(len(words))]
        assert tags == api.load(run.path).predict([words])[0]


@torch.no_grad()
def test_answers(tmp_path: Path) -> None:
    run = reading_run(tmp_path / "run", "answering")
    export_huggingface(run, tmp_path / "out")
    tokenizer, model = theirs(tmp_path / "out", "BertForQuestionAnswering")
    loaded = api.load(run.path, "cpu")
    given = tokenizer(some_text(), some_text(), return_tensors="pt", truncation=True, max_length=32)
    found = loaded.model(Sequences.pad(given["input_ids"].tolist()), given["token_type_ids"])
    said = model(**given)
    close(said.start_logits[0], found[0, :, 0])
    close(said.end_logits[0], found[0, :, 1])


@torch.no_grad()
@pytest.mark.parametrize("sentences", ["none", "order"])
def test_hidden_words(tmp_path: Path, sentences: str) -> None:
    run = reading_run(tmp_path / "run", "pretraining", sentences=sentences)
    notes = export_huggingface(run, tmp_path / "out")
    kind = "BertForMaskedLM" if sentences == "none" else "BertForPreTraining"
    assert notes[0].endswith(kind)
    tokenizer, model = theirs(tmp_path / "out", "BertForMaskedLM")
    given = tokenizer("they [MASK] it", return_tensors="pt")
    place = given["input_ids"][0].tolist().index(tokenizer.mask_token_id)
    scores = model(**given).logits[0, place]
    scores[tokenizer.all_special_ids] = -torch.inf  # no words
    best = scores.softmax(-1)
    (guesses,) = api.load(run.path).fill("they [MASK] it", 3)
    for guess in guesses:
        assert float(best[tokenizer.convert_tokens_to_ids(guess.token)]) == pytest.approx(guess.probability, abs=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["bpe", "unigram", "byte", "word"])
def test_other_vocabularies(tmp_path: Path, kind: str) -> None:
    run = reading_run(tmp_path / "run", "classification", tokenizer=kind)
    export_huggingface(run, tmp_path / "out")
    tokenizer, model = theirs(tmp_path / "out", "BertForSequenceClassification")
    texts = [some_text() for _ in range(5)]  # cut into letters, one of twenty is longer than what is read
    given = tokenizer(texts, return_tensors="pt", padding=True, truncation=True)
    close(model(**given).logits, api.load(run.path).scores(texts))


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("pretraining", "words"),
        ("classification", "label"),
        ("regression", "number"),
        ("tagging", "tags"),
        ("answering", "answer"),
    ],
)
def test_the_code_of_the_card_comes_to_an_answer(tmp_path: Path, task: str, name: str) -> None:
    run = reading_run(tmp_path / "run", task)
    export_huggingface(run, tmp_path / "out")
    (code,) = re.findall(r"```python\n(.*?)```", (tmp_path / "out" / "README.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code.replace("FOLDER", str(tmp_path / "out")), names)
    loaded, found = api.load(run.path, "cpu"), names[name]
    if task == "pretraining":
        likeliest = [guess.token for guess in loaded.fill("a text with [MASK] in it", best=5)[0]]
        written = [one for one in found if one[0] != "["]  # special ones are left out there
        assert written == likeliest[: len(written)]
    elif task == "classification":
        assert found == loaded.predict(["a text"])[0].label
    elif task == "regression":
        assert found == pytest.approx(loaded.measure(["a text"])[0], abs=1e-4)
    elif task == "tagging":
        assert set(found) <= {"B-PER", "I-PER", "O"}
        assert len(found) == names["given"]["input_ids"].size(1)
    else:
        assert isinstance(found, str)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["wordpiece", "unigram"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_long_texts_are_read_as_the_card_says(tmp_path: Path, kind: str, task: str) -> None:
    """Nothing is cut off there unless it is asked for, and a text's scores would be those of another text."""
    run = reading_run(tmp_path / "run", task, tokenizer=kind)
    (told,) = (note for note in export_huggingface(run, tmp_path / "out") if "more than 32 tokens" in note)
    card = (tmp_path / "out" / "README.md").read_text()
    assert told in card
    text = " ".join(some_text() for _ in range(20))
    usage = card.split("```python\n")[1].split("```")[0]
    names: dict[str, Any] = {}
    exec(usage.replace("FOLDER", str(tmp_path / "out")).replace("a text", text), names)
    loaded = api.load(run.path, "cpu")
    close(names["output"].logits, [loaded.measure([text])] if task == "regression" else loaded.scores([text]))
    assert len(names["tokenizer"](text)["input_ids"]) > 40 >= len(names["tokenizer"](text, truncation=True)[0])


@pytest.mark.parametrize("limit", [31, 32])
def test_of_two_long_texts_one_token_may_be_another(tmp_path: Path, limit: int) -> None:
    """Both take from the longer one. Where both are too long and an odd number is left, the note tells what differs."""
    run = reading_run(tmp_path / "run", "classification", two=True)
    recipe = (tmp_path / "run" / "recipe.yaml").read_text()
    (tmp_path / "run" / "recipe.yaml").write_text(recipe.replace("max_length: 32", f"max_length: {limit}"))
    notes = export_huggingface(run, tmp_path / "out")
    assert any("one token more of the first" in note for note in notes) == (limit == 32)
    tokenizer = theirs(tmp_path / "out", "BertForSequenceClassification")[0]
    ours = Tokenizer.load(run.tokenizer / "text")
    for first in (1, 5, 13, 14, 15, 16, 40):
        for second in (1, 5, 13, 14, 15, 16, 40):
            pair = " ".join(["read"] * first), " ".join(["it"] * second)
            given = tokenizer(*pair, truncation=True)
            found, segments, _ = framed(*ours.encode(pair), ours.specials, limit)
            if limit == 32 and 14 < first <= second:
                assert sum(segments) == sum(given["token_type_ids"]) - 1 == 15
            else:
                assert (given["input_ids"], given["token_type_ids"]) == (found, segments)


@pytest.mark.parametrize(
    ("task", "model", "told"),
    [
        ("classification", {"pooling": "mean"}, r"model\.pooling: mean"),
        ("classification", {"pairs": "apart"}, r"model\.pairs: apart"),
        ("tagging", {"norm": "pre"}, r"model\.norm: pre"),
        ("tagging", {"norm_kind": "rms"}, r"model\.norm_kind: rms"),
        ("answering", {"position": "rotary"}, r"model\.position: rotary"),
        ("pretraining", {"activation": "swiglu"}, r"model\.activation: swiglu"),
        ("pretraining", {"key_value_heads": 1}, r"model\.key_value_heads: 1"),
        ("regression", {"final_norm": True}, r"model\.final_norm: true"),
    ],
)
def test_what_has_no_place_there_is_named(tmp_path: Path, task: str, model: dict[str, Any], told: str) -> None:
    run = reading_run(tmp_path / "run", task, **model)
    with pytest.raises(BadInput, match=told):
        export_huggingface(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("task", GIVEN)
def test_one_wrong_number_is_noticed(tmp_path: Path, task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = reading_run(tmp_path / "run", task)
    honest = exporting.outgoing_bert

    def spoiled(*given: Any) -> Any:
        made = honest(*given)
        name = "bert.encoder.layer.0.output.dense.bias"  # whose numbers are those of the model here
        made.weights[name] = made.weights[name] + torch.eye(16)[0] / 100
        return made

    monkeypatch.setattr(exporting, "outgoing_bert", spoiled)
    with pytest.raises(Failure, match="the largest difference from transformers"):
        export_huggingface(run, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def without(kind: str, content: Any) -> None:
    steps = content["normalizer"]["normalizers"]
    content["normalizer"]["normalizers"] = [step for step in steps if step["type"] != kind]


def swapped(content: Any) -> None:
    vocabulary = content["model"]["vocab"]
    one, other = random.sample([token for token in vocabulary if token.isalpha()], 2)
    vocabulary[one], vocabulary[other] = vocabulary[other], vocabulary[one]


SPOILED: dict[str, Any] = {
    "case": lambda content: content.update(normalizer={"type": "Lowercase"}),
    "spaces": lambda content: without("Replace", content),
    "composed": lambda content: without("NFC", content),
    "ends of long words": lambda content: content["model"].update(max_input_chars_per_word=99),
    "two ids": swapped,
    "frame": lambda content: content["post_processor"]["pair"].pop(),
}


@pytest.mark.parametrize("what", [*SPOILED, "limit"])
def test_words_that_are_cut_otherwise_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    run = reading_run(tmp_path / "run", "classification")
    honest = exporting.outgoing_bert

    def spoiled(*given: Any) -> Any:
        made = honest(*given)
        file = "tokenizer_config.json" if what == "limit" else "tokenizer.json"
        content = json.loads(made.files[file])
        if what == "limit":
            content["model_max_length"] += 1
        else:
            SPOILED[what](content)
        made.files[file] = json.dumps(content)
        return made

    monkeypatch.setattr(exporting, "outgoing_bert", spoiled)
    with pytest.raises(Failure, match="into other tokens than jumok"):
        export_huggingface(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_run_that_was_trained(tmp_path: Path) -> None:
    """Two updates on the embedded grammar; the card has what the validation of that checkpoint measured."""
    given = {"grammar": "en", "pairs": 200}
    raw = {
        "task": "pretraining", "device": "cpu", "data": {"train": given, "valid": {**given, "pairs": 20}, "window": 32},
        "tokenizer": {"kind": "wordpiece", "vocabulary": 200}, "model": {"kind": "bert", **SMALL},
        "training": {"updates": 2, "warmup": 1, "batch_tokens": 256, "validate_every": 1, "label_smoothing": 0.0},
    }  # fmt: skip
    api.train(recipes.check(raw, "test"), tmp_path / "run", quiet=True, report=False)
    run = RunFolder(tmp_path / "run")
    notes = export_huggingface(run, tmp_path / "out")
    assert notes[-1].startswith("checked")
    step = run.pointed("best")
    (event,) = (event for event in run.events() if event["event"] == "valid" and event["step"] == step)
    card = (tmp_path / "out" / "README.md").read_text()
    for words in ("grammar: en", f"at update {step}", f"| loss | {event['loss']:.6g} |", "pipeline_tag: fill-mask"):
        assert words in card
