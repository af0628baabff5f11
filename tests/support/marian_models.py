"""Small random Marian models in folders as Hugging Face keeps them, with SentencePiece models trained on the spot."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import torch

PARTS = ["ba", "ko", "ri", "tan", "é", "été", "ç", "zu", "Mo", "li", "n", "s", "ing", "가", "나다", "ﬁ", "ñ"]


def sentence(dice: random.Random) -> str:
    words = ("".join(dice.choices(PARTS, k=dice.randint(1, 4))) for _ in range(dice.randint(1, 10)))
    return " ".join(word + dice.choice(["", "", ",", "."]) for word in words)


def sentencepiece_file(dice: random.Random, upper: bool = False, kind: str = "unigram", **options: Any) -> bytes:
    import sentencepiece

    lines = [sentence(dice) for _ in range(600)]
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(line.upper() if upper else line for line in lines),
        model_writer=made,
        model_type=kind,
        **{"vocab_size": 90, "character_coverage": 0.99, "minloglevel": 2, **options},
    )
    return made.getvalue()


def pieces_of(file: bytes) -> list[str]:
    import sentencepiece

    library = sentencepiece.SentencePieceProcessor(model_proto=file)
    return [library.id_to_piece(id) for id in range(library.get_piece_size()) if not library.is_control(id)][1:]


def write_vocabularies(
    folder: Path, dice: random.Random, separate: bool = False, kind: str = "unigram"
) -> list[dict[str, int]]:
    """Both .spm files and the ids; a few pieces have none, as in real checkpoints."""
    files = {"source.spm": sentencepiece_file(dice, kind=kind), "target.spm": sentencepiece_file(dice, True, kind)}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    sides = [[*pieces_of(content)] for content in files.values()]
    groups = sides if separate else [[*sides[0], *sides[1]]]
    found = []
    for group in groups:
        kept = [piece for piece in dict.fromkeys(group) if dice.random() < 0.97]
        names = ["</s>", "<unk>", *kept, ">>fra<<", ">>deu<<"]
        found.append({name: id for id, name in enumerate([*names, "<pad>"])})
    if separate:  # one padding id for both, as config.json has it
        last = max(len(ids) for ids in found) - 1
        for ids in found:
            ids["<pad>"] = last
    for name, ids in zip(("vocab.json", "target_vocab.json"), found, strict=False):
        (folder / name).write_text(json.dumps(ids), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"source_lang": "eng", "target_lang": "fra", "separate_vocabs": separate})
    )
    return found


def write_model(folder: Path, vocabularies: list[dict[str, int]], **changes: Any) -> Any:
    """A random model whose translations end sooner or later; returned in float32."""
    from transformers import MarianConfig, MarianMTModel

    pad = vocabularies[0]["<pad>"]
    separate = len(vocabularies) == 2
    options: dict[str, Any] = {
        "vocab_size": pad + 1, "decoder_vocab_size": pad + 1, "d_model": 32, "encoder_layers": 2, "decoder_layers": 3,
        "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
        "activation_function": "swish", "scale_embedding": True, "pad_token_id": pad, "decoder_start_token_id": pad,
        "eos_token_id": 0, "forced_eos_token_id": 0, "max_position_embeddings": 64, "init_std": 0.3,
        "share_encoder_decoder_embeddings": not separate, "bad_words_ids": [[pad]], "num_beams": 5,
        "normalize_before": False, "static_position_embeddings": True,
    }  # fmt: skip
    options |= changes
    beams = {key: options.pop(key) for key in ("bad_words_ids", "num_beams")}
    for _ in range(100):
        model = MarianMTModel(MarianConfig(**options)).eval()
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.data.add_(0.1 * torch.randn_like(parameter))
        model.final_logits_bias.normal_()
        if _ends_variously(model):
            break
    else:
        raise AssertionError("a hundred random models whose translations all end at the same place")
    model.save_pretrained(folder)
    known = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps(known | beams))
    return model


def _ends_variously(model: Any) -> bool:
    """Whether </s> comes sooner or later, when its bias is made to."""
    sources = torch.randint(2, model.config.pad_token_id, (8, 6))
    for bias in (2.0, 4.0, 6.0, 8.0):
        model.final_logits_bias[0, 0] = bias
        never = [[model.config.pad_token_id]]
        rows = model.generate(input_ids=sources, max_new_tokens=20, num_beams=3, bad_words_ids=never)
        lengths = {*(rows[:, 1:] == 0).int().argmax(1).tolist()}
        if len(lengths) > 2:
            return True
    return False


def write_marian(folder: Path, dice: random.Random, separate: bool = False, **changes: Any) -> Any:
    folder.mkdir(exist_ok=True)
    return write_model(folder, write_vocabularies(folder, dice, separate), **changes)
