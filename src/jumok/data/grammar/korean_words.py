"""The Korean words and forms that belong to the grammar itself: pronouns, auxiliaries, honorifics."""

from functools import lru_cache

from jumok.data.grammar.hangul import KoreanPredicate, attach_particle, conjugate, copula, final_index, with_final
from jumok.data.grammar.lexicon import adjective_named, verb_named

PRONOUNS = ("저", "당신", "그", "그녀", "그것", "우리", "그들")
OWNERS = ("제", "당신의", "그의", "그녀의", "그것의", "우리", "그들의")
ADDRESS = {"sir": "선생님", "madam": "부인"}

NOT_DO = conjugate("않다")
NOT_SUCH = conjugate("않다", is_verb=False)
DO = conjugate("하다")
WISH = conjugate("싶다", is_verb=False)
BECOME = conjugate("되다")
THING = copula("것")  # the future: 먹을 것이다

KNOW = verb_named["know"].korean
NOT_KNOW = conjugate("모르다")  # 알지 않다 is not said

YOUNG = adjective_named["young"]
LITTLE = conjugate("어리다", is_verb=False)  # 젊다 is said of grown-up people alone
GROWING = frozenset(("animal", "boy", "girl", "child", "baby"))

EATS = conjugate("드시다")
HONORIFICS = {"먹": EATS, "마시": EATS, "자": conjugate("주무시다"), "있": conjugate("계시다")}

attach = lru_cache(maxsize=65536)(attach_particle)
copula_of = lru_cache(maxsize=1024)(copula)


@lru_cache(maxsize=1024)
def honorific(predicate: KoreanPredicate) -> KoreanPredicate:
    """With -(으)시-, of the person addressed: 가시다, 읽으시다, 여시다, 드시다, 학생이시다."""
    known = HONORIFICS.get(predicate.stem)
    if known is not None:
        return known
    stem = predicate.condition[:-1]
    stem = with_final(stem, "") if final_index(stem) == final_index("을") else stem
    made = conjugate(stem + "시다", is_verb=predicate.is_verb)
    if not predicate.plain.endswith("라"):
        return made
    return KoreanPredicate(
        made.stem, made.present, made.past, made.modifier, made.past_modifier, made.future, made.condition,
        made.formal, made.stem + "라", False,
    )  # fmt: skip
