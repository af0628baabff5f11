"""Which parts a model has that reads words in pictures: what looks, what writes, and the CTC head if it has one."""

from __future__ import annotations

from itertools import zip_longest

from torch import nn

from jumok.inspect.architecture import Architecture, Column, Link, Part, every_part
from jumok.inspect.architecture_parts import (
    Told,
    attention_part,
    feed_forward_part,
    linear_sizes,
    norm_part,
    recurrent_part,
    scored_part,
    size,
    stack_parts,
    sublayer,
)
from jumok.inspect.architecture_vision import convolution_part, patch_parts
from jumok.layers.characters import CharacterEmbedding, CharacterHead
from jumok.models.decoder import BahdanauDecoder
from jumok.models.permuted import PermutedRecognizer, QueryBlock
from jumok.models.recognizer import CtcHead, CtcRecognizer, Recognizer
from jumok.models.recognizer_decoders import RecurrentWriter, TransformerWriter, WritingRecognizer
from jumok.models.recognizer_encoders import LAYERS, Encoder, RecurrentEncoder, VitEncoder

ENCODERS = {"vit": "Vision Transformer", "recurrent": "Convolutions and LSTMs"}
DECODERS = {
    "ctc": "CTC",
    "recurrent": "an LSTM that attends",
    "transformer": "a Transformer decoder",
    "permuted": "a permuted decoder",
}
LETTERS = (
    "kinds of character",
    "first letters",
    "vowels",
    "last letters",
)  # of what Hangul syllables are taken apart to
NEXT = "the next character"

Drawn = tuple[list[Column], list[Link]]


def recognition_architecture(model: Recognizer, told: Told, name: str, notes: tuple[str, ...] = ()) -> Architecture:
    section = model.section
    seen = _encoder_parts(model.encoder, told)
    if isinstance(model, PermutedRecognizer):
        columns, links = _permuted(model, told, seen)
    elif isinstance(model, WritingRecognizer):
        columns, links = _writing(model, told, seen)
    else:
        assert isinstance(model, CtcRecognizer)
        parts = [*seen, *_ctc_parts(model, model.ctc, told)]
        columns, links = [_looking(told, parts, "a character or nothing in each column")], []
    title = f"{name}: {ENCODERS[section.encoder]} with {DECODERS[section.decoder]}"
    rows, across = model.encoder.grid
    letters = [f"B pictures, {rows * across} places: {rows} row{'s' * (rows > 1)} of {across}"]
    if section.decoder != "ctc":
        letters.append(f"{section.max_length + 1} characters of a word, <eos> among them")
    return Architecture(title, tuple(columns), tuple(links), size(model), tuple(letters), notes)


# ---------------------------------------------------------------- what looks


def _looking(told: Told, parts: list[Part], output: str = "") -> Column:
    return Column("encoder", "pictures", told.input, tuple(parts), output)


def _encoder_parts(encoder: Encoder, told: Told) -> list[Part]:
    if isinstance(encoder, VitEncoder):
        return [*patch_parts(encoder.vit, told), *stack_parts(encoder.vit.encoder, told)]
    assert isinstance(encoder, RecurrentEncoder)
    layers = [layer for layer in encoder.layers if isinstance(layer, nn.Conv2d)]
    pools, inside = [pool for _, pool in LAYERS], []
    for layer, norm, follows, pool in zip_longest(layers, encoder.norms, layers[1:], pools):
        after = ["relu", *([] if pool is None else [f"the largest of {pool[0]} × {pool[1]}"])]
        shape = told.of(layer) if follows is None else told.into(follows)  # after the pooling
        inside.append(convolution_part(layer, norm, after, shape))
    convolutions = Part("convolutions", "embedding", "", inside[-1].shape, size(*layers, *encoder.norms), tuple(inside))
    return [convolutions, recurrent_part(encoder.recurrent, told)]


def _ctc_parts(model: Recognizer, ctc: CtcHead, told: Told) -> list[Part]:
    rows = model.encoder.grid[0]
    mean = [Part("mean over rows", "plain", f"of each column, {rows} places", told.of(ctc.dropout))] if rows > 1 else []
    return [*mean, _head_part(ctc.head, told, "; <pad> is the blank")]


# ---------------------------------------------------------------- what writes


def _characters_part(embedding: CharacterEmbedding, told: Told) -> Part:
    table = embedding.table
    sums = ", a Hangul syllable is the sum of its letters" if embedding.first is not None else ""
    about = f"{table.num_embeddings:,} × {table.embedding_dim}{sums}"
    return Part("character vectors", "embedding", about, told.of(embedding), size(embedding))


def _head_part(head: CharacterHead, told: Told, more: str = "") -> Part:
    about = linear_sizes(head.map)
    if len(head.parts) > 1:
        about += ": " + ", ".join(f"{count} {what}" for count, what in zip(head.parts, LETTERS, strict=True))
    return Part("softmax over characters", "output", about + more, told.of(head.map), size(head))


def _writing(model: WritingRecognizer, told: Told, seen: list[Part]) -> Drawn:
    writer, read = model.writer, seen[-1]
    assert isinstance(writer.embedding, CharacterEmbedding)
    word, output = _characters_part(writer.embedding, told), _head_part(writer.head, told)
    if isinstance(writer, TransformerWriter):
        written = stack_parts(writer.decoder, told)
        cross = next(part for part in every_part(tuple(written)) if part.name == "cross-attention")
        parts, links = [word, *written, output], [Link(read, cross, "keys and values")]
    else:
        assert isinstance(writer, RecurrentWriter)
        decoder = writer.decoder
        assert isinstance(decoder, BahdanauDecoder)
        maps = [layer for layer in decoder.bridge.maps if isinstance(layer, nn.Linear)]
        about = f"of the mean over all places: {len(maps)} × ({linear_sizes(maps[0])})"
        first = Part("tanh(W h + b)", "feed", about, told.of(maps[0]), size(decoder.bridge))
        seen = [*seen, first]
        attention, state = scored_part(decoder, told), recurrent_part(decoder.recurrent, told)
        about = f"[s; c; y] {linear_sizes(decoder.readout)}, the larger of each two"
        readout = Part("maxout readout", "feed", about, told.of(decoder), size(decoder.readout))
        parts = [word, attention, state, readout, output]
        links = [
            Link(first, state, "the first state"),
            Link(read, attention, "hidden states: keys and values"),
            Link(state, attention, "the state before: the query", back=True),
        ]
    columns = [_looking(told, seen), Column("decoder", "characters so far", _shape(told, word), tuple(parts), NEXT)]
    return columns, links


def _permuted(model: PermutedRecognizer, told: Told, seen: list[Part]) -> Drawn:
    """Two streams: the characters, which are the same in every layer, and the queries that look at them."""
    section, read = model.section, seen[-1]
    characters = _characters_part(model.embedding, told)
    placed = Part("positions", "plain", "those of the queries, added; <sos> has none", characters.shape)
    places, width = model.positions.shape
    query = Part(
        "positions", "embedding", f"learned, {places} × {width}", told.into(model.blocks[0]), size(model.positions)
    )
    block = model.blocks[0]
    assert isinstance(block, QueryBlock)
    looks = attention_part(block.characters, "attention to characters", told)
    both = "; keys and values through a norm of their own"
    looks = Part(looks.name, looks.kind, looks.about + both, looks.shape, looks.parameters + size(block.content_norm))
    cross = attention_part(block.cross, "cross-attention", told)
    inside = (
        sublayer(looks, block.characters_norm, told),
        sublayer(cross, block.cross_norm, told),
        sublayer(feed_forward_part(block.feed_forward, told), block.feed_forward_norm, told),
    )
    blocks = Part("block", "plain", "", told.of(block), size(block), inside, len(model.blocks))
    parts = (query, blocks, norm_part(model.norm, told), _head_part(model.head, told))
    fast = [] if model.ctc is None else _ctc_parts(model, model.ctc, told)
    asked = f"{section.permutations} order{'s' * (section.permutations > 1)} of each word in training"
    columns = [
        _looking(told, [*seen, *fast], "the same word, faster" if fast else ""),
        Column("characters", "those that are known", _shape(told, characters), (characters, placed)),
        Column("decoder", f"a query for each place, {asked}", "", parts, "the character there"),
    ]
    return columns, [Link(placed, looks, "those that come before"), Link(read, cross, "keys and values")]


def _shape(told: Told, embedded: Part) -> str:
    """Of the ids whose vectors these are."""
    return embedded.shape.rpartition(" × ")[0]
