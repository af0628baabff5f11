"""BERT computes what `transformers` computes, from the same weights under any of their names."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from seeded import seed  # noqa: F401
from torch import Tensor, nn

from jumok.data.batch import Sequences
from jumok.errors import BadInput
from jumok.interop.bert import encoder_weights, hidden_words_weights, section_of, unknown
from jumok.models.bert import Bert, HiddenWords, Labels

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("seed")


def random_config() -> Any:
    heads = int(torch.randint(1, 5, ()))
    return transformers.BertConfig(
        vocab_size=int(torch.randint(20, 90, ())),
        hidden_size=heads * 2 * int(torch.randint(2, 9, ())),
        num_hidden_layers=int(torch.randint(1, 4, ())),
        num_attention_heads=heads,
        intermediate_size=int(torch.randint(8, 50, ())),
        max_position_embeddings=40,
        type_vocab_size=int(torch.randint(1, 4, ())),
        hidden_act=["gelu", "relu", "silu"][int(torch.randint(3, ()))],
        layer_norm_eps=[1e-12, 1e-7, 1e-5][int(torch.randint(3, ()))],
        initializer_range=0.2,
        num_labels=int(torch.randint(2, 6, ())),
    )


def random_texts(config: Any) -> tuple[Sequences, Tensor]:
    lengths = torch.randint(1, 12, (5,))
    rows = [torch.randint(1, config.vocab_size, (int(length),)).tolist() for length in lengths]
    words = Sequences.pad(rows)
    return words, torch.randint(config.type_vocab_size, words.ids.shape)


def ours_of(theirs: Any) -> Bert:
    config = theirs.config
    bert = Bert(section_of(config.to_dict()), config.vocab_size)
    found = encoder_weights(theirs.state_dict())
    missing = bert.load_state_dict(found, strict=False).missing_keys
    assert missing in ([], ["pooler.weight", "pooler.bias"])  # who guesses words has no pooler
    return bert.eval()


def inputs(words: Sequences, segments: Tensor) -> dict[str, Tensor]:
    return {"input_ids": words.ids, "attention_mask": words.mask.long(), "token_type_ids": segments}


def close(found: Tensor, expected: Tensor, words: Sequences | None = None) -> None:
    if words is not None:  # what is made of padding is nobody's business
        found, expected = found[words.mask], expected[words.mask]
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("turn", range(4))
def test_hidden_states_and_the_pooled_one(turn: int) -> None:
    config = random_config()
    theirs = transformers.BertModel(config).eval()
    words, segments = random_texts(config)
    bert = ours_of(theirs)
    with torch.no_grad():
        expected = theirs(**inputs(words, segments))
        hidden = bert(words, segments)
        close(hidden, expected.last_hidden_state, words)
        close(bert.pooled(hidden), expected.pooler_output)
        alone = theirs(input_ids=words.ids, attention_mask=words.mask.long()).last_hidden_state
        close(bert(words), alone, words)


def test_hidden_words(seed: int) -> None:  # noqa: F811
    config = random_config()
    theirs = transformers.BertForMaskedLM(config).eval()
    nn.init.normal_(theirs.cls.predictions.bias)
    words, segments = random_texts(config)
    head = HiddenWords(ours_of(theirs)).eval()
    head.load_state_dict(
        {**hidden_words_weights(theirs.state_dict()), **{f"reader.{k}": v for k, v in head.reader.state_dict().items()}}
    )
    with torch.no_grad():
        close(head.head(head.reader(words, segments)), theirs(**inputs(words, segments)).logits, words)


@pytest.mark.parametrize("kind", ["SequenceClassification", "TokenClassification", "QuestionAnswering"])
def test_heads_of_tasks(kind: str) -> None:
    config = random_config()
    if kind == "QuestionAnswering":
        config.num_labels = 2
    theirs = getattr(transformers, f"BertFor{kind}")(config).eval()
    words, segments = random_texts(config)
    bert = ours_of(theirs)
    labels = Labels(bert.section, config.num_labels).eval()
    last = theirs.qa_outputs if kind == "QuestionAnswering" else theirs.classifier
    labels.scores.load_state_dict(last.state_dict())
    with torch.no_grad():
        hidden, expected = bert(words, segments), theirs(**inputs(words, segments))
        if kind == "SequenceClassification":
            close(labels(bert.pooled(hidden)), expected.logits)
        elif kind == "TokenClassification":
            close(labels(hidden), expected.logits, words)
        else:
            both = torch.stack([expected.start_logits, expected.end_logits], dim=-1)
            close(labels(hidden), both, words)
    assert unknown(theirs.state_dict()) == [name for name in theirs.state_dict() if name.startswith(("qa_", "class"))]


def test_gradients_are_theirs_too() -> None:
    config = random_config()
    theirs = transformers.BertModel(config).eval()
    words, segments = random_texts(config)
    bert = ours_of(theirs)
    pull = torch.randn(*words.ids.shape, config.hidden_size) * words.mask[..., None]
    (bert(words, segments) * pull).sum().backward()
    (theirs(**inputs(words, segments)).last_hidden_state * pull).sum().backward()
    expected = encoder_weights({name: one.grad for name, one in theirs.named_parameters() if one.grad is not None})
    found = {name: one.grad for name, one in bert.named_parameters() if one.grad is not None}
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        if name == "embedding.weight":  # padding learns nothing here
            gradient, expected[name] = gradient[1:], expected[name][1:]
        scale = float(expected[name].abs().max()) + 1e-3
        torch.testing.assert_close(gradient / scale, expected[name] / scale, atol=1e-4, rtol=1e-4, msg=name)


def test_the_old_names_are_the_same_weights() -> None:
    theirs = transformers.BertModel(random_config())
    state = theirs.state_dict()

    def old(name: str) -> str:
        return "bert." + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")

    renamed = encoder_weights({old(name): tensor for name, tensor in state.items()})
    expected = encoder_weights(state)
    assert renamed.keys() == expected.keys()
    assert all(renamed[name] is expected[name] for name in expected)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model_type": "gpt2"}, "model_type is 'gpt2'"),
        ({"position_embedding_type": "relative_key"}, "relative_key"),
        ({"hidden_act": "gelu_new"}, "hidden_act 'gelu_new'"),
        ({"hidden_size": None}, "hidden_size"),
        ({"num_attention_heads": 7}, "config.json: hidden_size 32 is not divisible by num_attention_heads 7"),
        ({"num_hidden_layers": "two"}, "num_hidden_layers: it must be a whole number"),
        ({"is_decoder": True}, "is a decoder"),
    ],
)
def test_what_cannot_be_read_is_named(changes: dict[str, Any], told: str) -> None:
    config = transformers.BertConfig(hidden_size=32, num_attention_heads=4).to_dict()
    with pytest.raises(BadInput) as caught:
        section_of({**config, **changes})
    assert told in str(caught.value)


def test_a_missing_key_is_named() -> None:
    config = transformers.BertConfig().to_dict()
    del config["intermediate_size"]
    with pytest.raises(BadInput, match="missing key 'intermediate_size'"):
        section_of(config)
