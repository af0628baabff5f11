"""A BERT as one graph: texts in, what its task says of them out, and a vector for every word and for the text.

    ids, mask, segments (B, T)  ->  scores, hidden (B, T, D), embedding (B, D)

`scores` are a classifier's (B, L), a tagger's (B, T, L), an answerer's (B, T, 2: begins, ends) or, of a pretrained
model, of all words (B, T, V). A model that reads two texts apart has no scores here: what it compares are embeddings.
`embedding` is what `jumok embed` gives: the mean over the words, of length 1.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.data.batch import Sequences
from jumok.errors import BadInput
from jumok.interop.onnx_graph import Graph, Values, words_of
from jumok.interop.onnx_plain import Marked, plain
from jumok.models.bert import Bert, HiddenWords, mean_over
from jumok.models.reader import TextLabeller, WordLabeller

Scored = HiddenWords | TextLabeller | WordLabeller


class ReaderGraph(nn.Module):
    def __init__(self, model: Scored) -> None:
        super().__init__()
        self.model = plain(model)
        self.scored = not (isinstance(model, TextLabeller) and model.apart)

    def forward(self, given: list[Tensor]) -> Values:
        ids_BT, mask_BT, segments_BT = given
        return said(self.model, Marked(ids_BT, mask_BT), segments_BT, self.scored)


def said(model: Scored, words: Sequences, segments_BT: Tensor, scored: bool) -> Values:
    """Scores (where there are any), the vectors of words, the vector of the text."""
    hidden_BTD: Tensor = model.reader(words, segments_BT)
    embedding_BD = F.normalize(mean_over(hidden_BTD, words), dim=-1)
    if not scored:
        return hidden_BTD, embedding_BD
    scores: Tensor
    if isinstance(model, TextLabeller):
        scores = model.head(model.reader.pooled(hidden_BTD, words))
    else:
        scores = model.head(hidden_BTD)
    return scores, hidden_BTD, embedding_BD


def reader_graph(model: Scored, longest: int) -> Graph:
    """`longest`: tokens that the model reads at once."""
    reader = model.reader
    if not isinstance(reader, Bert):
        raise BadInput("model.kind recurrent: recurrent readers cannot be exported to ONNX, a BERT can")
    vocabulary, kinds = reader.embedding.num_embeddings, reader.section.segments
    module = ReaderGraph(model)
    outputs: dict[str, dict[int, str]] = {"hidden": {0: "batch", 1: "length"}, "embedding": {0: "batch"}}
    if module.scored:
        text = isinstance(model, TextLabeller)
        outputs = {"scores": {0: "batch"} if text else {0: "batch", 1: "length"}, **outputs}

    def sample(sizes: Any) -> list[Tensor]:
        ids_BT, mask_BT = words_of(sizes["batch"], sizes["length"], vocabulary)
        return [ids_BT, mask_BT, torch.randint(max(1, kinds), ids_BT.shape) * mask_BT]

    def expected(given: list[Tensor]) -> Values:
        words = Sequences(given[0], given[1].sum(dim=1))
        return said(model, words, given[2], module.scored)

    lengths = ((3, 7), (1, 1), (5, 33), (2, longest))
    tried = tuple({"batch": rows, "length": min(length, longest, 512)} for rows, length in lengths)
    axes = {0: "batch", 1: "length"}
    inputs = {"ids": axes, "mask": axes, "segments": axes}
    return Graph(module, inputs, outputs, sample, expected, tried)
