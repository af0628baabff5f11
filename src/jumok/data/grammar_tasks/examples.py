"""Sentences with what kind of sentence they are: a data set for classification.

The label is that of the main clause, read off the tree. Closing marks stay: without "?" a Korean yes-no question is the
statement, letter by letter. A mark alone tells no label, though, and neither does a single word: "not" and "more than"
also stand in the side clauses of plain statements, "who", "that" and "when" in statements as well as in questions.
"""

from __future__ import annotations

from collections.abc import Iterator

from jumok.data.examples import Example
from jumok.data.grammar import tree
from jumok.data.grammar.corpus import text_of
from jumok.data.grammar.tree import Clause, Sentence
from jumok.data.grammar_tasks.drawing import Drawer, Seen, belongs, checked, rounds

KINDS = ("statement", "negation", "comparison", "order", "yes-no question", "open question")
OPEN = (tree.WHO_DOES, tree.DOES_WHAT, tree.WHERE, tree.WHY, tree.WHEN)


def kind_of(sentence: Sentence) -> str:
    """The kind of a sentence of one unit."""
    clause = sentence.units[0].clause
    if clause.kind == tree.ORDER:
        return "order"
    if clause.question:
        return "yes-no question" if clause.question == tree.YES_NO else "open question"
    if clause.kind == tree.COMPARISON:
        return "comparison"
    return "negation" if clause.negative else "statement"


def draw(drawer: Drawer, kind: str) -> Sentence:
    """A sentence that is likely to be of `kind`."""
    sentence = drawer.begin()
    unit = sentence.units[0]
    if drawer.random() < 0.04:
        sentence.address = "sir" if drawer.random() < 0.5 else "madam"
    if kind == "order":
        unit.clause = drawer.order()
    elif kind == "yes-no question":
        unit.clause = drawer.clause(question=tree.YES_NO)
    elif kind == "open question":
        unit.clause = drawer.clause(question=drawer.pick(OPEN))
    elif kind == "comparison":
        unit.clause = drawer.compared()
        if drawer.chance(0.4, 3):
            unit.relation, unit.side = "because", drawer.clause(unit.clause, embedded=True)
    elif drawer.random() < 0.05:
        unit.clause = drawer.existence()
    else:
        drawer.unit(unit, None)
        side: Clause | None = unit.side
        if side is not None and kind == "statement" and side.kind in (tree.ACTION, tree.DESCRIPTION):
            # a denial beside the main clause: the word alone must not tell the label
            side.negative = side.negative or (drawer.random() < 0.5 and side.frequency is None and side.then is None)
    if kind == "negation" and unit.clause.kind != tree.COMPARISON:
        clause = unit.clause
        clause.negative = clause.frequency is None and clause.complement is None and clause.then is None
    return sentence


def grammar_examples(language: str, split: str, count: int, seed: int = 1) -> Iterator[Example]:
    """`count` distinct sentences, each with its kind as the label: one of `KINDS`, all equally often.

    The same for the same arguments on every machine; no content of one split is in another (`corpus.split_of`).
    """
    say = checked(language, split, count)
    drawer, seen = Drawer(seed), Seen()
    kinds = rounds(drawer, KINDS)
    for _ in range(count):
        kind = next(kinds)
        while True:
            sentence = draw(drawer, kind)
            if kind_of(sentence) != kind or not belongs(sentence, split):
                continue
            text = text_of(say(sentence))
            if not seen.before(text):
                break
        yield Example(text=text, label=kind)
