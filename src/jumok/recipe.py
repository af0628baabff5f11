"""The typed description of a run: everything that decides its result is in here.

Every field has a description; the same words are its help in `jumok recipes NAME`, in `jumok recipes --schema` and in
the error messages. Unknown keys are refused with the nearest right one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from jumok.errors import BadInput, did_you_mean

FORMAT: Literal[1] = 1


class Section(BaseModel):
    """A part of a recipe: no unknown keys, no silent changes after it was checked."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)


def _as_list(value: object) -> object:
    """One is the shortcut for a list of one."""
    return value if isinstance(value, list) or value is None else [value]


Shards = Annotated[list[str], BeforeValidator(_as_list)]


class Corpus(Section):
    """Sentence pairs: two parallel files, or one file with both sides, or the embedded grammar."""

    source: Shards = Field([], description="Plain text, one sentence a line (.gz, .xz, .zst too); a list for shards.")
    target: Shards = Field([], description="The translations, line by line; as many shards as `source` has.")
    file: Shards = Field([], description="TSV or JSONL with both sides in one file; a list for shards.")
    columns: tuple[int | str, int | str] = Field(
        (0, 1), description="Where source and target are in `file`: column numbers (TSV) or keys (JSONL)."
    )
    grammar: str | None = Field(
        None, description="The embedded corpus instead of files: en-fr, en-ko, or the other way round."
    )
    pairs: int = Field(20_000, ge=1, description="How many pairs to take from the grammar.")
    split: Literal["train", "valid", "test"] | None = Field(
        None, description="The grammar's split; by itself train for training and valid for validation."
    )
    weight: int = Field(1, ge=1, description="How many batches this corpus gives in each round over all corpora.")

    @model_validator(mode="after")
    def _one_kind_of_source(self) -> Corpus:
        kinds = [bool(self.source or self.target), bool(self.file), self.grammar is not None]
        if sum(kinds) != 1:
            raise ValueError("give exactly one of: source and target; file; grammar")
        if kinds[0] and len(self.source) != len(self.target):
            raise ValueError(
                f"source has {len(self.source)} file(s) and target has {len(self.target)}: they must pair up"
            )
        return self

    def resolved(self) -> Corpus:
        """With absolute paths, so that a run can be resumed from another folder."""
        absolute = {
            name: [str(Path(p).absolute()) for p in getattr(self, name)] for name in ("source", "target", "file")
        }
        return self.model_copy(update=absolute)


class Data(Section):
    train: Annotated[list[Corpus], BeforeValidator(_as_list)] = Field(
        min_length=1, description="What to learn from: a corpus, or a list of corpora mixed by their weights."
    )
    valid: Corpus | None = Field(
        None, description="What to validate on. Without it `hold_out` pairs are kept back from the first corpus."
    )
    hold_out: int = Field(
        1000, ge=1, description="Pairs kept back for validation when `valid` is absent (at most 5 %)."
    )
    max_length: int = Field(
        256, ge=1, description="Longest sentence in tokens. Longer training pairs are left out and counted."
    )


class TokenizerSection(Section):
    kind: Literal["bpe", "unigram", "word", "character", "byte"] = Field(
        "bpe", description="How text is cut: bpe, unigram, word, character, or byte (byte-level BPE, lossless)."
    )
    vocabulary: int = Field(8000, ge=8, description="Largest number of tokens (character sets may need fewer).")
    joint: bool = Field(False, description="One vocabulary for both languages instead of one for each.")
    lowercase: bool = Field(False, description="Lower-case all text (the output is then lower-case too).")
    sample: int = Field(1_000_000, ge=1, description="Train the tokenizer on at most this many evenly spaced lines.")
    source: str | None = Field(None, description="A tokenizer folder made by `jumok tokenizer`, for the source.")
    target: str | None = Field(None, description="The same for the target.")


class Seq2SeqSection(Section):
    """Recurrent encoder–decoder: Sutskever et al. 2014, Bahdanau et al. 2015, Luong et al. 2015."""

    kind: Literal["seq2seq"] = Field("seq2seq", description="The family of models.")
    cell: Literal["rnn", "lstm", "gru"] = Field("lstm", description="The recurrent cell.")
    embedding: int = Field(256, ge=1, description="Width of the word vectors.")
    width: int = Field(512, ge=1, description="Width of the hidden state (of both directions together).")
    layers: int = Field(2, ge=1, description="Stacked recurrent layers, in encoder and decoder each.")
    bidirectional: bool = Field(False, description="Let the encoder read in both directions.")
    attention: Literal["none", "luong", "bahdanau"] = Field(
        "luong",
        description="none: the final state is all the decoder gets; luong: after the step; bahdanau: before it.",
    )
    scorer: str = Field(
        "general", description="Score of query and key: dot, scaled-dot, general, additive, location, or your own."
    )
    input_feeding: bool = Field(False, description="Luong only: feed s̃_t into the next step (slower, often better).")
    reverse_source: bool = Field(False, description="Read the source backwards (Sutskever's trick without attention).")
    dropout: float = Field(0.3, ge=0.0, lt=1.0, description="On embeddings, between layers, and before the softmax.")
    forget_bias: float = Field(1.0, description="Starting bias of the LSTM's forget gate (0 is PyTorch's own).")
    tie_embeddings: bool = Field(
        False, description="Share the decoder's word vectors with its output layer (a projection bridges the widths)."
    )
    max_source: int = Field(512, ge=1, description="Longest source the location scorer can address, in tokens.")
    written_out: bool = Field(False, description="Compute the cells from their equations instead of the fused kernel.")

    @model_validator(mode="after")
    def _possible(self) -> Seq2SeqSection:
        if self.bidirectional and self.width % 2:
            raise ValueError(f"width {self.width} must be even when bidirectional is on (half for each direction)")
        if self.input_feeding and self.attention != "luong":
            raise ValueError(f"input_feeding belongs to luong attention, not to attention: {self.attention}")
        return self


Share = Annotated[float, Field(ge=0, lt=1)]


class Training(Section):
    updates: int = Field(5000, ge=1, description="Stop after this many updates (`--minutes` sets it by itself).")
    batch_tokens: int = Field(4096, ge=1, description="Tokens in a batch: sentences times the longest, larger side.")
    accumulate: int = Field(1, ge=1, description="Batches whose gradients are added up before each update.")
    learning_rate: float = Field(1e-3, gt=0, description="Peak learning rate of AdamW.")
    betas: tuple[Share, Share] = Field((0.9, 0.98), description="AdamW's running averages.")
    weight_decay: float = Field(0.0, ge=0, description="Decoupled weight decay (matrices only, not biases).")
    clip: float = Field(1.0, ge=0, description="Largest gradient norm; 0 turns clipping off.")
    schedule: Literal["constant", "inverse-sqrt", "cosine", "linear", "plateau"] = Field(
        "cosine", description="How the learning rate falls after the warm-up."
    )
    warmup: int = Field(
        200, ge=0, description="Updates over which the learning rate rises from 0 (at most a quarter of all)."
    )
    plateau_patience: int = Field(2, ge=0, description="plateau: validations without progress before a cut.")
    plateau_factor: float = Field(0.5, gt=0, lt=1, description="plateau: what the learning rate is multiplied by.")
    label_smoothing: float = Field(
        0.1, ge=0, lt=1, description="Share of the target probability spread over all words."
    )
    teacher_forcing: float = Field(
        1.0, ge=0, le=1, description="Share of steps fed the true word; below 1 the model's own (scheduled sampling)."
    )
    validate_every: int = Field(500, ge=1, description="Updates between validations.")
    validate_sentences: int = Field(500, ge=1, description="Sentences translated for the metric at each validation.")
    metric: Literal["loss", "bleu", "chrf"] = Field("loss", description="What decides which checkpoint is the best.")
    patience: int = Field(0, ge=0, description="Validations without progress before stopping early; 0: never.")
    checkpoint_every: int = Field(500, ge=1, description="Updates between checkpoints (also at each validation).")
    keep: int = Field(2, ge=1, description="Newest checkpoints kept besides the best.")
    log_every: int = Field(20, ge=1, description="Updates between two lines of progress in metrics.jsonl.")
    tensorboard: bool = Field(False, description='Write TensorBoard events too (needs the "tensorboard" extra).')


class Search(Section):
    beam: int = Field(5, ge=1, description="Hypotheses kept at each step; 1 is greedy.")
    length_penalty: float = Field(
        1.0, ge=0, le=10, description="Scores are divided by length to this power; 0: not at all."
    )
    patience: float | None = Field(
        1.0, gt=0, description="Stop at this times `beam` finished hypotheses; null: when no other can win any more."
    )
    max_ratio: float = Field(2.0, gt=0, description="Longest output: this times the source length …")
    max_extra: int = Field(20, ge=1, description="… plus this many tokens.")
    batch: int = Field(32, ge=1, description="Sentences translated at once.")


class Recipe(Section):
    """The whole description of a run."""

    format: Literal[1] = Field(FORMAT, description="Version of this file's layout.")
    task: Literal["translation"] = Field("translation", description="What is learned.")
    seed: int = Field(1, ge=0, lt=2**63, description="All randomness derives from it.")
    device: Literal["auto", "cpu", "cuda", "mps"] = Field("auto", description="Where to compute.")
    threads: int = Field(
        0, ge=0, description="CPU threads; 0: as many as PyTorch chooses (the cores, or OMP_NUM_THREADS)."
    )
    exact: bool = Field(True, description="On a GPU: deterministic kernels, so that a resumed run is bit-identical.")
    data: Data = Field(description="What to learn from.")
    tokenizer: TokenizerSection = Field(default_factory=TokenizerSection, description="How text becomes tokens.")
    model: Seq2SeqSection = Field(default_factory=Seq2SeqSection, description="The network.")
    training: Training = Field(default_factory=Training, description="How it learns.")
    search: Search = Field(default_factory=Search, description="How it translates.")

    @model_validator(mode="after")
    def _fits_together(self) -> Recipe:
        if self.model.scorer == "location" and self.model.attention != "none":
            needed = self.data.max_length + 1  # with <eos>
            if self.model.max_source < needed:
                raise ValueError(
                    f"model.max_source {self.model.max_source} is less than data.max_length + 1 = {needed}: "
                    "the location scorer could not address the longest sentences"
                )
        return self


# ---------------------------------------------------------------- reading


def names() -> list[str]:
    """The recipes that ship with the package."""
    return sorted(p.name.removesuffix(".yaml") for p in _folder().iterdir() if p.name.endswith(".yaml"))


def _folder() -> Any:
    return resources.files("jumok") / "recipes"


def read(name: str, overrides: Sequence[str] = ()) -> Recipe:
    """A shipped recipe by name, or a YAML file by path, with `key.path=value` overrides."""
    text, origin = _text(name)
    try:
        raw = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadInput(f"{origin}: not valid YAML: {error}") from None
    if not isinstance(raw, dict):
        raise BadInput(f"{origin}: a recipe is a mapping of keys (data:, model:, …), this is {type(raw).__name__}")
    for override in overrides:
        _override(raw, override)
    _drop_foreign_validation(raw, overrides)
    return check(raw, origin)


def _drop_foreign_validation(raw: dict[str, Any], overrides: Sequence[str]) -> None:
    """Who brings training files is not validated on the recipe's own grammar: it would say nothing about them."""
    keys = [override.partition("=")[0].split(".") for override in overrides]
    brings_files = any(key[:2] == ["data", "train"] and key[-1] in ("source", "target", "file") for key in keys)
    names_validation = any(key[:2] == ["data", "valid"] for key in keys)
    valid = raw["data"].get("valid") if isinstance(raw.get("data"), dict) else None
    if brings_files and not names_validation and isinstance(valid, dict) and "grammar" in valid:
        raw["data"]["valid"] = None


def about(name: str) -> str:
    """What a recipe is, in its own words: its first comment line."""
    first = _text(name)[0].partition("\n")[0]
    return first.removeprefix("#").strip() if first.startswith("#") else name


def _text(name: str) -> tuple[str, str]:
    path = Path(name)
    if name in names():
        return (_folder() / f"{name}.yaml").read_text(encoding="utf-8"), f"recipe {name}"
    if not path.is_file():
        hint = did_you_mean(name, names())
        raise BadInput(f'no recipe "{name}": it is neither a file nor a shipped recipe.{hint} See: jumok recipes')
    try:
        return path.read_text(encoding="utf-8"), name
    except UnicodeDecodeError as error:
        raise BadInput(f"{name}: not UTF-8 at byte {error.start}") from None


def check(raw: dict[str, Any], origin: str) -> Recipe:
    """Turn pydantic's errors into sentences about the user's keys."""
    try:
        return Recipe.model_validate(raw)
    except ValidationError as error:
        lines = [_explain_error(item, raw) for item in error.errors()]
        raise BadInput(f"{origin}: " + "\n  ".join(lines)) from None


def _explain_error(item: Any, raw: Any) -> str:
    location = [part for part in item["loc"] if not (isinstance(part, str) and part.startswith("function-"))]
    path = ".".join(str(part) for part in location)
    if item["type"] == "extra_forbidden":
        section = _section_at(location[:-1])
        return f'unknown key "{path}".{did_you_mean(str(location[-1]), section.model_fields)}'
    if item["type"] == "missing":
        return f'missing key "{path}"'
    message = str(item["msg"]).removeprefix("Value error, ")
    given = "" if isinstance(item["input"], dict | list) else f" (given: {item['input']!r})"
    return f"{path}: {message}{given}" if path else message


def _section_at(location: Sequence[str | int]) -> type[BaseModel]:
    """The model class a key path leads to."""
    section: type[BaseModel] = Recipe
    for part in location:
        if isinstance(part, int):
            continue
        section = next(_sections(section.model_fields[part].annotation))
    return section


def _sections(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in getattr(annotation, "__args__", ()):
        yield from _sections(argument)


def _override(raw: dict[str, Any], override: str) -> None:
    """Apply one `a.b.c=value`; the value is read as YAML."""
    path, equals, text = override.partition("=")
    if not equals or not path:
        raise BadInput(f'"{override}" is not an override: write key=value, for example model.width=512')
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadInput(f"{path}: the value is not valid YAML: {error}") from None
    assign(raw, path.split("."), value)


def assign(raw: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    """Set a key in nested mappings. `data.train.source` means the first corpus; naming files replaces the grammar."""
    place: Any = raw
    data = raw.get("data")
    if isinstance(data, dict) and isinstance(data.get("train"), dict):
        data["train"] = [data["train"]]  # so that data.train.0.source works for the shortcut too
    for depth, key in enumerate(keys):
        if isinstance(place, list) and not key.isdigit():
            place = place[0] if place else {}
        last = depth == len(keys) - 1
        index: Any = int(key) if isinstance(place, list) else key
        if isinstance(place, list) and not 0 <= index < len(place):
            raise BadInput(f'"{".".join(keys)}": there is no entry {index} (the list has {len(place)})')
        if not isinstance(place, dict | list):
            raise BadInput(f'"{".".join(keys)}": "{".".join(keys[:depth])}" has no keys of its own')
        if last:
            if key in ("source", "target", "file") and isinstance(place, dict):
                place.pop("grammar", None)
            place[index] = value
        else:
            if isinstance(place, dict) and place.get(index) is None:
                place[index] = {}
            place = place[index]


# ---------------------------------------------------------------- writing


def dump(recipe: Recipe) -> str:
    """The resolved recipe as YAML, every key present."""
    return yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=100)


def explain(recipe: Recipe) -> str:
    """The recipe as YAML with every key's description beside it."""
    lines: list[str] = []
    _explain_section(recipe, 0, lines)
    return "\n".join(lines) + "\n"


def _explain_section(section: BaseModel, depth: int, lines: list[str]) -> None:
    indent = "  " * depth
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        about = field.description or ""
        if isinstance(value, BaseModel):
            lines += ["", f"{indent}# {about}"] if depth == 0 else [f"{indent}# {about}"]
            lines.append(f"{indent}{name}:")
            _explain_section(value, depth + 1, lines)
        elif isinstance(value, list) and value and isinstance(value[0], BaseModel):
            lines += [f"{indent}# {about}", f"{indent}{name}:"]
            for item in value:
                start = len(lines)
                _explain_section(item, depth + 2, lines)
                lines[start] = f"{indent}  - {lines[start].lstrip()}"
        else:
            text = yaml.safe_dump(_plain(value), default_flow_style=True, allow_unicode=True, width=10_000)
            text = text.removesuffix("\n").removesuffix("\n...")
            lines.append(f"{indent}{name}: {text}".ljust(38) + f"  # {about}")


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else copy.copy(value)
