"""A run as a CTranslate2 model: written, held against the run it came from, and kept for `--engine ct2`.

The lock of this door: a probe set is searched in both engines with a beam of 5. In float32 the same translations have
to come out, but for ties; in int8 how many of them do is told, and their probabilities may not be others (rounding.py).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file

from jumok.errors import BadInput, Failure
from jumok.files import sha256
from jumok.interop.ctranslate2_spec import LONGEST, check_precision, library, refuse_foreign, save_model
from jumok.interop.engine_files import Say, best_checkpoint, is_made, make_once, place_of, sum_of
from jumok.interop.export_folder import check_out, new_folder
from jumok.interop.model_card import CARD, model_card
from jumok.interop.probe import probe_rows
from jumok.interop.rounding import check_rounded, drifts
from jumok.interop.ties import tied
from jumok.interop.usage import ct2_usage
from jumok.models.build import build
from jumok.models.transformer import Transformer
from jumok.recipe import Recipe
from jumok.search import Hypothesis, SearchOptions, max_length_for
from jumok.tasks.engine import Engine
from jumok.tasks.engine_ct2 import ABOUT, CTranslate2Engine
from jumok.tasks.vocabulary import load_tokenizers
from jumok.text.tokenizer import Tokenizer
from jumok.training import checkpoint
from jumok.training.run import RunFolder

FORMAT = 1  # another number: all engines' files are made again
AGREEMENT = 0.995  # share of translations that must be the same in float32
PROBED, BATCH, BEAM = 400, 32, 5
DRIFT = 1e-3  # what a token of a translation may differ by
UNROUNDED = "Nothing was exported; use --precision float32"
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Chosen:
    """A run's checkpoint, found and good, not yet read."""

    run: RunFolder
    recipe: Recipe
    checkpoint: Path
    source: Tokenizer
    target: Tokenizer

    @classmethod
    def of(cls, run: RunFolder, say: Say) -> Chosen:
        recipe = run.recipe()
        if recipe.task != "translation":
            raise BadInput(f"{run.path} does not translate (task {recipe.task}); CTranslate2 is for translators here")
        return cls(run, recipe, best_checkpoint(run, say), *load_tokenizers(run.tokenizer, recipe.tokenizer.joint))

    def key(self, precision: str) -> str:
        """Changes whenever the files would."""
        parts = (
            FORMAT,
            library().__version__,
            precision,
            sum_of(self.checkpoint),
            self.source.fingerprint,
            self.target.fingerprint,
        )
        section = self.recipe.model.model_dump_json()
        return hashlib.sha256(json.dumps([*parts, section, self.positions]).encode()).hexdigest()

    @property
    def positions(self) -> int:
        """So many can be asked for with the recipe's own options."""
        search, longest = self.recipe.search, self.recipe.data.max_length + 1
        return max(LONGEST, longest, min(max_length_for(longest, search.max_ratio, search.max_extra), 4 * LONGEST))

    def model(self) -> Transformer:
        model = build(self.recipe.model, self.source.size, self.target.size)
        refuse_foreign(model)
        weights = load_file(self.checkpoint / checkpoint.MODEL)
        checkpoint.load_weights(model, {name: one.float() for name, one in weights.items()}, str(self.checkpoint))
        assert isinstance(model, Transformer)
        return model.eval()

    def write(self, model: Transformer, folder: Path, precision: str) -> None:
        """CTranslate2's files, and what they are."""
        save_model(model, self.source, self.target, folder, precision, self.positions)
        known = {"learned": model.section.max_positions, "rotary": None}
        about = {
            "format": FORMAT,
            "precision": precision,
            "positions": known.get(model.section.position, self.positions),
            "step": int(self.checkpoint.name.removeprefix("step-")),
        }
        (folder / ABOUT).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def export_ct2(run: RunFolder, out: Path, precision: str, probe: Sequence[str] = ()) -> list[str]:
    """Write a run for CTranslate2; what its user should know, the check last. `probe`: sentences to check it with."""
    check_precision(precision)
    check_out(out, "ct2")
    library()
    notes: list[str] = []
    chosen = Chosen.of(run, notes.append)
    model = chosen.model()
    with new_folder(out, "ct2") as folder:
        chosen.write(model, folder, precision)
        chosen.source.save(folder / "tokenizer" / "source")
        chosen.target.save(folder / "tokenizer" / "target")
        parameters = sum(parameter.numel() for parameter in model.parameters())
        notes.append(
            f"{parameters:,} parameters in {precision}; cut texts with tokenizer/source, give translate_batch the "
            f"pieces without <eos>, put what it writes together with tokenizer/target: {CARD} has the code"
        )
        notes.append(_compared(chosen, model, folder, precision, probe))
        card = model_card(
            run,
            chosen.recipe,
            architecture="CTranslate2",
            purpose="translation",
            usage=ct2_usage(folder, chosen.source, chosen.target),
            step=int(chosen.checkpoint.name.removeprefix("step-")),
            signatures={
                "model.bin": sha256(folder / "model.bin"),
                "the run's checkpoint": sha256(chosen.checkpoint / checkpoint.MODEL),
            },
            notes=notes,
            library="ctranslate2",
        )
        (folder / CARD).write_text(card, encoding="utf-8", newline="\n")
    return notes


def engine_folder(run: RunFolder, precision: str, say: Say) -> Path:
    """Where the run's best checkpoint is as CTranslate2 has it, made here if it is not there."""
    check_precision(precision)
    library()
    chosen = Chosen.of(run, say)
    key, folder = chosen.key(precision), place_of(run, "ct2", precision)
    if is_made(folder, key):
        return folder
    model = chosen.model()

    def write(place: Path) -> None:
        chosen.write(model, place, precision)
        _same_scores(chosen, model, place, precision)

    return make_once(
        folder,
        key,
        write,
        lambda: say(f"making {folder} from {chosen.checkpoint.name}, once"),
    )


# ---------------------------------------------------------------- the check


def _compared(chosen: Chosen, model: Transformer, folder: Path, precision: str, probe: Sequence[str]) -> str:
    """A sentence about how many translations are the same; `Failure` where they are too few."""
    sources, search = probe_rows(chosen.recipe, chosen.source, probe, PROBED), chosen.recipe.search
    rows = []
    for source in sources:
        longest = min(max_length_for(len(source) + 1, search.max_ratio, search.max_extra), model.longest)
        options = SearchOptions(beam=BEAM, patience=1.0, length_penalty=search.length_penalty, max_length=longest)
        rows.append((source, options))
    engine = CTranslate2Engine([model], CPU, folder, precision)
    here = dict(Engine([model], CPU, fast=True).search(rows, BATCH))
    there = dict(engine.search(rows, BATCH))
    left = set(engine.left)  # searched here in both cases: nothing to compare but the scores
    pairs = [(here[place][0], there[place][0]) for place in range(len(rows)) if place not in left]
    same = [(ours, theirs) for ours, theirs in pairs if ours.tokens == theirs.tokens]
    ties = sum(
        precision == "float32" and here[place][0].tokens != there[place][0].tokens and tied(model, *rows[place])
        for place in range(len(rows))
        if place not in left
    )
    parts, failed = [], False
    if pairs:
        share = (len(same) + ties) / len(pairs)
        difference = max((abs(ours.score - theirs.score) for ours, theirs in same), default=0.0)
        parts.append(
            f"{len(same)} of {len(pairs)} translations are the same as here{f' ({ties} more are ties)' * bool(ties)}, "
            f"{share:.1%}; max|Δ| of their scores {difference:.1e}"
        )
        failed = share < AGREEMENT
    if left:
        drift = _drift(engine, [(rows[place][0], here[place][0]) for place in sorted(left)])
        parts.append(
            f"{len(left)} go to their longest length, where only scores are compared: max|Δ| {drift:.1e} a token"
        )
        failed |= not drift < DRIFT
    if precision != "float32":
        best = [here[place][0] for place in range(len(rows))]
        scored = engine.log_probabilities([source for source, _ in rows], [one.tokens for one in best])
        parts.append(check_rounded(best, scored, UNROUNDED))
    told = f"checked with {len(rows)} sentences, beam {BEAM}, {precision}: {'; '.join(parts)}"
    if failed and precision == "float32":
        raise Failure(f"{told}. At least {AGREEMENT:.1%} must be the same: nothing was exported")
    return told


def _same_scores(chosen: Chosen, model: Transformer, folder: Path, precision: str) -> None:
    """The files of an engine, tried with a few sentences."""
    options = SearchOptions(beam=1, max_length=min(2 * BATCH, model.longest))
    rows = [(source, options) for source in probe_rows(chosen.recipe, chosen.source, (), BATCH)]
    found = dict(Engine([model], CPU, fast=True).search(rows, BATCH))
    best = [found[place][0] for place in range(len(rows))]
    engine = CTranslate2Engine([model], CPU, folder, precision)
    if precision != "float32":
        scored = engine.log_probabilities([source for source, _ in rows], [one.tokens for one in best])
        check_rounded(best, scored, "Use --precision float32, or --engine torch")
        return
    drift = _drift(engine, [(row, one) for (row, _), one in zip(rows, best, strict=True)])
    if not drift < DRIFT:
        raise Failure(
            f"CTranslate2 has other scores than PyTorch, by {drift:.1e} a token: it is not the same model there. "
            "Use --engine torch"
        )


def _drift(engine: CTranslate2Engine, found: Sequence[tuple[list[int], Hypothesis]]) -> float:
    """What scores of the same translations differ by there, a token, at most."""
    scored = engine.log_probabilities([source for source, _ in found], [one.tokens for _, one in found])
    return float(drifts([one for _, one in found], scored).max())  # which does not pass over what is no number
