"""Whether an imported model computes what the library computes that its checkpoint comes from: both are given the same
random images (a BERT: the same random words), and the largest difference is told, of each layer and of what comes out.

The libraries are no part of this package. Where one is missing, that is said, and nothing is compared.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from jumok.data.batch import Sequences
from jumok.errors import BadInput, Failure
from jumok.interop.marian_check import compare_marian
from jumok.interop.tensors import read_tensors, tensor_files
from jumok.interop.timm_config import told_beside
from jumok.interop.timm_names import CLASS, ONLY_FOR_PRETRAINING, POSITIONS, REGISTERS
from jumok.models.bert import Bert, HiddenWords
from jumok.models.vit import ImageLabeller
from jumok.recipe import BertSection, TransformerSection, VitSection
from jumok.tasks.example_task import LABELS
from jumok.tasks.labelling import classes_of, read_labels
from jumok.text.tokenizer import Tokenizer
from jumok.training import checkpoint
from jumok.training.run import RunFolder

# difference of what is the same but for the order of sums in float32; larger numbers may differ by more
LARGEST = 1e-5
ROWS, WORDS = 4, 12

Pair = tuple[Tensor, Tensor]  # here and there
Compared = tuple[list[Pair], str]  # of each layer and, the last, of what comes out; and what that is


def verify_huggingface(folder: Path, run: Path) -> str:
    """A sentence about the difference; `Failure` where it is too large."""
    section = RunFolder.open(run).recipe().model
    if isinstance(section, TransformerSection):
        return _verified("transformers", folder, run, compare_marian)
    return _verified("transformers", folder, run, _bert if isinstance(section, BertSection) else _vit)


def verify_timm(path: Path, run: Path) -> str:
    return _verified("timm", path, run, _timm)


def _verified(library: str, source: Path, run: Path, compare: Callable[[Any, Path, RunFolder], Compared]) -> str:
    try:
        theirs = importlib.import_module(library)
    except Exception as error:  # one that does not fit the installed torch raises whatever it likes
        return f"not verified: {library} is not installed here ({error}); pip install {library}"
    try:
        with torch.no_grad():
            pairs, what = compare(theirs, source, RunFolder.open(run))
        differences = [float((here - there).abs().max()) for here, there in pairs]
        allowed = [LARGEST * max(1.0, float(there.abs().max())) for _, there in pairs]
    except (BadInput, Failure):
        raise
    except Exception as error:
        raise Failure(f"not verified: {library} cannot compute {source} ({error})") from None
    layers = ", ".join(f"{one:.1e}" for one in differences[:-1])
    told = f"the largest difference from {library} {theirs.__version__} in {what} is {differences[-1]:.1e}"
    told += f" (layer by layer: {layers})" * bool(layers)
    for number, (one, most) in enumerate(zip(differences, allowed, strict=True), 1):
        if not one <= most:
            where = f"layer {number}" if number < len(differences) else "the end"
            raise Failure(f"{told}: that is more than {most:.0e} in {where}; it is not what the checkpoint is there")
    return f"verified: {told}"


def _vit(transformers: Any, folder: Path, run: RunFolder) -> Compared:
    model, images = _imported(run)
    has_classifier = any(name.removeprefix("vit.") == "classifier.weight" for name in tensor_files(folder))
    kind = "ViTForImageClassification" if has_classifier else "ViTModel"
    theirs = _loaded(transformers, kind, folder)
    with _layers(model.reader.encoder.blocks, theirs) as pairs:
        said = theirs(pixel_values=_as_they_take_them(model.section, images))
        if has_classifier:
            last, what = (model(images), said.logits), "scores"
        else:
            last, what = (model.reader(images), said.last_hidden_state), "hidden states"
    return [*pairs, last], f"the {what} of {ROWS} random images"


def _timm(timm: Any, path: Path, run: RunFolder) -> Compared:
    (model, images), told = _imported(run), told_beside(path)
    files = tensor_files(path)
    tensors = read_tensors(files, [name for name in files if name not in ONLY_FOR_PRETRAINING])
    classes = len(tensors["head.weight"]) if "head.weight" in tensors else 0
    if told:
        given = {**told.arguments, "img_size": model.section.image, "num_classes": classes}
        theirs = timm.create_model(told.architecture, pretrained=False, **given)
    else:
        given = _arguments(model.section, tensors) | {"num_classes": classes}
        theirs = importlib.import_module("timm.models.vision_transformer").VisionTransformer(**given)
    theirs.load_state_dict(tensors)
    pixels = _as_they_take_them(model.section, images)
    theirs.eval()
    with _layers(model.reader.encoder.blocks, theirs) as pairs:
        if classes:
            last, what = (model(images), theirs(pixels)), "scores"
        else:
            last, what = (model.reader(images), theirs.forward_features(pixels)), "hidden states"
    return [*pairs, last], f"the {what} of {ROWS} random images"


def _arguments(section: VitSection, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """Of their VisionTransformer, for weights that come without a config.json."""
    return {
        "img_size": section.image, "patch_size": section.patch, "in_chans": section.channels,
        "global_pool": "token" if section.pooling == "class" else "avg", "embed_dim": section.width,
        "depth": section.layers, "num_heads": section.heads,
        "mlp_ratio": (section.feed_forward + 0.5) / section.width,  # which they multiply out and round down
        "qkv_bias": "blocks.0.attn.qkv.bias" in tensors, "init_values": section.layer_scale or None,
        "class_token": CLASS in tensors, "fc_norm": section.pooled_norm,
        "no_embed_class": tensors[POSITIONS].size(1) == section.max_positions,
        "reg_tokens": tensors[REGISTERS].size(1) if REGISTERS in tensors else 0,
    }  # fmt: skip


def _bert(transformers: Any, folder: Path, run: RunFolder) -> Compared:
    section, vocabulary = run.recipe().model, Tokenizer.load(run.tokenizer / "text").size
    assert isinstance(section, BertSection)
    model = HiddenWords(Bert(section, vocabulary))
    _load(model, run)
    words = torch.randint(1, vocabulary, (ROWS, min(WORDS, section.max_positions)))
    theirs = _loaded(transformers, "BertModel", folder)
    with _layers(model.reader.encoder.blocks, theirs) as pairs:
        last = model.reader(Sequences.pad(words.tolist())), theirs(input_ids=words).last_hidden_state
    return [*pairs, last], f"the hidden states of {ROWS} random texts"


@contextmanager
def _layers(ours: nn.ModuleList, theirs: nn.Module) -> Iterator[list[Pair]]:
    """What each layer gives while both compute, here and there: filled in the end."""
    stacks = (one for one in theirs.modules() if isinstance(one, nn.ModuleList | nn.Sequential))
    stack = next((one for one in stacks if len(one) == len(ours)), None)
    if stack is None:  # a version that keeps them otherwise: what comes out is compared all the same
        yield []
        return
    here, there, pairs = list[Tensor](), list[Tensor](), list[Pair]()
    hooks = [
        layer.register_forward_hook(
            lambda _m, _i, out, kept=kept: kept.append(out[0] if isinstance(out, tuple) else out)
        )
        for layers, kept in ((ours, here), (stack, there))
        for layer in layers
    ]
    try:
        yield pairs
    finally:
        for hook in hooks:
            hook.remove()
    pairs += [(one.reshape(other.shape), other) for one, other in zip(here, there, strict=True)]


def _loaded(transformers: Any, kind: str, folder: Path) -> Any:
    """In float32, as it is imported, and without a word on the way."""
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    return getattr(transformers, kind).from_pretrained(folder, local_files_only=True).float().eval()


def _imported(run: RunFolder) -> tuple[ImageLabeller, Tensor]:
    """The model that was written, and images for it."""
    section, file = run.recipe().model, run.path / LABELS
    assert isinstance(section, VitSection)
    model = ImageLabeller(section, classes_of(read_labels(file), file).size)
    _load(model, run)
    return model, torch.randint(256, (ROWS, section.channels, *section.image), dtype=torch.uint8)


def _load(model: nn.Module, run: RunFolder) -> None:
    found = run.checkpoints / "step-0"
    checkpoint.load_weights(model, load_file(found / checkpoint.MODEL), str(found))
    model.eval()


def _as_they_take_them(section: VitSection, images_BCHW: Tensor) -> Tensor:
    """Values from 0 to 1, with the mean taken off and divided by the deviation."""
    mean, deviation = (
        torch.tensor(level[: section.channels])[:, None, None] for level in (section.mean, section.deviation)
    )
    return (images_BCHW / 255 - mean) / deviation
