"""The search for what stands in pictures: with a beam it finds likelier texts than the one that greedy reading takes.

The score of a text is log p(text | picture) as it is, not divided by its length: how long a word is can be seen. How
sure the model is of each of its characters comes from one more pass with the text given.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from jumok.data.batch import END, Sequences
from jumok.models.recognizer import Reading, reading_of
from jumok.models.recognizer_decoders import NO_CHARACTER, PictureBatch, WritingRecognizer
from jumok.search.decoding import generate
from jumok.search.options import SearchOptions


@torch.no_grad()
def search_pictures(
    model: WritingRecognizer, images_BCHW: Tensor, beam: int = 1, seen_BSD: Tensor | None = None
) -> Reading:
    """The best text that a search finds for each picture (`seen`: what was seen of it, where that is known). The caller
    puts the model in evaluation mode."""
    if not len(images_BCHW):
        return model.read(images_BCHW)
    stepper = _Kept(model, seen_BSD)
    found = generate(stepper, model.batch(images_BCHW), reading_options(model, beam))
    rows = [hypotheses[0].tokens for hypotheses in found]
    written = Sequences.pad([[*tokens, END] for tokens in rows]).to(images_BCHW.device)
    lengths_B = written.lengths - 1
    assert stepper.seen is not None
    return reading_of(written.ids, model.scores(stepper.seen, written.ids, lengths_B))


def reading_options(model: WritingRecognizer, beam: int = 1, nbest: int = 1) -> SearchOptions:
    """What a search for a word is asked for. Lengths count <eos>."""
    return SearchOptions(
        beam=beam, nbest=nbest, length_penalty=0.0, max_length=model.section.max_length + 1, forbidden=NO_CHARACTER
    )


class _Kept:
    """The model, and what its encoder made of the pictures: they are looked at once."""

    def __init__(self, model: WritingRecognizer, seen_BSD: Tensor | None = None) -> None:
        self.seen = seen_BSD
        self.members = (model,)  # as an ensemble has them: a recorder finds the model it records
        self.writer, self.encoder = model.writer, model.encoder
        self.start, self.step, self.select = model.start, model.step, model.select
        self.join, self.coverage = model.join, model.coverage

    def encode(self, batch: PictureBatch) -> Any:
        if self.seen is None:
            self.seen = self.encoder(batch.images)
        return self.writer.remember_picture(self.seen)
