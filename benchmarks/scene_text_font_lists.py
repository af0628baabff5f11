"""Which fonts scene_text_fonts.py gathers: packages by name, and the families of theirs that are left out.

Debian's packages are named without `fonts-` where it begins their name. All are free to use, change and give away.
"""

from __future__ import annotations

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
WHOLE_NAMES = ["texlive-fonts-extra"]  # Debian packages that do not begin with fonts-; this one is 500 MB
HANGUL = """
nanum nanum-extra woowa-bm noto-cjk unfonts-core unfonts-extra baekmuk alee lexi-gulim lexi-saebom naver-d2coding
"""
# letters of signs that Debian lacks: packages of npm's @fontsource, which are Google's fonts
FONTSOURCE = """
oswald anton pacifico abril-fatface roboto-condensed archivo-black righteous bangers permanent-marker playfair-display
"""

# Families whose letters are not letters, or cannot be told apart: found by looking at the sheets of all of them
DROPPED: dict[str, str] = {}
