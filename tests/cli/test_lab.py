"""`jumok lab`: list, show, run, all; what is refused; and, in the full tests, every experiment for real."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from experiments import measured, write_experiment
from journey import jumok, refused, started

from jumok.cli.main import run as run_command
from jumok.lab import catalogue, results

Here = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    """`jumok lab …` in this process."""

    def command(*arguments: object) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        code = run_command(["lab", *(str(argument) for argument in arguments)])
        told = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, told.out, told.err)

    return command


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lab of three experiments of our own, the second of which fails."""
    for number, (name, body) in enumerate(
        (("one", "pass"), ("two", "raise OSError('no luck')"), ("three_a", "pass")), 1
    ):
        write_experiment(tmp_path, name, number, body)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(catalogue, "modules", lambda: ["one", "two", "three_a"])
    monkeypatch.setattr(results, "package_code", lambda: b"whoever works on the package meanwhile")
    return tmp_path


def test_the_command_as_a_user_runs_it(tmp_path: Path) -> None:
    """A real experiment with next to no training: everything is printed and written, whatever the verdicts."""
    told = jumok("lab", "run", "scaling", "--effort", 0.01, "--out", tmp_path / "lab")
    assert told.returncode == 0, told.stderr
    assert "[1/1] scaling, seed 1" in told.stderr
    assert "5 scaling: Why the scores are divided by √d_k" in told.stdout
    assert told.stdout.count("  holds  ") >= 3
    assert "their standard deviation grows from" in told.stdout
    assert "  a first look (effort 0.01), which proves nothing:\n" in told.stdout
    assert "at a first look (effort 0.01). Page: " in told.stdout
    assert "more than 2 updates" in told.stdout  # as many as there were
    assert (tmp_path / "lab" / "scaling.png").read_bytes().startswith(b"\x89PNG")
    kept = json.loads((tmp_path / "lab" / "scaling.json").read_text(encoding="utf-8"))
    assert all(verdict["because"] in told.stdout for verdict in kept["verdicts"])
    assert "first look" in (tmp_path / "lab" / "lab.html").read_text(encoding="utf-8")


def test_list_names_them_all_in_order(here: Here) -> None:
    listed = here("list").stdout
    places = [listed.index(f" {catalogue.name_of(module)} ") for module in catalogue.modules()]
    assert places == sorted(places)
    assert "Why the scores are divided by √d_k" in listed


def test_show_tells_claim_source_file_and_the_last_verdicts(here: Here, made_up: Path) -> None:
    told = here("show", "three-a", "--out", made_up).stdout
    assert "3 three-a: Title of three_a & co" in told
    assert "A claim about three_a." in told
    assert "About <three_a>." in told
    assert "Somebody 2017, 3.2" in told
    assert str(made_up / "three_a.py") in told
    assert "jumok lab run three-a" in told
    here("run", "three_a", "--out", made_up)
    assert "the mean is 1.00 over 1" in here("show", "three-a", "--out", made_up).stdout
    assert "with other code" not in here("show", "three-a", "--out", made_up).stdout
    here("run", "three_a", "--out", made_up, "--seeds", 2)
    write_experiment(made_up, "three_a", 3, "'other code'")
    told = here("show", "three-a", "--out", made_up).stdout
    assert f"measured in {made_up} with other code, seeds: 1, 2\n" in told
    assert "the mean is 1.50 over 2\n" in told
    assert "(holds in 1 of 2 seeds alone)\n" in told
    here("run", "three_a", "--out", made_up / "look", "--effort", 0.5)
    assert "a first look (effort 0.5)" in here("show", "three-a", "--out", made_up / "look").stdout


def test_one_that_fails_is_told_and_the_rest_is_judged(here: Here, made_up: Path) -> None:
    out = made_up / "out"
    told = here("all", "--seeds", 2, "--jobs", 2, "--out", out)
    assert told.returncode == 1
    assert "two, seed 1 failed: OSError: no luck" in told.stderr
    assert "jumok: not measured: two" in told.stderr
    assert "Traceback" not in told.stderr
    assert told.stdout.count("the mean is 1.50 over 2") == 2
    assert f"4 claims: 4 hold, 0 do not. Page: {out / 'lab.html'}" in told.stdout
    write_experiment(made_up, "two", 2)
    again = here("all", "--seeds", 2, "--out", out)
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("the mean is 1.50 over 2") == 3  # all verdicts are printed, measured now or before
    assert sorted(measured(made_up, "one")) == [1, 2]
    here("all", "--seeds", 2, "--out", out, "--again")
    assert sorted(measured(made_up, "one")) == [1, 1, 2, 2]


def test_debug_shows_where_it_failed(made_up: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["--debug", "lab", "run", "two", "--out", str(made_up)]) == 1
    assert "in measure" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "scalling"), ('no experiment "scalling"', 'Did you mean "scaling"')),
        (("run", "scaling", "nonsense"), ('no experiment "nonsense"', "lab list")),
        (("show", "19"), ('no experiment "19"',)),
        (("all", "--seeds", 0), ("--seeds 0: give 1 or more",)),
        (("run", "scaling", "--seeds", -3), ("--seeds -3: give 1 or more",)),
        (("run", "scaling", "--seeds", "x"), ("--seeds",)),
        (("all", "--jobs", 0), ("--jobs 0: give 1 or more",)),
        (("all", "--effort", 0), ("--effort 0",)),
        (("all", "--effort", "nan"), ("--effort nan",)),
        (("run",), ("Missing argument",)),
    ],
)
def test_what_cannot_be_is_refused(here: Here, arguments: tuple[object, ...], words: tuple[str, ...]) -> None:
    refused(here(*arguments), *words)


def test_a_folder_that_cannot_be_made(here: Here, made_up: Path) -> None:
    (made_up / "file").write_text("")
    refused(here("run", "one", "--out", made_up / "file" / "lab"), "is a file, not a folder", "--out")
    refused(here("run", "one", "--out", made_up / "file"), "is a file, not a folder", "--out")
    assert measured(made_up, "one") == []


@pytest.mark.full
def test_every_experiment_for_real(tmp_path: Path) -> None:
    """`jumok lab all` with one seed: nothing fails, and every verdict is printed."""
    told = started("lab", "all", "--out", tmp_path, timeout=3600)
    assert told.returncode == 0, told.stderr
    for module in catalogue.modules():
        name = catalogue.name_of(module)
        assert (tmp_path / f"{name}.png").is_file()
        kept = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
        assert kept["verdicts"]
        for verdict in kept["verdicts"]:
            assert verdict["claim"] in told.stdout
            assert verdict["because"] in told.stdout
    assert (tmp_path / "lab.html").is_file()
