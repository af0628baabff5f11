"""The whole search from the command line, a large file that survives kills, and what cannot be done."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forked import Popen
from journey import SMALL, jumok, refused
from safetensors.torch import load_file, save_file

from jumok.cli.main import run as command
from jumok.files import sha256
from jumok.text.tokenizer import train_tokenizer

Corpus = tuple[Path, Path, Path]
Said = tuple[int, str, str]


@pytest.fixture(scope="module")
def transformer(tmp_path_factory: pytest.TempPathFactory, corpus: Corpus, trained: Path) -> Path:
    """A Transformer trained for a moment, with the vocabularies of the LSTM."""
    run = tmp_path_factory.mktemp("runs") / "transformer"
    keys = [
        "model.width=32",
        "model.heads=4",
        "model.feed_forward=64",
        "model.encoder_layers=1",
        "tokenizer.joint=false",
    ]
    keys += ["model.decoder_layers=2", "model.tie_embeddings=target", "training.updates=30", *SMALL[3:]]
    keys += [f"tokenizer.{side}={trained / 'tokenizer' / side}" for side in ("source", "target")]
    result = jumok("train", "transformer-tiny", "--source", corpus[0], "--target", corpus[1], *keys, "--run", run)
    assert result.returncode == 0, result.stderr
    return run


@pytest.fixture
def say(capfd: pytest.CaptureFixture[str]) -> object:
    """A command in this process: its code, what it printed, what it said."""

    def saying(*arguments: object) -> Said:
        capfd.readouterr()
        code = command([str(argument) for argument in arguments])
        return code, *capfd.readouterr()

    return saying


def said_no(result: Said, *words: str, code: int = 2) -> None:
    """The exit code, and one line that has these words."""
    assert result[0] == code, result
    assert len(result[2].strip().splitlines()) == 1, result[2]
    for word in words:
        assert word in result[2]


SENTENCES = ("I am a student.", "The dog sees a house.")


def test_a_transformer_translates_with_everything_that_can_be_asked(transformer: Path, say) -> None:
    code, out, err = say(
        "translate", "--run", transformer, *SENTENCES, "--beam", 4, "--nbest", 2, "--scores", "--alignments",
        "--alignment-layer", 1, "--alignment-head", 2, "--length-penalty", 0.6, "--coverage-penalty", 0.1,
        "--min-length", 5, "--max-length", 12, "--no-repeat-ngram", 3, "--require", "maison", "--forbid", "chien",
        "--prefix", "Le", "--batch", 1,
    )  # fmt: skip
    assert code == 0, err
    rows = [line.split("\t") for line in out.splitlines()]
    assert {row[0] for row in rows} == {"1", "2"}
    for _, text, score, links in rows:
        assert text.startswith("Le")
        assert "maison" in text
        assert "chien" not in text.split()
        assert float(score) < 0
        assert {int(link.split("-")[1]) for link in links.split()} == set(range(len(text.split())))


def test_constraints_of_each_line(transformer: Path, say, tmp_path: Path) -> None:
    for name, text in {"text": "\n".join(SENTENCES), "prefixes": "Je\n\n", "phrases": "\nmaison\tchat\n"}.items():
        (tmp_path / name).write_text(f"{text}\n" if name == "text" else text)
    options = ["--prefix-file", tmp_path / "prefixes", "--require-file", tmp_path / "phrases"]
    code, out, err = say("translate", "--run", transformer, "--input", tmp_path / "text", *options)
    assert code == 0, err
    first, second = out.splitlines()
    assert first.startswith("Je")
    assert "maison" in second
    assert "chat" in second
    (tmp_path / "prefixes").write_text("Je\n")
    said_no(say("translate", "--run", transformer, "--input", tmp_path / "text", *options), "1 lines", "has 2")


def test_samples_repeat_with_their_seed(transformer: Path, say) -> None:
    options = ["translate", "--run", transformer, *SENTENCES, "--sample", "--temperature", 1.5, "--top-k", 20]
    first = say(*options, "--seed", 1, "--nbest", 3)
    assert first == say(*options, "--seed", 1, "--nbest", 3)
    assert first != say(*options, "--seed", 2, "--nbest", 3)
    assert len(first[1].splitlines()) == 6


def test_an_ensemble_translates_and_scores_as_one(transformer: Path, trained: Path, say, tmp_path: Path) -> None:
    both = ["--run", transformer, "--run", trained]
    code, out, err = say("translate", *both, *SENTENCES, "--scores", "--length-penalty", 0, "--prefix", "Le")
    assert code == 0, err
    (tmp_path / "en").write_text("\n".join(SENTENCES) + "\n")
    (tmp_path / "fr").write_text("".join(line.split("\t")[0] + "\n" for line in out.splitlines()))
    code, told, err = say("score", *both, "--source", tmp_path / "en", "--target", tmp_path / "fr")
    assert code == 0, err
    for line, score in zip(out.splitlines(), told.splitlines(), strict=True):
        assert float(score.split("\t")[0]) == pytest.approx(float(line.split("\t")[1]), abs=2e-3)
    said_no(say("translate", "--run", transformer, "--run", "src/jumok/pretrained/en-fr", "a"), "vocabularies")


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_less_precision_where_the_processor_has_it(transformer: Path, trained: Path, say, precision: str) -> None:
    code, out, err = say("translate", "--run", transformer, *SENTENCES, "--precision", precision)
    assert (code, len(out.splitlines())) == (0, 2) or (code == 2 and "precision" in err)
    said_no(say("translate", "--run", trained, "a", "--precision", precision), "recurrent")
    said_no(say("translate", "--run", transformer, "a", "--precision", "float8"), "float8", "bfloat16")


# ------------------------------------------------------------ score


def test_score_prints_the_searchs_own_numbers(transformer: Path, corpus: Corpus, say, tmp_path: Path) -> None:
    lines = corpus[0].read_text().splitlines()[:20]
    (tmp_path / "en").write_text("".join(f"{line}\n" for line in lines))
    options = ["--input", tmp_path / "en", "--scores", "--length-penalty", 0, "--prefix", "Le chat"]
    code, out, _ = say("translate", "--run", transformer, *options)
    assert code == 0
    rows = [line.split("\t") for line in out.splitlines()]
    pairs = (f"{source}\t{text}\n" for source, (text, _) in zip(lines, rows, strict=True))
    (tmp_path / "pairs.tsv").write_text("".join(pairs))
    code, out, err = say("score", "--run", transformer, "--file", tmp_path / "pairs.tsv", "--words")
    assert code == 0, err
    found = [line.split("\t") for line in out.splitlines()]
    for total, average, count, words in found:
        assert float(total) == pytest.approx(float(average) * int(count), abs=1e-2)
        assert len(words.split()) == int(count)
    # a text may lack an <unk> that was written, and is another one then
    same = [float(one[0]) == pytest.approx(float(row[1]), abs=2e-3) for one, row in zip(found, rows, strict=True)]
    assert sum(same) >= 10
    assert "20 pairs" in err
    assert "perplexity" in err


def test_scores_that_cannot_be_had(transformer: Path, corpus: Corpus, say, tmp_path: Path) -> None:
    (tmp_path / "short").write_text("a\nb\n")
    said_no(
        say("score", "--run", transformer, "--source", corpus[0], "--target", tmp_path / "short"),
        "has 600 lines",
        "short has 2",
    )
    said_no(say("score", "--run", transformer, "--source", corpus[0]), "--target")
    (tmp_path / "blank").write_text("a\n\n")
    said_no(
        say("score", "--run", transformer, "--source", tmp_path / "blank", "--target", tmp_path / "short"), "line 2"
    )
    said_no(say("score", "--run", tmp_path, "--file", "x.tsv"), "not a run folder")


# ------------------------------------------------------------ what cannot be done


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--beam", 0], ["--beam 0"]),
        (["--prefix", "le chat " * 60], ["sentence 1", "prefix", "limit"]),
        (["--prefix", "le chat", "--max-length", 2], ["sentence 1", "prefix has 2 tokens", "limit of 2"]),
        (["--require", "Zanzibar"], ["Zanzibar", "outside the vocabulary"]),
        (["--prefix", "漢字"], ["漢字", "outside the vocabulary"]),
        (["--require", "un chat", "--forbid", "chat"], ["require", "forbid", "un chat"]),
        (["--min-length", 9, "--max-length", 3], ["--min-length 9", "--max-length 3"]),
        (["--require", "maison", "--max-length", 1], ["sentence 1", "the limit is 1"]),
        (["--require", "maison", "--sample"], ["required", "sample"]),
        (["--sample", "--temperature", 0], ["temperature"]),
        (["--top-k", 5], ["sampling", "--sample"]),
        (["--length-penalty", -1], ["--length-penalty: must"]),
        (["--alignment-head", 1], ["--alignments"]),
        (["--alignments", "--alignment-head", 7], ["head 7", "heads 0 to 3"]),
        (["--resume"], ["--resume", "--input"]),
        (["--device", "tpu"], ["tpu"]),
        (["--tag", "de"], ["tag"]),
    ],
)
def test_what_cannot_be_done_is_one_line(transformer: Path, say, options: list[object], words: list[str]) -> None:
    said_no(say("translate", "--run", transformer, "I am a student.", *options), *words)


def damaged(run: Path, folder: Path, change) -> Path:
    """A copy of a run whose weights were changed, with checksums that fit."""
    copy = folder / "damaged"
    shutil.copytree(run, copy)
    for checkpoint in (copy / "checkpoints").iterdir():
        weights = load_file(checkpoint / "model.safetensors")
        change(weights)
        save_file(weights, checkpoint / "model.safetensors")
        checksums = json.loads((checkpoint / "checksums.json").read_text())
        checksums["model.safetensors"] = sha256(checkpoint / "model.safetensors")
        (checkpoint / "checksums.json").write_text(json.dumps(checksums))
    return copy


@pytest.mark.parametrize("beam", [1, 3])
def test_weights_that_are_not_numbers_are_a_failure(transformer: Path, say, tmp_path: Path, beam: int) -> None:
    run = damaged(transformer, tmp_path, lambda weights: weights["bias"].fill_(float("nan")))
    said_no(say("translate", "--run", run, "--beam", beam, *SENTENCES), "not a number", "checkpoint", code=1)


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_vocabulary_of_another_model_is_noticed(transformer: Path, say, tmp_path: Path, side: str) -> None:
    run = tmp_path / "run"
    shutil.copytree(transformer, run)
    train_tokenizer(["ein ganz anderer Text"] * 5, "word", 40).save(tmp_path / "other")
    shutil.rmtree(run / "tokenizer" / side)
    shutil.copytree(tmp_path / "other", run / "tokenizer" / side)
    said_no(say("translate", "--run", run, "a"), "vocabulary of", f"tokenizer/{side}", "do not belong together")


# ------------------------------------------------------------ a large file


def test_a_large_file_survives_real_kills(transformer: Path, corpus: Corpus, say, tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.fr", tmp_path / "part.fr"
    options = ["translate", "--run", transformer, "--input", corpus[0], "--batch", 2, "--scores", "--nbest", 2]
    code, _, err = say(*options, "--output", whole)
    assert code == 0, err
    assert not Path(f"{whole}.progress.json").exists()
    expected = whole.read_bytes()
    arguments = [sys.executable, "-m", "jumok", *map(str, options), "--output", str(part)]
    kills = 0
    for share in (0.2, 0.6):
        process = Popen([*arguments, *(["--resume"] if kills else [])], stderr=subprocess.PIPE)
        while process.poll() is None and not (part.exists() and part.stat().st_size > share * len(expected)):
            time.sleep(0.002)
        process.kill()
        kills += process.wait() not in (0, 1, 2)
        process.stderr.close()
    assert kills, "it was faster than its killer"
    assert 0 < part.stat().st_size < len(expected)
    assert expected.startswith(part.read_bytes())
    said_no(say(*options, "--output", part), "interrupted", "--resume")
    said_no(say(*options, "--output", part, "--resume", "--length-penalty", 0.5), "different now: length-penalty")
    with part.open("r+b") as file:
        file.truncate(part.stat().st_size - 3)  # half a line, as a full disk leaves it
    code, _, err = say(*options, "--output", part, "--resume")
    assert code == 0, err
    assert part.read_bytes() == expected
    assert sorted(os.listdir(tmp_path)) == ["part.fr", "whole.fr"]
    code, _, err = say(*options, "--output", part, "--resume")
    assert (code, part.read_bytes()) == (0, expected)
    assert "complete" in err


def test_a_changed_input_is_not_continued(transformer: Path, corpus: Corpus, say, tmp_path: Path) -> None:
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_text("\n".join([*corpus[0].read_text().splitlines()[:5], "the student " * 300, "Hello."]) + "\n")
    options = ["translate", "--run", transformer, "--input", text, "--output", out, "--resume"]
    said_no(say(*options), "sentence 6", "--too-long")
    assert len(out.read_text().splitlines()) == 5
    changed = tmp_path / "changed"
    changed.write_text(text.read_text().replace("Hello", "Goodbye"))
    said_no(say(*[changed if item is text else item for item in options]), "different now: input")
    code, _, err = say(*options, "--too-long", "skip")
    assert code == 0, err
    assert len(out.read_text().splitlines()) == 7
    fresh = tmp_path / "fresh"
    assert say(*[fresh if item is out else item for item in options], "--too-long", "skip")[0] == 0
    assert fresh.read_bytes() == out.read_bytes()


def test_the_real_command_takes_it_all(transformer: Path) -> None:
    result = jumok("translate", "--run", transformer, "--require", "maison", input="I am a student.\n")
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    assert "maison" in result.stdout
    refused(jumok("translate", "--run", transformer, "--beam", 0, input="a\n"), "--beam 0")
