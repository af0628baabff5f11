"""The embedded corpus: a synchronous grammar of English, French and Korean, with gold alignments and antecedents.

from jumok.data.grammar import pairs
for pair in pairs("en", "fr", "train", 20_000):
    pair.source, pair.target, pair.pharaoh()
"""

from jumok.data.grammar.corpus import DEFAULT_SIZE, LANGUAGES, SPLITS, Pair, fingerprint, pairs, vocabulary

__all__ = [
    "DEFAULT_SIZE",
    "LANGUAGES",
    "SPLITS",
    "Pair",
    "fingerprint",
    "pairs",
    "vocabulary",
]
