"""Small translators with random weights and real vocabularies: good for everything but their translations."""

from __future__ import annotations

import secrets
from functools import cache
from itertools import islice

import torch

from jumok.data import grammar
from jumok.models.build import build
from jumok.recipe import Search, Seq2SeqSection, TransformerSection
from jumok.tasks.translator import Translator
from jumok.text.tokenizer import Tokenizer, train_tokenizer

SECTIONS = {
    "transformer": TransformerSection(width=32, heads=4, encoder_layers=2, decoder_layers=2, feed_forward=64),
    "lstm": Seq2SeqSection(width=32, embedding=16, layers=1, bidirectional=True),
    "plain": Seq2SeqSection(width=32, embedding=16, layers=1, attention="none"),
}
SIZES = {"word": 2000, "character": 200}
CPU = torch.device("cpu")


@cache
def tokenizers(kind: str) -> tuple[Tokenizer, Tokenizer]:
    pairs = list(grammar.pairs("en", "fr", "train", 400))
    size = SIZES.get(kind, 500)
    return (
        train_tokenizer([pair.source for pair in pairs], kind, size),
        train_tokenizer([pair.target for pair in pairs], kind, size),
    )


def translator(
    model: str = "transformer", kind: str = "bpe", precise: bool = False, wordy: bool = False, **search: object
) -> Translator:
    """Fresh random weights; the seed is printed for a failing test.

    `precise`: in float64, where rounding decides no tie, so that the same comes out in every company.
    `wordy`: words come out, whatever the weights: left to itself, one model in some hundreds writes nothing but blanks.
    """
    seed = secrets.randbelow(2**31)
    print(f"{model}, {kind}, seed {seed}")
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    source, target = tokenizers(kind)
    network = build(SECTIONS[model], source.size, target.size).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(1.5)  # a random model is undecided: ties would be too near
        if wordy:
            texts = target.decode([[id] for id in range(target.size)])
            network.bias[[id for id, text in enumerate(texts) if not text.strip()]] = -30.0  # <eos> is one of them
    return Translator(
        network.double() if precise else network,
        source,
        target,
        Search(**{"beam": 3, "max_ratio": 1.0, "max_extra": 8, **search}),
        200,
        CPU,
    )


def sentences(count: int, split: str = "test") -> list[str]:
    """Short ones: a random model writes up to its limit."""
    short = (pair.source for pair in grammar.pairs("en", "fr", split, 10 * count) if len(pair.source.split()) < 10)
    return list(islice(short, count))
