"""The user's way on their own two files: train, translate, evaluate, look, and the same from Python."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from forked import Popen
from journey import SMALL, jumok, refused

import jumok as package

Corpus = tuple[Path, Path, Path]


def test_training_leaves_a_whole_run_folder(trained: Path) -> None:
    names = {path.name for path in trained.iterdir()}
    assert {
        "recipe.yaml",
        "tokenizer",
        "checkpoints",
        "last.json",
        "best.json",
        "metrics.jsonl",
        "report.html",
    } <= names
    events = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    losses = [event["loss"] for event in events if event["event"] == "train"]
    assert losses[-1] < losses[0]
    assert [event["step"] for event in events if event["event"] == "valid"] == [20, 40]
    assert not [path for path in trained.rglob("*") if path.suffix in (".pt", ".pkl", ".bin")]


def test_translate_keeps_order_and_empty_lines(trained: Path, corpus: Corpus) -> None:
    sentences = corpus[0].read_text().splitlines()[:5]
    text = "\n".join([sentences[0], "", *sentences[1:3], "   ", *sentences[3:]]) + "\n"
    together = jumok("translate", "--run", trained, input=text)
    assert together.returncode == 0, together.stderr
    lines = together.stdout.split("\n")
    assert len(lines) == 8
    assert lines[-1] == lines[1] == lines[4] == ""
    alone = [jumok("translate", "--run", trained, input=sentence + "\n").stdout for sentence in sentences[:2]]
    assert alone == [lines[0] + "\n", lines[2] + "\n"]
    assert package.load(trained).translate(sentences) == [lines[0], *lines[2:4], *lines[5:7]]


def test_translate_takes_sentences_as_arguments(trained: Path, corpus: Corpus) -> None:
    sentences = corpus[0].read_text().splitlines()[:2]
    told = jumok("translate", "--run", trained, *sentences)
    assert told.stdout == jumok("translate", "--run", trained, input="\n".join(sentences) + "\n").stdout
    refused(jumok("translate", "a", "--input", corpus[0]), "not both")


def test_translate_answers_a_waiting_person_line_by_line(trained: Path) -> None:
    """A second sentence is only sent after the first answer has come: nothing may wait for the end of the input."""
    command = [sys.executable, "-m", "jumok", "translate", "--run", str(trained)]
    process = Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")
    assert process.stdin
    assert process.stdout
    for sentence in ("I am a student.", "A dog sleeps."):
        process.stdin.write(sentence + "\n")
        process.stdin.flush()
        assert process.stdout.readline().endswith("\n")
    process.stdin.close()
    assert process.wait(timeout=60) == 0


def test_translate_nbest_scores_alignments_and_files(trained: Path, corpus: Corpus, tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    options = ["--nbest", 2, "--beam", 3, "--scores", "--alignments", "--input", corpus[0], "--output", output]
    assert jumok("translate", "--run", trained, *options).returncode == 0
    rows = [line.split("\t") for line in output.read_text(encoding="utf-8").splitlines()]
    sources = corpus[0].read_text().splitlines()
    assert len(rows) == 2 * len(sources)
    for number, (best, second) in enumerate(zip(rows[::2], rows[1::2], strict=True)):
        assert best[0] == second[0] == str(number + 1)
        assert float(best[2]) >= float(second[2])
        links = [tuple(map(int, link.split("-"))) for link in best[3].split()]
        assert {target for _, target in links} == set(range(len(best[1].split())))
        assert all(0 <= source < len(sources[number].split()) for source, _ in links)


def test_evaluate_prints_scores_with_signatures_and_alignment_error(trained: Path, corpus: Corpus) -> None:
    source, target, gold = corpus
    options = ["--source", source, "--reference", target, "--alignments", gold, "--tutorial"]
    told = jumok("evaluate", "--run", trained, *options)
    assert told.returncode == 0, told.stderr
    for word in ("BLEU", "chrF", "tok:13a", "case:mixed", "AER", "lower-cased"):
        assert word in told.stdout
    result = json.loads(jumok("evaluate", "--run", trained, *options, "--json").stdout)
    assert result["sentences"] == 600
    assert 0 <= result["alignment"]["error_rate"] <= 1
    assert {score["name"] for score in result["scores"]} == {"BLEU", "chrF"}


@pytest.mark.parametrize("kind", ["png", "svg", "html", "json"])
def test_attend_writes_every_kind_of_picture(trained: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / f"picture.{kind}"
    assert jumok("attend", "--run", trained, "I am a student.", "--out", out).returncode == 0
    start = {"png": b"\x89PNG", "svg": b"<?xml", "html": b"<!doctype", "json": b"{"}[kind]
    assert out.read_bytes()[:9].lower().startswith(start.lower())
    if kind == "json":
        picture = json.loads(out.read_text(encoding="utf-8"))
        assert picture["source"] == ["I", "am", "a", "student.", "<eos>"]
        assert all(sum(row) == pytest.approx(1, abs=1e-4) for row in picture["weights"])


def test_attend_draws_in_the_terminal(trained: Path) -> None:
    result = jumok("attend", "--run", trained, "I am a student.")
    assert result.returncode == 0
    assert "student." in result.stdout
    assert "looks at" in result.stdout


def test_the_packaged_run_answers_without_any_run() -> None:
    result = jumok("translate", input="I am a student.\n")
    assert (result.returncode, result.stdout) == (0, "Je suis étudiant.\n"), result.stderr
    picture = jumok("attend", "I am a student.")
    assert "étudiant." in picture.stdout


def test_recipes_are_listed_and_explained() -> None:
    listed = jumok("recipes").stdout
    assert all(name in listed for name in ("rnn", "lstm", "gru", "lstm-bahdanau", "lstm-luong"))
    explained = jumok("recipes", "lstm-luong").stdout
    assert "label_smoothing: 0.1" in explained
    assert "# " in explained
    refused(jumok("recipes", "lstm-loung"), "lstm-luong")


def test_a_copied_run_translates_without_its_data(trained: Path, tmp_path: Path) -> None:
    """Loading a run opens no path that its recipe names."""
    copy = tmp_path / "copy"
    shutil.copytree(trained, copy)
    recipe = (copy / "recipe.yaml").read_text().replace("train.en", "gone.en").replace("train.fr", "gone.fr")
    (copy / "recipe.yaml").write_text(recipe)
    assert jumok("translate", "--run", copy, input="I am a student.\n").returncode == 0


def test_minutes_fix_the_plan_once(corpus: Corpus, tmp_path: Path) -> None:
    run = tmp_path / "run"
    files = ["--source", corpus[0], "--target", corpus[1]]
    result = jumok("train", "lstm-luong", *files, *SMALL, "--run", run, "--minutes", 0.05)
    assert result.returncode == 0, result.stderr
    events = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    (plan,) = [event for event in events if event["event"] == "plan"]
    assert json.loads((run / "last.json").read_text())["step"] == plan["updates"]
    again = jumok("train", "--resume", "--run", run)
    assert again.returncode == 0
    assert "complete" in again.stderr
