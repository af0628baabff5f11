"""A run that translates as a folder of `transformers`: `MarianMTModel.from_pretrained(FOLDER)` loads it.

An imported run gives back the checkpoint that it came from: every tensor bit by bit, and the files beside it. A run of
our own training can be written where Marian has words for its shape (marian_config.config_of says which); its
tokenizers are no SentencePiece files then, but `tokenizer.json` (`PreTrainedTokenizerFast`), the target's in `target/`.
"""

from __future__ import annotations

import importlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file
from torch import Tensor

from jumok.errors import BadInput, Failure, JumokError
from jumok.files import sha256
from jumok.interop.export_folder import check_out, new_folder, save_weights
from jumok.interop.marian import given_back, plain_names
from jumok.interop.marian_check import (
    AGREE,
    BEAM,
    MARIANS,
    Numbers,
    every_layer,
    loaded,
    numbers_of,
    read_theirs,
    same_cuts,
    same_translations,
)
from jumok.interop.marian_config import config_of
from jumok.interop.marian_files import originals
from jumok.interop.model_card import CARD, model_card
from jumok.models.transformer import Transformer
from jumok.recipe import Recipe, Search
from jumok.text.special import END, PAD, SPECIAL_TOKENS, START
from jumok.text.tokenizer import Tokenizer
from jumok.training import checkpoint
from jumok.training.run import RunFolder

LARGEST = 1e-5  # of what differs, in parts of the largest value (at least 1)
MOST = 512  # tokens of a translation there at most, which knows no length of the source
WEIGHTS, GENERATION = "model.safetensors", "generation_config.json"
USAGE = """from transformers import {tokenizer}, MarianMTModel

model, tokenizer = MarianMTModel.from_pretrained("FOLDER"), {tokenizer}.from_pretrained("FOLDER")
rows = model.generate(**tokenizer(["…"], return_tensors="pt", padding=True, truncation=True))
print({writer}.batch_decode(rows, skip_special_tokens=True))"""
APART = "what it writes is decoded with the tokenizer in target/: that of the source has other words for the same ids"
LONGEST = "it writes at most {longest} tokens there; the run stops at {ratio:g} times the source and {extra} more"


@dataclass(frozen=True)
class Outgoing:
    weights: dict[str, Tensor]
    texts: dict[str, str]  # files by their names
    copied: dict[str, Path]
    tokenizer: str  # their class
    never: list[int]  # ids of ours that are not generated
    longest: int | None = None  # tokens of a translation there; None: as the checkpoint that it came from says


def export_marian(run: RunFolder, out: Path) -> list[str]:
    """The run as a folder that `transformers` loads. Gives what its user should know; the last is the check."""
    check_out(out, "hf")
    recipe = run.recipe()
    model, source, target, step, notes = loaded(run)
    made = _imported(run, model) or _own(recipe, model, source, target)
    numbers = numbers_of(run, source, target)
    with new_folder(out, "hf") as folder:
        save_weights(made.weights, folder / WEIGHTS)
        for name, content in made.texts.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(content, encoding="utf-8", newline="\n")
        for name, file in made.copied.items():
            shutil.copyfile(file, folder / name)
        count = sum(tensor.numel() for tensor in made.weights.values())
        told = _checked(folder, made, model, source, target, numbers)
        search = recipe.search
        notes = [f"{count:,} parameters as MarianMTModel", *notes]
        notes += [APART] if (folder / "target").is_dir() else []
        if made.longest is not None:  # what came with an imported one is given back as it was
            notes.append(LONGEST.format(longest=made.longest, ratio=search.max_ratio, extra=search.max_extra))
        notes.append(told)
        (folder / CARD).write_text(_card(run, recipe, made, step, folder, notes), encoding="utf-8", newline="\n")
    return notes


def _imported(run: RunFolder, model: Transformer) -> Outgoing | None:
    kept = originals(run)
    if kept is None:
        return None
    weights = {name: tensor.detach() for name, tensor in checkpoint.stored_tensors(model).items()}
    return Outgoing(given_back(kept.layout, weights, kept.kept, model.section), {}, kept.files, MARIANS, [])


def _own(recipe: Recipe, model: Transformer, source: Tokenizer, target: Tokenizer) -> Outgoing:
    if source.kind == "wordpiece" or target.kind == "wordpiece":
        raise BadInput("tokenizer.kind wordpiece has special ids of its own: such a run cannot be written as Marian's")
    config = config_of(model.section, source.size, target.size)
    never = sorted({PAD, START, *target.tags.values()})
    ids = {"pad_token_id": PAD, "eos_token_id": END, "decoder_start_token_id": START, "bos_token_id": None}
    config |= {**ids, "forced_eos_token_id": END, "dtype": "float32"}
    # what computes with it may be longer than anything that was learned from: positions are counted out
    config["max_position_embeddings"] = max(config["max_position_embeddings"], recipe.data.max_length + 2)
    state = {name: tensor.detach() for name, tensor in checkpoint.stored_tensors(model).items()}
    weights = {
        theirs: (state[ours][None] if ours == "bias" else state[ours]).contiguous()
        for theirs, ours in plain_names(model.section).items()
    }
    texts = {"config.json": _json(config)}
    longest = min(MOST, config["max_position_embeddings"])
    texts[GENERATION] = _json({**ids, **_searched(recipe.search, longest), "bad_words_ids": [[id] for id in never]})
    for folder, tokenizer in (("", source), *([("target/", target)] if target is not source else [])):
        texts |= {f"{folder}{name}": text for name, text in _fast_tokenizer(tokenizer, recipe).items()}
    return Outgoing(weights, texts, {}, "PreTrainedTokenizerFast", never, longest)


def _searched(search: Search, longest: int) -> dict[str, Any]:
    """Their search for the same. They stop by a guess or at the first `beam` outputs; never by what is sure."""
    return {
        "num_beams": search.beam,
        "length_penalty": search.length_penalty,
        "early_stopping": search.patience == 1.0,
        "no_repeat_ngram_size": search.no_repeat_ngram,
        "max_length": longest,
        "forced_eos_token_id": END,
    }


def _fast_tokenizer(tokenizer: Tokenizer, recipe: Recipe) -> dict[str, str]:
    content = json.loads(tokenizer.content)
    end = SPECIAL_TOKENS[END]
    single = [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": end, "type_id": 0}}]
    content["post_processor"] = {
        "type": "TemplateProcessing", "single": single, "pair": single,
        "special_tokens": {end: {"id": end, "ids": [END], "tokens": [end]}},
    }  # fmt: skip
    about = {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": recipe.data.max_length + 1,
        "clean_up_tokenization_spaces": False, "model_input_names": ["input_ids", "attention_mask"],
        **dict(zip(("pad_token", "unk_token", "bos_token", "eos_token"), SPECIAL_TOKENS, strict=True)),
    }  # fmt: skip
    return {"tokenizer.json": json.dumps(content, ensure_ascii=False) + "\n", "tokenizer_config.json": _json(about)}


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def _checked(
    folder: Path, made: Outgoing, model: Transformer, source: Tokenizer, target: Tokenizer, numbers: Numbers
) -> str:
    """What their library computes with the folder; Failure where it is something else."""
    stored = load_file(folder / WEIGHTS)
    for name, tensor in made.weights.items():
        if stored[name].dtype != tensor.dtype or not bool((stored[name] == tensor).all()):
            raise Failure(f"{name} was not written as it is: try again, the disk may be failing")
    try:
        transformers = importlib.import_module("transformers")
    except Exception as error:  # one that does not fit the installed torch raises whatever it likes
        return f"not checked: transformers is not installed here ({error}); pip install 'jumok[hf]'"
    try:
        theirs = read_theirs(transformers, folder)
        found, expected = every_layer(model, theirs, numbers)
        same, counted = same_translations(model, theirs, numbers, made.never)
        alike = same_cuts(transformers, folder, source, target, numbers, made.tokenizer)
    except JumokError:
        raise
    except Exception as error:
        raise Failure(f"transformers {transformers.__version__} cannot compute what was written ({error})") from None
    difference, allowed = float((found - expected).abs().max()), LARGEST * max(1.0, float(expected.abs().max()))
    told = (
        f"max|Δ| from transformers {transformers.__version__} over all layers and scores is {difference:.1e}; "
        f"{same} of {counted} random texts are translated alike (beam {BEAM})"
    )
    if not difference <= allowed or same < AGREE * counted:
        raise Failure(f"{told}: that is not the same model (at most {allowed:.0e}, at least {AGREE:.1%})")
    return f"checked: {told}; texts are cut alike" if alike else f"checked: {told}"


def _card(run: RunFolder, recipe: Recipe, made: Outgoing, step: int, folder: Path, notes: list[str]) -> str:
    stored = run.checkpoints / f"step-{step}" / checkpoint.MODEL
    apart = 'PreTrainedTokenizerFast.from_pretrained("FOLDER/target")'
    return model_card(
        run,
        recipe,
        architecture="MarianMTModel",
        purpose="translation",
        usage=USAGE.format(tokenizer=made.tokenizer, writer=apart if (folder / "target").is_dir() else "tokenizer"),
        step=step,
        signatures={WEIGHTS: sha256(folder / WEIGHTS), "the run's checkpoint": sha256(stored)},
        notes=notes,
    )
