"""A user's way with a language model: train on a text, generate, measure, stop and go on."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from journey import refused
from safetensors.torch import load_file, save_file

import jumok as package
from jumok import api
from jumok import recipe as recipes
from jumok.cli.main import run as run_command
from jumok.data import grammar
from jumok.files import sha256
from jumok.training.run import RunFolder
from jumok.training.verify import differences, verify

Command = Callable[..., "subprocess.CompletedProcess[str]"]
TINY = [
    "tokenizer.kind=word", "training.batch_tokens=512", "data.window=32", "model.layers=1", "threads=1",
    "training.validate_every=15", "training.checkpoint_every=10", "training.warmup=5",
]  # fmt: skip
SIZES = {
    "lstm-lm": ["model.width=48", "model.embedding=32"],
    "rnn-lm": ["model.width=48", "model.embedding=32"],
    "gru-lm": ["model.width=48", "model.embedding=32"],
    "transformer-lm": ["model.width=32", "model.heads=2", "model.feed_forward=64"],
}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("text") / "mine.txt"
    lines = [pair.source for pair in grammar.pairs("en", "fr", "train", 800)]
    file.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")
    return file


@pytest.fixture
def jumok(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command as a user runs it, in this process: torch is there already."""

    def command(*arguments: object, input: str = "") -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(input.encode()))))
        capfd.readouterr()
        code = run_command([str(argument) for argument in arguments])
        sys.stdout.flush()
        return subprocess.CompletedProcess(arguments, code, *capfd.readouterr())

    return command


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, text: Path) -> Path:
    run = tmp_path_factory.mktemp("runs") / "lm"
    keys = [*TINY, *SIZES["transformer-lm"], "training.updates=30", "training.learning_rate=0.01"]
    arguments = ["train", "transformer-lm", "--text", text, *keys, "--run", run]
    assert run_command([str(argument) for argument in arguments]) == 0
    return run


def test_training_says_what_it_does(text: Path, tmp_path: Path, jumok: Command) -> None:
    run = tmp_path / "run"
    result = jumok("train", "lstm-lm", "--text", text, *TINY, *SIZES["lstm-lm"], "training.updates=3", "--run", run)
    assert result.returncode == 0, result.stderr
    assert "no validation text given" in result.stderr
    assert "perplexity" in result.stderr
    assert f"jumok generate --run {run}" in result.stdout


def test_a_run_of_a_language_model_is_whole(trained: Path) -> None:
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
    assert {path.name for path in (trained / "tokenizer").iterdir()} == {"text"}
    events = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    found = [event["perplexity"] for event in events if event["event"] == "valid"]
    assert len(found) == 2
    assert found[1] < found[0]
    page = (trained / "report.html").read_text(encoding="utf-8")
    assert "How it goes on" in page
    assert "likeliest" in page


def test_generate_from_arguments_and_standard_input(trained: Path, jumok: Command) -> None:
    options = ["--run", trained, "--sample", "--temperature", 0.8, "--top-k", 40, "--top-p", 0.9, "--seed", 3]
    told = jumok("generate", *options, "--max-tokens", 20, "--count", 3, "The dog", "A queen")
    assert told.returncode == 0, told.stderr
    lines = told.stdout.splitlines()
    assert [line.startswith("The dog") for line in lines] == [True] * 3 + [False] * 3
    assert len(set(lines[:3])) > 1
    piped = jumok("generate", *options, "--max-tokens", 20, "--count", 3, input="The dog\nA queen\n")
    assert piped.stdout == told.stdout, piped.stderr
    model = package.load(trained)
    assert model.generate("The dog", 20, temperature=0.8, top_k=40, top_p=0.9, seed=3) == lines[0]


def test_generate_greedily_by_beam_and_as_json(trained: Path, jumok: Command) -> None:
    greedy = jumok("generate", "--run", trained, "The", "--max-tokens", 9).stdout
    assert greedy == jumok("generate", "--run", trained, "The", "--max-tokens", 9, "--beam", 1).stdout
    rows = jumok("generate", "--run", trained, "The", "--beam", 3, "--count", 2, "--max-tokens", 9, "--json").stdout
    found = [json.loads(row) for row in rows.splitlines()]
    assert [row["prompt"] for row in found] == ["The", "The"]
    assert found[0]["text"] != found[1]["text"]


def test_evaluate_measures_a_text(trained: Path, text: Path, jumok: Command) -> None:
    told = jumok("evaluate", "--run", trained, "--text", text)
    assert told.returncode == 0, told.stderr
    for word in ("perplexity per token", "perplexity per word", "bits per character", "windows of 32"):
        assert word in told.stdout
    found = json.loads(jumok("evaluate", "--run", trained, "--text", text, "--json", "--stride", 4).stdout)
    lines = text.read_text(encoding="utf-8").splitlines()
    assert found["words"] == sum(len(line.split()) + 1 for line in lines)
    assert found["context"].startswith("28 to 32 tokens")
    assert package.load(trained).perplexity(lines, stride=4).per_token == found["perplexity_per_token"]


@pytest.mark.full
def test_random_kills_change_nothing(text: Path) -> None:
    name, keys = "transformer-lm", ["training.accumulate=2", "model.word_dropout=0.2", "model.dropout=0.3"]
    files = [f"data.train.text={text}", "data.valid=null", *TINY, *SIZES[name]]
    told: list[str] = []
    result = verify(recipes.read(name, [*files, *keys]), updates=16, kills=1, say=told.append)
    assert result.kills, "\n".join(told)
    assert result.identical, result.summary()


@pytest.mark.parametrize("name", ["lstm-lm", "gru-lm"])
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(name: str, text: Path, tmp_path: Path) -> None:
    keys = [f"data.train.text={text}", "data.valid=null", *TINY, *SIZES[name], "model.dropout=0.3"]
    keys += ["training.updates=25"]
    api.train(name, tmp_path / "whole", keys, quiet=True, report=False)

    class Stop:
        def event(self, event: str, update: int, values: dict[str, object]) -> None:
            if event == "valid":  # that of update 15: the checkpoint before it is of update 10
                raise KeyboardInterrupt

        def close(self) -> None: ...

    with pytest.raises(KeyboardInterrupt):
        api.train(name, tmp_path / "stopped", keys, quiet=True, report=False, sinks=[Stop()])
    api.train(None, tmp_path / "stopped", resume=True, quiet=True, report=False)
    assert differences(RunFolder(tmp_path / "whole"), RunFolder(tmp_path / "stopped")) == []


@pytest.mark.parametrize("name", ["rnn-lm", "lstm-lm"])
def test_every_recipe_trains_without_any_file(name: str, tmp_path: Path) -> None:
    keys = [*TINY, *SIZES[name], "data.train.pairs=300", "data.valid.pairs=30", "training.updates=4"]
    model = api.train(name, tmp_path / "run", keys, quiet=True)
    assert model.generate("The", 5).startswith("The")


# ------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", ["bad.txt", "empty"]), (b" \n\n", ["bad.txt", "blank"]), (b"ok\n\xff\n", ["bad.txt", "line 2", "UTF-8"])],
)
def test_bad_text_is_named_and_no_run_is_made(content: bytes, words: list[str], tmp_path: Path, jumok: Command) -> None:
    (tmp_path / "bad.txt").write_bytes(content)
    result = jumok("train", "lstm-lm", "--text", tmp_path / "bad.txt", *TINY, "--run", tmp_path / "run")
    refused(result, *words)
    assert not (tmp_path / "run").exists()


def test_what_does_not_fit_is_refused(trained: Path, text: Path, tmp_path: Path, jumok: Command) -> None:
    refused(jumok("generate", "--run", trained, "a dog " * 40), "prompt 1", "looks back at 32")
    refused(jumok("generate", "--run", trained, "a", "--count", 2), "Sample")
    refused(jumok("generate", "--run", trained, "a", "--beam", 0), "beam")
    refused(jumok("generate", "--run", trained, "a", "--sample", "--temperature", 0), "temperature")
    refused(jumok("translate", "--run", trained, "a dog"), "task: language")
    refused(jumok("evaluate", "--run", trained, "--text", text, "--source", text), "--text")
    refused(jumok("train", "lstm-luong", "--text", text, "--run", tmp_path / "x"), "task: language")


def test_a_vocabulary_that_is_not_the_models_is_named(trained: Path, tmp_path: Path, jumok: Command) -> None:
    run = tmp_path / "mixed"
    shutil.copytree(trained, run)
    (step,) = [path for path in (run / "checkpoints").iterdir() if path.name == "step-30"]
    weights = load_file(step / "model.safetensors")
    for name in ("embedding.weight", "bias"):
        weights[name] = weights[name][:-3].contiguous()
    save_file(weights, step / "model.safetensors")
    sums = json.loads((step / "checksums.json").read_text())
    (step / "checksums.json").write_text(json.dumps({**sums, "model.safetensors": sha256(step / "model.safetensors")}))
    refused(jumok("generate", "--run", run, "a"), "tokenizer", "vocabulary")
