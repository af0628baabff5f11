"""The wheel, as someone has it who never saw the checkout: built, installed into a bare environment, and used there."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LARGEST_RUN = 3_000_000  # bytes of the trained run that the package carries


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=out)
    assert result.returncode == 0, result.stdout + result.stderr
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh environment with the wheel in it.

    Its dependencies are those of the environment that runs the tests, seen through a line in a .pth file. The .pth
    files of such a folder are not followed, so the checkout, installed as editable there, stays out of sight.
    """
    place = tmp_path_factory.mktemp("installed") / "venv"
    venv.create(place, with_pip=False)
    programs = place / ("Scripts" if os.name == "nt" else "bin")
    python = programs / Path(sys.executable).name
    install = ["install", "--no-deps", "--no-index", "--quiet", "--disable-pip-version-check", str(wheel)]
    result = subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(python), *install], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    (packages,) = {path.parent for path in place.rglob("jumok") if (path / "__init__.py").is_file()}
    lent = dict.fromkeys((sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    (packages / "dependencies.pth").write_text("".join(f"{path}\n" for path in lent), encoding="utf-8")
    return python


def run(folder: Path, *arguments: object, input: str = "") -> str:
    """A command in a folder far from the checkout; what it prints."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    result = subprocess.run(
        [str(part) for part in arguments],
        input=input.encode(),
        capture_output=True,
        cwd=folder,
        env={**environment, "NO_COLOR": "1", "JUMOK_CACHE": str(folder / "cache")},
        check=False,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr.decode("utf-8", "replace")
    return result.stdout.decode("utf-8")


def command(python: Path) -> str:
    return str(python.with_name("jumok.exe" if os.name == "nt" else "jumok"))


def test_the_wheel_carries_what_a_user_needs_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
    tops = {name.split("/")[0] for name in sizes}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"jumok"}
    source = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*") if path.is_file()}
    expected = {name for name in source if "__pycache__" not in name}
    assert {name for name in sizes if name.startswith("jumok/")} == expected
    for needed in ("recipes/lstm-luong.yaml", "inspect/assets/attention.js", "data/catalogue.json", "py.typed"):
        assert f"jumok/{needed}" in sizes
    run_files = {name: size for name, size in sizes.items() if name.startswith("jumok/pretrained/en-fr/")}
    assert "jumok/pretrained/en-fr/recipe.yaml" in run_files
    assert 0 < sum(run_files.values()) <= LARGEST_RUN
    assert any(name.endswith("licenses/LICENSE") for name in sizes)


def test_it_is_the_installed_one_that_runs(installed: Path, tmp_path: Path) -> None:
    where = run(tmp_path, installed, "-c", "import jumok; print(jumok.__file__)").strip()
    assert Path(where).is_relative_to(installed.parents[1])
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = run(tmp_path, command(installed), "--version").split()[-1]
    assert f'version = "{version}"' in project
    assert "lstm-luong" in run(tmp_path, installed, "-m", "jumok", "recipes")


def test_it_translates_and_draws_at_once(installed: Path, tmp_path: Path) -> None:
    translated = run(tmp_path, command(installed), "translate", input="I am a student.\n")
    assert translated.splitlines() == ["Je suis étudiant."]
    run(tmp_path, command(installed), "attend", "I am a student.", "--out", "a.svg")
    assert "étudiant." in (tmp_path / "a.svg").read_text(encoding="utf-8")


@pytest.mark.full
def test_the_demo_runs_without_make(installed: Path, tmp_path: Path) -> None:
    told = run(tmp_path, installed, "-m", "jumok", "demo", "--minutes", "0.3", "--run", "x")
    assert "BLEU" in told
    assert (tmp_path / "x" / "report.html").is_file()
