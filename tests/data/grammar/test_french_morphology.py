"""French forms against known-right ones."""

import pytest

from jumok.data.grammar import french_morphology as french

# infinitive: je, nous, ils of the present; il of the imperfect and future; participle
VERBS = [
    ("manger", "mange", "mangeons", "mangent", "mangeait", "mangera", "mangé"),
    ("lancer", "lance", "lançons", "lancent", "lançait", "lancera", "lancé"),
    ("acheter", "achète", "achetons", "achètent", "achetait", "achètera", "acheté"),
    ("appeler", "appelle", "appelons", "appellent", "appelait", "appellera", "appelé"),
    ("protéger", "protège", "protégeons", "protègent", "protégeait", "protégera", "protégé"),
    ("nettoyer", "nettoie", "nettoyons", "nettoient", "nettoyait", "nettoiera", "nettoyé"),
    ("envoyer", "envoie", "envoyons", "envoient", "envoyait", "enverra", "envoyé"),
    ("fermer", "ferme", "fermons", "ferment", "fermait", "fermera", "fermé"),
    ("étudier", "étudie", "étudions", "étudient", "étudiait", "étudiera", "étudié"),
    ("choisir", "choisis", "choisissons", "choisissent", "choisissait", "choisira", "choisi"),
    ("vendre", "vends", "vendons", "vendent", "vendait", "vendra", "vendu"),
    ("comprendre", "comprends", "comprenons", "comprennent", "comprenait", "comprendra", "compris"),
    ("reconnaître", "reconnais", "reconnaissons", "reconnaissent", "reconnaissait", "reconnaîtra", "reconnu"),
    ("sourire", "souris", "sourions", "sourient", "souriait", "sourira", "souri"),
    ("être", "suis", "sommes", "sont", "était", "sera", "été"),
    ("avoir", "ai", "avons", "ont", "avait", "aura", "eu"),
    ("aller", "vais", "allons", "vont", "allait", "ira", "allé"),
    ("venir", "viens", "venons", "viennent", "venait", "viendra", "venu"),
    ("voir", "vois", "voyons", "voient", "voyait", "verra", "vu"),
    ("boire", "bois", "buvons", "boivent", "buvait", "boira", "bu"),
    ("recevoir", "reçois", "recevons", "reçoivent", "recevait", "recevra", "reçu"),
    ("cueillir", "cueille", "cueillons", "cueillent", "cueillait", "cueillera", "cueilli"),
]


@pytest.mark.parametrize("row", VERBS, ids=lambda row: row[0])
def test_conjugation(row: tuple[str, ...]) -> None:
    verb = french.conjugate(row[0])
    present = verb.present
    assert row[1:] == (present[0], present[3], present[5], verb.imperfect[2], verb.future[2], verb.participle)


@pytest.mark.parametrize(
    ("singular", "plural"),
    [("cheval", "chevaux"), ("gâteau", "gâteaux"), ("jeu", "jeux"), ("souris", "souris"), ("prix", "prix"),
     ("hibou", "hiboux"), ("bleu", "bleus"), ("grand-père", "grands-pères"), ("chat", "chats")],
)  # fmt: skip
def test_plurals(singular: str, plural: str) -> None:
    assert french.plural(singular) == plural


@pytest.mark.parametrize(
    ("masculine", "feminine"),
    [("heureux", "heureuse"), ("cher", "chère"), ("léger", "légère"), ("rouge", "rouge"), ("grand", "grande")],
)
def test_feminines(masculine: str, feminine: str) -> None:
    assert french.feminine(masculine) == feminine
