"""A translator here and the same one in `transformers`: the same numbers after every layer, the same translations."""

from __future__ import annotations

import importlib
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jumok.data.batch import Sequences, source_batch
from jumok.errors import BadInput, Failure
from jumok.interop.cuts import differing, texts_to_cut
from jumok.interop.marian_files import originals
from jumok.interop.outgoing import load_run
from jumok.interop.ties import tied
from jumok.models.transformer import Transformer
from jumok.recipe import TransformerSection
from jumok.search import SearchOptions, generate
from jumok.tasks.vocabulary import load_tokenizers
from jumok.text.special import END, PAD, SPECIAL_TOKENS, START
from jumok.text.tokenizer import Tokenizer
from jumok.training.run import RunFolder

ROWS, WORDS = 4, 12
SENTENCES, BEAM = 20, 5
AGREE = 0.995  # of the translations
MARIANS = "MarianTokenizer"  # their class for SentencePiece files
# SentencePiece's version from which on sums of scores are rounded as here (text/sentencepiece_ties.py)
SAME_SUMS = (0, 2, 2)


@dataclass(frozen=True)
class Numbers:
    """Our ids in their words: `source[id]`. Without a `start` of its own the decoder begins with the padding."""

    source: list[int]
    target: list[int]
    own_start: bool  # whether <sos> is a token of theirs, too

    @property
    def shown(self) -> list[int]:
        """Our ids that are theirs, too."""
        return [id for id in range(len(self.target)) if self.own_start or id != START]


def numbers_of(run: RunFolder, source: Tokenizer, target: Tokenizer) -> Numbers:
    kept = originals(run)
    if kept is None:
        return Numbers(list(range(source.size)), list(range(target.size)), True)
    return Numbers(kept.layout.source, kept.layout.target, False)


def loaded(run: RunFolder) -> tuple[Transformer, Tokenizer, Tokenizer, int, list[str]]:
    """The run's best model and its tokenizers, its update, and what had to be said."""
    recipe = run.recipe()
    if not isinstance(recipe.model, TransformerSection) or recipe.task != "translation":
        raise BadInput(
            f"{run.path}: it is a {recipe.model.kind} for {recipe.task}, and transformers has no such model here: "
            "Transformers that translate (as Marian), BERT and ViT can be written for it. jumok export onnx may do"
        )
    source, target = load_tokenizers(run.tokenizer, recipe.tokenizer.joint)
    model = Transformer(recipe.model, source.size, target.size)
    step, said = load_run(run, model)
    return model, source, target, step, said


def compare_marian(transformers: Any, folder: Path, run: RunFolder) -> tuple[list[tuple[Tensor, Tensor]], str]:
    """For `--verify`: every layer, and the cuts of texts, where the library can read the tokenizer."""
    model, source, target, _, _ = loaded(run)
    numbers = numbers_of(run, source, target)
    pairs = layer_pairs(model, read_theirs(transformers, folder), numbers)
    cut = " (texts are cut alike)" if same_cuts(transformers, folder, source, target, numbers) else ""
    return pairs, f"the scores of {ROWS} random texts{cut}"


def read_theirs(transformers: Any, folder: Path) -> Any:
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    theirs = transformers.MarianMTModel.from_pretrained(folder, local_files_only=True).float().eval()
    for half in (theirs.model.encoder, theirs.model.decoder):  # a file in half precision has rounded tables
        half.embed_positions.weight.data.copy_(half.embed_positions.create_weight())
    return theirs


def every_layer(model: Transformer, theirs: Any, numbers: Numbers) -> tuple[Tensor, Tensor]:
    """All hidden states and scores of random texts, one after another: here and there."""
    here, there = zip(*layer_pairs(model, theirs, numbers), strict=True)
    return torch.cat([state.flatten() for state in here]), torch.cat([state.flatten() for state in there])


@torch.no_grad()
def layer_pairs(model: Transformer, theirs: Any, numbers: Numbers) -> list[tuple[Tensor, Tensor]]:
    """Hidden states of random texts after each layer, encoder and decoder, and their scores: here and there."""
    length = min(WORDS, model.section.max_positions)
    sources = torch.randint(len(SPECIAL_TOKENS), len(numbers.source), (ROWS, length))
    sources[:, -1] = END
    targets = torch.randint(len(SPECIAL_TOKENS), len(numbers.target), (ROWS, length))
    targets[:, 0] = START
    states: list[Tensor] = []
    hooks = [
        block.register_forward_hook(lambda _module, _inputs, output: states.append(output))
        for stack in (model.encoder, model.decoder)
        for block in stack.blocks
    ]
    try:
        hidden = model(Sequences.pad(sources.tolist()), targets)
    finally:
        for hook in hooks:
            hook.remove()
    said = theirs(
        input_ids=torch.tensor(numbers.source)[sources],
        decoder_input_ids=torch.tensor(numbers.target)[targets],
        output_hidden_states=True,
    )
    expected = [*said.encoder_hidden_states[1:], *said.decoder_hidden_states[1:]]
    if len(expected) != len(states):
        raise Failure(f"{len(states)} layers here, and {len(expected)} there")
    shown = torch.tensor(numbers.shown)
    states.append(model.head(hidden)[..., shown])
    expected.append(said.logits[..., torch.tensor(numbers.target)[shown]])
    return list(zip(states, expected, strict=True))


def same_cuts(
    transformers: Any, folder: Path, source: Tokenizer, target: Tokenizer, numbers: Numbers, kind: str = MARIANS
) -> bool:
    """Whether their tokenizer (of this class) cuts texts of both languages as we do; False where that could not be
    tried, Failure where it does not."""
    if kind == MARIANS:
        try:
            library = importlib.import_module("sentencepiece")
        except ImportError:
            return False
        if tuple(map(int, re.findall(r"\d+", library.__version__)))[:3] < SAME_SUMS:
            return False
    read = getattr(transformers, kind).from_pretrained
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends a package that has no part in this
        reader = read(folder, local_files_only=True)
    if kind == MARIANS:  # it reads the files of both languages
        writer, given = reader, "text_target"
    else:
        apart = folder / "target"
        writer, given = read(apart, local_files_only=True) if apart.is_dir() else reader, "text"
    for ours, ids, theirs, name in ((source, numbers.source, reader, "text"), (target, numbers.target, writer, given)):
        texts, number = texts_to_cut(ours, theirs.all_special_tokens), {id: number for number, id in enumerate(ids)}
        found = [[number.get(id, -1) for id in row[:-1]] for row in theirs(**{name: texts})["input_ids"]]
        otherwise = differing(texts, ours.encode(texts), found)
        if otherwise is not None:
            raise Failure(f"the text {otherwise} is cut otherwise there than here")
    return True


@torch.no_grad()
def same_translations(model: Transformer, theirs: Any, numbers: Numbers, never: list[int]) -> tuple[int, int]:
    """Of random texts: how many have the same best translation (beam 5), and how many there are. `never`: ids that are
    not generated."""
    longest = min(2 * WORDS + 20, model.section.max_positions - 1)
    rows = [
        torch.randint(len(SPECIAL_TOKENS), len(numbers.source), (1 + number % WORDS,)).tolist()
        for number in range(SENTENCES)
    ]
    batch = source_batch(rows)
    options = SearchOptions(
        BEAM, max_length=longest, stopping="transformers", forbidden=tuple(sorted({PAD, START, *never}))
    )
    ours = [found[0] for found in generate(model, batch, options)]
    barred = sorted({PAD, *never, *([START] if numbers.own_start else [])})
    said = theirs.generate(
        input_ids=torch.tensor(numbers.source)[batch.ids],
        attention_mask=batch.mask.long(),
        num_beams=BEAM, do_sample=False, early_stopping=False, length_penalty=1.0, no_repeat_ngram_size=0,
        max_length=None, max_new_tokens=longest, min_length=0, forced_eos_token_id=numbers.target[END],
        bad_words_ids=[[numbers.target[id]] for id in barred], return_dict_in_generate=True,
    )  # fmt: skip
    end, same = numbers.target[END], 0
    for source, hypothesis, row in zip(rows, ours, said.sequences.tolist(), strict=True):
        written = row[1 : row.index(end, 1)] if end in row[1:] else row[1:]
        equal = [numbers.target[id] for id in hypothesis.tokens] == written
        same += equal or tied(model, source, options)
    return same, len(ours)
