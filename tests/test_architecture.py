"""The house keeps its shape: imports point downwards only, and the door opens quickly."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import jumok

ROOT = Path(jumok.__file__).parent
# from the ground up; a room may import from itself and from those before it
FLOORS = [
    "errors", "files", "recipe", "text", "data", "layers", "models", "search", "tasks", "training", "inspect",
    "interop", "trained", "api", "streaming", "evaluation", "demo", "lab", "ladder", "serve", "studio", "cli",
    "__main__",
]  # fmt: skip
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")
SOURCES_IN_C = sorted(ROOT.rglob("*.[ch]"))


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "jumok":
            parts = node.module.split(".")
            rooms |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("jumok.")}
    return rooms - {"__version__"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downwards(path: Path) -> None:
    own = FLOORS.index(room(path))
    above = {name for name in imported_rooms(path) if FLOORS.index(name) > own}
    assert not above, f"{path.relative_to(ROOT)} imports from above: {above}"


@pytest.mark.parametrize("path", [*MODULES, *SOURCES_IN_C], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_holds_one_idea(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    is_table = "lexicon" in path.parts
    assert lines <= (1000 if is_table else 450), f"{path.relative_to(ROOT)} has {lines} lines: split it"


def test_help_does_not_wait_for_torch() -> None:
    code = (
        "import sys; from jumok.cli.main import run; run(['--help']); "
        "sys.exit(bool({'torch', 'fastapi', 'uvicorn'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "translate" in result.stdout
