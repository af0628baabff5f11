"""Words with the bits of the tree they express, and the links where the words of two languages meet.

A word is `(text, sure, possible, reference)`. `sure` holds the bits it stands for, `possible` those that are only fused
into it (the article in l'étudiant, the tense in a Korean verb). `reference` is the entity a head noun names, or
minus the entity a pronoun points to.
"""

Word = tuple[str, int, int, int]
Links = tuple[tuple[int, int], ...]


def align(source: list[Word], target: list[Word]) -> tuple[Links, Links]:
    """The sure links and all the possible ones (a superset), in order of the source."""
    sure: list[tuple[int, int]] = []
    possible: list[tuple[int, int]] = []
    for i, (_, source_sure, source_possible, _) in enumerate(source):
        source_all = source_sure | source_possible
        for j, (_, target_sure, target_possible, _) in enumerate(target):
            if source_all & (target_sure | target_possible):
                possible.append((i, j))
                if source_sure & target_sure:
                    sure.append((i, j))
    return tuple(sure), tuple(possible)


def antecedents(words: list[Word]) -> Links:
    """(pronoun word, antecedent head word) for every pronoun whose antecedent is named."""
    heads: dict[int, int] = {}
    for index, word in enumerate(words):
        if word[3] > 0 and word[3] not in heads:
            heads[word[3]] = index
    return tuple(
        (index, heads[-word[3]])
        for index, word in enumerate(words)
        if word[3] < 0 and -word[3] in heads and heads[-word[3]] != index
    )
