"""English word forms: plurals, third persons, pasts, comparatives, "a" or "an"."""

VOWELS = "aeiou"


def ends_in_sibilant(word: str) -> bool:
    return word.endswith(("s", "x", "z", "ch", "sh"))


def add_s(word: str) -> str:
    """The regular plural of a noun, which is also the regular third person of a verb."""
    if ends_in_sibilant(word) or word in ("go", "do"):
        return word + "es"
    if word.endswith("y") and word[-2] not in VOWELS:
        return word[:-1] + "ies"
    return word + "s"


def doubles_last(word: str) -> bool:
    """A short word such as "big" or "stop" that doubles its last letter before a vowel."""
    groups = sum(
        1 for before, letter in zip(" " + word, word, strict=False) if letter in VOWELS and before not in VOWELS
    )
    return (
        groups == 1
        and len(word) > 2
        and word[-1] not in VOWELS + "wxy"
        and word[-2] in VOWELS
        and (word[-3] not in VOWELS)
    )


def add_ending(word: str, ending: str) -> str:
    """`ending` ("ed", "er") after a verb or an adjective: loved, carried, bigger."""
    if word.endswith("e"):
        return word + ending[1:]
    if word.endswith("y") and word[-2] not in VOWELS:
        return word[:-1] + "i" + ending
    return (word + word[-1] if doubles_last(word) else word) + ending


def article(next_word: str) -> str:
    """ "a" or "an" by the sound of the next word."""
    if next_word.startswith(("honest", "hour")):
        return "an"
    if next_word.startswith(("uni", "use", "one", "eu")):
        return "a"
    return "an" if next_word[0].lower() in VOWELS else "a"
