"""French word forms: plurals, feminines, and the conjugation of every verb of the lexicon.

A verb is conjugated into its present (six persons), its imperfect and future stems, and its participle. Irregular verbs
are families: "apprendre" takes the forms of "prendre" behind its own prefix.
"""

from dataclasses import dataclass

IMPERFECT = ("ais", "ais", "ait", "ions", "iez", "aient")
FUTURE = ("ai", "as", "a", "ons", "ez", "ont")
VOWELS = frozenset("aeiouyhàâäéèêëîïôöùûüœæAEIOUYHÀÂÄÉÈÊËÎÏÔÖÙÛÜŒÆ")


@dataclass(frozen=True, slots=True)
class FrenchVerb:
    """Every form this grammar uses; persons are je, tu, il, nous, vous, ils."""

    infinitive: str
    present: tuple[str, ...]
    imperfect: tuple[str, ...]
    future: tuple[str, ...]
    participle: str
    with_etre: bool = False


# infinitive: present, stem of the future, participle (the imperfect comes from the first person plural)
IRREGULAR: dict[str, tuple[str, str, str]] = {
    "être": ("suis es est sommes êtes sont", "ser", "été"),
    "avoir": ("ai as a avons avez ont", "aur", "eu"),
    "aller": ("vais vas va allons allez vont", "ir", "allé"),
    "venir": ("viens viens vient venons venez viennent", "viendr", "venu"),
    "dire": ("dis dis dit disons dites disent", "dir", "dit"),
    "voir": ("vois vois voit voyons voyez voient", "verr", "vu"),
    "savoir": ("sais sais sait savons savez savent", "saur", "su"),
    "pouvoir": ("peux peux peut pouvons pouvez peuvent", "pourr", "pu"),
    "vouloir": ("veux veux veut voulons voulez veulent", "voudr", "voulu"),
    "devoir": ("dois dois doit devons devez doivent", "devr", "dû"),
    "recevoir": ("reçois reçois reçoit recevons recevez reçoivent", "recevr", "reçu"),
    "prendre": ("prends prends prend prenons prenez prennent", "prendr", "pris"),
    "écrire": ("écris écris écrit écrivons écrivez écrivent", "écrir", "écrit"),
    "décrire": ("décris décris décrit décrivons décrivez décrivent", "décrir", "décrit"),
    "boire": ("bois bois boit buvons buvez boivent", "boir", "bu"),
    "croire": ("crois crois croit croyons croyez croient", "croir", "cru"),
    "connaître": ("connais connais connaît connaissons connaissez connaissent", "connaîtr", "connu"),
    "disparaître": ("disparais disparais disparaît disparaissons disparaissez disparaissent", "disparaîtr", "disparu"),
    "ouvrir": ("ouvre ouvres ouvre ouvrons ouvrez ouvrent", "ouvrir", "ouvert"),
    "offrir": ("offre offres offre offrons offrez offrent", "offrir", "offert"),
    "cueillir": ("cueille cueilles cueille cueillons cueillez cueillent", "cueiller", "cueilli"),
    "dormir": ("dors dors dort dormons dormez dorment", "dormir", "dormi"),
    "courir": ("cours cours court courons courez courent", "courr", "couru"),
    "rire": ("ris ris rit rions riez rient", "rir", "ri"),
    "suivre": ("suis suis suit suivons suivez suivent", "suivr", "suivi"),
    "conduire": ("conduis conduis conduit conduisons conduisez conduisent", "conduir", "conduit"),
    "construire": ("construis construis construit construisons construisez construisent", "construir", "construit"),
    "détruire": ("détruis détruis détruit détruisons détruisez détruisent", "détruir", "détruit"),
    "traduire": ("traduis traduis traduit traduisons traduisez traduisent", "traduir", "traduit"),
    "peindre": ("peins peins peint peignons peignez peignent", "peindr", "peint"),
    "craindre": ("crains crains craint craignons craignez craignent", "craindr", "craint"),
    "battre": ("bats bats bat battons battez battent", "battr", "battu"),
}
PREFIXES = ("sur", "com", "ap", "re", "sou", "pour")


def _last_vowel_opened(stem: str) -> str:
    """The stem before a silent ending: achet- -> achèt-, appel- -> appell-, protég- -> protèg-."""
    if stem.endswith(("appel", "jet")):
        return stem + stem[-1]
    if len(stem) > 2 and stem[-2] in "eé":
        return stem[:-2] + "è" + stem[-1]
    return stem


def _first_group(infinitive: str) -> FrenchVerb:
    stem = infinitive[:-2]
    soft = stem + "e" if stem.endswith("g") else stem[:-1] + "ç" if stem.endswith("c") else stem
    silent = stem[:-1] + "i" if stem.endswith(("oy", "uy")) else stem
    if not stem.endswith(("oy", "uy")) and stem[-1] not in "aeiouéèy":
        silent = _last_vowel_opened(stem)
    future = "enverr" if infinitive == "envoyer" else (stem if "é" in stem[-3:] else silent) + "er"
    imperfect = tuple((stem if ending[0] == "i" else soft) + ending for ending in IMPERFECT)
    present = (silent + "e", silent + "es", silent + "e", soft + "ons", stem + "ez", silent + "ent")
    return FrenchVerb(infinitive, present, imperfect, tuple(future + ending for ending in FUTURE), stem + "é")


def conjugate(infinitive: str, with_etre: bool = False) -> FrenchVerb:
    """All the forms of `infinitive`."""
    prefix, base = "", infinitive
    if base not in IRREGULAR:
        for candidate in PREFIXES:
            if infinitive.startswith(candidate) and infinitive[len(candidate) :] in IRREGULAR:
                prefix, base = candidate, infinitive[len(candidate) :]
    if base in IRREGULAR:
        forms, future, participle = IRREGULAR[base]
        present = tuple(prefix + form for form in forms.split())
        future, participle = prefix + future, prefix + participle
    elif infinitive.endswith("er"):
        verb = _first_group(infinitive)
        return FrenchVerb(verb.infinitive, verb.present, verb.imperfect, verb.future, verb.participle, with_etre)
    elif infinitive.endswith("ir"):
        stem = infinitive[:-1]
        present = tuple(stem + ending for ending in ("s", "s", "t", "ssons", "ssez", "ssent"))
        future, participle = infinitive, stem
    else:
        stem = infinitive[:-2]
        present = tuple(stem + ending for ending in ("s", "s", "", "ons", "ez", "ent"))
        future, participle = infinitive[:-1], stem + "u"
    stem = "ét" if infinitive == "être" else present[3][:-3]
    imperfect = tuple(stem + ending for ending in IMPERFECT)
    return FrenchVerb(infinitive, present, imperfect, tuple(future + e for e in FUTURE), participle, with_etre)


def plural(word: str) -> str:
    """The plural of a noun or adjective."""
    if word == "grand-père" or word == "grand-mère":
        return word.replace("grand-", "grands-") + "s"
    if word.endswith(("s", "x", "z")):
        return word
    if word.endswith("al"):
        return word[:-2] + "aux"
    if word.endswith(("eau", "eu", "hibou")) and word != "bleu":
        return word + "x"
    return word + "s"


def feminine(word: str) -> str:
    """The feminine of an adjective that follows the rules."""
    if word.endswith("e"):
        return word
    if word.endswith("eux"):
        return word[:-1] + "se"
    if word in ("cher", "léger", "inquiet"):
        return word[:-2] + "è" + word[-1] + "e"
    return word + "e"


def agree(masculine: str, feminine_form: str) -> tuple[str, str, str, str]:
    """The four forms, at index feminine + 2 * plural."""
    return (masculine, feminine_form, plural(masculine), plural(feminine_form))


def agree_participle(participle: str) -> tuple[str, str, str, str]:
    """A participle is regular: e for the feminine, s for the plural; dû loses its accent."""
    base = "du" if participle == "dû" else participle
    return (participle, base + "e", base if base.endswith("s") else base + "s", base + "es")
