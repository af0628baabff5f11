"""Adjectives and adverbs: one line per concept.

Adjectives: English (its irregular comparative after a comma, `er` for the regular short one) | French masculine
(`,feminine` where no rule gives it; `pre` stands before its noun; `avoir` makes the idiom "avoir faim") | Korean, an
irregular class after a colon (p ㅂ, h ㅎ, i for 있다) | tags of the nouns it describes | `attribute` (never after "be")
or `state` (never before a noun).
Adverbs: English | French (`short` stands before the participle) | Korean | place in the clause.
"""

ADJECTIVES = """
big,er | grand pre | 크다 | animal object furniture building vehicle plant fruit scenery part place clothing
small,er | petit pre | 작다 | animal object furniture building vehicle plant fruit part person place clothing
beautiful | beau,belle pre | 아름답다:p | person animal object place plant clothing scenery building writing
pretty,er | joli pre | 예쁘다 | girl woman princess queen child baby animal object clothing plant
young,er | jeune pre | 젊다 | person animal
old | vieux,vieille pre | 늙다 | person animal | attribute
new,er | nouveau,nouvelle pre | 새롭다:p | object vehicle building writing abstract clothing furniture
good,better | bon,bonne pre | 좋다 | food drink writing abstract restaurant tool
bad,worse | mauvais pre | 나쁘다 | food drink abstract
long,er | long,longue pre | 길다 | writing rope clothing lesson
short,er | court | 짧다 | writing rope clothing lesson
rich,er | riche | 부유하다 | person
poor,er | pauvre | 가난하다 | person
happy,er | heureux | 행복하다 | person animal
sad,er | triste | 슬프다 | person heard
tired | fatigué | 피곤하다 | person animal
hungry | faim avoir | 배고프다 | person animal | state
thirsty | soif avoir | 목마르다 | person animal | state
sleepy | sommeil avoir | 졸리다 | person animal | state
kind,er | gentil,gentille | 친절하다 | person
polite,er | poli | 공손하다 | person
brave,er | courageux | 용감하다 | person animal
lazy,er | paresseux | 게으르다 | person animal
strong,er | fort | 강하다 | person animal rope
weak,er | faible | 약하다 | person animal rope
fast,er | rapide | 빠르다 | animal vehicle
slow,er | lent | 느리다 | animal vehicle
intelligent | intelligent | 똑똑하다 | person animal
stupid | stupide | 어리석다 | person plan_like
famous | célèbre | 유명하다 | person building writing
shy,shyer | timide | 수줍다 | person
honest | honnête | 정직하다 | person
calm,er | calme | 차분하다 | person animal
cruel | cruel,cruelle | 잔인하다 | person
serious | sérieux | 진지하다 | person
delicious | délicieux | 맛있다:i | food drink
interesting | intéressant | 재미있다:i | abstract
sick,er | malade | 아프다 | person animal
red,er | rouge | 빨갛다:h | object vehicle clothing fruit furniture part
blue,er | bleu | 파랗다:h | object vehicle clothing furniture part
yellow,er | jaune | 노랗다:h | object vehicle clothing furniture part
white,er | blanc,blanche | 하얗다:h | animal object vehicle clothing furniture part
black,er | noir | 까맣다:h | animal object vehicle clothing furniture
hot,er | chaud | 뜨겁다:p | drink soup
cold,er | froid | 차갑다:p | drink soup
sweet,er | sucré | 달다 | fruit drink cake cookie
salty,er | salé | 짜다 | soup cheese meat
spicy,er | épicé | 맵다:p | soup meat pizza
fresh,er | frais,fraîche | 신선하다 | food
heavy,er | lourd | 무겁다:p | object furniture heavy
light,er | léger | 가볍다:p | object clothing
expensive | cher | 비싸다 | object clothing vehicle furniture building
clean,er | propre | 깨끗하다 | object clothing room furniture
dirty,er | sale | 더럽다:p | object clothing room furniture
round,er | rond | 둥글다 | thrown furniture plate mirror
soft,er | doux,douce | 부드럽다:p | clothing blanket bed bread
hard,er | dur | 딱딱하다 | stone thrown bed bread
wide,er | large | 넓다 | room river building bed
narrow,er | étroit | 좁다 | room river bed
deep,er | profond | 깊다 | river lake
high,er | *haut | 높다 | building mountain wall
low,er | bas,basse | 낮다 | building wall roof table
thick,er | épais,épaisse | 두껍다:p | clothing book blanket wall
thin,er | mince | 얇다 | clothing book blanket wall
dark,er | sombre | 어둡다:p | room forest
quiet,er | tranquille | 조용하다 | place
noisy,er | bruyant | 시끄럽다:p | place vehicle
dangerous | dangereux | 위험하다 | animal tool place
important | important | 중요하다 | abstract person
difficult | difficile | 어렵다:p | abstract
easy,er | facile | 쉽다:p | abstract
strange,er | étrange | 이상하다 | person animal object abstract
complicated | compliqué | 복잡하다 | abstract machine
useful | utile | 유용하다 | tool object animal
magnificent | magnifique | 멋지다 | building place clothing scenery vehicle
rare,er | rare | 희귀하다 | animal plant book
faithful | fidèle | 충실하다 | animal person
elegant | élégant | 우아하다 | person clothing animal
comfortable | confortable | 편안하다 | furniture clothing vehicle room
perfect | parfait | 완벽하다 | abstract
busy,er | occupé | 바쁘다 | person
anxious | inquiet | 불안하다 | person animal
wise,er | sage | 지혜롭다:p | person
generous | généreux | 너그럽다:p | person
prudent | prudent | 신중하다 | person
lonely,er | solitaire | 외롭다:p | person animal
"""

ADVERBS = """
slowly | lentement | 천천히 | manner
quickly | rapidement | 빠르게 | manner
quietly | silencieusement | 조용히 | manner
noisily | bruyamment | 시끄럽게 | manner
carefully | soigneusement | 조심스럽게 | manner
joyfully | joyeusement | 즐겁게 | manner
sadly | tristement | 슬프게 | manner
secretly | secrètement | 몰래 | manner
politely | poliment | 공손하게 | manner
bravely | courageusement | 용감하게 | manner
easily | facilement | 쉽게 | manner
immediately | immédiatement | 즉시 | manner
gently | doucement | 부드럽게 | manner
seriously | sérieusement | 진지하게 | manner
freely | librement | 자유롭게 | manner
proudly | fièrement | 자랑스럽게 | manner
calmly | calmement | 차분하게 | manner
nervously | nerveusement | 초조하게 | manner
elegantly | élégamment | 우아하게 | manner
clumsily | maladroitement | 어설프게 | manner
gladly | volontiers | 기꺼이 | manner
lazily | paresseusement | 게으르게 | manner
well | bien short | 잘 | manner
always | toujours short | 항상 | frequency
often | souvent short | 자주 | frequency
sometimes | parfois short | 가끔 | frequency
rarely | rarement short | 드물게 | frequency
usually | généralement short | 보통 | frequency
really | vraiment short | 정말 | frequency
already | déjà short | 이미 | frequency
finally | enfin short | 마침내 | frequency
suddenly | soudainement short | 갑자기 | frequency
yesterday | hier | 어제 | past
recently | récemment | 최근에 | past
today | aujourd'hui | 오늘 | present
now | maintenant | 지금 | present
tomorrow | demain | 내일 | future
soon | bientôt | 곧 | future
here | ici | 여기에서 | place
outside | dehors | 밖에서 | place
everywhere | partout | 어디에서나 | place
very | très | 아주 | degree
too | trop | 너무 | degree
quite | assez | 꽤 | degree
extremely | extrêmement | 대단히 | degree
"""
