"""The code in an export's README.md does what the run does, with nothing but the library that it was written for."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ct2_runs import small_run
from marian_models import write_marian
from seeded import seed as seed

from jumok import api
from jumok.interop.ctranslate2 import export_ct2
from jumok.interop.onnx_export import export_onnx
from jumok.interop.run_folder import import_huggingface
from jumok.training.run import RunFolder

SENTENCE = "The young cat sleeps."


def printed_by(folder: Path, text: str, within: bool) -> str:
    """What the code prints for a text. `within`: with jumok at hand, which the code may need."""
    (code,) = re.findall(r"```python\n(.*?)\n```", (folder / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert ("jumok" in code) == within
    code = code.replace("FOLDER", str(folder)).replace(f'"{SENTENCE}"', repr(text))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.rstrip("\n")


def ended(run: RunFolder, letters: str = "aeimnrst ") -> str:
    """A text whose translation the small run ends, in each kind of search."""
    model = api.load_translator(run.path, "cpu")
    for _ in range(200):
        text = "".join(random.choices(letters, k=random.randint(2, 9))).strip()
        if text and all(model.nbest([text], beam=beam)[0][0].finished for beam in (1, 5)):
            return text
    raise AssertionError("no such text was found")


def test_a_transformer(tmp_path: Path, seed: int) -> None:
    pytest.importorskip("ctranslate2")
    run = small_run(tmp_path / "run", seed)
    text, model = ended(run), api.load_translator(run.path, "cpu")
    export_ct2(run, tmp_path / "ct2", "float32")
    assert printed_by(tmp_path / "ct2", text, False) == model.translate([text], beam=5, length_penalty=1.0)[0]
    export_onnx(run, tmp_path / "onnx", [text])
    assert printed_by(tmp_path / "onnx", text, False) == model.translate([text], beam=1)[0]


def test_one_vocabulary_for_both(tmp_path: Path, seed: int) -> None:
    pytest.importorskip("ctranslate2")
    run = small_run(tmp_path / "run", seed, tie_embeddings="all", position="rotary")
    text, model = ended(run), api.load_translator(run.path, "cpu")
    export_ct2(run, tmp_path / "ct2", "float32")
    assert printed_by(tmp_path / "ct2", text, False) == model.translate([text], beam=5, length_penalty=1.0)[0]


def test_a_recurrent_one(tmp_path: Path) -> None:
    run = RunFolder.open(api.packaged_run())
    export_onnx(run, tmp_path / "onnx", [SENTENCE])
    expected = api.load_translator(run.path, "cpu").translate([SENTENCE], beam=1)[0]
    assert printed_by(tmp_path / "onnx", SENTENCE, False) == expected


def test_an_imported_one(tmp_path: Path, seed: int) -> None:
    pytest.importorskip("transformers")
    write_marian(tmp_path / "marian", random.Random(seed))
    import_huggingface(tmp_path / "marian", tmp_path / "run")
    run = RunFolder.open(tmp_path / "run")
    text = ended(run, "bakorin ")
    export_onnx(run, tmp_path / "onnx", [text])
    ours = api.load_translator(run.path, "cpu").translate([text], beam=1)[0]
    assert printed_by(tmp_path / "onnx", text, True) == ours
