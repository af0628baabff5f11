"""A run as ONNX files: `jumok export onnx`. Whole and proved, or not there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torch import nn

import jumok
from jumok.errors import BadInput
from jumok.files import sha256
from jumok.interop.export_folder import check_out, new_folder
from jumok.interop.model_card import CARD, model_card
from jumok.interop.onnx_graph import Graph, check, need_onnx, write
from jumok.interop.onnx_int8 import check_precision, quantise
from jumok.interop.onnx_pictures import labeller_graph, recognizer_graph
from jumok.interop.onnx_readers import reader_graph
from jumok.interop.onnx_readings import rounded_readings, told_of, verify_readings
from jumok.interop.onnx_translator import (
    SPECIAL_IDS,
    agreement,
    agreement_rounded,
    asked_of,
    best_of,
    known,
    verify_steps,
    write_translator,
)
from jumok.interop.outgoing import load_run
from jumok.interop.probe import probe_rows
from jumok.interop.usage import onnx_usage
from jumok.models.bert import Bert, HiddenWords
from jumok.models.build import build
from jumok.models.permuted import PermutedRecognizer
from jumok.models.reader import TextLabeller, WordLabeller
from jumok.models.recognizer import build_recognizer
from jumok.models.recognizer_decoders import WritingRecognizer
from jumok.models.vit import ImageLabeller
from jumok.recipe import BertSection, Recipe, RecognizerSection, RecurrentReaderSection, VitSection
from jumok.recipe.whole import LABELLED
from jumok.tasks.engine_onnx import CONFIG, ENCODER, FORMAT, STEP, VERSION, stepper_of
from jumok.tasks.example_task import LABELS
from jumok.tasks.labelling import classes_of, read_labels
from jumok.tasks.recognition import CHARSET, read_charset
from jumok.tasks.vocabulary import load_tokenizers
from jumok.text.tokenizer import Tokenizer
from jumok.training.run import RunFolder

MODEL = "model.onnx"
PROBES = 200  # sentences that are translated twice
UNROUNDED = "Nothing was written; use --precision float32"
ROUNDED = 1.0  # of the largest number: what is further off in int8 is no rounding


def export_onnx(run: RunFolder, out: Path, probe: Sequence[str] = (), precision: str = "float32") -> list[str]:
    """Write a run as ONNX; what its user should know, the check last. `probe`: sentences to check a translator with.

    What is written in int8 is proved in float32 before, and may then be no further from it than rounding brings it.
    """
    check_precision(precision)
    recipe = run.recipe()
    need_onnx()
    check_out(out, "onnx")
    if probe and recipe.task != "translation":
        raise BadInput(f"--probe: sentences to translate, and {run.path} does not ({recipe.task}). Leave --probe out")
    if recipe.task == "translation":
        return _translator(run, recipe, out, probe, precision)
    if recipe.task in ("pretraining", *LABELLED):
        return _reader(run, recipe, out, precision)
    if recipe.task in ("vision", "recognition"):
        return _pictures(run, recipe, out, precision)
    raise BadInput(
        f"task {recipe.task}: {run.path} cannot be exported to ONNX; runs that translate, read texts (BERT), tell "
        "images apart or read words in pictures can"
    )


def _translator(run: RunFolder, recipe: Recipe, out: Path, probe: Sequence[str], precision: str) -> list[str]:
    source, target = load_tokenizers(run.tokenizer, recipe.tokenizer.joint)
    model = known(build(recipe.model, source.size, target.size))
    step, notes = load_run(run, model)
    rows = probe_rows(recipe, source, probe, PROBES)
    with new_folder(out, "onnx") as folder:
        config, difference = write_translator(model, folder)
        config["tags"] = list(source.tags)
        config["search"] = recipe.search.model_dump(mode="json")
        write_config(folder, {**config, "task": recipe.task, "step": step, "precision": precision})
        source.save(folder / "tokenizer" / "source")
        target.save(folder / "tokenizer" / "target")
        stepper = stepper_of(folder)
        difference = max(difference, verify_steps(model, stepper))
        asked = asked_of(model, rows)
        here = best_of(model, asked)
        told = agreement(model, stepper, asked, here)
        told = f"verified: {told}; the largest difference of a number is {difference:.1e}"
        if precision == "int8":
            quantise(folder)
            told = f"{told}; {agreement_rounded(stepper_of(folder), asked, here, UNROUNDED)}"
        notes += [_size(model, precision), told]
        card = model_card(
            run,
            recipe,
            architecture="ONNX",
            purpose="translation",
            usage=onnx_usage(config, source, target),
            step=step,
            signatures={name: sha256(folder / name) for name in (ENCODER, STEP)},
            notes=notes,
            library="onnx",
        )
        (folder / CARD).write_text(card, encoding="utf-8", newline="\n")
    return notes


def _reader(run: RunFolder, recipe: Recipe, out: Path, precision: str) -> list[str]:
    section, file = recipe.model, run.path / LABELS
    tokenizer = Tokenizer.load(run.tokenizer / "text")
    assert isinstance(section, BertSection | RecurrentReaderSection)
    about: dict[str, Any] = {} if recipe.task == "pretraining" else {"labels": read_labels(file)}
    model: HiddenWords | TextLabeller | WordLabeller
    if recipe.task == "pretraining":
        assert isinstance(section, BertSection)
        model = HiddenWords(Bert(section, tokenizer.size), order=recipe.masking.sentences != "none")
    elif recipe.task == "answering":
        model = WordLabeller(section, tokenizer.size, 2)
    elif recipe.task == "tagging":
        model = WordLabeller(section, tokenizer.size, classes_of(about["labels"], file).size)
    else:
        count = 1 if recipe.task == "regression" else classes_of(about["labels"], file).size
        model = TextLabeller(section, tokenizer.size, count)
    longest = recipe.data.window if recipe.task == "pretraining" else recipe.data.max_length
    step, notes = load_run(run, model)
    graph = reader_graph(model, longest)
    about |= {
        "max_length": longest, "vocabulary": tokenizer.size, "special_ids": asdict(tokenizer.specials), "step": step
    }  # fmt: skip
    with new_folder(out, "onnx") as folder:
        tokenizer.save(folder / "tokenizer" / "text")
        told = _one(graph, folder, {"kind": "reader", "task": recipe.task, **about}, precision)
    return [*notes, _size(model, precision), told]


def _pictures(run: RunFolder, recipe: Recipe, out: Path, precision: str) -> list[str]:
    section, about = recipe.model, dict[str, Any]()
    model: ImageLabeller | Any
    if isinstance(section, VitSection):
        labels = read_labels(run.path / LABELS)
        model, about["labels"] = ImageLabeller(section, classes_of(labels, run.path / LABELS).size), labels
    else:
        assert isinstance(section, RecognizerSection)
        charset = read_charset(run.path / CHARSET)
        model, about["charset"] = build_recognizer(section, charset), CHARSET
        about |= {"characters": charset.size, "special_ids": SPECIAL_IDS, "max_length": section.max_length}
        about["reads"] = "columns" if section.decoder == "ctc" else "places"
    step, notes = load_run(run, model)
    graph = labeller_graph(model) if isinstance(model, ImageLabeller) else recognizer_graph(model)
    about |= {"channels": section.channels, "image": list(section.image), "resize": recipe.data.resize, "step": step}
    with new_folder(out, "onnx") as folder:
        if "charset" in about:
            shutil.copyfile(run.path / CHARSET, folder / CHARSET)
        kind = "image classifier" if isinstance(model, ImageLabeller) else "word reader"
        told = _one(graph, folder, {"kind": kind, "task": recipe.task, **about}, precision, model)
    return [*notes, _size(model, precision), told]


def _one(graph: Graph, folder: Path, about: dict[str, Any], precision: str, model: nn.Module | None = None) -> str:
    """model.onnx and config.json; a sentence about the check. `model`, of one that writes words: what it reads itself
    is compared, too."""
    write(graph, folder / MODEL)
    if isinstance(model, PermutedRecognizer | WritingRecognizer):
        told = told_of(verify_readings(model, graph, folder / MODEL))
    else:
        difference = check(graph, folder / MODEL)
        told = f"verified: the largest difference from PyTorch in {', '.join(graph.outputs)} is {difference:.1e}"
    write_config(folder, {**about, "precision": precision, "files": {MODEL: graph.described()}})
    if precision == "int8":
        quantise(folder)
        if isinstance(model, PermutedRecognizer | WritingRecognizer):
            return f"{told}; {rounded_readings(graph, folder / MODEL, ROUNDED)}"
        told = f"{told}; written in int8, it is {check(graph, folder / MODEL, ROUNDED):.1e}"
    return told


def write_config(folder: Path, about: dict[str, Any]) -> None:
    content = {"format": FORMAT, "version": VERSION, "jumok": jumok.__version__, **about}
    (folder / CONFIG).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _size(model: nn.Module, precision: str) -> str:
    return f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters in {precision}"
