"""A BERT's life, as a user types it: pretrained, asked, imported, and taught to label, tag, compare and answer."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from jumok.cli.main import run as command
from jumok.data import grammar_tasks

SIZE = ["model.width=32", "model.heads=2", "model.layers=1", "model.feed_forward=64"]
BRIEF = [
    "training.updates=24", "training.validate_every=12", "training.checkpoint_every=12", "training.warmup=4",
    "training.batch_tokens=512", "training.learning_rate=0.003", "threads=1", "device=cpu",
]  # fmt: skip
WORDS = ["red", "green", "blue", "cat", "dog", "sun", "sea", "runs", "sleeps", "the", "a"]
Type = Callable[..., str]


@pytest.fixture
def type_in(capfd: pytest.CaptureFixture[str]) -> Type:
    """A command in this process: what it printed. It must go well."""

    def run(*arguments: object) -> str:
        capfd.readouterr()
        code = command([str(argument) for argument in arguments])
        said = capfd.readouterr()
        assert code == 0, said.err
        assert "Traceback" not in said.err
        return said.out

    return run


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("bert") / "bert"
    keys = [*SIZE, *BRIEF, "data.train.pairs=300", "data.valid.pairs=40"]
    assert command(["train", "bert-tiny", *keys, "--run", str(run)]) == 0
    return run


def write_labels(file: Path, examples: int, seed: int) -> list[str]:
    """What the label is can be seen in one word."""
    draw = random.Random(seed)
    lines = ["text\tlabel"]
    for _ in range(examples):
        words = draw.choices(WORDS[:2] + WORDS[3:], k=draw.randint(2, 6))
        label = draw.choice(["yes", "no"])
        words.insert(draw.randint(0, len(words)), "every" if label == "yes" else "not")
        lines.append(f"{' '.join(words)}\t{label}")
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return [line.partition("\t")[0] for line in lines[1:]]


def test_a_pretrained_model_guesses_words_and_places_texts(bert: Path, type_in: Type, tmp_path: Path) -> None:
    filled = type_in("fill", "the [MASK] sees a [MASK] .", "--run", bert, "--best", 3, "--json")
    places = json.loads(filled)
    assert [len(guesses) for guesses in places] == [3, 3]
    for guesses in places:
        shares = [guess["probability"] for guess in guesses]
        assert shares == sorted(shares, reverse=True)
        assert 0 < sum(shares) <= 1
    texts = tmp_path / "texts.txt"
    texts.write_text("the cat sleeps .\n\nthe dog runs .\nthe cat sleeps .\n", encoding="utf-8")
    type_in("embed", texts, "--run", bert, "--output", tmp_path / "v.npy")
    vectors = np.load(tmp_path / "v.npy")
    assert vectors.shape == (4, 32)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.allclose(vectors[0], vectors[3], atol=1e-6)
    printed = [
        [float(cell) for cell in line.split("\t")] for line in type_in("embed", texts, "--run", bert).split("\n")[:-1]
    ]
    assert np.allclose(printed, vectors, atol=1e-5)
    described = type_in("describe", bert)
    assert "BERT for pretraining" in described
    assert re.search(r"^[\d,]+ parameters$", described, re.MULTILINE)


def test_labels_from_the_pretrained_model_to_a_page_of_errors(
    bert: Path, type_in: Type, tmp_path: Path, visit: Callable[..., Any]
) -> None:
    train, test, run = tmp_path / "train.tsv", tmp_path / "test.tsv", tmp_path / "labels"
    write_labels(train, 300, 1)
    texts = write_labels(test, 60, 2)
    keys = [*BRIEF, "training.updates=60", "training.validate_every=30"]
    type_in("train", "classify", "--start", bert, "--train", train, *keys, "--run", run)
    plain = tmp_path / "plain.txt"
    plain.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    said = [line.split("\t") for line in type_in("predict", plain, "--run", run).splitlines()]
    assert len(said) == len(texts)
    right = [
        ("yes" if "every" in text.split() else "no") == label for text, (label, _) in zip(texts, said, strict=True)
    ]
    page = tmp_path / "page.html"
    scores = json.loads(type_in("evaluate", "--run", run, "--data", test, "--report", page, "--json"))
    assert scores["accuracy"]["score"] == pytest.approx(sum(right) / len(right))
    assert sum(right) / len(right) > 0.8, "one word says it all, and 60 updates are enough to see that"
    view = visit(page)
    assert "labels" in view.title()
    assert view.locator(".example").count() > 0
    report = visit(run / "report.html")
    assert report.locator("table.list tbody tr").count() > 0
    assert "examples per second" in report.content()
    assert report.locator("figcaption span.third").inner_text().startswith("matthews")  # no two curves look the same
    listed = type_in("runs", tmp_path / "labels", bert)
    assert "accuracy" in listed
    assert "bert 32×1" in listed


def test_tags_answers_and_likeness_start_from_it_too(bert: Path, type_in: Type, tmp_path: Path) -> None:
    tagged = tmp_path / "tags.conll"
    items = list(grammar_tasks.grammar_tagged("en", "train", 80))
    tagged.write_text(
        "".join("".join(f"{w}\t{t}\n" for w, t in zip(item.words, item.tags, strict=True)) + "\n" for item in items),
        encoding="utf-8",
    )
    run = tmp_path / "tags"
    type_in("train", "tag", "--start", bert, "--train", tagged, *BRIEF, "--run", run)
    lines = tmp_path / "lines.txt"
    lines.write_text("the cat sleeps .\n\nthe dog .\n", encoding="utf-8")
    blocks = type_in("predict", lines, "--run", run).split("\n")
    assert [line.split("\t")[0] for line in blocks] == ["the", "cat", "sleeps", ".", "", "", "the", "dog", ".", "", ""]
    found = json.loads(type_in("evaluate", "--run", run, "--data", tagged, "--report", tmp_path / "t.html", "--json"))
    assert 0 <= found["accuracy"]["score"] <= 1
    questions = tmp_path / "questions.jsonl"
    asked = list(grammar_tasks.grammar_questions("en", "train", 60))
    rows = [
        {
            "id": str(number),
            "question": one.question,
            "context": one.context,
            "answers": {"text": [a.text for a in one.answers], "answer_start": [a.start for a in one.answers]},
        }
        for number, one in enumerate(asked)
    ]
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run = tmp_path / "answers"
    type_in("train", "answer", "--start", bert, "--train", questions, *BRIEF, "data.max_length=128", "--run", run)
    context = asked[0].context
    answered = json.loads(
        type_in("predict", "--run", run, "--question", asked[0].question, "--context", context, "--best", 3, "--json")
    )
    for answer in answered["answers"]:
        if answer["text"]:
            assert context[answer["start"] : answer["start"] + len(answer["text"])] == answer["text"]
    assert len(type_in("predict", questions, "--run", run).splitlines()) == len(asked)
    json.loads(type_in("evaluate", "--run", run, "--data", questions, "--report", tmp_path / "a.html", "--json"))
    run = tmp_path / "alike"
    keys = [*BRIEF, "data.train.pairs=200", "data.valid.pairs=30"]
    type_in("train", "similarity", "--start", bert, *keys, "--run", run)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("the cat sleeps\tthe cat sleeps\nthe cat sleeps\tevery dog runs\n", encoding="utf-8")
    numbers = [float(line) for line in type_in("predict", pairs, "--run", run).splitlines()]
    assert len(numbers) == 2
    assert np.isfinite(numbers).all()


def test_somebody_elses_checkpoint_becomes_a_run(type_in: Type, tmp_path: Path) -> None:
    """Its vectors are those that transformers computes from the same folder."""
    transformers = pytest.importorskip("transformers")
    theirs, run = tmp_path / "theirs", tmp_path / "imported"
    theirs.mkdir()
    letters = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{one}" for one in letters), *WORDS[:-1]]
    (theirs / "vocab.txt").write_text("".join(f"{token}\n" for token in vocabulary), encoding="utf-8")
    torch.manual_seed(7)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64,
    )  # fmt: skip
    model = transformers.BertForMaskedLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    model.save_pretrained(theirs)
    tokenizer = transformers.BertTokenizer.from_pretrained(theirs)
    tokenizer.save_pretrained(theirs)
    type_in("import", "hf", theirs, "--run", run)
    texts = ["The cat sleeps", "a red sun", "dog", "sea runs blue blue blue"]
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    type_in("embed", lines, "--run", run, "--raw", "--output", tmp_path / "v.safetensors")
    from safetensors.numpy import load_file

    vectors = load_file(tmp_path / "v.safetensors")["embeddings"]
    for text, vector in zip(texts, vectors, strict=True):
        with torch.no_grad():
            hidden = model.bert(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        assert np.abs(hidden.mean(dim=0).numpy() - vector).max() < 1e-4, text
    assert type_in("fill", "the [MASK] runs", "--run", run)
    train = tmp_path / "train.tsv"
    write_labels(train, 60, 3)
    keys = [*BRIEF, "data.max_length=48"]
    type_in("train", "classify", "--start", run, "--train", train, *keys, "--run", tmp_path / "labels")
    assert len(type_in("predict", lines, "--run", tmp_path / "labels").splitlines()) == len(texts)
