"""BERT's tokenizers as Hugging Face keeps them: the same ids here as there, for every text.

Two generations of files lie side by side. The older are `vocab.txt` (a token a line, its id the number of the line from
0), `tokenizer_config.json` (lower-casing, accents, names of the special tokens), `special_tokens_map.json` and
`added_tokens.json`. The newer, `tokenizer.json`, holds all of it. Where both are there the newer counts, and they have
to agree.

One thing is different on purpose: "[MASK]" in a text is three words here and never the special token. And one thing is
kept on purpose: lower-casing models strip accents unless told not to, which takes Hangul apart into its letters; they
were trained on such text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tokenizers

from jumok.errors import BadInput, shortly
from jumok.interop.json_file import MOST_BYTES, read_object_if_there
from jumok.text.tokenizer import Tokenizer
from jumok.text.wordpiece import GOES_ON, KIND, LONGEST_WORD, NAMES, document, find_specials

# their key → the normaliser's, and what it is where nobody says
SETTINGS: dict[str, tuple[str, bool | None]] = {
    "do_lower_case": ("lowercase", True),
    "strip_accents": ("strip_accents", None),
    "tokenize_chinese_chars": ("handle_chinese_chars", True),
}
ROLES = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")  # in the order of NAMES
# what may be done to a text before it is cut; none of these makes much of little
STEPS = ("BertNormalizer", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Strip", "Replace", "Nmt")
MOST_STEPS, MOST_TOKENS, MOST_ADDED = 8, 1 << 20, 1 << 16
PLAIN = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True}


def tokenizer_of(folder: Path) -> Tokenizer:
    """The tokenizer of a checkpoint's folder, with exactly its ids."""
    config = _config(folder)
    whole = read_object_if_there(folder / "tokenizer.json")
    lines = _vocabulary_lines(folder / "vocab.txt") if (folder / "vocab.txt").is_file() else None
    names = _names(folder, config, whole)
    if whole:
        where = folder / "tokenizer.json"
        vocabulary, normalizer, longest = _parts(whole, where)
        _agree(normalizer, config, where)
    elif lines is not None:
        where = folder / "vocab.txt"
        vocabulary, longest = lines, LONGEST_WORD
        chosen = {ours: config.get(theirs, default) for theirs, (ours, default) in SETTINGS.items()}
        normalizer = {"type": "BertNormalizer", "clean_text": True, **chosen}
    else:
        raise BadInput(f"{folder}: no tokenizer there; vocab.txt or tokenizer.json of the checkpoint is needed")
    added = _added(folder, config, whole, {*names, *_more_specials(folder, config)})
    if whole and lines is not None:
        _same_vocabulary(lines, {**vocabulary, **{one["content"]: one["id"] for one in added}}, folder)
    try:
        return _build(vocabulary, normalizer, names, longest, added)
    except Exception as error:  # the library's have no class of their own
        raise BadInput(f"{where}: {error}") from None


def filled(tokenizer: Tokenizer, rows: int) -> Tokenizer:
    """The same vocabulary with names for ids up to `rows` that no text becomes: checkpoints often have more vectors of
    words than words, since sizes like multiples of 64 are fast. So vocabulary and model are of one size."""
    if tokenizer.size == rows:
        return tokenizer
    content = json.loads(tokenizer.content)
    vocabulary = content["model"]["vocab"]
    apart = [token["content"] for token in content["added_tokens"] if token["content"] not in vocabulary]
    if apart:  # their ids come after the last of the model's
        raise BadInput(f'the token "{apart[0]}" was added to the vocabulary, and after it there are vectors of no word')
    vocabulary.update({nobody(id): id for id in range(tokenizer.size, rows)})
    more = json.dumps(content, ensure_ascii=False) + "\n"
    return Tokenizer(more, KIND, tokenizer.lowercase, (), tokenizer.specials)


def nobody(id: int) -> str:
    return f"[nothing-{id}]"


def _build(
    vocabulary: Mapping[str, int],
    normalizer: Mapping[str, Any],
    names: tuple[str, ...],
    longest: int,
    added: list[dict[str, Any]],
) -> Tokenizer:
    known = dict(vocabulary)
    searched = []
    for token in sorted(added, key=lambda token: token["id"]):
        content, id = token["content"], token["id"]
        if known.get(content, id) != id:
            raise BadInput(f'the added token "{content}" has id {id} in one place and {known[content]} in another')
        if token["special"]:
            known[content] = id
        else:
            searched.append(token)
            # In the model's vocabulary too, so that its id is sure, wherever that changes nothing: a text in which all
            # occurrences were found has no more of them.
            if token["normalized"] and not token["single_word"]:
                known[content] = id
    _fill_gaps(known, searched)
    content = document(known, normalizer, names[1], longest, searched)
    tokenizer = Tokenizer(content, KIND, _lowercase(normalizer), (), find_specials(known, names))
    for token in added:
        if token["special"] and token["content"] != names[1]:
            (row,) = tokenizer.encode([token["content"]])
            if token["id"] in row:
                raise BadInput(f'its special token "{token["content"]}" is something that a text can say')
    return tokenizer


def _fill_gaps(vocabulary: dict[str, int], added: Iterable[Mapping[str, Any]]) -> None:
    """Names for the ids that nobody has: of two equal lines in a vocab.txt, the first."""
    taken = {*vocabulary.values(), *(token["id"] for token in added)}
    both = {*vocabulary, *(token["content"] for token in added)}
    if len(taken) != len(both):
        raise BadInput("two tokens of the vocabulary have the same id")
    if max(taken, default=0) > 2 * len(taken):
        raise BadInput(f"the highest id is {max(taken):,}, and there are only {len(taken):,} tokens")
    # those after the model's own are numbered by the library, one after the other
    vocabulary.update({nobody(id): id for id in range(max(vocabulary.values(), default=0)) if id not in taken})


def _lowercase(normalizer: Mapping[str, Any]) -> bool:
    steps = normalizer.get("normalizers", [normalizer])
    return any(step.get("lowercase") or step.get("type") == "Lowercase" for step in steps)


def _vocabulary_lines(file: Path) -> dict[str, int]:
    try:
        if file.stat().st_size > MOST_BYTES:
            raise BadInput(f"{file}: more than {MOST_BYTES:,} bytes, which no vocabulary has; fetch the file again")
        with file.open(encoding="utf-8") as lines:  # by line ends alone: a token may be some other separator
            found = {line.rstrip("\n"): id for id, line in enumerate(lines)}
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{file}: not UTF-8 text ({error}); fetch the file again") from None
    if not found:
        raise BadInput(f"{file}: the file is empty")
    _refuse_many(len(found), str(file))
    return found


def _refuse_many(tokens: int, where: str) -> None:
    if tokens > MOST_TOKENS:
        raise BadInput(f"{where}: {tokens:,} tokens, more than any vocabulary has ({MOST_TOKENS:,})")


def _config(folder: Path) -> dict[str, Any]:
    file = folder / "tokenizer_config.json"
    config = read_object_if_there(file)
    for key in SETTINGS:
        allowed = (bool, type(None)) if key == "strip_accents" else (bool,)
        if key in config and not isinstance(config[key], allowed):
            raise BadInput(f"{file}: {key} is {shortly(config[key])}; it is true or false")
    if config.get("word_tokenizer_type", "basic") != "basic" or config.get("do_basic_tokenize") is False:
        raise BadInput(
            f"{file}: words are cut by another program before they are looked up; BERT's own way can be read"
        )
    return config


def _names(folder: Path, config: Mapping[str, Any], whole: Mapping[str, Any]) -> tuple[str, ...]:
    """What the special tokens are called, in the order of NAMES."""
    told = read_object_if_there(folder / "special_tokens_map.json")
    names = []
    for role, usual in zip(ROLES, NAMES, strict=True):
        name = _content(told.get(role)) or _content(config.get(role)) or usual
        if role == "unk_token" and isinstance(whole.get("model"), dict):
            name = _content(whole["model"].get("unk_token")) or name
        names.append(name)
    return tuple(names)


def _more_specials(folder: Path, config: Mapping[str, Any]) -> set[str]:
    found = set()
    for place in (read_object_if_there(folder / "special_tokens_map.json"), config):
        for key in ("additional_special_tokens", "extra_special_tokens"):
            listed = place.get(key) or ()
            listed = listed.values() if isinstance(listed, dict) else listed
            found |= {name for one in listed if (name := _content(one)) is not None}
    return found


def _content(token: Any) -> str | None:
    """A token is written as its text, or as an object that has it."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None


def _parts(whole: Mapping[str, Any], where: Path) -> tuple[dict[str, int], dict[str, Any], int]:
    """Vocabulary, normaliser and longest word of a tokenizer.json."""
    model, cutter = whole.get("model"), whole.get("pre_tokenizer")
    if not isinstance(model, dict):
        raise BadInput(f"{where}: no model in it; fetch the file again")
    kind = model.get("type", "WordPiece" if "max_input_chars_per_word" in model else None)  # the first files had none
    if kind != "WordPiece":
        raise BadInput(f"{where}: its model is {shortly(kind)}; only WordPiece, BERT's own, can be read here")
    if not isinstance(cutter, dict) or cutter.get("type") != "BertPreTokenizer":
        named = cutter.get("type") if isinstance(cutter, dict) else cutter
        raise BadInput(f"{where}: words are cut by {named}; only BertPreTokenizer can be read here")
    if model.get("continuing_subword_prefix", GOES_ON) != GOES_ON:
        raise BadInput(
            f"{where}: a word goes on with {shortly(model['continuing_subword_prefix'])}; only {GOES_ON} can be read"
        )
    vocabulary = model.get("vocab")
    if not isinstance(vocabulary, dict) or any(type(id) is not int or id < 0 for id in vocabulary.values()):
        raise BadInput(f"{where}: model.vocab is not a table of tokens and their ids; fetch the file again")
    _refuse_many(len(vocabulary), f"{where}: model.vocab")
    longest = model.get("max_input_chars_per_word", LONGEST_WORD)
    if type(longest) is not int or longest < 1:
        raise BadInput(f"{where}: model.max_input_chars_per_word is {shortly(longest)}; it must be a number above 0")
    return vocabulary, _normalizer(whole.get("normalizer"), where), longest


def _normalizer(told: Any, where: Path) -> dict[str, Any]:
    """As the library understands it: it also reads what is not written as it would write it."""
    _refuse_growth(told, where)
    try:
        content = document({NAMES[1]: 0}, told or {"type": "Sequence", "normalizers": []})
        found: dict[str, Any] = json.loads(tokenizers.Tokenizer.from_str(content).normalizer.__getstate__())
    except Exception as error:  # the library raises bare Exception
        raise BadInput(f"{where}: its normalizer cannot be read ({error})") from None
    return found


def _refuse_growth(told: Any, where: Path) -> None:
    """Forty steps that each write every letter twice make terabytes of one word."""
    steps = told.get("normalizers") if isinstance(told, dict) and told.get("type") == "Sequence" else [told or {}]
    if not isinstance(steps, list) or len(steps) > MOST_STEPS:
        raise BadInput(f"{where}: its normalizer is not a list of at most {MOST_STEPS} steps")
    for step in steps:
        kind = step.get("type") if isinstance(step, dict) else None
        if step and kind not in STEPS:
            raise BadInput(
                f"{where}: its normalizer cannot be read (its step {str(kind)[:40]} is none of {', '.join(STEPS)})"
            )
        if kind == "Replace" and len(str(step.get("content", ""))) > 1:
            raise BadInput(f"{where}: its normalizer puts more than a letter in the place of something (Replace)")


def _agree(normalizer: Mapping[str, Any], config: Mapping[str, Any], where: Path) -> None:
    """Programs differ in which of the two files they believe, so there must be nothing to choose."""
    steps = normalizer.get("normalizers", [normalizer])
    found = next((step for step in steps if isinstance(step, dict) and step.get("type") == "BertNormalizer"), None)
    if found is None:
        return
    for key, (ours, _) in SETTINGS.items():
        here, there = found.get(ours), config.get(key)
        if ours == "strip_accents":  # where nobody says, it goes with lower-casing
            here = found.get("lowercase") if here is None else here
            there = config.get("do_lower_case", found.get("lowercase")) if there is None else there
        if key in config and here != there:
            raise BadInput(
                f"{where}: {ours} is {_word(found.get(ours))}, but tokenizer_config.json beside it says {key} "
                f"{_word(config[key])}; correct the one that is wrong (models named uncased lower-case)"
            )


def _word(value: Any) -> str:
    return {True: "true", False: "false", None: "null"}.get(value, repr(value))


def _added(
    folder: Path, config: Mapping[str, Any], whole: Mapping[str, Any], specials: set[str]
) -> list[dict[str, Any]]:
    """Tokens that came to the vocabulary later: words of some field, which texts are searched for, or special ones."""
    if whole:
        where, entries = folder / "tokenizer.json", whole.get("added_tokens") or []
    elif config.get("added_tokens_decoder"):
        where, listed = folder / "tokenizer_config.json", config["added_tokens_decoder"]
        entries = [{**one, "id": _number(id)} for id, one in listed.items()] if isinstance(listed, dict) else None
    else:
        where = folder / "added_tokens.json"
        entries = [{"id": id, "content": content} for content, id in read_object_if_there(where).items()]
    if isinstance(entries, list) and len(entries) > MOST_ADDED:
        raise BadInput(f"{where}: {len(entries):,} added tokens, more than any vocabulary has ({MOST_ADDED:,})")
    found = []
    for entry in entries if isinstance(entries, list) else [None]:
        if not isinstance(entry, dict) or type(entry.get("id")) is not int or not entry.get("content"):
            raise BadInput(f"{where}: the added tokens are damaged ({str(entry)[:200]}); fetch the file again")
        flags = {flag: bool(entry.get(flag, usual)) for flag, usual in PLAIN.items()}
        special = bool(entry.get("special")) or entry["content"] in specials
        found.append({"id": entry["id"], "content": str(entry["content"]), **flags, "special": special})
    return found


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _same_vocabulary(lines: Mapping[str, int], vocabulary: Mapping[str, int], folder: Path) -> None:
    for token, id in lines.items():
        # tokens that end in a blank are read differently by different programs
        if token and token == token.rstrip() and vocabulary.get(token) != id:
            told = "not there" if token not in vocabulary else f"id {vocabulary[token]}"
            raise BadInput(
                f'{folder / "vocab.txt"}, line {id + 1}: "{token}" has id {id}, in tokenizer.json it is {told}; '
                "they are of different models: take away the wrong one"
            )
