"""The corpus: sampled trees, split, said in two languages and aligned.

The split of a sentence is decided by its content words alone (their concepts, whatever the language, order, tense or
article), so no sentence of one split can be found in another on either side, whatever seeds and sizes are asked for.
Sentences of a single content word are always for training.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path

from jumok.data.grammar import english
from jumok.data.grammar.alignment import Links, Word, align, antecedents
from jumok.data.grammar.french import French
from jumok.data.grammar.korean import Korean
from jumok.data.grammar.lexicon import adjectives, adverbs, nouns, that_verbs, verbs
from jumok.data.grammar.named import i_am_a_student, the_hungry_dog
from jumok.data.grammar.sampler import Sampler
from jumok.data.grammar.tree import Sentence
from jumok.data.pharaoh import format_pharaoh

LANGUAGES = ("en", "fr", "ko")
SPLITS = ("train", "valid", "test")
DEFAULT_SIZE = 11
REMEMBERED = 1_000_000  # sentences kept distinct in one call; later ones are only checked against these


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence, its translation, and how their words correspond.

    A word is what stands between spaces: "l'étudiant," is one. Links are (source word, target word), from 0.
    """

    source: str
    target: str
    sure: Links
    possible: Links  # all the links: a superset of `sure`
    antecedents: Links  # in the source: (pronoun word, antecedent word)
    target_antecedents: Links

    def pharaoh(self) -> str:
        """The links in one line, `i-j` sure and `i?j` possible."""
        return format_pharaoh(self.sure, self.possible)


def speaker(language: str) -> Callable[[Sentence], list[Word]]:
    """What says a tree in `language`."""
    if language == "en":
        return english.say
    if language == "fr":
        return French().say
    if language == "ko":
        return Korean().say
    raise ValueError(f"no language {language!r} in the embedded grammar; it has {', '.join(LANGUAGES)}")


def split_of(sentence: Sentence) -> str:
    """ "train", "valid" or "test", by a stable hash of the concepts said: 80, 10 and 10 of a hundred."""
    concepts = sentence.concepts
    if len(concepts) < 2:
        return "train"
    digest = blake2b("|".join(sorted(concepts)).encode(), digest_size=2).digest()
    place = (digest[0] << 8 | digest[1]) % 10
    return "valid" if place == 0 else "test" if place == 1 else "train"


def trees(split: str, seed: int, size: int) -> Iterator[Sentence]:
    """The trees of a split, without end; the named sentences stand first."""
    if split not in SPLITS:
        raise ValueError(f"no split {split!r}; there are {', '.join(SPLITS)}")
    for named in (i_am_a_student(), the_hungry_dog()):
        if split_of(named) == split:
            yield named
    sampler = Sampler(seed, size)
    while True:
        sentence = sampler.sentence()
        if split_of(sentence) == split:
            yield sentence


def text_of(words: list[Word]) -> str:
    return " ".join([word[0] for word in words])


def pairs(source: str, target: str, split: str, count: int, seed: int = 1, size: int = DEFAULT_SIZE) -> Iterator[Pair]:
    """`count` pairs whose source sentences are distinct, the same for the same arguments on every machine.

    `size` is the budget of English words: up to 15, most sentences are shorter than it and a few are longer; beyond,
    they are all statements of about that length, with no upper limit. The first
    `REMEMBERED` sentences of a call are distinct from all others; beyond them a sentence may come again.
    """
    say_source, say_target = speaker(source), speaker(target)
    if source == target:
        raise ValueError(f"source and target are both {source!r}")
    seen: set[int] = set()
    stream = trees(split, seed, size)
    while count > 0:
        sentence = next(stream)
        words = say_source(sentence)
        text = text_of(words)
        key = int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
        if key in seen:
            continue
        if len(seen) < REMEMBERED:
            seen.add(key)
        translation = say_target(sentence)
        sure, possible = align(words, translation)
        yield Pair(text, text_of(translation), sure, possible, antecedents(words), antecedents(translation))
        count -= 1


def vocabulary(language: str) -> list[str]:
    """The content words of a language in their dictionary forms: nouns, verbs, adjectives, adverbs."""
    if language == "en":
        words = [noun.name for noun in nouns] + [verb.name for verb in (*verbs, *that_verbs)]
        words += [adjective.name for adjective in adjectives] + [adverb.name for adverb in adverbs]
    elif language == "fr":
        words = [noun.french[0] for noun in nouns] + [verb.french.infinitive for verb in (*verbs, *that_verbs)]
        words += [adjective.french[0] for adjective in adjectives] + [adverb.french for adverb in adverbs]
    elif language == "ko":
        words = [noun.korean for noun in nouns] + [verb.korean.stem + "다" for verb in (*verbs, *that_verbs)]
        words += [adjective.korean.stem + "다" for adjective in adjectives] + [adverb.korean for adverb in adverbs]
    else:
        raise ValueError(f"no language {language!r} in the embedded grammar; it has {', '.join(LANGUAGES)}")
    return list(dict.fromkeys(words))


@cache
def fingerprint() -> str:
    """A hash of the grammar itself, rules and words: two with the same one speak the same sentences."""
    digest = blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()
