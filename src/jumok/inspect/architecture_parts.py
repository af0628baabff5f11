"""Which parts the models of this house have, and how they hang together. Every number comes from the modules."""

from __future__ import annotations

from typing import Any, Protocol

from torch import nn

from jumok.inspect.architecture import Architecture, Column, Link, Part, every_part
from jumok.layers.attention import Scorer
from jumok.layers.block import AddNorm, Block, FeedForward
from jumok.layers.multihead import MultiHeadAttention
from jumok.layers.recurrent import Recurrent
from jumok.layers.stack import Stack
from jumok.models.bert import Bert
from jumok.models.decoder import Attending, BahdanauDecoder, FeedingDecoder, LuongDecoder
from jumok.models.forecaster import Forecaster
from jumok.models.language import LanguageModel, RecurrentLanguageModel, TransformerLanguageModel
from jumok.models.reader import RecurrentReader
from jumok.models.seq2seq import Seq2Seq
from jumok.models.transformer import Transformer


class Told(Protocol):
    """What came out of each module (inspect/describe.py)."""

    logits: str
    input: str  # the shape of what is read
    window: int | None  # of a forecaster

    def of(self, module: nn.Module, call: int = 0) -> str: ...
    def into(self, module: nn.Module) -> str: ...  # what went in


SOURCE_LETTERS = ("B sentences at once, S tokens of the source, T tokens of the translation",)
TEXT_LETTERS = ("B texts at once, T tokens",)
SERIES_LETTERS = ("B windows at once",)
NEXT = "the next word"


def architecture(model: nn.Module, told: Told, name: str, notes: tuple[str, ...] = ()) -> Architecture:
    total = size(model)
    if isinstance(model, Seq2Seq):
        title, columns, links = _seq2seq(model, told)
        letters = SOURCE_LETTERS
    elif isinstance(model, Transformer):
        title, columns, links = _transformer(model, told)
        letters = SOURCE_LETTERS
    elif isinstance(model, LanguageModel):
        title, columns, links = _language(model, told)
        letters = TEXT_LETTERS
    else:
        assert isinstance(model, Forecaster)
        title, columns, links = _forecaster(model, told)
        letters = SERIES_LETTERS
    return Architecture(f"{name}: {title}", tuple(columns), tuple(links), total, letters, notes)


def size(*modules: nn.Module | nn.Parameter | None) -> int:
    """Parameters, each counted once however many modules share it."""
    found = {}
    for module in modules:
        for parameter in (
            [module] if isinstance(module, nn.Parameter) else () if module is None else module.parameters()
        ):
            found[id(parameter)] = parameter.numel()
    return sum(found.values())


Drawn = tuple[str, list[Column], list[Link]]


# ---------------------------------------------------------------- whole models


def _seq2seq(model: Seq2Seq, told: Told) -> Drawn:
    encoder, decoder = model.encoder, model.decoder
    read = recurrent_part(encoder.recurrent, told)
    backwards = ", from the last word to the first" if encoder.reverse else ""
    parts, final = [embedding_part(encoder.embedding, told), read], read
    if maps := [layer for layer in decoder.bridge.maps if isinstance(layer, nn.Linear)]:
        about = f"of the final state: {len(maps)} × ({linear_sizes(maps[0])})"
        final = Part("tanh(W h + b)", "feed", about, told.of(maps[0]), size(decoder.bridge))
        parts.append(final)
    reading = Column("encoder", f"source tokens{backwards}", "B × S", tuple(parts))
    state = recurrent_part(decoder.recurrent, told)
    links = [Link(final, state, "the first state")]
    word, output = embedding_part(model.embedding, told), _output(model, told)
    if isinstance(decoder, Attending):
        attention = scored_part(decoder, told)
        links.append(Link(read, attention, "hidden states: keys and values"))
        if isinstance(decoder, BahdanauDecoder):
            about = f"[s; c; y] {linear_sizes(decoder.readout)}, the larger of each two"
            readout = Part("maxout readout", "feed", about, told.of(decoder), size(decoder.readout))
            parts = [word, attention, state, readout, output]
            links.append(Link(state, attention, "the state before: the query", back=True))
        else:
            assert isinstance(decoder, LuongDecoder)
            joined = Part(
                "s̃ = tanh(W [a; s] + b)", "feed", linear_sizes(decoder.combine), told.of(decoder), size(decoder.combine)
            )
            parts = [word, state, attention, joined, output]
            if isinstance(decoder, FeedingDecoder):
                links.append(Link(joined, state, "s̃ of the step before (input feeding)", back=True))
        title = f"Seq2Seq with {'Bahdanau' if isinstance(decoder, BahdanauDecoder) else 'Luong'} attention"
    else:
        parts, title = [word, state, output], "Seq2Seq"
    writing = Column("decoder", "translation so far", "B × T", tuple(parts), NEXT)
    return title, [reading, writing], links


def _transformer(model: Transformer, told: Told) -> Drawn:
    shared = model.source_embedding is model.embedding
    source = [embedding_part(model.source_embedding, told)]
    target = embedding_part(model.embedding, told, "shared with the source" if shared else "")
    read, written = stack_parts(model.encoder, told), stack_parts(model.decoder, told)
    output = _output(model, told)
    source = [*source, *read] if model.reader is None else reader_parts(model.reader, told)
    columns = [
        Column("encoder", "source tokens", "B × S", tuple(source)),
        Column("decoder", "translation so far", "B × T", (target, *written, output), NEXT),
    ]
    if model.reader is not None:
        columns.append(unused_pooler(model.reader))
    cross = next(part for part in every_part(tuple(written)) if part.name == "cross-attention")
    return "Transformer", columns, [Link(source[-1], cross, "keys and values")]


def _language(model: LanguageModel, told: Told) -> Drawn:
    word, output = embedding_part(model.embedding, told), _output(model, told)
    if isinstance(model, RecurrentLanguageModel):
        layers = [layer for layer in model.layers if isinstance(layer, Recurrent)]
        parts = [
            recurrent_part(layer, told, f"{cell_name(layer)} layer {number}") for number, layer in enumerate(layers, 1)
        ]
        title = f"{cell_name(layers[0])} language model"
    else:
        assert isinstance(model, TransformerLanguageModel)
        parts, title = stack_parts(model.stack, told), "Transformer language model"
    return title, [Column("language model", "text so far", "B × T", (word, *parts, output), NEXT)], []


def _forecaster(model: Forecaster, told: Told) -> Drawn:
    reader: Any = model.reader
    scaled = {
        "none": "as they are",
        "level": "minus the last value",
        "scale": "minus the last value, over their spread",
    }
    begin = Part("values", "plain", scaled[model.normalise])
    if isinstance(reader, Recurrent):
        read, title = [recurrent_part(reader, told)], f"{cell_name(reader)} forecaster"
    else:
        value = Part(
            "value as a vector", "embedding", linear_sizes(reader.value), told.of(reader.value), size(reader.value)
        )
        read, title = [value, *stack_parts(reader.stack, told)], "Transformer forecaster"
    head = Part("output at the last value", "output", linear_sizes(model.head), told.of(model.head), size(model.head))
    parts, links = [begin, *read, head], []
    if model.highway is not None:
        highway = Part(
            "linear highway, added", "output", linear_sizes(model.highway), told.of(model.highway), size(model.highway)
        )
        parts.append(highway)
        links.append(Link(begin, highway, "all values, straight to the output"))
    return (
        title,
        [Column("forecaster", "the last values", f"B × {told.window}", tuple(parts), "the next values")],
        links,
    )


# ---------------------------------------------------------------- parts


def embedding_part(layer: nn.Embedding, told: Told, shared: str = "") -> Part:
    about = f"{layer.num_embeddings:,} × {layer.embedding_dim}"
    if shared:
        return Part("word vectors", "embedding", f"{about}, {shared}", told.of(layer, -1))
    return Part("word vectors", "embedding", about, told.of(layer), size(layer))


def _output(model: Any, told: Told) -> Part:
    tied = f"W: the word vectors, b: {len(model.bias):,}"
    bridge = (
        ""
        if isinstance(getattr(model, "project", nn.Identity()), nn.Identity)
        else f"{linear_sizes(model.project)}, then "
    )
    about = f"{bridge}{tied}" if model.tied else f"{model.weight.shape[1]} → {len(model.bias):,}"
    project = getattr(model, "project", None)
    parameters = size(model.bias, project, *([] if model.tied else [model.weight]))
    return Part("softmax over words", "output", about, told.logits, parameters)


def cell_name(layer: Recurrent) -> str:
    kind = layer.layers[0]
    return {nn.RNN: "RNN", nn.LSTM: "LSTM", nn.GRU: "GRU"}[type(kind)]


def recurrent_part(layer: Recurrent, told: Told, name: str = "") -> Part:
    def one(cell: Any) -> str:
        both = f"both ways, {cell.input_size} → 2 × {cell.hidden_size}"
        return both if cell.bidirectional else f"{cell.input_size} → {cell.hidden_size}"

    cells = list(layer.layers)
    if len(cells) == 1:
        return Part(name or cell_name(layer), "recurrent", one(cells[0]), told.of(layer), size(layer))
    parts = tuple(
        Part(f"{cell_name(layer)} layer {number}", "recurrent", one(cell), told.of(cell), size(cell))
        for number, cell in enumerate(cells, 1)
    )
    return Part(name or f"{cell_name(layer)}, {len(cells)} layers", "recurrent", "", told.of(layer), size(layer), parts)


def scored_part(decoder: Attending, told: Told) -> Part:
    scorer: Scorer = decoder.scorer
    maps = ", ".join(
        f"{name} {linear_sizes(layer)}" for name, layer in scorer.named_modules() if isinstance(layer, nn.Linear)
    )
    about = f"{type(scorer).__name__.lower()} score{f': {maps}' if maps else ''}"
    return Part("attention", "attention", about, told.of(decoder.tap), size(scorer))


def stack_parts(stack: Stack, told: Told) -> list[Part]:
    parts = []
    if stack.added is not None:
        learned = size(stack.added)
        parts.append(Part("positions", "plain", f"{type(stack.added).__name__.lower()}, added", "", learned))
    elif stack.rotary is not None:
        parts.append(Part("positions", "plain", "rotary: queries and keys are turned in every layer"))
    elif stack.relative is not None:
        parts.append(
            Part("positions", "plain", "relative: a bias of the scores in every layer", "", size(stack.relative))
        )
    block = stack.blocks[0]
    assert isinstance(block, Block)
    kind = "causal self-attention" if stack.causal else "self-attention"
    inside = [sublayer(attention_part(block.attention, kind, told), block.attention_norm, told)]
    if block.cross is not None and block.cross_norm is not None:
        inside.append(sublayer(attention_part(block.cross, "cross-attention", told), block.cross_norm, told))
    inside.append(sublayer(feed_forward_part(block.feed_forward, told), block.feed_forward_norm, told))
    parts.append(Part("block", "plain", "", told.of(block), size(block), tuple(inside), len(stack.blocks)))
    if not isinstance(stack.norm, nn.Identity):
        parts.append(norm_part(stack.norm, told))
    return parts


def sublayer(part: Part, around: AddNorm, told: Told) -> Part:
    """A sublayer with its residual connection and normalisation, in the order of the data."""
    add, norm = Part("add", "add", shape=told.of(around)), norm_part(around.norm, told)
    inside = (norm, part, add) if around.pre else (part, add, norm)
    order = "norm first" if around.pre else "norm last"
    return Part("residual", "plain", order, told.of(around), part.parameters + norm.parameters, inside, residual=True)


def norm_part(layer: nn.Module, told: Told) -> Part:
    return Part(type(layer).__name__, "norm", "", told.of(layer), size(layer))


def attention_part(layer: MultiHeadAttention, name: str, told: Told) -> Part:
    shared = f", keys and values of {layer.groups}" if layer.groups != layer.heads else ""
    about = f"{layer.heads} heads of {layer.head_width}{shared}"
    return Part(name, "attention", about, told.of(layer), size(layer))


def feed_forward_part(layer: FeedForward, told: Told) -> Part:
    about = f"{layer.inner.in_features} → {layer.inner.out_features} → {layer.outer.out_features}, {layer.activation}"
    return Part("feed-forward", "feed", about, told.of(layer), size(layer))


def linear_sizes(layer: nn.Linear) -> str:
    return f"{layer.in_features} → {layer.out_features}"


# ---------------------------------------------------------------- readers


def reader_parts(reader: Bert | RecurrentReader, told: Told, words: str = "") -> list[Part]:
    """From the tokens to a vector for each."""
    parts = [embedding_part(reader.embedding, told, words)]
    if reader.segments is not None:
        about = f"{reader.segments.num_embeddings} × {reader.segments.embedding_dim}, added: which text it is of"
        parts.append(Part("segments", "plain", about, "", size(reader.segments)))
    if isinstance(reader, RecurrentReader):
        return [*parts, recurrent_part(reader.recurrent, told)]
    if reader.positions is not None:
        about = f"learned, {reader.positions.num_embeddings:,} × {reader.positions.embedding_dim}, added"
        parts.append(Part("positions", "plain", about, "", size(reader.positions)))
    return [*parts, norm_part(reader.norm, told), *stack_parts(reader.encoder, told)]


def unused_pooler(reader: Bert) -> Column:
    """What a pretrained model has for tasks about whole texts."""
    about = f"{linear_sizes(reader.pooler)}: for tasks about whole texts"
    return Column("beside it", "not used here", "", (Part("pooler", "plain", about, "", size(reader.pooler)),))
