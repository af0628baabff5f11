"""Bad input: what, where, what to do; exit code 2; nothing lost; no traceback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from journey import SMALL, jumok, refused
from safetensors.torch import load_file

from jumok.training.run import RunFolder

Corpus = tuple[Path, Path, Path]


def train(source: object, target: object, run: Path, *more: object) -> subprocess.CompletedProcess[str]:
    keys = [*SMALL, "training.updates=2"]
    return jumok("train", "lstm-luong", "--source", source, "--target", target, *keys, "--run", run, *more)


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_unequal_line_counts(corpus: Corpus, tmp_path: Path) -> None:
    short = write(tmp_path / "short.fr", b"".join(corpus[1].read_bytes().splitlines(keepends=True)[:-7]))
    refused(train(corpus[0], short, tmp_path / "run"), "600", "593", "short.fr")
    assert not (tmp_path / "run").exists()


def test_a_missing_file(corpus: Corpus, tmp_path: Path) -> None:
    refused(train(corpus[0], tmp_path / "no.fr", tmp_path / "run"), "no.fr")
    refused(train(corpus[0], tmp_path, tmp_path / "run"), str(tmp_path))


@pytest.mark.parametrize("content", [b"", b"\n\n  \n\n"], ids=["empty", "only blank lines"])
def test_files_without_text(content: bytes, tmp_path: Path) -> None:
    file = write(tmp_path / "nothing.en", content)
    refused(train(file, file, tmp_path / "run"), "nothing.en")


def test_invalid_utf8_on_standard_input_names_the_line(trained: Path) -> None:
    result = jumok("translate", "--run", trained, input=b"I am a student.\ncaf\xe9\n")
    refused(result, "line 2", "UTF-8")
    assert result.stdout.count("\n") == 1, "the line before it is translated"


def test_invalid_utf8_names_file_and_line(corpus: Corpus, tmp_path: Path) -> None:
    lines = corpus[1].read_bytes().splitlines(keepends=True)
    lines[41] = b"caf\xe9\n"
    refused(
        train(corpus[0], write(tmp_path / "latin.fr", b"".join(lines)), tmp_path / "run"), "latin.fr", "42", "UTF-8"
    )


def test_a_line_of_a_megabyte_is_left_out_and_named(corpus: Corpus, tmp_path: Path) -> None:
    monstrous = b"word " * 200_000 + b"\n"
    source = write(tmp_path / "a.en", corpus[0].read_bytes() + monstrous)
    target = write(tmp_path / "a.fr", corpus[1].read_bytes() + monstrous)
    result = train(source, target, tmp_path / "run")
    assert result.returncode == 0, result.stderr
    assert "1 pair is left out" in result.stderr
    assert "601" in result.stderr


def test_a_file_with_both_sides_is_not_taken_for_one(corpus: Corpus, tmp_path: Path) -> None:
    both = write(tmp_path / "both.tsv", b"a b\tc d\n" * 600)
    refused(train(both, corpus[1], tmp_path / "run"), "both.tsv", "data.train.file")
    result = jumok(
        "train", "lstm-luong", f"data.train.file={both}", *SMALL, "training.updates=2", "--run", tmp_path / "run"
    )
    assert result.returncode == 0, result.stderr
    assert "570 training pairs, 30 for validation" in result.stderr


def test_wrong_keys_and_types(corpus: Corpus, tmp_path: Path) -> None:
    refused(train(corpus[0], corpus[1], tmp_path / "run", "model.widht=3"), "model.widht", '"model.width"')
    refused(train(corpus[0], corpus[1], tmp_path / "run", "model.width=wide"), "model.width", "wide")
    refused(train(corpus[0], corpus[1], tmp_path / "run", "model.scorer=generall"), "general")
    refused(train(corpus[0], corpus[1], tmp_path / "run", "device=cuda"), "cuda") if not _has_gpu() else None
    refused(jumok("train", "lstm-luong", "--source", corpus[0], "--run", tmp_path / "run"), "--target is missing")


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    refused(jumok("translate", "--run", tmp_path), "not a run folder")
    refused(jumok("translate", "--run", tmp_path / "none"), "no run folder")
    refused(jumok("train", "--resume", "--run", tmp_path), "not a run folder")
    (tmp_path / "recipe.yaml").write_text("format: 99\n")
    refused(jumok("translate", "--run", tmp_path), "format")


def test_an_existing_run_is_never_overwritten(trained: Path, corpus: Corpus) -> None:
    refused(train(corpus[0], corpus[1], trained), "--resume")


def test_two_processes_never_train_in_one_folder(trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    with RunFolder(run).locked():
        refused(jumok("train", "--resume", "--run", run), "another process")
    assert jumok("train", "--resume", "--run", run).returncode == 0


@pytest.mark.parametrize("damage", ["truncated", "flipped", "missing"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(trained: Path, tmp_path: Path, damage: str) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    steps = sorted((run / "checkpoints").iterdir(), key=lambda path: int(path.name.split("-")[1]))
    weights = steps[-1] / "model.safetensors"
    content = bytearray(weights.read_bytes())
    if damage == "truncated":
        weights.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        content[-5] ^= 0xFF
        weights.write_bytes(content)
    else:
        weights.unlink()
    (run / "best.json").write_text((run / "last.json").read_text())
    result = jumok("translate", "--run", run, input="I am a student.\n")
    assert result.returncode == 0, result.stderr
    assert steps[-1].name in result.stderr
    assert "falling back" in result.stderr
    resumed = jumok("train", "--resume", "--run", run)
    assert resumed.returncode == 0, resumed.stderr
    # the damaged one was made again, and is the same as before the damage
    assert weights.read_bytes() == (trained / weights.relative_to(run)).read_bytes()


def test_when_every_checkpoint_is_damaged_it_says_so(trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    for file in run.glob("checkpoints/*/model.safetensors"):
        file.write_bytes(b"nonsense")
    refused(jumok("translate", "--run", run, input="a\n"), "intact", code=1)


def test_changed_training_data_is_noticed_on_resume(corpus: Corpus, tmp_path: Path) -> None:
    source, target = (shutil.copy(file, tmp_path) for file in corpus[:2])
    run = tmp_path / "run"
    assert train(source, target, run).returncode == 0
    Path(target).write_text(Path(target).read_text().replace("étudiant", "élève"))
    refused(jumok("train", "--resume", "--run", run), "data has changed")


def test_a_sentence_over_the_limit(trained: Path) -> None:
    long = "the student " * 300
    text = f"I am a student.\n{long}\nI am a student.\n"
    result = jumok("translate", "--run", trained, input=text)
    refused(result, "sentence 2", "256", "--too-long")
    assert result.stdout.count("\n") == 1, "what came before it is not lost"
    skipped = jumok("translate", "--run", trained, "--too-long", "skip", input=text)
    assert skipped.stdout.split("\n")[1] == ""
    cut = jumok("translate", "--run", trained, "--too-long", "truncate", input=text)
    assert cut.returncode == 0
    assert cut.stdout.count("\n") == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--beam", 0], ["--beam 0"]),
        (["--nbest", 3, "--beam", 2], ["nbest 3", "beam is 2"]),
        (["--too-long", "perhaps"], ["--too-long perhaps", "truncate"]),
        (["--device", "tpu"], ["tpu", "auto"]),
        (["--input", "/no/file"], ["/no/file"]),
    ],
)
def test_impossible_options(trained: Path, options: list[object], words: list[str]) -> None:
    refused(jumok("translate", "--run", trained, *options, input="a\n"), *words)


def test_gold_alignments_that_do_not_fit(trained: Path, corpus: Corpus, tmp_path: Path) -> None:
    gold = write(tmp_path / "gold", b"0-0\n")
    files = ["--source", corpus[0], "--reference", corpus[1], "--alignments"]
    refused(jumok("evaluate", "--run", trained, *files, gold), "gold", "600")
    broken = write(tmp_path / "broken", b"0-0\nzero-one\n" + b"0-0\n" * 598)
    refused(jumok("evaluate", "--run", trained, *files, broken), "broken", "2")
    outside = write(tmp_path / "outside", b"0-0\n" * 599 + b"0-99\n")
    refused(jumok("evaluate", "--run", trained, *files, outside), "600", "99")


def test_a_nan_loss_stops_names_the_batch_and_keeps_the_last_good_state(corpus: Corpus, tmp_path: Path) -> None:
    run = tmp_path / "run"
    keys = ["training.learning_rate=1e38", "training.clip=0", "training.warmup=10", "training.updates=40"]
    result = train(corpus[0], corpus[1], run, *keys)
    refused(result, "not a number", "train.en lines", "training.learning_rate", "are saved", code=1)
    step = json.loads((run / "last.json").read_text())["step"]
    assert f"update {step + 1} is not a number" in result.stderr
    weights = load_file(run / "checkpoints" / f"step-{step}" / "model.safetensors")
    assert all(tensor.isfinite().all() for tensor in weights.values())


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root on Linux to mount a small disk")
def test_a_full_disk_keeps_the_old_checkpoint(corpus: Corpus, tmp_path: Path) -> None:
    """A real disk of 3 MB: the first checkpoints fit, a later one does not."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], check=True)
    try:
        run = disk / "run"
        keys = ["training.updates=30", "training.checkpoint_every=5", "training.keep=30"]
        refused(train(corpus[0], corpus[1], run, *keys), "no space left", "--resume", "intact", code=1)
        assert not list((run / "checkpoints").glob(".writing-*"))
        for checkpoint in sorted((run / "checkpoints").iterdir())[1:]:
            shutil.rmtree(checkpoint)  # the user frees some space
        saved = tmp_path / "saved"
        shutil.copytree(run, saved)
        assert jumok("translate", "--run", saved, input="I am a student.\n").returncode == 0
        assert jumok("train", "--resume", "--run", saved).returncode == 0
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_demo_replaces_nothing_but_a_demo(trained: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    (run / "thesis.tex").write_text("years of work")
    refused(jumok("demo", "--run", run, "--minutes", 0.1), "not an earlier demo")
    assert (run / "thesis.tex").exists()
    assert (run / "recipe.yaml").exists()


def test_translate_never_empties_a_file(trained: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "text.en", b"I am a student.\n")
    refused(jumok("translate", "--run", trained, "--input", file, "--output", file), "--output")
    refused(jumok("translate", "--run", trained, "--input", tmp_path / "none", "--output", file), "none")
    assert file.read_bytes() == b"I am a student.\n"


def test_changed_validation_data_is_noticed_on_resume(corpus: Corpus, tmp_path: Path) -> None:
    valid = [shutil.copy(file, tmp_path / f"valid.{file.suffix}") for file in corpus[:2]]
    run = tmp_path / "run"
    options = ["--valid-source", valid[0], "--valid-target", valid[1]]
    assert train(*corpus[:2], run, *options).returncode == 0
    Path(valid[1]).write_text(Path(valid[1]).read_text().replace("étudiant", "élève"))
    refused(jumok("train", "--resume", "--run", run), "data has changed")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (["training.betas=[2,3]"], ["training.betas"]),
        (["seed=99999999999999999999999999"], ["seed"]),
        (["search.max_ratio=.inf"], ["search.max_ratio"]),
        (["search.max_extra=1000000000"], ["search.max_extra", "100000"]),
        (["model.scorer=location", "model.max_source=9"], ["max_source"]),
        (["--minutes", "inf"], ["--minutes"]),
        (["--minutes", "nan"], ["--minutes"]),
        (["model.width=400000000"], ["memory"]),
    ],
)
def test_impossible_values_are_named(corpus: Corpus, tmp_path: Path, keys: list[str], words: list[str]) -> None:
    result = train(*corpus[:2], tmp_path / "run", *keys)
    refused(result, *words, code=1 if "memory" in words else 2)
    assert not (tmp_path / "run" / "recipe.yaml").exists()


def test_a_plugin_that_fails_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "mine.py", b"1 / 0\n")
    refused(jumok("--plugin", file, "recipes"), "mine.py", "ZeroDivisionError")
    refused(jumok("--plugin", tmp_path / "none.py", "recipes"), "none.py")


@pytest.mark.skipif(sys.platform == "win32", reason="shell redirections")
def test_closed_and_broken_streams(trained: Path, corpus: Corpus) -> None:
    def shell(line: str) -> subprocess.CompletedProcess[str]:
        command = line.replace("jumok", f"{sys.executable} -m jumok", 1)
        return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)

    for line, code in (
        (f"jumok translate --run {trained} <&-", 2),
        ("jumok recipes >&-", 0),
        ("jumok recipes > /dev/full", 1),
        (f"jumok translate --run {trained} --input {corpus[0]} | head -1; exit ${{PIPESTATUS[0]}}", 141),
        ("PYTHONIOENCODING=ascii jumok --help", 0),
    ):
        result = shell(line)
        assert result.returncode == code, (line, result.stderr)
        assert "Traceback" not in result.stderr, line
        assert "bug of jumok" not in result.stderr, line
