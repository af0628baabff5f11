"""Nouns and names: one line per concept, one word per language.

Columns: English (with an irregular plural after a comma) | French, gender | Korean | tags | Korean counter, if not that
of the first tag. A French entry `masculine/feminine` has a form for each: the first or second is the plain one by the
gender, both serve in "she is a student" -> "elle est étudiante". `*` marks an aspirated h. The gender of a person or an
animal is also the one of its English pronoun. `mass` nouns take no plural and no "a"; `profession` nouns lose their
article after the French copula. Places carry their English and French prepositions: `at:à`, `in:dans`.
"""

NOUNS = """
man,men | homme m | 남자 | person
woman,women | femme f | 여자 | person
boy | garçon m | 소년 | person
girl | fille f | 소녀 | person
child,children | enfant m | 아이 | person
baby | bébé m | 아기 | person
student | étudiant/étudiante m | 학생 | person profession
teacher | professeur/professeure m | 교사 | person profession
doctor | médecin m | 의사 | person profession
nurse | infirmier/infirmière f | 간호사 | person profession
lawyer | avocat/avocate m | 변호사 | person profession
engineer | ingénieur/ingénieure m | 기술자 | person profession
farmer | agriculteur/agricultrice m | 농부 | person profession
chef | cuisinier/cuisinière m | 요리사 | person profession
baker | boulanger/boulangère f | 제빵사 | person profession
singer | chanteur/chanteuse f | 가수 | person profession
dancer | danseur/danseuse f | 무용수 | person profession
actor | acteur/actrice m | 배우 | person profession
painter | peintre m | 화가 | person profession
writer | écrivain/écrivaine m | 작가 | person profession
journalist | journaliste f | 기자 | person profession
soldier | soldat/soldate m | 군인 | person profession
driver | chauffeur/chauffeuse m | 운전사 | person profession
pilot | pilote m | 조종사 | person profession
policeman,policemen | policier/policière m | 경찰관 | person
firefighter | pompier/pompière m | 소방관 | person profession
king | roi m | 왕 | person
queen | reine f | 여왕 | person
prince | prince m | 왕자 | person
princess | princesse f | 공주 | person
father | père m | 아버지 | person
mother | mère f | 어머니 | person
brother | frère m | 남동생 | person
sister | sœur f | 여동생 | person
uncle | oncle m | 삼촌 | person
aunt | tante f | 이모 | person
grandfather | grand-père m | 할아버지 | person
grandmother | grand-mère f | 할머니 | person
cousin | cousin/cousine m | 사촌 | person
son | fils m | 아들 | person
friend | ami/amie m | 친구 | person
neighbor | voisin/voisine m | 이웃 | person
guest | invité/invitée m | 손님 | person
tourist | touriste m | 관광객 | person
artist | artiste f | 예술가 | person profession
scientist | scientifique f | 과학자 | person profession
musician | musicien/musicienne m | 음악가 | person profession
sailor | marin m | 선원 | person profession
thief,thieves | voleur/voleuse m | 도둑 | person
hero,heroes | *héros m | 영웅 | person
judge | juge f | 판사 | person profession
president | président/présidente m | 대통령 | person profession
merchant | marchand/marchande m | 상인 | person profession
fisherman,fishermen | pêcheur/pêcheuse m | 어부 | person
hunter | chasseur/chasseuse m | 사냥꾼 | person profession
librarian | bibliothécaire f | 사서 | person profession
secretary | secrétaire f | 비서 | person profession
poet | poète m | 시인 | person profession
dentist | dentiste m | 치과의사 | person profession
architect | architecte f | 건축가 | person profession
client | client/cliente m | 고객 | person
dog | chien m | 개 | animal barker
cat | chat m | 고양이 | animal
horse | cheval m | 말 | animal
cow | vache f | 소 | animal
pig | cochon m | 돼지 | animal
goat | chèvre f | 염소 | animal
rabbit | lapin m | 토끼 | animal
mouse,mice | souris f | 쥐 | animal
bird | oiseau m | 새 | animal flyer
duck | canard m | 오리 | animal flyer
hen | poule f | 암탉 | animal
fox | renard m | 여우 | animal barker
wolf,wolves | loup m | 늑대 | animal barker
bear | ours m | 곰 | animal
lion | lion m | 사자 | animal
tiger | tigre m | 호랑이 | animal
elephant | éléphant m | 코끼리 | animal
monkey | singe m | 원숭이 | animal
snake | serpent m | 뱀 | animal
frog | grenouille f | 개구리 | animal
turtle | tortue f | 거북이 | animal
owl | *hibou m | 부엉이 | animal flyer
giraffe | girafe f | 기린 | animal
whale | baleine f | 고래 | animal
dolphin | dauphin m | 돌고래 | animal
spider | araignée f | 거미 | animal
bee | abeille f | 벌 | animal flyer
butterfly | papillon m | 나비 | animal flyer
ant | fourmi f | 개미 | animal
squirrel | écureuil m | 다람쥐 | animal
parrot | perroquet m | 앵무새 | animal flyer
apple | pomme f | 사과 | food fruit
orange | orange f | 오렌지 | food fruit
banana | banane f | 바나나 | food fruit
strawberry | fraise f | 딸기 | food fruit
lemon | citron m | 레몬 | food fruit
peach | pêche f | 복숭아 | food fruit
cherry | cerise f | 체리 | food fruit
tomato,tomatoes | tomate f | 토마토 | food fruit
melon | melon m | 멜론 | food fruit
carrot | carotte f | 당근 | food
onion | oignon m | 양파 | food
mushroom | champignon m | 버섯 | food
egg | œuf m | 달걀 | food
cake | gâteau m | 케이크 | food
cookie | biscuit m | 쿠키 | food
sandwich | sandwich m | 샌드위치 | food
candy | bonbon m | 사탕 | food
treat | friandise f | 간식 | food
pizza | pizza f | 피자 | food | 판
salad | salade f | 샐러드 | food
bread | pain m | 빵 | food mass
cheese | fromage m | 치즈 | food mass
meat | viande f | 고기 | food mass
rice | riz m | 밥 | food mass
soup | soupe f | 수프 | food mass
chocolate | chocolat m | 초콜릿 | food mass
honey | miel m | 꿀 | food mass
butter | beurre m | 버터 | food mass
water | eau f | 물 | drink mass
milk | lait m | 우유 | drink mass
coffee | café m | 커피 | drink mass
tea | thé m | 차 | drink mass
juice | jus m | 주스 | drink mass
wine | vin m | 포도주 | drink mass
beer | bière f | 맥주 | drink mass
lemonade | limonade f | 레모네이드 | drink mass
book | livre m | 책 | object writing | 권
letter | lettre f | 편지 | object writing sendable | 통
newspaper | journal m | 신문 | object | 부
key | clé f | 열쇠 | object
knife,knives | couteau m | 칼 | object tool | 자루
spoon | cuillère f | 숟가락 | object
fork | fourchette f | 포크 | object
plate | assiette f | 접시 | object fragile
glass | verre m | 유리잔 | object fragile
bottle | bouteille f | 병 | object fragile openable
box | boîte f | 상자 | object openable heavy
bag | sac m | 가방 | object openable heavy
basket | panier m | 바구니 | object heavy
umbrella | parapluie m | 우산 | object openable
clock | horloge f | 시계 | object machine fragile
telephone | téléphone m | 전화기 | object machine tool | 대
computer | ordinateur m | 컴퓨터 | object machine tool | 대
camera | caméra f | 카메라 | object machine tool | 대
guitar | guitare f | 기타 | object machine | 대
piano | piano m | 피아노 | furniture machine heavy | 대
violin | violon m | 바이올린 | object machine | 대
ball | ballon m | 공 | object thrown
doll | poupée f | 인형 | object
toy | jouet m | 장난감 | object machine
gift | cadeau m | 선물 | object sendable openable
flower | fleur f | 꽃 | object plant | 송이
candle | bougie f | 양초 | object
lamp | lampe f | 램프 | object machine fragile
mirror | miroir m | 거울 | object fragile
photo | photo f | 사진 | object sendable | 장
map | carte f | 지도 | object | 장
pen | stylo m | 펜 | object tool | 자루
pencil | crayon m | 연필 | object tool | 자루
ring | bague f | 반지 | object
coin | pièce f | 동전 | object
ticket | billet m | 표 | object | 장
chair | chaise f | 의자 | furniture painted heavy
table | table f | 탁자 | furniture painted heavy
bed | lit m | 침대 | furniture heavy
door | porte f | 문 | part openable painted
window | fenêtre f | 창문 | part openable fragile
wall | mur m | 벽 | part painted climbed
roof | toit m | 지붕 | part painted climbed
hammer | marteau m | 망치 | object tool heavy | 자루
rope | corde f | 밧줄 | object tool
stone | pierre f | 돌 | object thrown heavy
towel | serviette f | 수건 | object | 장
blanket | couverture f | 담요 | object | 장
drum | tambour m | 북 | object machine
statue | statue f | 동상 | furniture building_like heavy
shirt | chemise f | 셔츠 | clothing
hat | chapeau m | 모자 | clothing | 개
coat | manteau m | 외투 | clothing
dress | robe f | 드레스 | clothing
skirt | jupe f | 치마 | clothing
tie | cravate f | 넥타이 | clothing | 개
glove | gant m | 장갑 | clothing | 짝
shoe | chaussure f | 신발 | clothing | 짝
scarf,scarves | écharpe f | 목도리 | clothing | 개
car | voiture f | 자동차 | vehicle driven
train | train m | 기차 | vehicle transit
bus | bus m | 버스 | vehicle driven transit
bicycle | vélo m | 자전거 | vehicle
boat | bateau m | 배 | vehicle transit | 척
plane | avion m | 비행기 | vehicle transit
truck | camion m | 트럭 | vehicle driven
taxi | taxi m | 택시 | vehicle driven transit
house | maison f | 집 | place building in:dans | 채
school | école f | 학교 | place building at:à
market | marché m | 시장 | place at:à
garden | jardin m | 정원 | place in:dans
park | parc m | 공원 | place in:dans
forest | forêt f | 숲 | place in:dans
beach | plage f | 해변 | place on:sur
kitchen | cuisine f | 부엌 | place room in:dans | 개
bedroom | chambre f | 침실 | place room in:dans | 개
hospital | hôpital m | 병원 | place building at:à
library | bibliothèque f | 도서관 | place building at:à
museum | musée m | 박물관 | place building at:à
station | gare f | 역 | place building at:à
airport | aéroport m | 공항 | place building at:à
restaurant | restaurant m | 식당 | place room at:à
hotel | hôtel m | 호텔 | place building at:à
church | église f | 교회 | place building in:dans
castle | château m | 성 | place building in:dans | 채
city | ville f | 도시 | place in:dans
village | village m | 마을 | place in:dans
farm | ferme f | 농장 | place at:à
factory | usine f | 공장 | place building at:à
office | bureau m | 사무실 | place room in:dans
store | magasin m | 가게 | place room in:dans
theater | théâtre m | 극장 | place building at:à
bridge | pont m | 다리 | scenery building
mountain | montagne f | 산 | scenery climbed
river | rivière f | 강 | scenery
lake | lac m | 호수 | scenery
desert | désert m | 사막 | place in:dans
pharmacy | pharmacie f | 약국 | place room at:à
bank | banque f | 은행 | place building at:à
university | université f | 대학교 | place building at:à
stadium | stade m | 경기장 | place building at:à
idea | idée f | 아이디어 | abstract plan_like
question | question f | 질문 | abstract learned
story | histoire f | 이야기 | abstract writing heard | 편
song | chanson f | 노래 | abstract writing heard learned | 곡
dream | rêve m | 꿈 | abstract
secret | secret m | 비밀 | abstract
truth | vérité f | 진실 | abstract mass
plan | plan m | 계획 | abstract plan_like
problem | problème m | 문제 | abstract
lesson | leçon f | 수업 | abstract learned
word | mot m | 단어 | abstract writing heard learned
name | nom m | 이름 | abstract
poem | poème m | 시 | abstract writing heard learned | 편
message | message m | 메시지 | abstract writing sendable
rule | règle f | 규칙 | abstract learned
language | langue f | 언어 | abstract learned
film | film m | 영화 | abstract | 편
game | jeu m | 게임 | abstract
color | couleur f | 색 | attribute
price | prix m | 가격 | attribute
tree | arbre m | 나무 | plant scenery climbed | 그루
star | étoile f | 별 | scenery shining
cloud | nuage m | 구름 | scenery
moon | lune f | 달 | scenery shining
"""

NAMES = """
Paul | m | 폴
Marie | f | 마리
Louis | m | 루이
Sophie | f | 소피
Martin | m | 마르탱
Emma | f | 에마
Thomas | m | 토마
Claire | f | 클레르
Simon | m | 시몽
Julie | f | 쥘리
Victor | m | 빅토르
Louise | f | 루이즈
Daniel | m | 다니엘
Alice | f | 알리스
"""
