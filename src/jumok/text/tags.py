"""Language tags (Johnson et al. 2017): a token before the source that says what is wanted, as in `<2de> I am here`.

One model then translates into several languages. A tag is a word of its own in the source vocabulary, with one of the
last ids. Like the other special tokens it is never looked for in text: a sentence that spells it is only a sentence.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from jumok.errors import BadInput
from jumok.text.tokenizer import Tokenizer


def with_tags(tokenizer: Tokenizer, names: Iterable[str]) -> Tokenizer:
    """The same vocabulary with these tags behind it; those it has already keep their ids."""
    new = [name for name in dict.fromkeys(names) if name not in tokenizer.tags]
    if not new:
        return tokenizer
    if tokenizer.kind == "sentencepiece":
        raise BadInput(f"the tag <{new[0]}>: an imported SentencePiece vocabulary takes no tags; leave them out")
    content = json.loads(tokenizer.content)
    vocabulary = content["model"]["vocab"]
    for id, token in enumerate((f"<{name}>" for name in new), tokenizer.size):
        if isinstance(vocabulary, list):  # unigram: a list of [piece, score]; no cut of a text can hold this piece
            vocabulary.append([token, min(score for _, score in vocabulary)])
        elif token in vocabulary:
            raise BadInput(f"the tag {token} is a word of the vocabulary already: choose another name")
        else:
            vocabulary[token] = id
    changed = json.dumps(content, ensure_ascii=False) + "\n"
    return Tokenizer(changed, tokenizer.kind, tokenizer.lowercase, [*tokenizer.tags, *new])


def find_tag(tokenizer: Tokenizer, tag: str | None) -> tuple[int, ...]:
    """What goes before the source's ids: `<2de>`, `2de` and `de` all mean the tag <2de>. A model's only one is a must.

    Nothing, where the vocabulary knows no tags and none is asked for.
    """
    if tag is None and len(tokenizer.tags) <= 1:
        return tuple(tokenizer.tags.values())
    known = ", ".join(tokenizer.tags)
    if tag is None:
        raise BadInput(f"this model writes several languages: say which one with --tag (there are: {known})")
    name = tag.strip().removeprefix("<").removesuffix(">")
    for candidate in (name, f"2{name}"):
        if candidate in tokenizer.tags:
            return (tokenizer.tags[candidate],)
    if not tokenizer.tags:
        raise BadInput(f'tag "{tag}": this model was trained without language tags, so it knows none')
    raise BadInput(f'no tag "{tag}": this model knows {known}')
