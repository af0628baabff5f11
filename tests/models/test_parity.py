"""With copied weights our Transformer is `torch.nn.Transformer` and `transformers`' MarianMT: outputs and gradients.

In float64: where ReLU has its edge, a last digit of float32 would decide about a whole gradient.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import torch
from required import required
from torch import Tensor, nn
from torch.nn import functional as F

from jumok.data.batch import END, PAD, START, source_batch, target_batch
from jumok.layers.block import Block
from jumok.layers.multihead import MultiHeadAttention
from jumok.models.transformer import Transformer
from jumok.recipe import TransformerSection

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
WIDTH, HEADS, INNER, LAYERS, WORDS = 32, 4, 48, (3, 2), 40


class Twin(NamedTuple):
    """One of our weights and where the other library keeps it (a part of a larger tensor: `rows`)."""

    ours: nn.Parameter
    theirs: nn.Parameter
    rows: slice = slice(None)

    def copy(self) -> None:
        with torch.no_grad():
            self.ours.copy_(self.theirs[self.rows])

    def compare_gradients(self) -> None:
        assert self.ours.grad is not None
        assert self.theirs.grad is not None
        torch.testing.assert_close(self.ours.grad, self.theirs.grad[self.rows], **CLOSE)


def twins(*pairs: tuple[nn.Module, nn.Module]) -> Iterator[Twin]:
    for ours, theirs in pairs:
        yield Twin(ours.weight, theirs.weight)  # type: ignore[arg-type]
        yield Twin(ours.bias, theirs.bias)  # type: ignore[arg-type]


def cover(model: nn.Module, pairs: list[Twin], but: tuple[str, ...] = ()) -> None:
    """Every weight of ours has its twin, except those named."""
    named = {id(pair.ours) for pair in pairs}
    assert [name for name, parameter in model.named_parameters() if id(parameter) not in named] == list(but)


def disturb(module: nn.Module) -> None:
    """Biases and norms start at 0 and 1: moved, so that a mistake in them shows."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))


def random_rows(lengths: list[int]) -> list[list[int]]:
    return [torch.randint(4, WORDS, (length,)).tolist() for length in lengths]


def section(**keys: Any) -> TransformerSection:
    small = {
        "width": WIDTH,
        "heads": HEADS,
        "feed_forward": INNER,
        "encoder_layers": LAYERS[0],
        "decoder_layers": LAYERS[1],
    }
    return TransformerSection(**{**small, "dropout": 0.0, **keys})


# ---------------------------------------------------------------- torch.nn.Transformer


class Given(nn.Module):
    """In place of an embedding: these very vectors, whose gradient can be asked for."""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.vectors = vectors

    def forward(self, ids: Tensor) -> Tensor:
        return self.vectors


def torch_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> Iterator[Twin]:
    for number, part in enumerate((ours.query, ours.key, ours.value)):
        rows = slice(number * WIDTH, (number + 1) * WIDTH)
        yield Twin(part.weight, theirs.in_proj_weight, rows)
        yield Twin(part.bias, theirs.in_proj_bias, rows)
    yield from twins((ours.output, theirs.out_proj))


def torch_block(ours: Block, theirs: Any) -> Iterator[Twin]:
    yield from torch_attention(ours.attention, theirs.self_attn)
    feed = ours.feed_forward
    yield from twins(
        (ours.attention_norm.norm, theirs.norm1), (feed.inner, theirs.linear1), (feed.outer, theirs.linear2)
    )
    last = theirs.norm2
    if ours.cross is not None:
        assert ours.cross_norm is not None
        yield from torch_attention(ours.cross, theirs.multihead_attn)
        yield from twins((ours.cross_norm.norm, theirs.norm2))
        last = theirs.norm3
    yield from twins((ours.feed_forward_norm.norm, last))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_torch_transformer(norm: str, activation: str) -> None:
    """nn.Transformer ends both stacks with a norm, whatever the blocks do: `final_norm`."""
    keys = {"norm": norm, "activation": activation, "final_norm": True, "position": "none"}
    model = Transformer(section(**keys), WORDS, WORDS).double()
    reference = nn.Transformer(
        WIDTH, HEADS, *LAYERS, INNER, dropout=0.0, activation=activation, norm_first=norm == "pre", batch_first=True
    )
    disturb(reference.double())
    pairs = list(twins((model.encoder.norm, reference.encoder.norm), (model.decoder.norm, reference.decoder.norm)))
    for ours, theirs in ((model.encoder, reference.encoder), (model.decoder, reference.decoder)):
        for block, layer in zip(ours.blocks, theirs.layers, strict=True):
            assert isinstance(block, Block)
            pairs += torch_block(block, layer)
    cover(model, pairs, ("bias", "embedding.weight", "source_embedding.weight"))
    for pair in pairs:
        pair.copy()

    source, target = source_batch(random_rows([5, 9, 2])), target_batch(random_rows([7, 3, 4]))
    vectors = [torch.randn(*side.ids.shape, WIDTH, dtype=torch.float64) for side in (source, target)]
    wanted = torch.randn_like(vectors[1]) * target.mask[..., None]  # padding says nothing
    ours_in, theirs_in = ([part.clone().requires_grad_() for part in vectors] for _ in range(2))
    model.source_embedding, model.embedding = Given(ours_in[0]), Given(ours_in[1])  # type: ignore[assignment]
    found = model(source, target.ids)
    expected = reference(
        *theirs_in,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.ids.size(1), dtype=torch.bool),
        src_key_padding_mask=~source.mask,
        memory_key_padding_mask=~source.mask,
        tgt_is_causal=True,
    )
    torch.testing.assert_close(found[target.mask], expected[target.mask], **CLOSE)
    (found * wanted).sum().backward()
    (expected * wanted).sum().backward()
    for pair in pairs:
        pair.compare_gradients()
    for ours_part, theirs_part in zip(ours_in, theirs_in, strict=True):
        torch.testing.assert_close(ours_part.grad, theirs_part.grad, **CLOSE)


# ---------------------------------------------------------------- transformers: MarianMT


def marian(activation: str, shared: bool) -> Any:
    transformers = required("transformers")
    config = transformers.MarianConfig(
        vocab_size=WORDS, decoder_vocab_size=WORDS, share_encoder_decoder_embeddings=shared, tie_word_embeddings=True,
        d_model=WIDTH, encoder_layers=LAYERS[0], decoder_layers=LAYERS[1], encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS, encoder_ffn_dim=INNER, decoder_ffn_dim=INNER, activation_function=activation,
        scale_embedding=True, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, max_position_embeddings=64,
        pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=START, forced_eos_token_id=None,
    )  # fmt: skip
    model = transformers.MarianMTModel(config).train()
    for module in (model.model.encoder, model.model.decoder):
        table = module.embed_positions.weight
        expected = module.embed_positions.create_weight()
        assert torch.equal(table, expected)  # its positions are what its own formula says
    positions = {name for name, _ in model.named_parameters() if "embed_positions" in name}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name not in positions:
                parameter.add_(0.1 * torch.randn_like(parameter))
        model.final_logits_bias.normal_()
    return model.double()


def marian_block(ours: Block, theirs: Any) -> Iterator[Twin]:
    pairs: list[tuple[nn.Module, nn.Module]] = [
        (ours.attention_norm.norm, theirs.self_attn_layer_norm),
        (ours.feed_forward.inner, theirs.fc1),
        (ours.feed_forward.outer, theirs.fc2),
        (ours.feed_forward_norm.norm, theirs.final_layer_norm),
    ]
    attentions = [(ours.attention, theirs.self_attn)]
    if ours.cross is not None:
        assert ours.cross_norm is not None
        pairs.append((ours.cross_norm.norm, theirs.encoder_attn_layer_norm))
        attentions.append((ours.cross, theirs.encoder_attn))
    for mine, other in attentions:
        pairs += [(mine.query, other.q_proj), (mine.key, other.k_proj), (mine.value, other.v_proj)]
        pairs.append((mine.output, other.out_proj))
    yield from twins(*pairs)


def outputs_of(modules: list[nn.Module]) -> list[Tensor]:
    """What these modules will give, with its gradient kept."""
    given: list[Tensor] = []

    def keep(_: nn.Module, __: Any, output: Tensor) -> None:
        if output.requires_grad:
            output.retain_grad()
            given.append(output)

    for module in dict.fromkeys(modules):
        module.register_forward_hook(keep)
    return given


def as_ours(reference: Any, activation: str, shared: bool) -> tuple[Transformer, list[Twin]]:
    """The same model in this house, with the reference's weights."""
    tied = "all" if shared else "target"
    keys = {"norm": "post", "activation": activation, "position": "sinusoidal-halves", "tie_embeddings": tied}
    model = Transformer(section(**keys), WORDS, WORDS).double()
    pairs = [Twin(model.embedding.weight, reference.model.decoder.embed_tokens.weight)]
    if not shared:
        pairs.append(Twin(model.source_embedding.weight, reference.model.encoder.embed_tokens.weight))
    for ours, theirs in ((model.encoder, reference.model.encoder), (model.decoder, reference.model.decoder)):
        for block, layer in zip(ours.blocks, theirs.layers, strict=True):
            assert isinstance(block, Block)
            pairs += marian_block(block, layer)
    cover(model, pairs, ("bias",))  # theirs does not learn: final_logits_bias
    for pair in pairs:
        pair.copy()
    with torch.no_grad():
        model.bias.copy_(reference.final_logits_bias[0])
    return model, pairs


@pytest.mark.parametrize("shared", [True, False], ids=["tied all", "tied target"])
@pytest.mark.parametrize(("theirs_called", "ours_called"), [("swish", "silu"), ("relu", "relu"), ("gelu", "gelu")])
def test_marian(theirs_called: str, ours_called: str, shared: bool) -> None:
    reference = marian(theirs_called, shared)
    model, pairs = as_ours(reference, ours_called, shared)
    source, target = source_batch(random_rows([5, 9, 2])), target_batch(random_rows([7, 3, 4]))
    read, wanted = target.ids[:, :-1], target.ids[:, 1:]
    real = wanted != PAD
    ours_read = outputs_of([model.source_embedding, model.embedding])
    theirs_read = outputs_of([reference.model.encoder.embed_tokens, reference.model.decoder.embed_tokens])
    found = model.head(model(source, read))
    expected = reference(
        input_ids=source.ids,
        attention_mask=source.mask.long(),
        decoder_input_ids=read,
        decoder_attention_mask=(read != PAD).long(),
        use_cache=False,
    ).logits
    torch.testing.assert_close(found[real], expected[real], **CLOSE)
    for logits in (found, expected):
        F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=PAD, reduction="sum").backward()
    for pair in pairs:
        pair.compare_gradients()
    assert len(ours_read) == len(theirs_read) == 2
    for ours_part, theirs_part in zip(ours_read, theirs_read, strict=True):  # ours are scaled by √d already
        assert ours_part.grad is not None
        torch.testing.assert_close(ours_part.grad * WIDTH**0.5, theirs_part.grad, **CLOSE)

    with torch.no_grad():  # and so are the steps of a search
        memory = model.encode(source)
        cache = model.start(memory, 3, read.size(1))
        for position in range(read.size(1)):
            step, cache = model.step(read[:, position], torch.full((3,), position), memory, cache)
            live = real[:, position]
            torch.testing.assert_close(step[live], expected[live, position].log_softmax(-1).float(), **CLOSE)
