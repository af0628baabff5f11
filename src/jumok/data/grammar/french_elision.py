"""The last pass over French words: elision, and the forms that a following vowel asks for."""

from jumok.data.grammar.alignment import Word
from jumok.data.grammar.french_morphology import VOWELS

ASPIRATED = frozenset(("héros", "hibou", "hiboux", "haut", "haute", "hauts", "hautes", "huit"))
ELIDED = frozenset(("je", "me", "te", "le", "la", "ne", "de", "que"))
BEFORE_VOWEL = {"ma": "mon", "ta": "ton", "sa": "son", "ce": "cet"}
KEPT = frozenset(("je", "me", "te", "ne", "que"))  # elided, they are still surely what they were


def vowel_sound(word: str) -> bool:
    """Whether elision happens before `word`."""
    return word[0] in VOWELS and word.rstrip(".,?") not in ASPIRATED


def elide(words: list[Word]) -> list[Word]:
    """le + étudiant -> l'étudiant, ma + amie -> mon amie, ce + homme -> cet homme, si + il -> s'il."""
    out: list[Word] = []
    words = words[::-1]
    while words:
        word = words.pop()
        text = word[0]
        if words:
            following = words[-1]
            if text in ELIDED and vowel_sound(following[0]):
                text, sure, possible, reference = word
                asking = text == "que" and out and out[-1][0].endswith("est-ce")
                if (text in KEPT and not asking) or reference < 0:  # a pronoun keeps its meaning, an article does not
                    following_sure, following_possible = sure | following[1], possible | following[2]
                else:
                    following_sure, following_possible = following[1], sure | possible | following[2]
                words[-1] = (
                    text[:-1] + "'" + following[0],
                    following_sure,
                    following_possible,
                    following[3] or reference,
                )
                continue
            if text in BEFORE_VOWEL and vowel_sound(following[0]):
                word = (BEFORE_VOWEL[text], word[1], word[2], word[3])
            elif text == "si" and following[0].rstrip(",") in ("il", "ils"):
                words[-1] = ("s'" + following[0], following[1] | word[1], following[2], following[3])
                continue
        out.append(word)
    return out
