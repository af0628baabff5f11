"""`jumok predict`, `embed` and `fill`: a line in, a line out; what is wrong is told and nothing is half-written."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from asked import Ask, refused
from forked import Popen
from safetensors.torch import load_file

from jumok.cli.main import run as command
from jumok.training import checkpoint
from jumok.training.run import RunFolder
from jumok.training.state import TrainState

KEYS = [
    "model.width=16", "model.heads=2", "model.layers=1", "model.feed_forward=32", "training.updates=4", "threads=1",
    "training.validate_every=4", "training.checkpoint_every=4", "training.batch_tokens=256", "training.warmup=2",
    "data.train.pairs=60", "data.valid.pairs=20", "device=cpu",
]  # fmt: skip
RECIPES = {"labels": "classify", "alike": "similarity", "tags": "tag", "answers": "answer", "bert": "bert-tiny"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name, recipe in RECIPES.items():
        assert command(["train", recipe, *KEYS, "--run", str(folder / name)]) == 0, name
    return folder


def write(folder: Path, content: str | bytes, name: str = "lines.txt") -> Path:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def test_every_line_is_answered_in_its_place(runs: Path, ask: Ask, tmp_path: Path) -> None:
    """Alone or among others, an empty line too: batches by length must not mix them up."""
    seed = random.randrange(10**6)
    draw = random.Random(seed)
    words = ["The", "cat", "sleeps", "a", "dog", ",", "☃", "nothing"]
    lines = [" ".join(draw.choices(words, k=draw.choice([0, 1, 3, 40, 200]))) for _ in range(40)]
    _, out, _ = ask("predict", write(tmp_path, "".join(f"{line}\n" for line in lines)), "--run", runs / "labels")
    together = out.splitlines()
    assert len(together) == len(lines), seed
    for place in draw.sample(range(40), 4):
        _, alone, _ = ask("predict", write(tmp_path, f"{lines[place]}\n"), "--run", runs / "labels")
        label, share = alone.strip().split("\t")
        assert together[place].split("\t")[0] == label, (seed, place)
        assert float(together[place].split("\t")[1]) == pytest.approx(float(share), abs=2e-4), (seed, place)


def test_tagged_words_stand_in_blocks(runs: Path, ask: Ask, tmp_path: Path) -> None:
    lines = write(tmp_path, "The cat sleeps .\n\n \nA dog\n")
    code, out, _ = ask("predict", lines, "--run", runs / "tags")
    assert code == 0
    flat = [line.split("\t")[0] for line in out.split("\n")]
    assert flat == ["The", "cat", "sleeps", ".", "", "", "", "A", "dog", "", ""]
    _, out, _ = ask("predict", lines, "--run", runs / "tags", "--json")
    assert out.count("\n") == 4
    assert '"words": [], "tags": []' in out


def test_pairs_are_pairs(runs: Path, ask: Ask, tmp_path: Path) -> None:
    refused(
        ask("predict", write(tmp_path, "a\tb\nalone\n"), "--run", runs / "alike"), "line 2", "pairs of texts", "tab"
    )
    code, out, _ = ask("predict", write(tmp_path, "a\tb\n\nc\td\n"), "--run", runs / "alike")
    assert code == 0
    assert len(out.splitlines()) == 3
    one, other = (ask("predict", write(tmp_path, text), "--run", runs / "labels")[1] for text in ("a\tb\n", "a b\n"))
    assert one == other  # a tab in a text is a space


def test_a_very_long_line_is_cut_and_not_a_disaster(runs: Path, ask: Ask, tmp_path: Path) -> None:
    file = write(tmp_path, "cat " * 250_000 + "\nshort\n" + "x" * 1_000_000 + "\n")
    code, out, _ = ask("predict", file, "--run", runs / "labels")
    assert code == 0
    assert len(out.splitlines()) == 3
    code, _, _ = ask("embed", file, "--run", runs / "bert", "--output", tmp_path / "v.npy")
    assert code == 0
    assert np.load(tmp_path / "v.npy").shape == (3, 16)


def test_what_is_cut_is_told_once(runs: Path, ask: Ask, tmp_path: Path) -> None:
    long = "The cat sleeps . " * 40
    file = write(tmp_path, f"{long}\nshort\n" * 700)  # more than are read at once
    for arguments in (
        ("predict", file, "--run", runs / "labels"),
        ("predict", file, "--run", runs / "labels", "--json"),
    ):
        code, _, err = ask(*arguments)
        assert code == 0
        assert err.count("cut there") == 1
        assert "700 of 1,400 texts are longer than data.max_length (128 tokens)" in err
    few = write(tmp_path, f"{long}\nshort\n", "few.txt")
    for name in ("embed", "patterns"):
        assert "1 of 2 texts are longer than data.window (128 tokens)" in ask(name, few, "--run", runs / "bert")[2]
        assert "cut there" not in ask(name, write(tmp_path, "short\n"), "--run", runs / "bert")[2]
    pair = write(tmp_path, f"{long}\tb\nc\td\n", "pair.txt")
    assert "1 of 2 texts are longer" in ask("predict", pair, "--run", runs / "alike")[2]
    assert "cut" not in ask("predict", few, "--run", runs / "tags")[2], "tags are read through windows"
    data = write(tmp_path, f"text\tlabel\n{long}\torder\nb\tnegation\n", "data.tsv")
    assert (
        "1 of 2 texts are longer than data.max_length" in ask("evaluate", "--run", runs / "labels", "--data", data)[1]
    )
    said = ask("evaluate", "--run", runs / "labels", "--data", data, "--json")
    assert "1 of 2 texts are longer than data.max_length" in said[2]
    asked = ["--question", long, "--context", "The cat ."]
    assert "1 of 1 questions are longer than a third of" in ask("predict", "--run", runs / "answers", *asked)[2]
    question = {"id": "1", "question": long, "context": "The cat", "answers": [{"text": "cat", "answer_start": 4}]}
    asked_of = write(tmp_path, json.dumps(question) + "\n", "questions.jsonl")
    out = ask("evaluate", "--run", runs / "answers", "--data", asked_of)[1]
    assert "1 of 1 questions are longer than a third of" in out


def test_how_lines_with_tabs_are_read_is_told_once(runs: Path, ask: Ask, tmp_path: Path) -> None:
    table = write(tmp_path, "text\tlabel\nA cat .\torder\nplain\n")
    code, out, err = ask("predict", table, "--run", runs / "labels")
    assert (code, len(out.splitlines())) == (0, 3)
    assert err.count("2 lines with tabs: such a line is read whole, as one text") == 1
    three = write(tmp_path, "a\tb\n" + "a\tb\t3\n" * 1500)
    err = ask("predict", three, "--run", runs / "alike")[2]
    assert err.count("1,500 lines with more than two columns") == 1
    assert "behind the first tab" in err
    for run, text in {"labels": "A cat .\n", "alike": "a\tb\n", "tags": "a\tb\n"}.items():
        assert "tab" not in ask("predict", write(tmp_path, text), "--run", runs / run)[2], run


def test_there_is_no_next_best_tag_or_number(runs: Path, ask: Ask, tmp_path: Path) -> None:
    file = write(tmp_path, "a\tb\n")
    refused(ask("predict", file, "--run", runs / "tags", "--best", 2), "--best 2", "one tag for each word")
    refused(ask("predict", file, "--run", runs / "alike", "--best", 3), "--best 3", "one number")
    for name in RECIPES.keys() - {"bert", "answers"}:
        assert ask("predict", file, "--run", runs / name, "--best", 1)[0] == 0
    assert ask("predict", file, "--run", runs / "labels", "--best", 2)[1].count("\t") == 3


def test_how_likely_an_answer_is_does_not_depend_on_the_others_that_are_told(runs: Path, ask: Ask) -> None:
    asked = ["--question", "Who sleeps?", "--context", "The young cat sleeps in the garden.", "--run", runs / "answers"]
    alone, among = (ask("predict", *asked, "--best", best)[1].splitlines() for best in (1, 3))
    assert (len(alone), len(among)) == (1, 3)
    assert alone[0] == among[0]
    assert 0 < float(alone[0].split("\t")[1]) < 0.999


def test_pairs_without_a_second_text_are_left_out_of_the_scores(runs: Path, ask: Ask, tmp_path: Path) -> None:
    data = write(tmp_path, "text\tsecond\tlabel\na\tb\t1\na cat\t\t2\n\tb\t2\nc\td\t3\n", "data.tsv")
    code, out, err = ask("evaluate", "--run", runs / "alike", "--data", data)
    assert code == 0, err
    assert "2 examples without text are left out" in out
    assert "2 examples\n" in out


def test_tags_that_are_not_as_in_training(runs: Path, ask: Ask, tmp_path: Path) -> None:
    data = write(tmp_path, "The B-WHO\ncat I-WHO\nsings X-1\n", "words.conll")
    code, out, err = ask("evaluate", "--run", runs / "tags", "--data", data)
    assert code == 0, err
    assert "words.conll, line 3" in out, "where the tag stands, not its sentence"
    assert "not spans" in out
    assert "“X-1”" in out
    strange = write(tmp_path, "a X\nb Y\n", "strange.conll")
    refused(ask("evaluate", "--run", runs / "tags", "--data", strange), "strange.conll, line 1", "never seen")


def test_unknown_text_works_and_is_told(runs: Path, ask: Ask, tmp_path: Path) -> None:
    file = write(tmp_path, "☃☃ ☄\n☄\n")
    for kind in ("labels", "tags"):
        code, out, err = ask("predict", file, "--run", runs / kind)
        assert code == 0
        assert out
        assert "3 of 3 tokens are not in the vocabulary" in err
    assert "not in the vocabulary" in ask("embed", file, "--run", runs / "bert")[2]
    assert "not in the vocabulary" in ask("fill", "☃ [MASK]", "--run", runs / "bert")[2]
    assert "vocabulary" not in ask("predict", write(tmp_path, "The cat sleeps .\n"), "--run", runs / "labels")[2]


def test_what_cannot_be_read_is_named(runs: Path, ask: Ask, tmp_path: Path) -> None:
    broken = write(tmp_path, b"good\nb\xffad\n")
    for name in ("predict", "embed"):
        refused(ask(name, broken, "--run", runs / "labels"), "lines.txt, line 2", "not valid UTF-8")
        refused(ask(name, tmp_path / "gone.txt", "--run", runs / "labels"), "gone.txt")
    assert ask("predict", write(tmp_path, ""), "--run", runs / "labels")[:2] == (0, "")
    refused(ask("embed", write(tmp_path, ""), "--run", runs / "bert"), "no texts")


def test_what_is_asked_of_the_wrong_run(runs: Path, ask: Ask, tmp_path: Path) -> None:
    file = write(tmp_path, "a\n")
    refused(ask("predict", file, "--run", runs / "bert"), "pretraining", "--start")
    refused(ask("predict", file, "--run", runs / "labels", "--question", "Who?"), "--question", "classification")
    refused(ask("fill", "a [MASK]", "--run", runs / "labels"), "classification", "pretrained")
    refused(ask("fill", "a word", "--run", runs / "bert"), "no [MASK]")
    refused(ask("predict", "--run", runs / "answers"), "--question and --context")
    refused(ask("predict", "--run", runs / "answers", "--question", "Who?"), "--context is missing")
    refused(ask("predict", "--run", runs / "answers", "--context", "He."), "--question is missing")
    refused(ask("predict", "--run", runs / "answers", "--question", " ", "--context", "He."), "empty")
    for arguments in (["attend", "a"], ["translate", "a"], ["generate", "a"], ["attribute", "a"]):
        refused(ask(*arguments, "--run", runs / "labels"), "classification")
    for name in ("align", "ablate", "score"):
        refused(ask(name, "--source", file, "--target", file, "--run", runs / "tags"), "tagging")
    refused(ask("gates", "a cat", "--run", runs / "labels"), "no recurrence")
    assert ask("positions", "--run", runs / "labels")[0] == 0
    assert "learned" in ask("positions", "--run", runs / "bert")[1]
    refused(ask("evaluate", "--run", runs / "labels"), "--data")
    refused(ask("evaluate", "--run", runs / "bert"), "validations")
    refused(ask("evaluate", "--run", runs / "bert", "--data", file), "pretraining")


def test_outputs_that_cannot_be(runs: Path, ask: Ask, tmp_path: Path) -> None:
    file = write(tmp_path, "a\n")
    for name in ("v.txt", "gone/v.npy"):
        refused(ask("embed", file, "--run", runs / "bert", "--output", tmp_path / name), name)
    refused(ask("embed", file, "--run", runs / "bert", "--pooling", "median"), "mean, first, max")
    data = write(tmp_path, "text\tlabel\na\torder\nb\tnegation\n", "data.tsv")
    refused(
        ask("evaluate", "--run", runs / "labels", "--data", data, "--report", tmp_path / "gone/r.html"), "gone/r.html"
    )
    refused(ask("evaluate", "--run", runs / "labels", "--data", data, "--report", data), "the data itself")
    for name in ("page.txt", "page", "page.pdf"):
        refused(ask("evaluate", "--run", runs / "labels", "--data", data, "--report", tmp_path / name), name, ".html")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.tsv", "lines.txt"]


def test_labels_that_do_not_fit_the_run(runs: Path, ask: Ask, tmp_path: Path) -> None:
    data = write(tmp_path, "text\tlabel\na\torder\nb\tordre\n", "data.tsv")
    page = tmp_path / "page.html"
    asked = ask("evaluate", "--run", runs / "labels", "--data", data, "--report", page)
    refused(asked, "data.tsv, line 3", '"ordre" was never seen', 'Did you mean "order"?')
    assert asked[2].count("statement") == 1  # what there is is told once
    assert not page.exists()
    data = write(tmp_path, "text\tlabel\na b\t1\n", "one.tsv")
    refused(ask("evaluate", "--run", runs / "alike", "--data", data), "one.tsv, line 2", "pairs", "--field second=")
    data = write(tmp_path, "no header here\nor there\n", "plain.tsv")
    refused(ask("evaluate", "--run", runs / "labels", "--data", data), "plain.tsv", "--field text=")


def test_a_run_without_its_labels(runs: Path, ask: Ask, tmp_path: Path) -> None:
    file = write(tmp_path, "a\tb\n")
    for name in ("labels", "alike", "tags", "answers"):
        copy = tmp_path / name
        shutil.copytree(runs / name, copy)
        given = ["--question", "Who?", "--context", "He."] if name == "answers" else [file]
        for content in ("{", "[]", "{}", '{"labels": 3, "longest": null, "mean": "x"}'):
            (copy / "labels.json").write_text(content, encoding="utf-8")
            refused(ask("predict", *given, "--run", copy), "labels.json is damaged")
        (copy / "labels.json").unlink()
        refused(ask("predict", *given, "--run", copy), "labels.json is missing")


def test_weights_that_are_no_numbers_are_a_failure(runs: Path, ask: Ask, tmp_path: Path) -> None:
    """What is not a number would be some label all the same."""
    file = write(tmp_path, "a\n")
    for name in ("labels", "tags", "bert", "answers"):
        copy = RunFolder(tmp_path / name)
        shutil.copytree(runs / name, copy.path)
        weights = load_file(copy.checkpoints / "step-4" / "model.safetensors")
        weights["reader.encoder.blocks.0.feed_forward.inner.weight"][0, 0] = torch.nan
        shutil.rmtree(copy.checkpoints / "step-4")
        checkpoint.write(copy.checkpoints / "step-4", weights, None, TrainState(update=4))
        asked = {
            "bert": ("embed", file),
            "answers": ("predict", "--question", "Who?", "--context", "He."),
        }.get(name, ("predict", file))
        refused(ask(*asked, "--run", copy.path), "not numbers", code=1)
    refused(ask("fill", "a [MASK]", "--run", tmp_path / "bert"), "not numbers", code=1)
    data = write(tmp_path, "text\tlabel\na\torder\n", "data.tsv")
    refused(ask("evaluate", "--run", tmp_path / "labels", "--data", data), "not numbers", code=1)


def piped(*arguments: object) -> Popen:
    return Popen(
        [sys.executable, "-m", "jumok", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "NO_COLOR": "1"},
    )


def test_on_a_pipe_answers_come_as_lines_do(runs: Path) -> None:
    process = piped("predict", "--run", runs / "labels")
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(b"The cat sleeps.\n")
    process.stdin.flush()
    assert b"\t0." in process.stdout.readline()  # the pipe is still open: who waits for its end waits for ever
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert b"\t0." in process.stdout.readline()
    process.stdout.close()  # as `head -2` does
    process.stdin.write(b"one more\n")
    process.stdin.close()
    assert process.wait(60) in (0, 141)
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
