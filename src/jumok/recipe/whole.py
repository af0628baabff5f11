"""The whole description of a run."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from jumok.recipe.kinds import ModelSection
from jumok.recipe.models import (
    BertSection,
    RecurrentReaderSection,
    Seq2SeqSection,
    TransformerLanguageSection,
    TransformerSection,
    VitSection,
)
from jumok.recipe.recognition import CharsetSection, RecognizerSection, Rendering
from jumok.recipe.sections import Corpus, Data, Masking, Search, Section, TokenizerSection, Training
from jumok.recipe.vision import Augmentation

FORMAT: Literal[1] = 1
Task = Literal[
    "translation", "language", "forecasting", "pretraining", "classification", "regression", "tagging", "answering",
    "vision", "recognition",
]  # fmt: skip
TEXTUAL = ("language", "pretraining")  # learn from running text
PICTORIAL = ("vision", "recognition")  # learn from pictures
LABELLED = ("classification", "regression", "tagging", "answering")  # learn from examples
METRICS: dict[str, tuple[str, ...]] = {  # by task: what may decide which checkpoint is the best, besides the loss
    "translation": ("bleu", "chrf"),
    "pretraining": ("accuracy",),
    "classification": ("accuracy", "f1", "matthews"),
    "regression": ("pearson", "spearman"),
    "tagging": ("accuracy", "f1"),
    "answering": ("exact", "f1"),
    "vision": ("accuracy",),
    "recognition": ("accuracy",),
}


class Recipe(Section):
    """The whole description of a run."""

    format: Literal[1] = Field(FORMAT, description="Version of this file's layout.")
    task: Task = Field("translation", description="What is learned.")
    seed: int = Field(1, ge=0, lt=2**63, description="All randomness derives from it.")
    device: Literal["auto", "cpu", "cuda", "mps"] = Field("auto", description="Where to compute.")
    threads: int = Field(
        0, ge=0, description="CPU threads; 0: as many as PyTorch chooses (the cores, or OMP_NUM_THREADS)."
    )
    exact: bool = Field(True, description="On a GPU: deterministic kernels, so that a resumed run is bit-identical.")
    start: str | None = Field(
        None,
        min_length=1,
        description="A run folder of a pretrained model to start from: its network, vocabulary and weights.",
    )
    imported: str | None = Field(None, description="Where the weights of a run come from that was not trained here.")
    data: Data = Field(description="What to learn from.")
    tokenizer: TokenizerSection = Field(default_factory=TokenizerSection, description="How text becomes tokens.")
    model: ModelSection = Field(default_factory=Seq2SeqSection, description="The network.")
    augment: Augmentation = Field(
        default_factory=Augmentation, description="Vision: how images are varied while the model learns."
    )
    charset: CharsetSection = Field(
        default_factory=CharsetSection, description="Recognition: the characters that can be read."
    )
    render: Rendering = Field(
        default_factory=Rendering, description="Recognition: how pictures of words are made to learn from."
    )
    masking: Masking = Field(default_factory=Masking, description="Pretraining: what is hidden from the model.")
    training: Training = Field(default_factory=Training, description="How it learns.")
    search: Search = Field(default_factory=Search, description="How it translates.")

    @model_validator(mode="after")
    def _fits_together(self) -> Recipe:
        self._data_fit()
        if isinstance(self.model, Seq2SeqSection):
            self._location_reaches(self.model)
        elif self.training.teacher_forcing < 1:
            raise ValueError("training.teacher_forcing below 1 belongs to model.kind seq2seq: others read all at once")
        if isinstance(self.model, TransformerSection):
            self._transformer_fits(self.model)
        self._tags_fit()
        if self.task != "translation":
            self._only_for_translation()
        self._alignments_fit()
        self._texts_fit()
        self._images_fit()
        self._examples_fit()
        if self.task in TEXTUAL and self.start is None:
            self._windows_fit()
        known = ("loss", *METRICS.get(self.task, ()))
        if self.training.metric not in known:
            raise ValueError(
                f"training.metric: {self.training.metric} is not measured by task: {self.task}; "
                f"use {' or '.join(known)}"
            )
        return self

    @property
    def batch_key(self) -> str:
        """The key of `training` that says how large a batch is."""
        return "batch_images" if self.task in PICTORIAL else "batch_tokens"

    @property
    def batch_size(self) -> int:
        size: int = getattr(self.training, self.batch_key)
        return size

    def _data_fit(self) -> None:
        """Text to learn from, or a series of numbers: what the task needs, and nothing else."""
        forecasting = self.task == "forecasting"
        if forecasting and self.data.series is None:
            raise ValueError('missing key "data.series": a forecast is about a series of numbers')
        if not forecasting and not self.data.train and self.imported is None:
            raise ValueError('missing key "data.train"')
        if forecasting and self._corpora():
            raise ValueError("data: a forecast learns from data.series, not from text")
        if not forecasting and self.data.series is not None:
            raise ValueError(f"data.series belongs to task: forecasting, not to task: {self.task}")

    def _only_for_translation(self) -> None:
        training = self.training
        names = ("r_drop", "bpe_dropout", "align") if self.task != "classification" else ("bpe_dropout", "align")
        used = [name for name in names if getattr(training, name)]
        if used or any(corpus.tag for corpus in self._corpora()):
            key = f"training.{used[0]}" if used else "data: a tag"
            raise ValueError(f"{key} belongs to task: translation, not to task: {self.task}")

    def _corpora(self) -> list[Corpus]:
        return [*self.data.train, *self.data.valid]

    def _tags_fit(self) -> None:
        trained = {corpus.tag for corpus in self.data.train}
        if None in trained and len(trained) > 1:
            raise ValueError("data.train: either all corpora have a tag or none (what would no tag mean to the model?)")
        for corpus in self.data.valid:
            if corpus.tag not in trained:
                known = ", ".join(sorted(tag for tag in trained if tag)) or "none"
                said = "without a tag" if corpus.tag is None else f"with the tag {corpus.tag}"
                raise ValueError(f"data.valid: a corpus {said}, but data.train has the tags: {known}")

    def _texts_fit(self) -> None:
        """Running text for who learns from it, and for nobody else."""
        if self.task not in TEXTUAL:
            if any(corpus.text for corpus in self._corpora()):
                raise ValueError(
                    f"data: plain text is for language models (task: language, pretraining), not for task: {self.task}"
                )
            return
        for corpus in self._corpora():
            if corpus.source or corpus.file or corpus.examples or (corpus.grammar and "-" in corpus.grammar):
                raise ValueError(
                    "data: a language model learns from text, not from pairs: name files with text, "
                    "or one language of the grammar (en, fr, ko)"
                )

    def _images_fit(self) -> None:
        """Images for who looks at them, and for nobody else."""
        pictures = [corpus for corpus in self._corpora() if corpus.images or corpus.drawn or corpus.rendered]
        if self.task not in PICTORIAL:
            if pictures:
                raise ValueError(f"data: images are for task: vision or recognition, not for task: {self.task}")
            if self.augment != Augmentation():
                raise ValueError(f"augment is about images, and task: {self.task} has none")
        elif len(pictures) < len(self._corpora()):
            raise ValueError(
                f"data: task {self.task} learns from images: name a folder (data.train.images), or "
                + ("drawn: shapes" if self.task == "vision" else "rendered: words")
            )
        if self.task == "vision" and any(corpus.rendered for corpus in pictures):
            raise ValueError("data: rendered words are for task: recognition, not for task: vision")
        if self.task == "recognition" and any(corpus.drawn for corpus in pictures):
            raise ValueError("data: drawn shapes are for task: vision; task: recognition reads words (rendered: words)")
        if isinstance(self.model, VitSection) and self.task == "vision" and self.start is None:
            self.model.must_be_cut()
        if isinstance(self.model, VitSection | RecognizerSection) and self.task in PICTORIAL and self.start is None:
            self.augment.must_fit(*self.model.image)
        if self.task != "recognition":
            for key, section in (("charset", CharsetSection()), ("render", Rendering())):
                if getattr(self, key) != section:
                    raise ValueError(f"{key} is about words in pictures (task: recognition), not task: {self.task}")
        elif self.data.resize == "crop":
            raise ValueError(
                "data.resize: crop would cut words off; squash brings them to the model's size, pad keeps their shape"
            )
        elif self.augment.flip:
            raise ValueError("augment.flip: a word in a mirror is another word")
        elif self.augment.mixes:
            raise ValueError("augment: mixup and cutmix mix labels, and two words cannot be mixed")
        elif self.augment.resized_crop:
            raise ValueError("augment.resized_crop cuts letters off, and the text would still have them")
        else:
            self._rendering_fits()

    def _rendering_fits(self) -> None:
        if self.data.resize == "pad" and any(corpus.rendered for corpus in self._corpora()):
            raise ValueError("data.resize: pad: rendered words fill their pictures, so others are squashed to that")
        if any(corpus.rendered and corpus.split not in (None, "train") for corpus in self.data.train):
            raise ValueError("data.train.split: what is learned from are the words and fonts of training")
        if self.augment != Augmentation() and not any(corpus.images for corpus in self.data.train):
            raise ValueError("augment is for pictures from files; how rendered words are varied is said in render")

    def _examples_fit(self) -> None:
        """Examples for tasks with labels, and for nobody else; and what belongs to such tasks alone."""
        training = self.training
        if self.task not in LABELLED:
            if any(corpus.examples for corpus in self._corpora()):
                tasks = ", ".join(LABELLED)
                raise ValueError(f"data: examples are for tasks with labels ({tasks}), not for task: {self.task}")
        else:
            for corpus in self._corpora():
                if corpus.source or corpus.file or (corpus.grammar and "-" in corpus.grammar):
                    raise ValueError(
                        f"data: task {self.task} learns from examples: name files (data.train.examples), "
                        "or one language of the grammar (en, fr, ko)"
                    )
        if training.class_weights != "none" and self.task not in ("classification", "tagging", "vision"):
            raise ValueError(f"training.class_weights is about labels, and task: {self.task} has none")
        asks = self.task == "answering" or (self.task == "pretraining" and self.masking.sentences != "none")
        if asks and isinstance(self.model, BertSection | RecurrentReaderSection) and self.model.segments == 1:
            raise ValueError("model.segments 1: rows of two texts need a vector for each (2), or none (0)")
        if (training.layer_decay < 1 or training.freeze) and not isinstance(self.model, BertSection | VitSection):
            key = "freeze" if training.freeze else "layer_decay"
            raise ValueError(
                f"training.{key} is about the layers of a BERT or a ViT, and model.kind is {self.model.kind}"
            )
        if self.start is not None:  # which brings another model: `training.starting` looks at that one
            return
        if isinstance(self.model, BertSection | VitSection) and training.freeze > self.model.layers:
            layers = f"{self.model.layers} layer{'s' * (self.model.layers != 1)}"
            raise ValueError(f"training.freeze {training.freeze}: the model has {layers}, and no more can be frozen")
        if self.task in LABELLED and isinstance(self.model, BertSection):
            self._positions_reach(self.model, self.data.max_length, "data.max_length")

    @staticmethod
    def _positions_reach(model: BertSection, needed: int, key: str) -> None:
        if model.position == "learned" and model.max_positions < needed:
            raise ValueError(
                f"{key} {needed} is more than model.max_positions {model.max_positions}: learned positions could not "
                "address the longest texts"
            )

    def _windows_fit(self) -> None:
        model, window = self.model, self.data.window
        if (
            isinstance(model, TransformerLanguageSection | BertSection)
            and model.position == "learned"
            and model.max_positions < window
        ):
            raise ValueError(f"model.max_positions {model.max_positions} is less than data.window {window}")

    def _location_reaches(self, model: Seq2SeqSection) -> None:
        if model.scorer == "location" and model.attention != "none":
            needed = self.data.max_length + 1  # with <eos>
            if model.max_source < needed:
                raise ValueError(
                    f"model.max_source {model.max_source} is less than data.max_length + 1 = {needed}: "
                    "the location scorer could not address the longest sentences"
                )

    def _alignments_fit(self) -> None:
        """`training.align` and what it is learned from, together or not at all."""
        given = [corpus for corpus in self.data.train if corpus.alignments]
        training = self.training
        if given and self.task != "translation":
            raise ValueError(f"data.train.alignments belong to task: translation, not to task: {self.task}")
        if any(corpus.alignments for corpus in self.data.valid):
            raise ValueError("data.valid: alignments are learned from, so they belong to data.train")
        if given and not training.align:
            raise ValueError("data.train: alignments are given, but training.align is 0: say how much (0.3, say)")
        if not training.align:
            if training.align_layer is not None:
                raise ValueError("training.align_layer belongs to training.align, which is 0")
            return
        if not given:
            raise ValueError(
                "training.align needs data.train.alignments: a file in the Pharaoh format, as `jumok align` writes it"
            )
        if not isinstance(self.model, TransformerSection):
            raise ValueError(f"training.align teaches a head of a Transformer, and model.kind is {self.model.kind}")
        layers = self.model.decoder_layers
        if training.align_layer is not None and training.align_layer >= layers:
            raise ValueError(
                f"training.align_layer {training.align_layer}: the decoder has {layers} layers, counted from 0"
            )
        others = {
            "training.bpe_dropout": training.bpe_dropout > 0,  # words are cut anew: which tokens they are is not known
            "training.pack: true": training.pack is True,
            "training.checkpoint_activations": training.checkpoint_activations,  # attention is not there to be read
        }
        for key, used in others.items():
            if used:
                raise ValueError(f"training.align does not go together with {key}")

    def _transformer_fits(self, model: TransformerSection) -> None:
        # two SentencePiece files of one model share their ids
        if model.tie_embeddings == "all" and not self.tokenizer.joint and self.tokenizer.kind != "sentencepiece":
            raise ValueError("model.tie_embeddings: all needs one vocabulary for both sides (tokenizer.joint: true)")
        needed = self.data.max_length + 2  # with <sos> and <eos>
        if model.reader is not None:
            self._positions_reach(model.reader, needed, "data.max_length + 2 =")
        if model.position == "learned" and model.max_positions < needed:
            raise ValueError(
                f"model.max_positions {model.max_positions} is less than data.max_length + 2 = {needed}: "
                "learned positions could not address the longest sentences"
            )
