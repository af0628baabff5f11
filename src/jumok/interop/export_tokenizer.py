"""A tokenizer for `transformers`: the same ids there as here, with the tokens around a text put there by it.

There, "[MASK]" in a text is the special token; here it is three words. That is the one thing that differs, on purpose.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

from jumok.interop.wordpiece import PLAIN, ROLES, SETTINGS, nobody
from jumok.text.tokenizer import Tokenizer
from jumok.text.wordpiece import KIND, LONGEST_WORD


def tokenizer_files(tokenizer: Tokenizer, limit: int, notes: list[str]) -> dict[str, str]:
    """tokenizer.json, tokenizer_config.json, special_tokens_map.json and, of BERT's own kind, vocab.txt."""
    content = json.loads(tokenizer.content)
    _leave_out_names_of_nobody(tokenizer, content)
    specials = {
        role: (tokenizer.pieces([id])[0], id)
        for role, id in zip(ROLES, astuple(tokenizer.specials), strict=True)
        if id is not None
    }
    content["added_tokens"] = _added(content.get("added_tokens") or [], specials.values())
    content["post_processor"] = _frame(specials["cls_token"], specials["sep_token"])
    names = {role: name for role, (name, _) in specials.items()}
    normalizer = content.get("normalizer") or {}
    config: dict[str, Any] = {
        "tokenizer_class": "BertTokenizer" if _is_plain_bert(tokenizer, content) else "PreTrainedTokenizerFast",
        "model_max_length": limit,
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        **names,
    }
    steps = normalizer.get("normalizers", [normalizer])
    bert = next((step for step in steps if step.get("type") == "BertNormalizer"), None)
    if bert is not None:
        config |= {theirs: bert.get(ours) for theirs, (ours, _) in SETTINGS.items()}
    files = {
        "tokenizer.json": json.dumps(content, ensure_ascii=False) + "\n",
        "tokenizer_config.json": json.dumps(config, ensure_ascii=False, indent=1) + "\n",
        "special_tokens_map.json": json.dumps(names, ensure_ascii=False, indent=1) + "\n",
    }
    if tokenizer.kind == KIND:
        own = content["model"]["vocab"]
        rows = sorted(own, key=own.__getitem__)
        if [own[token] for token in rows] == list(range(len(rows))) and not any("\n" in t or "\r" in t for t in rows):
            files["vocab.txt"] = "".join(f"{token}\n" for token in rows)
        else:
            notes.append("vocab.txt is left out: not every line of it would be the id of its token")
    return files


def _leave_out_names_of_nobody(tokenizer: Tokenizer, content: dict[str, Any]) -> None:
    """Vectors at the end that belong to no word have names here; there they have none."""
    if tokenizer.kind == KIND:
        vocabulary: dict[str, int] = content["model"]["vocab"]
        last = max(vocabulary.values())
        while vocabulary.get(nobody(last)) == last:
            del vocabulary[nobody(last)]
            last -= 1


def _added(before: Sequence[dict[str, Any]], specials: Any) -> list[dict[str, Any]]:
    found = {token["content"]: token for token in before}
    for name, id in specials:
        found[name] = {"id": id, "content": name, **PLAIN, "normalized": False, "special": True}
    return sorted(found.values(), key=lambda token: int(token["id"]))


def _frame(start: tuple[str, int], end: tuple[str, int]) -> dict[str, Any]:
    def special(name: str, segment: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": segment}}

    def text(name: str, segment: int) -> dict[str, Any]:
        return {"Sequence": {"id": name, "type_id": segment}}

    single = [special(start[0], 0), text("A", 0), special(end[0], 0)]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [*single, text("B", 1), special(end[0], 1)],
        "special_tokens": {name: {"id": name, "ids": [id], "tokens": [name]} for name, id in (start, end)},
    }


def _is_plain_bert(tokenizer: Tokenizer, content: dict[str, Any]) -> bool:
    """Their BertTokenizer makes its own normaliser and knows no words that were added; other tokenizers are read whole
    from tokenizer.json."""
    normalizer = content.get("normalizer") or {}
    return (
        tokenizer.kind == KIND
        and normalizer.get("type") == "BertNormalizer"
        and normalizer.get("clean_text") is True
        and content["model"].get("max_input_chars_per_word") == LONGEST_WORD
        and all(token["special"] for token in content["added_tokens"])
    )
