"""What the `config.json` of a Marian model (MarianMT, OPUS-MT) says, as a section of ours, and back.

Everything that the computation depends on must be there: the defaults of the library's class are not those of its
checkpoints (its activation is gelu, theirs swish; it does not scale word vectors, they do). What no checkpoint of this
house can express is refused with the key that stands in the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from jumok.errors import BadInput, shortly
from jumok.interop.outgoing import refuse
from jumok.recipe import TransformerSection
from jumok.recipe.reading import plainer

ACTIVATIONS = {"swish": "silu", "silu": "silu", "relu": "relu", "gelu": "gelu"}
SIZES = (
    "d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads",
    "encoder_ffn_dim", "decoder_ffn_dim", "max_position_embeddings", "vocab_size",
)  # fmt: skip
OTHERS = ("activation_function", "scale_embedding", "pad_token_id", "eos_token_id", "decoder_start_token_id")
# what must be so, where it is said at all: the library's own code knows no other way
FIXED: dict[str, Any] = {
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
    "extra_pos_embeddings": 0,
    "add_bias_logits": False,
}
MOST_POSITIONS = 1 << 20  # a table of sines may not be in the file, so that nothing else says how long it is
# how a translation is looked for there and not here; what each is where it changes nothing
UNKNOWN_SEARCH: dict[str, tuple[Any, ...]] = {
    "repetition_penalty": (1,), "encoder_repetition_penalty": (1,), "encoder_no_repeat_ngram_size": (0,),
    "min_length": (0, 1), "min_new_tokens": (0, 1), "do_sample": (False,), "num_beam_groups": (1,),
    "forced_bos_token_id": (), "suppress_tokens": ([],), "begin_suppress_tokens": ([],), "sequence_bias": ({},),
}  # fmt: skip
# what both halves have one number for here
SAME = (("encoder_attention_heads", "decoder_attention_heads"), ("encoder_ffn_dim", "decoder_ffn_dim"))


def section_of(config: Mapping[str, Any], where: str) -> TransformerSection:
    """The model that a configuration describes."""
    if config.get("model_type") != "marian":
        raise BadInput(f"{where}: model_type is {shortly(config.get('model_type'))}; only marian can be read here")
    for key in (*SIZES, *OTHERS):
        if config.get(key) is None:
            raise BadInput(
                f"{where}: missing key {key!r}; the library's default is not what the model was trained with"
            )
    for key in SIZES:
        if type(config[key]) is not int or config[key] < 1:
            raise BadInput(f"{where}: {key} is {shortly(config[key])}; it must be a number above 0")
    if config["max_position_embeddings"] > MOST_POSITIONS:
        raise BadInput(
            f"{where}: max_position_embeddings is {config['max_position_embeddings']:,}, more than any "
            f"model has ({MOST_POSITIONS:,}); fetch the file again"
        )
    for key, value in FIXED.items():
        if key in config and config[key] is not None and config[key] != value:
            raise BadInput(f"{where}: {key} is {shortly(config[key])}; only models with {shortly(value)} can be read")
    for first, second in SAME:
        if config[first] != config[second]:
            sizes = f"{first} {shortly(config[first])} and {second} {shortly(config[second])}"
            raise BadInput(f"{where}: {sizes} differ; they must be equal")
    activation = config["activation_function"]
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise BadInput(f"{where}: activation_function {shortly(activation)} is not one of {known}")
    if config["scale_embedding"] is not True:
        scaled = shortly(config["scale_embedding"])
        raise BadInput(f"{where}: scale_embedding is {scaled}; word vectors are scaled by √d here")
    if config["decoder_start_token_id"] != config["pad_token_id"]:
        raise BadInput(
            f"{where}: decoder_start_token_id {shortly(config['decoder_start_token_id'])} is not pad_token_id "
            f"{shortly(config['pad_token_id'])}; Marian's decoders begin with the padding token (a translator that "
            "jumok has exported begins otherwise, and cannot be imported: keep its run)"
        )
    try:
        return TransformerSection(
            width=config["d_model"],
            heads=config["encoder_attention_heads"],
            encoder_layers=config["encoder_layers"],
            decoder_layers=config["decoder_layers"],
            feed_forward=config["encoder_ffn_dim"],
            activation=ACTIVATIONS[activation],
            norm="post",
            position="sinusoidal-halves",
            max_positions=config["max_position_embeddings"],
            tie_embeddings=tied(config, where),
            dropout=config.get("dropout", 0.1),
            attention_dropout=config.get("attention_dropout", 0.0),
            activation_dropout=config.get("activation_dropout", 0.0),
        )
    except ValidationError as error:
        wrong = error.errors()[0]
        key = f"{wrong['loc'][0]}: " if wrong["loc"] else ""  # of dropouts, which are called the same here
        raise BadInput(f"{where}: {key}{plainer(wrong)}") from None


def shares(config: Mapping[str, Any]) -> bool:
    """One vocabulary for both sides; older configurations do not say so."""
    return config.get("share_encoder_decoder_embeddings", True) is not False


def tied(config: Mapping[str, Any], where: str) -> str:
    output = config.get("tie_word_embeddings", True) is not False
    if shares(config) and not output:
        raise BadInput(
            f"{where}: tie_word_embeddings is false while both sides share word vectors "
            "(share_encoder_decoder_embeddings); an output layer of its own cannot be read then"
        )
    return "all" if shares(config) else "target" if output else "none"


def target_rows(config: Mapping[str, Any], where: str) -> int:
    """Word vectors of the target."""
    rows = config["vocab_size"] if shares(config) else config.get("decoder_vocab_size") or config["vocab_size"]
    if type(rows) is not int or rows < 1:
        raise BadInput(f"{where}: decoder_vocab_size is {shortly(rows)}; it must be the number of word vectors")
    return rows


def token_id(config: Mapping[str, Any], key: str, where: str) -> int:
    value = config[key][0] if isinstance(config[key], list) and len(config[key]) == 1 else config[key]
    if type(value) is not int or value < 0:
        raise BadInput(f"{where}: {key} is {shortly(config[key])}; it must be the id of a token")
    return value


def search_of(config: Mapping[str, Any], generation: Mapping[str, Any]) -> dict[str, Any]:
    """How the library would search: what generation_config.json says, else config.json, else its own defaults."""

    def told(key: str, otherwise: Any) -> Any:
        value = generation.get(key, config.get(key))
        return otherwise if value is None else value

    early = told("early_stopping", False)
    penalty = told("length_penalty", 1.0)
    return {
        "beam": told("num_beams", 1),
        "length_penalty": penalty if isinstance(penalty, int | float) and penalty >= 0 else 1.0,
        "no_repeat_ngram": told("no_repeat_ngram_size", 0),
        "patience": 1.0 if early is True else None,
        "stopping": "exact" if early == "never" else "transformers",
    }


def not_searched(config: Mapping[str, Any], generation: Mapping[str, Any]) -> list[str]:
    """A sentence about what is asked of searches there that none does here."""
    told = {**config, **generation}
    found = [
        f"{key} {shortly(told[key])}"
        for key, usual in UNKNOWN_SEARCH.items()
        if told.get(key) is not None and told[key] not in usual
    ]
    penalty = told.get("length_penalty")
    if penalty is not None and not (isinstance(penalty, int | float) and penalty >= 0):
        found.append(f"length_penalty {shortly(penalty)} (it is 1 here)")
    never = told.get("bad_words_ids")
    if never and never != [[told.get("pad_token_id")]]:
        found.append("bad_words_ids besides the padding")
    return [f"its searches differ there, none does this here: {', '.join(found)}"[:400]] if found else []


def config_of(section: TransformerSection, source_rows: int, target_rows: int) -> dict[str, Any]:
    """The configuration of a model that was trained here; a key of the recipe that Marian has no word for is named."""
    wanted: dict[str, tuple[Any, ...]] = {
        "norm": ("post",), "norm_kind": ("layer",), "final_norm": (None, False), "reader": (None,),
        "position": ("sinusoidal-halves",), "activation": ("relu", "gelu", "silu"),
        "key_value_heads": (None, section.heads),
    }  # fmt: skip
    refuse(section, wanted, "Marian")
    shared = section.tie_embeddings == "all"
    return {
        "model_type": "marian", "architectures": ["MarianMTModel"], "is_encoder_decoder": True,
        "d_model": section.width, "encoder_layers": section.encoder_layers, "decoder_layers": section.decoder_layers,
        "encoder_attention_heads": section.heads, "decoder_attention_heads": section.heads,
        "encoder_ffn_dim": section.feed_forward, "decoder_ffn_dim": section.feed_forward,
        "activation_function": {"silu": "swish"}.get(section.activation, section.activation),
        "scale_embedding": True, "normalize_before": False, "normalize_embedding": False,
        "add_final_layer_norm": False, "static_position_embeddings": True,
        "dropout": section.dropout, "attention_dropout": section.attention_dropout,
        "activation_dropout": section.activation_dropout,
        "share_encoder_decoder_embeddings": shared, "tie_word_embeddings": section.tie_embeddings != "none",
        "vocab_size": source_rows, "decoder_vocab_size": target_rows,
        "max_position_embeddings": section.max_positions,
    }  # fmt: skip
