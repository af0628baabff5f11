"""A BERT checkpoint's folder as Hugging Face keeps it, read whole: the model's shape, its tokenizer, its weights.

Every tensor is held against `config.json`, so that what is returned fits `models.bert.Bert(section, vocabulary)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from jumok.errors import BadInput, shortly
from jumok.interop.bert import COUNTED, NAMES, encoder_weights, hidden_words_weights, section_of
from jumok.interop.json_file import read_object
from jumok.interop.tensors import not_read, read_tensors, tensor_files
from jumok.interop.wordpiece import filled, tokenizer_of
from jumok.recipe import BertSection
from jumok.text.tokenizer import Tokenizer

WORDS, WORDS_AGAIN, BIAS_AGAIN = "embedding.weight", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"
KINDS = ("bert", "vit", "marian")
POOLER = ("pooler.weight", "pooler.bias")
HEAD = ("transform.weight", "transform.bias", "norm.weight", "norm.bias", "bias")
HEADS = ("classifier.", "qa_outputs.")  # of work that a BERT was fine-tuned for
COUNTED_OUT = "embeddings.position_ids"  # 0, 1, 2, …
# the keys of config.json that a tensor's sizes are; of all others every size is hidden_size
SIZES = {
    WORDS: ("vocab_size", "hidden_size"),
    "positions.weight": ("max_position_embeddings", "hidden_size"),
    "segments.weight": ("type_vocab_size", "hidden_size"),
    "encoder.blocks.{}.feed_forward.inner.weight": ("intermediate_size", "hidden_size"),
    "encoder.blocks.{}.feed_forward.inner.bias": ("intermediate_size",),
    "encoder.blocks.{}.feed_forward.outer.weight": ("hidden_size", "intermediate_size"),
    "bias": ("vocab_size",),  # of the head
}


@dataclass(frozen=True)
class Imported:
    """What a checkpoint holds. All weights are float32, under the names that the models here have for them."""

    section: BertSection
    # as large as `vocabulary`: vectors that belong to no token have names which no text becomes
    tokenizer: Tokenizer
    vocabulary: int  # rows of the word vectors
    encoder: dict[str, Tensor]  # of `models.bert.Bert`; those of the pooler only where there is one
    hidden_words: dict[
        str, Tensor
    ]  # what `models.bert.HiddenWords` has besides its reader; empty: there is no such head
    ignored: list[str]  # tensors that are not read, by their names there
    notes: list[str]  # what its reader should know, in sentences

    @property
    def has_pooler(self) -> bool:
        return POOLER[0] in self.encoder


def kind_of(folder: Path) -> str:
    """Which kind of model a checkpoint's folder holds: bert, vit or marian."""
    where = folder / "config.json"
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder}: it is a file; a checkpoint of Hugging Face is a folder, with a config.json in it")
    if (folder / "recipe.yaml").is_file():
        raise BadInput(f"{folder}: it is a run of jumok already, and can be used as it is: --run {folder}")
    if not folder.is_dir():
        raise BadInput(
            f"{folder}: there is no such folder. Nothing is downloaded here: fetch the checkpoint first (hf download "
            "NAME --local-dir FOLDER), and give its folder"
        )
    if not where.is_file():
        raise BadInput(f"{folder}: no config.json there; a checkpoint of Hugging Face is a folder that has one")
    config = read_object(where)
    kind = config.get("model_type")
    if kind not in KINDS:
        hint = "; it is timm's: jumok import timm" if kind is None and "architecture" in config else ""
        raise BadInput(
            f"{where}: model_type is {shortly(kind)}; only {', '.join(KINDS[:-1])} and {KINDS[-1]} can be read "
            f"here{hint}"
        )
    return str(kind)


def read_checkpoint(folder: Path) -> Imported:
    """Everything in a folder with config.json, safetensors and a tokenizer; what does not fit together is named."""
    where = folder / "config.json"
    if not where.is_file():
        raise BadInput(f"{folder}: no config.json there; the checkpoint of a BERT is a folder that has one")
    config = read_object(where)
    section = section_of(config, str(where)).model_copy(update={"pooling": pooling_of(folder)})
    rows = config.get("vocab_size")
    if type(rows) is not int or rows < 1:
        raise BadInput(f"{where}: vocab_size is {shortly(rows)}; it must be the number of word vectors")
    files = tensor_files(folder)
    notes: list[str] = []
    try:
        encoder, head = _encoder_names(files, section, notes), _head_names(files, config, notes)
    except BadInput as error:
        raise BadInput(f"{folder}: {error}") from None
    tokenizer = tokenizer_of(folder)
    if tokenizer.size > rows:
        raise BadInput(
            f"{folder}: the tokenizer has {tokenizer.size:,} tokens, but config.json has vocab_size {rows:,}; "
            "they are not of the same model"
        )
    if tokenizer.size < rows:
        notes.append(f"{rows - tokenizer.size:,} of {rows:,} word vectors belong to no token; they are kept")
    used = {*encoder.values(), *head.values()}
    # what only repeats the word vectors and their bias is not missed
    copies = {WORDS_AGAIN, BIAS_AGAIN} if head else set()
    ignored = [name for name in files if name not in used | copies and not name.endswith(COUNTED_OUT)]
    notes += not_read(ignored)
    if any(name.startswith(HEADS) for name in ignored):
        notes.append(
            "what it was fine-tuned for (its classifier, tagger or question answerer) is NOT taken over: the run reads "
            "texts, and learns such work anew with jumok train classify|tag|answer --start RUN"
        )
    tensors = read_tensors(files, used)
    for ours, theirs in (*encoder.items(), *head.items()):
        _check_shape(tensors[theirs], ours, f"{files[theirs]}: {theirs}", config)
    return Imported(
        section,
        filled(tokenizer, rows),
        rows,
        {ours: tensors[theirs] for ours, theirs in encoder.items()},
        {ours: tensors[theirs] for ours, theirs in head.items()},
        ignored,
        notes,
    )


def _encoder_names(files: Iterable[str], section: BertSection, notes: list[str]) -> dict[str, str]:
    """Ours → theirs."""
    names = {name: name for name in files}
    found = encoder_weights(names)
    if WORDS_AGAIN in names:  # of tensors that share their numbers, only one may be there
        found.setdefault(WORDS, WORDS_AGAIN)
    wanted = list(_wanted(section, len(names) + 1))
    if not found.keys() & {*POOLER}:
        notes.append("there is no pooler: the vector that stands for a whole text has yet to be learned")
        wanted = [ours for ours in wanted if ours not in POOLER]
    missing = [ours for ours in wanted if ours not in found]
    if missing:
        layers = f" (config.json has num_hidden_layers {section.layers})" if COUNTED.search(missing[0]) else ""
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise BadInput(f"there is no tensor {_theirs(missing[0])}{more}{layers}; fetch the weights again")
    return {ours: found[ours] for ours in wanted}


def _head_names(files: Iterable[str], config: Mapping[str, Any], notes: list[str]) -> dict[str, str]:
    """Ours → theirs; nothing, where there is no head or none that can be computed here."""
    names = {name: name for name in files}
    head = hidden_words_weights(names)
    if not head:
        return {}
    if config.get("tie_word_embeddings") is False:
        notes.append("the head that guesses hidden words has word vectors of its own (tie_word_embeddings): not read")
        return {}
    if BIAS_AGAIN in names:
        head.setdefault("bias", BIAS_AGAIN)
    for ours in HEAD:
        if ours not in head:
            raise BadInput(f"the head that guesses hidden words (cls.predictions…) has no tensor for its {ours}")
    return head


def _wanted(section: BertSection, most: int) -> Iterator[str]:
    """The names of all weights; `most` keeps the number of layers that a file claims within bounds."""
    for ours in NAMES.values():
        kinds = ("weight",) if ours in ("embedding", "positions", "segments") else ("weight", "bias")
        if ours == "segments" and not section.segments:
            continue
        for layer in range(min(section.layers, most) if "{}" in ours else 1):
            for kind in kinds:
                yield f"{ours.format(layer)}.{kind}"


def _theirs(ours: str) -> str:
    """What they call a weight of ours."""
    module, _, kind = ours.rpartition(".")
    numbers = COUNTED.findall(module)
    pattern = COUNTED.sub(".{}.", module)
    return f"{next(theirs for theirs, name in NAMES.items() if name == pattern).format(*numbers)}.{kind}"


def _check_shape(tensor: Tensor, ours: str, where: str, config: Mapping[str, Any]) -> None:
    pattern = COUNTED.sub(".{}.", ours)
    one_size = pattern.endswith("bias") or "norm" in pattern
    keys = SIZES.get(pattern) or (("hidden_size",) if one_size else ("hidden_size", "hidden_size"))
    found, expected = tuple(tensor.shape), tuple(config[key] for key in keys)
    if found != expected:
        unequal = [key for key, have, want in zip(keys, found, expected, strict=False) if have != want] or keys
        told = " and ".join(f"{key} {shortly(config[key])}" for key in dict.fromkeys(unequal))
        raise BadInput(
            f"{where} is {_product(found)}, but config.json asks for {_product(expected)} ({told}); "
            "one of the two files is of another model"
        )


def _product(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape)) or "one number"


def pooling_of(folder: Path) -> str:
    """What stands for a text: a folder of Sentence Transformers says it beside the model."""
    where = folder / "1_Pooling" / "config.json"
    return "mean" if where.is_file() and read_object(where).get("pooling_mode_mean_tokens") is True else "first"
