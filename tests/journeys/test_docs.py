"""The pages are run: every `bash` and `python` block of README.md, README.ko.md and docs/*.md, as it is written.

The blocks of a page run in order in one folder, which holds `my.en`, `my.fr`, `valid.*` and `test.*` (these two with
`.align`); its python blocks share one process. Only one thing is changed, the time: `--minutes N` becomes `--minutes
0.05`. A block that calls make runs in the checkout, where the Makefile is. A comment line in front of a block says what
to do with it:

    <!-- full -->              only in make test-full
    <!-- needs: gpu -->        not run; also `needs: network`
    <!-- not run: reason -->   not run
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from jumok.data import grammar

ROOT = Path(__file__).resolve().parents[2]
README, KOREAN = ROOT / "README.md", ROOT / "README.ko.md"
PAGES = [README, KOREAN, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
ELSEWHERE = {"extend.md": "test_extend.py"}  # run as written by that test, which also looks at what comes out
ALWAYS = {"README.md"}  # also in make test; the others need make test-full

RUN = {"bash", "python"}
NOT_CODE = {"", "text", "yaml", "json", "mermaid", "bibtex"}
FENCE = re.compile(r"^( *)```([^\s`]*)$")
MARKER = re.compile(r"<!-- (full|needs: gpu|needs: network|not run: \S.*) -->")
MINUTES = re.compile(r"--minutes[ =][0-9.]+")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int  # of its first line of code
    language: str
    text: str
    marker: str  # "" where it always runs

    @property
    def name(self) -> str:
        return f"{self.page.name}, line {self.line}"

    @property
    def not_run(self) -> bool:
        return self.marker.startswith(("needs: ", "not run: "))


def blocks_of(page: Path) -> Iterator[Block]:
    """All blocks that can be run. What looks like one and would slip through is an error."""
    opened: tuple[int, str, str] | None = None
    before, code = "", []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.match(line)
        if opened is None and fence:
            marker = MARKER.fullmatch(before)
            assert marker or not before.startswith("<!--"), f"{page.name}, line {number}: unknown marker {before}"
            assert fence[2] in RUN | NOT_CODE, f"{page.name}, line {number}: write bash or python, not {fence[2]}"
            opened, code = (number + 1, fence[2], marker[1] if marker else ""), []
        elif opened and fence:
            assert not fence[2], f"{page.name}, line {number}: the block of line {opened[0]} does not end"
            if opened[1] in RUN:
                yield Block(page, opened[0], opened[1], textwrap.dedent("\n".join(code)) + "\n", opened[2])
            opened, before = None, ""
        elif opened:
            code.append(line)
        elif line.strip():
            before = line.strip()
    assert opened is None, f"{page.name}: the block of line {opened and opened[0]} does not end"


def blocks_to_run(page: Path) -> list[Block]:
    """Of the Korean README only what differs, in comments or otherwise, from the English one, behind that."""
    blocks = list(blocks_of(page))
    if page == README and KOREAN.exists():
        known = {_without_comments(block.text) for block in blocks}
        blocks += [block for block in blocks_of(KOREAN) if _without_comments(block.text) not in known]
    return blocks


def _without_comments(text: str) -> str:
    return "\n".join(re.sub(r"(^|\s+)# .*", "", line).rstrip() for line in text.splitlines())


RUNNABLE = [page for page in PAGES if page != KOREAN and page.name not in ELSEWHERE and blocks_to_run(page)]
WITH_FULL = [page for page in RUNNABLE if any(block.marker == "full" for block in blocks_to_run(page))]


class Reader:
    """Someone who types what the page says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python: subprocess.Popen[str] | None = None
        programs = str(Path(sys.executable).parent)
        self.environment = {
            **os.environ,
            "PATH": programs + os.pathsep + os.environ.get("PATH", ""),
            "JUMOK_CACHE": str(folder / ".cache"),
            "NO_COLOR": "1",
            "COLUMNS": "120",
        }

    def follow(self, blocks: Sequence[Block]) -> None:
        try:
            for block in blocks:
                if not block.not_run:
                    (self._bash if block.language == "bash" else self._python)(block)
        finally:
            if self.python is not None:
                self.python.kill()
                self.python.wait()

    def _bash(self, block: Block) -> None:
        text = MINUTES.sub("--minutes 0.05", block.text)
        where = ROOT if re.search(r"^\s*make\b", text, re.MULTILINE) else self.folder
        result = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=where,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=900,
            check=False,
        )
        told = result.stdout.decode("utf-8", "replace")
        assert result.returncode == 0, f"{block.name} ended with {result.returncode}:\n{text}\n{told[-4000:]}"
        assert "Traceback" not in told, f"{block.name}:\n{told[-4000:]}"

    def _python(self, block: Block) -> None:
        log = self.folder / ".python.log"
        if self.python is None:
            with log.open("w") as errors:
                self.python = subprocess.Popen(
                    [sys.executable, "-c", PYTHON],
                    cwd=self.folder,
                    env=self.environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                )
        assert self.python.stdin
        assert self.python.stdout
        self.python.stdin.write(json.dumps([block.text, str(block.page), block.line]) + "\n")
        self.python.stdin.flush()
        answer = self.python.stdout.readline()
        assert answer == "done\n", f"{block.name}:\n{block.text}\n{log.read_text()[-4000:]}"


# Runs blocks from stdin in one namespace; what they print goes to stderr, so that stdout is free to answer
PYTHON = """
import json, sys
answers, sys.stdout = sys.stdout, sys.stderr
names = {"__name__": "__main__"}
for request in sys.stdin:
    text, page, line = json.loads(request)
    exec(compile("\\n" * (line - 1) + text, page, "exec"), names)
    print("done", file=answers, flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder: the grammar's sentences as if they were their own files."""
    for name, split, count in (("my", "train", 300), ("valid", "valid", 40), ("test", "test", 40)):
        pairs = list(grammar.pairs("en", "fr", split, count))
        columns = {
            "en": [p.source for p in pairs],
            "fr": [p.target for p in pairs],
            "align": [p.pharaoh() for p in pairs],
        }
        for ending, lines in columns.items():
            if ending != "align" or name != "my":
                text = "".join(line + "\n" for line in lines)
                (tmp_path / f"{name}.{ending}").write_text(text, encoding="utf-8", newline="\n")
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[] if page.name in ALWAYS else pytest.mark.full)
        for page in RUNNABLE
        if page.name in ALWAYS or page not in WITH_FULL
    ],
    ids=lambda page: page.name,
)
def test_the_page_runs(page: Path, folder: Path) -> None:
    Reader(folder).follow([block for block in blocks_to_run(page) if block.marker != "full"])


@pytest.mark.full
@pytest.mark.parametrize("page", WITH_FULL, ids=lambda page: page.name)
def test_the_whole_page_runs(page: Path, folder: Path) -> None:
    Reader(folder).follow(blocks_to_run(page))


def test_few_blocks_are_not_run() -> None:
    blocks = [block for page in PAGES if page.exists() for block in blocks_of(page)]
    not_run = [f"{block.name} ({block.marker})" for block in blocks if block.not_run]
    assert 3 * len(not_run) <= len(blocks), f"{len(not_run)} of {len(blocks)} blocks are not run: {not_run}"


@pytest.mark.parametrize(("page", "test"), ELSEWHERE.items(), ids=list(ELSEWHERE))
def test_what_runs_elsewhere_does(page: str, test: str) -> None:
    assert page in (Path(__file__).parent / test).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(\s*<?([^)\s>]+)", re.sub(r"`[^`\n]*`", "code", text))
    targets += re.findall(r"(?:src|href)=[\"']([^\"']+)", text)
    local = [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:", target)]
    broken = [target for target in local if target and not (page.parent / target).exists()]
    assert not broken, f"{page.name} links to what is not there: {broken}"
