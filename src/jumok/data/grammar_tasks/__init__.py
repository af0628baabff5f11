"""Labelled data from the embedded grammar, for every task that learns from labels, without a file.

from jumok.data.grammar_tasks import grammar_questions
for question in grammar_questions("en", "train", 20_000):
    question.question, question.context, question.answers

The modules stand beside the grammar and not in it: `grammar.fingerprint` is a hash of that folder, and part of the keys
under which the pairs of earlier runs are stored.
"""

from functools import cache
from hashlib import blake2b
from pathlib import Path

from jumok.data import grammar
from jumok.data.grammar_tasks.examples import KINDS, grammar_examples
from jumok.data.grammar_tasks.inference import LABELS, grammar_pairs
from jumok.data.grammar_tasks.questions import grammar_questions
from jumok.data.grammar_tasks.similarity import grammar_similarity
from jumok.data.grammar_tasks.tags import ROLES, TAGS, grammar_tagged

__all__ = [
    "KINDS",
    "LABELS",
    "ROLES",
    "TAGS",
    "fingerprint",
    "grammar_examples",
    "grammar_pairs",
    "grammar_questions",
    "grammar_similarity",
    "grammar_tagged",
]


@cache
def fingerprint() -> str:
    """A hash of the grammar and of these rules: two with the same one give the same labelled data."""
    digest = blake2b(grammar.fingerprint().encode(), digest_size=16)
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()
