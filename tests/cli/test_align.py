"""`jumok align`: links for files, chosen on gold alignments, and clear answers to files that do not fit."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import typer
from commands import invoke
from journey import jumok, write_corpus

from jumok import api
from jumok.cli.align import align
from jumok.data.pharaoh import format_pharaoh, parse_pharaoh, read_pharaoh
from jumok.errors import BadInput
from jumok.inspect.alignment import alignment_error_rate
from jumok.inspect.forced import word_links

COUNT = 30


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(align)
    return app


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    return write_corpus(tmp_path_factory.mktemp("corpus"), COUNT, "test")


@pytest.fixture(scope="module")
def links(files: tuple[Path, Path, Path]) -> list[str]:
    texts = [file.read_text(encoding="utf-8").splitlines() for file in files[:2]]
    return [format_pharaoh(one) for one in word_links(api.load_translator(None, "cpu"), *texts)]


def test_links_of_the_packaged_model(
    app: typer.Typer, files: tuple[Path, Path, Path], links: list[str], tmp_path: Path
) -> None:
    source, target, gold = map(str, files)
    out = tmp_path / "links"
    said = invoke(app, "--source", source, "--target", target, "--gold", gold, "--out", str(out))
    assert out.read_text(encoding="utf-8").splitlines() == links
    predicted = [parse_pharaoh(line)[0] for line in links]
    score = alignment_error_rate(predicted, *zip(*read_pharaoh(gold), strict=True))
    assert f"AER {score.error_rate:.4f}" in said.output
    assert score.error_rate < 0.15


def test_a_view_chosen_on_gold_and_two_directions(
    app: typer.Typer, files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    """There is one packaged model: here it stands for both directions, so that the words are all unknown to one."""
    source, target, gold = map(str, files)
    out, chosen = tmp_path / "links", (source, target, gold)
    said = invoke(
        app, "--source", source, "--target", target, "--best-head-on", *chosen, "--gold", gold, "--out", str(out)
    )
    assert "best on" in said.output
    assert len(out.read_text(encoding="utf-8").splitlines()) == COUNT
    plain = invoke(app, "--source", source, "--target", target, "--gold", gold, "--out", str(tmp_path / "x"))

    def rate(text: str) -> float:
        return float(text.split("AER ")[1].split()[0])

    assert rate(said.output) <= rate(plain.output)
    run = str(api.packaged_run())
    options = ["--reverse", run, "--symmetrize", "intersection", "--out", str(out)]
    invoke(app, "--source", source, "--target", target, *options)
    for both, one in zip(read_pharaoh(out), read_pharaoh(tmp_path / "x"), strict=True):
        assert both[0] <= one[0]


def test_to_standard_output_as_a_user_runs_it(files: tuple[Path, Path, Path], links: list[str]) -> None:
    result = jumok("align", "--source", files[0], "--target", files[1], "--gold", files[2], "--device", "cpu")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == links
    assert "AER" in result.stderr


def test_files_that_do_not_fit_are_refused_and_nothing_is_left(
    app: typer.Typer, files: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    source, target, gold = map(str, files)
    out = tmp_path / "links"

    def no(words: str, *options: str) -> None:
        with pytest.raises(BadInput, match=words):
            invoke(app, *options, "--out", str(out))
        assert not out.exists()

    short = tmp_path / "short"
    short.write_text("Oui.\n", encoding="utf-8")
    no(f"has {COUNT} lines and .* has 1", "--source", source, "--target", str(short))
    no("not valid UTF-8", "--source", source, "--target", _bytes(tmp_path / "broken", b"Oui\xff\n" * COUNT))
    no("1 lines, but there are", "--source", source, "--target", target, "--gold", _text(tmp_path / "g", "0-0\n"))
    no("line 1.*not a link", "--source", source, "--target", target, "--gold", _text(tmp_path / "h", "a\n" * COUNT))
    no("target word 99", "--source", source, "--target", target, "--gold", _text(tmp_path / "i", "0-99\n" * COUNT))
    no("no such way", "--source", source, "--target", target, "--symmetrize", "grow")
    no("has no heads", "--source", source, "--target", target, "--head", "1")
    no(
        "leave the others out",
        "--source",
        source,
        "--target",
        target,
        "--shift",
        "--best-head-on",
        source,
        target,
        gold,
    )
    no("name that too", "--source", source, "--target", target, "--reverse-head", "1")
    copied = tmp_path / "copied"
    shutil.copy(source, copied)
    with pytest.raises(BadInput, match="very file"):
        invoke(app, "--source", str(copied), "--target", target, "--out", str(copied))


def _bytes(file: Path, content: bytes) -> str:
    file.write_bytes(content)
    return str(file)


def _text(file: Path, content: str) -> str:
    return _bytes(file, content.encode())
