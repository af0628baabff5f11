"""Runs out to CTranslate2: the same translations there, or a word about why not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ct2_runs import small_run
from seeded import seed as seed

from jumok.errors import BadInput, Failure
from jumok.interop import ctranslate2 as ours
from jumok.interop.ctranslate2 import engine_folder, export_ct2
from jumok.tasks.engine_ct2 import ABOUT

theirs = pytest.importorskip("ctranslate2")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "PROBED", 60)


KINDS: list[dict[str, Any]] = [
    {},
    {"norm": "post", "position": "sinusoidal-halves", "tie_embeddings": "all"},
    {"norm": "post", "final_norm": True, "activation": "gelu", "position": "learned", "max_positions": 200},
    {"final_norm": False, "activation": "silu", "tie_embeddings": "none"},
    {"norm_kind": "rms", "activation": "swiglu", "position": "rotary", "encoder_layers": 3, "decoder_layers": 1},
    {"position": "none", "width": 36, "heads": 6, "feed_forward": 50},
]


@pytest.mark.parametrize("keys", KINDS, ids=lambda keys: "-".join(str(value) for value in keys.values()) or "usual")
def test_the_same_translations(keys: dict[str, Any], tmp_path: Path, seed: int) -> None:
    notes = export_ct2(small_run(tmp_path / "run", seed, **keys), tmp_path / "out", "float32")
    assert "sentences, beam 5, float32: " in notes[-1]
    assert json.loads((tmp_path / "out" / ABOUT).read_text())["precision"] == "float32"
    # as somebody else would use it
    from jumok.text.tokenizer import Tokenizer

    tokenizer = Tokenizer.load(tmp_path / "out" / "tokenizer" / "source")
    pieces = tokenizer.encode_with_offsets("the dog sees the cat .").tokens
    assert theirs.Translator(str(tmp_path / "out")).translate_batch([pieces], max_decoding_length=100)[0].hypotheses


def test_int8_tells_its_agreement(tmp_path: Path, seed: int) -> None:
    notes = export_ct2(small_run(tmp_path / "run", seed), tmp_path / "out", "int8")
    assert "int8: " in notes[-1]
    assert "are the same as here" in notes[-1]
    wide = engine_folder(small_run(tmp_path / "again", seed, ends=False), "float32", print)
    assert (tmp_path / "out" / "model.bin").stat().st_size < (wide / "model.bin").stat().st_size


def test_a_model_that_never_ends_is_checked_by_its_scores(tmp_path: Path, seed: int) -> None:
    notes = export_ct2(small_run(tmp_path / "run", seed, ends=False), tmp_path / "out", "float32")
    assert " go to their longest length, where only scores are compared" in notes[-1]


def test_other_weights_are_noticed(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail: one matrix is written with another sign."""
    from jumok.interop import ctranslate2_spec as spec

    def wrong(theirs: Any, map: Any) -> None:
        theirs.weight, theirs.bias = -spec._numbers(map.weight), spec._numbers(map.bias)

    monkeypatch.setattr(spec, "_linear", wrong)
    with pytest.raises(Failure, match=r"At least 99\.5% must be the same"):
        export_ct2(small_run(tmp_path / "run", seed), tmp_path / "out", "float32")
    assert not (tmp_path / "out").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    with pytest.raises(Failure, match="it is not the same model there"):
        engine_folder(small_run(tmp_path / "other", seed), "float32", print)
    assert not [path for path in (tmp_path / "other" / "engines").iterdir() if path.is_dir()]


@pytest.mark.parametrize(
    ("keys", "named"),
    [({"position": "relative"}, r"model\.position"), ({"key_value_heads": 2}, r"model\.key_value_heads")],
)
def test_what_it_cannot_compute_is_named(keys: dict[str, Any], named: str, tmp_path: Path, seed: int) -> None:
    with pytest.raises(BadInput, match=named):
        export_ct2(small_run(tmp_path / "run", seed, ends=False, **keys), tmp_path / "out", "float32")
    assert not (tmp_path / "out").exists()


def test_recurrent_models_are_refused(tmp_path: Path) -> None:
    import jumok
    from jumok.training.run import RunFolder

    run = RunFolder.open(Path(jumok.__file__).parent / "pretrained" / "en-fr")
    with pytest.raises(BadInput, match=r"model\.kind"):
        export_ct2(run, tmp_path / "out", "float32")


def test_bad_places_and_precisions(tmp_path: Path, seed: int) -> None:
    run = small_run(tmp_path / "run", seed, ends=False)
    with pytest.raises(BadInput, match=r"--precision bfloat16: .* float32 or int8 here \(bfloat16 is for .* torch\)"):
        export_ct2(run, tmp_path / "out", "bfloat16")
    with pytest.raises(BadInput, match="--precision int4"):
        export_ct2(run, tmp_path / "out", "int4")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(BadInput, match="--out"):
        export_ct2(run, tmp_path / "mine", "float32")
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def test_an_engines_files_are_made_once_and_again_for_other_weights(tmp_path: Path, seed: int) -> None:
    said: list[str] = []
    run = small_run(tmp_path / "run", seed, ends=False)
    folder = engine_folder(run, "float32", said.append)
    assert folder == run.path / "engines" / "ct2-float32"
    first, made = (folder / "model.bin").read_bytes(), len(said)
    assert engine_folder(run, "float32", said.append) == folder
    assert made == len(said) == 1
    small_run(tmp_path / "run", seed + 1, ends=False, step=9)
    assert engine_folder(run, "float32", said.append) == folder
    assert (folder / "model.bin").read_bytes() != first
    assert "step-9" in said[-1]


@pytest.mark.parametrize("harm", ["cut", "gone", "nothing said", "half written"])
def test_half_an_engine_is_never_used(harm: str, tmp_path: Path, seed: int) -> None:
    run = small_run(tmp_path / "run", seed, ends=False)
    if harm == "half written":  # killed before it got its name
        left = run.path / "engines" / ".writing-ct2-float32-1"
        left.mkdir(parents=True)
        (left / "model.bin").write_bytes(b"half")
    folder = engine_folder(run, "float32", print)
    whole = (folder / "model.bin").read_bytes()
    if harm == "cut":
        (folder / "model.bin").write_bytes(whole[: len(whole) // 2])
    elif harm == "gone":
        (folder / "model.bin").unlink()
    elif harm == "nothing said":
        (folder / ABOUT).write_text("{")
    assert engine_folder(run, "float32", print) == folder
    assert (folder / "model.bin").read_bytes() == whole
    assert not list((run.path / "engines").glob(".writing-*"))
