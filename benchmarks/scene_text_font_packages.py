"""Where scene_text_fonts.py has its fonts from: packages of Debian and npm, and the families that are left out.

Debian's packages are named without `fonts-`, where it begins their name. All are free to use, change and give away.
"""

from __future__ import annotations

import concurrent.futures
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LATIN = """
3270 adf-accanthis adf-baskervald adf-berenis adf-gillius adf-ikarius adf-irianis adf-libris adf-mekanus adf-oldania
adf-romande adf-solothurn adf-switzera adf-tribun adf-universalis adf-verana agave allerta anonymous-pro apropal
arapey arkpandora arundina averia-gwf averia-sans-gwf averia-serif-gwf b612 bajaderka bebas-neue beteckna
blankenburg bpg-georgian breip bwht cabin cabinsketch cantarell cardo century-catalogue cherrybomb clear-sans cmu
comfortaa comic-neue compagnon courier-prime croscore crosextra-caladea crosextra-carlito dancingscript dejavu-core
dejavu-extra dkg-handwriting dosis dotgothic16 dustin ebgaramond ebgaramond-extra ecolier-court elstob engadget
essays1743 eurofurence f500 fantasma fantasque-sans fanwood femkeklaver ferrite-core firacode freefont-ttf gamaliel
gemunu-libre georgewilliams gfs-artemisia gfs-bodoni-classic gfs-complutum gfs-didot gfs-didot-classic gfs-gazis
gfs-neohellenic gfs-olga gfs-porson gfs-solomos gfs-theokritos glasstty gnutypewriter go gotico-antiqua
goudybookletter hack havana hermit humor-sans inconsolata inter isabella jetbrains-mono johnsmith-induni joscelyn
junction junicode jura karla karmilla kaushanscript klaudia-berenika kristi lato ldco le-murmure league-mono
league-spartan leckerli-one lemonada levien-museum levien-typoscript liberation lindenhill linex linuxlibertine
lmodern lobster lobstertwo manrope millimetre monofur monoid mononoki national-park ocr-a ocr-b okolaks oldstandard
open-sans opendin opendyslexic osifont oxygen paratype pc play prociono quattrocento quicksand radisnoir rampart
reggae rit-sundar roadgeek roboto-slab roboto-unhinted rocknroll routed-gothic rufscript sil-andika
sil-andikanewbasic sil-charis sil-doulos sil-galatia sil-gentium sil-gentium-basic sil-gentiumplus sixtyfour sjfonts
smc-anjalioldlipi smc-chilanka smc-gayathri smc-manjari smiley-sans solide-mirage sora staypuft stick stix summersby
texgyre tiresias tlwg-garuda-ttf tlwg-kinnari-ttf tlwg-laksaman-ttf tlwg-loma-ttf tlwg-mono-ttf tlwg-norasi-ttf
tlwg-purisa-ttf tlwg-sawasdee-ttf tlwg-typewriter-ttf tlwg-typist-ttf tlwg-typo-ttf tlwg-umpush-ttf tlwg-waree-ttf
tomsontalks train triod-postnaja tuffy ubuntu-title uralic urw-base35 vollkorn yanone-kaffeesatz yrsa-rasa
yusei-magic aenigma
"""
OTHERS = ["texlive-fonts-extra"]  # Debian packages that do not begin with fonts-; this one is 500 MB
HANGUL = """
nanum nanum-extra woowa-bm noto-cjk unfonts-core unfonts-extra baekmuk alee lexi-gulim lexi-saebom naver-d2coding
"""
# letters of signs that Debian lacks: packages of npm's @fontsource, which are Google's fonts
FONTSOURCE = """
oswald anton pacifico abril-fatface archivo-black righteous bangers permanent-marker playfair-display
alfa-slab-one black-ops-one bungee monoton fugaz-one passion-one titan-one luckiest-guy carter-one patua-one russo-one
shrikhand racing-sans-one ultra holtwood-one-sc sigmar-one limelight special-elite fjalla-one staatliches teko
barlow-condensed poppins montserrat raleway great-vibes satisfy courgette cookie sacramento cinzel rye chewy fredoka
unifrakturcook libre-baskerville rubik josefin-sans josefin-slab rokkitt arvo bitter crete-round merriweather lora
cormorant-garamond bodoni-moda dm-serif-display philosopher cinzel-decorative metamorphous pirata-one new-rocker
germania-one iceland orbitron audiowide michroma electrolize share-tech-mono vt323 press-start-2p creepster eater
frijole knewave rammetto-one bowlby-one changa-one squada-one francois-one pathway-gothic-one six-caps league-gothic
amatic-sc shadows-into-light indie-flower caveat-brush gochi-hand architects-daughter rock-salt covered-by-your-grace
yellowtail damion norican playball oleo-script sonsie-one lily-script-one grand-hotel sail mr-dafoe marck-script
"""
# Hangul as people write it with pens and brushes, and as signs have it: the same, of which Debian has few
FONTSOURCE_HANGUL = """
gaegu gamja-flower hi-melody poor-story cute-font east-sea-dokdo single-day stylish sunflower black-han-sans gugi
song-myung gowun-dodum gowun-batang hahmlet ibm-plex-sans-kr dongle grandiflora-one diphylleia orbit bagel-fat-one
moirai-one gasoek-one black-and-white-picture
"""
RARE = {"fonts-aenigma": 3}  # of the families of these packages, whose letters no sign has, one in so many is taken

AT_ONCE = 4

# Families by their keys (see Face.key) that are not gathered: found by looking at a sheet of all of them
PATTERNS = {
    "no letters": "dl|qtdingbits|semafor|drmsym?|standardsymbolsps|alfabeta|ellhnikh|fontawesome.*|qtarabian",
    "boxes and lines": "linuxbiolinumkeyboardo|bpgdedaena.*|abecedario(guiada|pautada|punt.*)|ecoliercourt",
    "hard to read": "missaali|aboensis|joscelyn|yfrak|qtfraktur|qtclaytablet|wargames|f",
    "for formulas": ".*math|logix",
    "one design over and over": "drm(?!sc$).+|newcomputermodern(?!uncial).*|latinmodern(roman|mono|sans).+|"
    "lexend(exa|mega|peta|zetta)",
}
# Of the 465 fonts by Brian Kent (fonts-aenigma) those of which PP-OCRv4 reads more than a tenth of the letters wrong
UNREAD = """
aftermath amalgamateo arthritis bandwidth bendsquaresol bevel bewilder bewilderthick binary binarys binaryx binaryxs
bitblocksttf bitlimito blackoninaut blackoninautredux bleaksegments bocuma bocumabatty bocumadent brassknuckle
brassknuckless brassknucklestar brigadoom brigadoomwide candystripe chintzycpushadow circulate claw codeoflife
collectiveo collectivero collectivers collectives combustionplain combustiontall compliantconfuseo compliantconfuses
darkside dashdot dastardly dblayer decrepit dlet doublebogey dyphusion dystorque ecliptic editundodot editundoline
encapsulate encapsulateplain entangled entangledlayerb enthusesolid euphoricd falsepositive falsepositiveround fascii
fasciitwigs fatboyslimbltc flipside foreshadow foreshadowol gaposisoutline gasping gather gathergapped genotypeh
genotyperh gesture gestureslant goosebumps goosebumpsii granular grapple graveyard gravitatesegments graze gyrose
gyroseshift hackslash hairball headdingmaker hearts holes inertia itlivesintheswamp jasper jaspersolid jawbreakerol
jeopardize jeopardizethick jupitercrash katalystactive katalystinactive keyridge keyridgealt kirbynokirakizzu knot
konector konectoreerie konectoro licoricestrings linedings loopy lowdown lyneous lyneouslinear lynx mincer
minikaliberott mishmashfuse mishmashxo mobilize nucleus numskull nymonak obloquyoutline obstacle obstaclelines opiated
orbicular overhead perfectdark pincers pindown pindownplain pindownx pindownxplain plasmadripempty pneumaticstall
powderworks pseudo qbicle qlumpyshadow quantumflat quantumflathollow quantumround quantumroundhollow quantumtaper
queasy queasyoutline quillexperimentalo quillexperimentals reasonshadow redundant revertround rotundoutline
saturdaynight saturdaynightr saunder scalelines scalelinesmaze sequence setbacktt skullcapz slender slenderwide
snailets spaciousoutline spastic spheroids spheroidsx suprageniuscurves swirled syndrome synthetic syracuse
systematictt tearful technique techniqueol tonik typesourceextolo unanimous underscore underwhelmedoutline
unexploredgalaxieswo unlearned upraise vertigo volatile wager wagerlost wagerwon waver wayward waywardshadow weaver
whatever wigglysquiggly wincing wyvernwings wyvernwingswyde xeroxmalfunction xmaslights yourcomplexi yourcomplexo
zenith zephyreangust zerovelocity zirconia zirconiacubic zoetrope zurklezoutline zurklezsolid
"""


def left_out(key: str) -> str:
    """Why a family is left out, or nothing."""
    if key.endswith("brk") and key.removesuffix("brk") in UNREAD.split():
        return "hard to read"
    return next((why for why, pattern in PATTERNS.items() if re.fullmatch(pattern, key)), "")


def package_names() -> dict[str, list[str]]:
    latin = [f"fonts-{name}" for name in LATIN.split()] + OTHERS
    return {
        "latin": latin + [f"@fontsource/{name}" for name in FONTSOURCE.split()],
        "hangul": [f"fonts-{name}" for name in HANGUL.split()]
        + [f"@fontsource/{name}" for name in FONTSOURCE_HANGUL.split()],
    }


def fetch(packages: Sequence[str], cache: Path) -> dict[str, Path]:
    """The folders with the packages' font files and licences; downloads and unpacks what was not yet."""
    folders = {package: cache / package.replace("/", "+") for package in packages}
    missing = [package for package in packages if not (folders[package] / ".complete").exists()]
    # apt reads its lists once for all of them, and is kind to the server itself
    debian = [package for package in missing if not package.startswith("@")]
    with tempfile.TemporaryDirectory(dir=cache) as place:
        for group in [debian, *([package] for package in debian)]:  # one by one if one of them cannot be had
            wanted = [package for package in group if not downloaded(Path(place), package)]
            if wanted:
                command = ["apt-get", "download", "-qq", *wanted]
                done = subprocess.run(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                if done.returncode and len(group) == 1:
                    print(f"{group[0]} cannot be had: {done.stderr.strip()[-300:]}", flush=True)
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda package: npm_pack(package, Path(place)), set(missing) - set(debian)))
        for package in missing:
            if found := downloaded(Path(place), package):
                shutil.rmtree(folders[package], ignore_errors=True)
                folders[package].mkdir()
                unpack(found, folders[package])
                (folders[package] / ".complete").touch()
    return {package: folder for package, folder in folders.items() if folder.is_dir()}


def npm_pack(package: str, place: Path) -> None:
    done = subprocess.run(["npm", "pack", "--silent", package], cwd=place, capture_output=True, text=True)
    if done.returncode:
        print(f"{package} cannot be had: {done.stderr.strip()[-300:]}", flush=True)


def downloaded(place: Path, package: str) -> Path | None:
    pattern = f"{package[1:].replace('/', '-')}-[0-9]*.tgz" if package.startswith("@") else f"{package}_*.deb"
    return next(place.glob(pattern), None)


def unpack(package: Path, folder: Path) -> None:
    if package.suffix == ".tgz":
        with package.open("rb") as file:
            extract(file, folder)
        return
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE) as opened:
        assert opened.stdout
        extract(opened.stdout, folder)


def extract(stream: Any, folder: Path) -> None:
    """Font files and the licence; of npm's slices only the Latin one, upright and italic, plain and bold, or that with
    the common syllables and ASCII."""
    slices = "korean" if folder.name.partition("+")[2] in FONTSOURCE_HANGUL.split() else "latin"
    with tarfile.open(fileobj=stream, mode="r|*") as archive:
        for member in archive:
            name = Path(member.name)
            licence = name.name in ("copyright", "LICENSE") and ("doc" in name.parts or "package" in name.parts)
            slice_ = re.search(rf"-{slices}-(400|700|900)-(normal|italic)\.woff$", name.name)
            wanted = name.suffix.lower() in (".ttf", ".otf", ".ttc") or slice_ or licence
            read = archive.extractfile(member) if wanted and member.isfile() else None
            if read:
                flat = "copyright" if licence else "+".join(name.parts[-3:])
                (folder / flat).write_bytes(read.read())


def licence(folder: Path) -> str:
    """What the package says of its licence, in a few words."""
    path = folder / "copyright"
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    names = list(dict.fromkeys(re.findall(r"^License:[ \t]*(\S.*?)\s*$", text, re.MULTILINE)))
    if not names:
        known = {"SIL Open Font License": "OFL-1.1", "Apache License": "Apache-2.0", "General Public": "GPL"}
        names = [short for long, short in known.items() if long.lower() in text.lower()]
    return "; ".join(names[:6])[:200] or "see the package's copyright file"
