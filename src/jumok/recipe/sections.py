"""The parts of a recipe: data, tokenizer, training and search. The networks are in `models.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


class Section(BaseModel):
    """A part of a recipe: no unknown keys, no silent changes after it was checked."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)


def _as_list(value: object) -> object:
    """One is the shortcut for a list of one."""
    return value if isinstance(value, list) or value is None else [value]


def _as_list_or_none(value: object) -> object:
    return [] if value is None else _as_list(value)


def _tag_name(value: object) -> object:
    """`<2de>` and `2de` are the same tag."""
    return value.removeprefix("<").removesuffix(">") if isinstance(value, str) else value


def _by_label(value: Any) -> Any:
    """YAML takes a label for what it looks like: 0 is a number, and of yes, no, true and false the spelling is lost."""
    if not isinstance(value, dict):
        return value
    if any(isinstance(label, bool) for label in value):
        raise ValueError("labels such as yes, no, true and false must be in quotes: {'yes': 2}")
    return {str(label) if isinstance(label, int | float) else label: weight for label, weight in value.items()}


Shards = Annotated[list[str], BeforeValidator(_as_list)]
TagName = Annotated[str, BeforeValidator(_tag_name), Field(pattern=r"^[A-Za-z0-9_-]{1,32}$")]


Column = int | str


class FieldsSection(Section):
    """Where in a file of examples things are: names (with a header, JSONL) or numbers from 0; null: found by itself."""

    text: Column | None = Field(None, description="The text; of tagged sentences, the words; of pictures, their paths.")
    second: Column | None = Field(None, description="The second text, where examples are pairs.")
    label: Column | None = Field(None, description="The label, the number or the tags; of pictures, what they say.")


class Corpus(Section):
    """Sentence pairs (two parallel files, or one file with both sides), plain text, labelled examples, or the embedded
    grammar."""

    source: Shards = Field(
        [],
        description="Plain text, one sentence a line (.gz, .xz, .zst too); a list or pattern (parts/*.de) for shards.",
    )
    target: Shards = Field([], description="The translations, line by line; as many shards as `source` has.")
    file: Shards = Field([], description="TSV or JSONL with both sides in one file; a list or a pattern for shards.")
    text: Shards = Field(
        [], description="Plain text for a language model, read from beginning to end; a list or a pattern for shards."
    )
    examples: Shards = Field(
        [],
        description="Labelled examples: TSV, CSV, JSONL; tagged words (CoNLL, JSONL); questions (SQuAD's JSON, JSONL).",
    )
    images: Shards = Field(
        [],
        description="Images with their classes: a folder of folders, such a tar or zip, a CSV of paths, MNIST's or "
        "CIFAR's own files. Pictures of words: a folder or zip with a labels file, CSV, JSONL, LMDB.",
    )
    drawn: Literal["shapes"] | None = Field(None, description="Images that are drawn instead of read: shapes.")
    rendered: Literal["words"] | None = Field(
        None, description="Pictures of words that are made while the model learns (`render`): words."
    )
    fields: FieldsSection = Field(default_factory=FieldsSection, description="Where in `examples` things are.")
    columns: tuple[Column, Column] = Field(
        (0, 1), description="Where source and target are in `file`: column numbers (TSV) or keys (JSONL)."
    )
    grammar: str | None = Field(
        None,
        description="The embedded corpus instead of files: en-fr, en-ko or the other way round; en, fr or ko as text.",
    )
    pairs: int = Field(
        20_000, ge=1, description="How many pairs (lines, images) to take from the grammar (of what is drawn)."
    )
    split: Literal["train", "valid", "test"] | None = Field(
        None, description="The grammar's split; by itself train for training and valid for validation."
    )
    weight: int = Field(
        1, ge=1, description="Batches of this corpus in each round over all corpora; in validation, how much it counts."
    )
    alignments: str | None = Field(
        None,
        min_length=1,
        description="Which words of the pairs belong together (Pharaoh format, a line for each pair): training.align.",
    )
    tag: TagName | None = Field(
        None, description="Multilingual models: the language tag put before each source sentence (2de is <2de>)."
    )

    @model_validator(mode="after")
    def _one_kind_of_source(self) -> Corpus:
        files = [bool(self.source or self.target), bool(self.file), bool(self.text), bool(self.examples)]
        kinds = [*files, bool(self.images), self.grammar is not None, self.drawn is not None]
        kinds.append(self.rendered is not None)
        if sum(kinds) != 1:
            raise ValueError(
                "give exactly one of: source and target; file; text; examples; images; grammar; drawn; rendered"
            )
        if kinds[0] and len(self.source) != len(self.target):
            raise ValueError(
                f"source has {len(self.source)} file(s) and target has {len(self.target)}: they must pair up"
            )
        return self

    def resolved(self) -> Corpus:
        """With absolute paths, so that a run can be resumed from another folder."""
        names = ("source", "target", "file", "text", "examples", "images")
        absolute: dict[str, Any] = {name: [str(Path(p).absolute()) for p in getattr(self, name)] for name in names}
        if self.alignments is not None:
            absolute["alignments"] = str(Path(self.alignments).absolute())
        return self.model_copy(update=absolute)


Part = Annotated[float, Field(gt=0, lt=0.9)]


class SeriesSection(Section):
    """Numbers in the order of time: a column of CSV files, or the embedded series."""

    csv: Shards = Field(
        [], description="CSV file (parted by comma, semicolon or tab); a list for parts that follow each other in time."
    )
    column: int | str | None = Field(
        None, description="The column to forecast: its name or its number from 0; null: the only one with numbers."
    )
    time: int | str | None = Field(None, description="The column with the times; null: the first that holds dates.")
    generated: Literal["tides"] | None = Field(None, description="The embedded series instead of files: tides.")
    length: int = Field(3000, ge=100, le=1_000_000, description="How many values of the embedded series to take.")
    horizon: int = Field(24, ge=1, description="How many values to forecast at once.")
    window: int = Field(
        0, ge=0, description="How many values the model looks back at; 0: four seasons or horizons, about."
    )
    season: int = Field(
        0, ge=0, description="After how many values the series repeats itself; 0: found by itself; 1: it does not."
    )
    valid: Part = Field(0.1, description="Share of the series, before the test part, that chooses the checkpoint.")
    test: Part = Field(0.2, description="Share of the series, at its end, that the forecasts are scored on.")

    @model_validator(mode="after")
    def _one_kind_of_source(self) -> SeriesSection:
        if bool(self.csv) == (self.generated is not None):
            raise ValueError("give exactly one of: csv; generated")
        if self.generated is not None and (self.column is not None or self.time is not None):
            raise ValueError("column and time belong to csv: the embedded series has neither")
        if self.valid + self.test > 0.9:
            raise ValueError(f"valid {self.valid:g} and test {self.test:g} leave too little to train on")
        return self

    def resolved(self) -> SeriesSection:
        """With absolute paths, so that a run can be resumed from another folder."""
        return self.model_copy(update={"csv": [str(Path(path).absolute()) for path in self.csv]})


class Data(Section):
    train: Annotated[list[Corpus], BeforeValidator(_as_list)] = Field(
        [], description="What to learn from: a corpus, or a list of corpora mixed by their weights."
    )
    valid: Annotated[list[Corpus], BeforeValidator(_as_list_or_none)] = Field(
        [],
        description="What to validate on: a corpus, or a list whose numbers are averaged by weight. Without it "
        "`hold_out` pairs are kept back from the first corpus (of each tag).",
    )
    hold_out: int = Field(
        1000, ge=1, description="Pairs (of text: the last lines) kept back when `valid` is absent (at most 5 %)."
    )
    max_length: int = Field(
        256, ge=1, description="Longest sentence in tokens. Longer training pairs are left out and counted."
    )
    series: SeriesSection | None = Field(None, description="Forecasting: the numbers, in the place of `train`.")
    window: int = Field(
        128, ge=2, description="Language models and pretraining: how many tokens of running text they learn at once."
    )
    stride: int = Field(
        64, ge=1, description="Tokens that two windows on a text over max_length have in common (answers, tags)."
    )
    resize: Literal["crop", "squash", "pad"] = Field(
        "crop",
        description="Images of another size: the middle of them; all of them, out of shape; or all, with a border.",
    )
    documents: Literal["auto", "lines", "blank"] = Field(
        "auto",
        description="Pretraining: a document is each line, or all lines up to a blank one; auto: blank, if any is.",
    )


class TokenizerSection(Section):
    kind: Literal["bpe", "unigram", "word", "space", "character", "byte", "wordpiece", "sentencepiece"] = Field(
        "bpe",
        description="How text is cut: bpe, unigram, word, space (at spaces only, for text that is tokenised already), "
        "character, byte (byte-level BPE, lossless), or wordpiece (BERT's). Imported alone: sentencepiece.",
    )
    vocabulary: int = Field(8000, ge=8, description="Largest number of tokens (character sets may need fewer).")
    joint: bool = Field(False, description="One vocabulary for both languages instead of one for each.")
    lowercase: bool = Field(False, description="Lower-case all text (the output is then lower-case too).")
    sample: int = Field(1_000_000, ge=1, description="Train the tokenizer on at most this many evenly spaced lines.")
    source: str | None = Field(
        None, description="A tokenizer folder made by `jumok tokenizer`, for the source (or the text)."
    )
    target: str | None = Field(None, description="The same for the target.")


Share = Annotated[float, Field(ge=0, lt=1)]


class Masking(Section):
    """What is hidden from a model that learns a language by guessing words (Devlin et al. 2019)."""

    rate: float = Field(0.15, gt=0, lt=1, description="Share of the tokens that must be guessed.")
    hidden: float = Field(0.8, ge=0, le=1, description="Share of these that read [MASK]; 1: all of them.")
    other: float = Field(0.1, ge=0, le=1, description="Share of these that read another word; the rest stays as it is.")
    whole_words: bool = Field(False, description="Hide all tokens of a word, or none.")
    sentences: Literal["none", "next", "order"] = Field(
        "none",
        description="A second question: does the second half follow (next), or do the halves stand in order (order)?",
    )

    @model_validator(mode="after")
    def _possible(self) -> Masking:
        if self.hidden + self.other > 1 + 1e-9:
            raise ValueError(f"hidden {self.hidden:g} and other {self.other:g} are more than all")
        return self


class Training(Section):
    updates: int = Field(5000, ge=1, description="Stop after this many updates (`--minutes` sets it by itself).")
    batch_tokens: int = Field(4096, ge=1, description="Tokens in a batch: sentences times the longest, larger side.")
    batch_images: int = Field(128, ge=1, description="Images in a batch (task: vision, recognition).")
    accumulate: int = Field(1, ge=1, description="Batches whose gradients are added up before each update.")
    optimizer: Literal["adamw", "muon"] = Field(
        "adamw",
        description="AdamW; or Muon for the matrices of blocks and of a stem's convolutions, AdamW for the rest.",
    )
    matrices_rate: float = Field(
        1.0, gt=0, description="muon: the learning rate of these matrices, as a multiple of the others'."
    )
    learning_rate: float = Field(1e-3, gt=0, description="Peak learning rate of AdamW (schedule paper has its own).")
    betas: tuple[Share, Share] = Field((0.9, 0.98), description="AdamW's running averages.")
    epsilon: float = Field(1e-8, gt=0, description="AdamW's ε, which keeps it from dividing by zero (the paper: 1e-9).")
    weight_decay: float = Field(0.0, ge=0, description="Decoupled weight decay (matrices only, not biases).")
    clip: float = Field(1.0, ge=0, description="Largest gradient norm; 0 turns clipping off.")
    schedule: Literal["constant", "inverse-sqrt", "cosine", "linear", "plateau", "paper"] = Field(
        "cosine",
        description="How the learning rate falls after the warm-up; paper: width^-0.5 · min(t^-0.5, t · warmup^-1.5).",
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
    r_drop: float = Field(
        0.0, ge=0, description="R-Drop's α: each batch goes through twice, and both predictions must agree; 0: off."
    )
    align: float = Field(
        0.0,
        ge=0,
        description="How much one head of a Transformer learns to look where data.train.alignments say; 0: off.",
    )
    align_layer: int | None = Field(
        None, ge=0, description="The decoder layer of that head, counted from 0; without one the second to last."
    )
    class_weights: Annotated[Literal["none", "balanced"] | dict[str, float], BeforeValidator(_by_label)] = Field(
        "none", description="How much an example counts by its label: balanced, or {label: weight}."
    )
    layer_decay: float = Field(
        1.0, gt=0, le=1, description="Each layer below learns at this share of the rate of the one above; 1: all alike."
    )
    freeze: int = Field(0, ge=0, description="Layers from below, word vectors with them, that do not learn; 0: none.")
    bpe_dropout: Share = Field(
        0.0, description="Probability of dropping a merge when words are cut anew for each batch (bpe, byte); 0: off."
    )
    ema: Share = Field(
        0.0, description="Decay of a running average of the weights, validated and kept instead of them; 0: off."
    )
    average: int = Field(
        0, ge=0, description="At the end, average the weights of the last so many validations; 0: off."
    )
    validate_every: int = Field(500, ge=1, description="Updates between validations.")
    validate_sentences: int = Field(500, ge=1, description="Sentences translated for the metric at each validation.")
    metric: Literal["loss", "bleu", "chrf", "accuracy", "f1", "matthews", "pearson", "spearman", "exact"] = Field(
        "loss", description="What decides which checkpoint is the best."
    )
    patience: int = Field(0, ge=0, description="Validations without progress before stopping early; 0: never.")
    checkpoint_every: int = Field(500, ge=1, description="Updates between checkpoints (also at each validation).")
    keep: int = Field(2, ge=1, description="Newest checkpoints kept besides the best.")
    log_every: int = Field(20, ge=1, description="Updates between two lines of progress in metrics.jsonl.")
    precision: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="Numbers in matrix products; auto: bfloat16 on a GPU that has it, else float32."
    )
    pack: Literal["auto"] | bool = Field(
        "auto", description="Sentences end to end instead of padded (Transformers); auto: on a GPU."
    )
    compile: bool = Field(False, description="torch.compile: a minute of compiling, then faster updates.")
    graphs: Literal["auto"] | bool = Field(
        "auto", description="Replay updates as CUDA graphs; auto: on a GPU, where all shapes repeat."
    )
    checkpoint_activations: bool = Field(
        False, description="Compute each layer again in the backward pass: less memory, a third more time."
    )
    loss_chunk: int = Field(
        0, ge=0, description="Words whose scores over the vocabulary are in memory at once; 0: chosen by size."
    )
    skip_bad: int = Field(
        5, ge=0, description="How many updates that are no numbers or far too large may be left out before giving up."
    )
    shard: bool = Field(False, description="torchrun: weights and optimiser split over the processes (FSDP2).")
    tensorboard: bool = Field(False, description='Write TensorBoard events too (needs the "tensorboard" extra).')
    wandb: bool = Field(False, description='Send progress to Weights & Biases too (needs the "wandb" extra).')


WIDEST_BEAM = 10_000  # and as many outputs of one sentence
LONGEST_OUTPUT = 100_000  # tokens: room for all of them is made beforehand
LARGEST_RATIO = 1_000.0


class Search(Section):
    beam: int = Field(5, ge=1, le=WIDEST_BEAM, description="Hypotheses kept at each step; 1 is greedy.")
    length_penalty: float = Field(
        1.0, ge=0, le=10, description="Scores are divided by length to this power; 0: not at all."
    )
    coverage_penalty: float = Field(
        0.0, ge=0, le=100, description="What a source word that was hardly looked at costs; 0: nothing."
    )
    no_repeat_ngram: int = Field(0, ge=0, description="No so many tokens twice in the same order; 0: they may.")
    patience: float | None = Field(
        1.0, gt=0, description="Stop at this times `beam` finished hypotheses; null: when no other can win any more."
    )
    stopping: Literal["exact", "transformers"] = Field(
        "exact", description="When no other can win: surely; or as the library transformers guesses that."
    )
    max_ratio: float = Field(
        2.0, gt=0, le=LARGEST_RATIO, description="Longest output: this (at most 1000) times the source length …"
    )
    max_extra: int = Field(
        20, ge=1, le=LONGEST_OUTPUT, description="… plus this many tokens; at most 100000 tokens in all."
    )
    batch: int | None = Field(None, ge=1, description="Sentences translated at once; null: 32, on a GPU 256.")
