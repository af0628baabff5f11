"""Verbs: one line per concept.

Columns: English (irregular past after a comma; a particle after a space) | French infinitive, then `être` where that is
the auxiliary and the preposition of its object | Korean, an irregular class after a colon (p ㅂ, t ㄷ, s ㅅ) and the
object's particle, then what one hears of a person; `_` ends a word of its own before the predicate (미소_짓다) |
subject tags > object tags | flags. Flags: `state` (past is an imparfait, no manner adverb),
`goal` (takes a place to go to), `home` (must have a place), `recipient` (gives to somebody), `motion` (by vehicle),
`nowhere` (no adjunct of place).
English forms that are the same in present and past (read, put, cut) are left out on purpose.
"""

VERBS = """
eat,ate | manger | 먹다 | person animal > food
devour | dévorer | 먹어치우다 | person animal > food
drink,drank | boire | 마시다 | person animal > drink
prepare | préparer | 준비하다 | person > food
taste | goûter | 맛보다 | person > food drink
order | commander | 주문하다 | person > food drink
buy,bought | acheter | 사다 | person > food drink object clothing vehicle furniture
sell,sold | vendre | 팔다 | person > food drink object clothing vehicle furniture
steal,stole | dérober | 훔치다 | person animal > object clothing food
find,found | trouver | 발견하다 | person animal > object clothing food
look_for | chercher | 찾다 | person animal > person animal object clothing
lose,lost | perdre | 잃어버리다 | person > object clothing
forget,forgot | oublier | 잊다 | person > abstract
hide,hid | cacher | 숨기다 | person animal > object food
carry | porter | 나르다 | person > object heavy
break,broke | casser | 깨뜨리다 | person animal > fragile
repair | réparer | 고치다 | person > machine vehicle
clean | nettoyer | 청소하다 | person > room building | nowhere
wash | laver | 씻다 | person > fruit fragile
open | ouvrir | 열다 | person > openable
close | fermer | 닫다 | person > openable
paint | peindre | 칠하다 | person > painted
draw,drew | dessiner | 그리다 | person > animal plant building scenery
write,wrote | écrire | 쓰다 | person > writing
study | étudier | 공부하다 | person > learned
learn | apprendre | 배우다 | person > learned
teach,taught | enseigner | 가르치다 | person > learned | recipient
understand,understood | comprendre | 이해하다 | person > abstract | state
know,knew | connaître | 알다 | person > person place abstract | state
love | aimer | 사랑하다 | person animal > person animal | state
like | apprécier | 좋아하다 | person animal > food drink place abstract clothing | state
hate | détester | 싫어하다 | person animal > person animal food drink place | state
fear | craindre | 무서워하다 | person animal > animal person | state
see,saw | voir | 보다 | person animal > person animal object vehicle building scenery plant clothing furniture
watch | regarder | 지켜보다 | person animal > person animal scenery
hear,heard | entendre | 듣다:t 을 목소리를 | person animal > person animal heard
listen_to | écouter | 경청하다 을 말을 | person > person heard
call | appeler | 부르다 | person > person animal
invite | inviter | 초대하다 | person > person
help | aider | 돕다:p | person animal > person animal
thank | remercier | 감사하다 에게 | person > person
greet | saluer | 인사하다 에게 | person > person
meet,met | rencontrer | 만나다 | person animal > person animal
visit | visiter | 방문하다 | person > place building | nowhere
leave,left | quitter | 떠나다 | person animal > place | nowhere
enter | entrer être dans | 들어가다 에 | person animal > room building | nowhere
chase | poursuivre | 쫓다 | person animal > animal thief
bite,bit | mordre | 물다 | animal > person animal
attack | attaquer | 공격하다 | person animal > person animal
catch,caught | attraper | 잡다 | person animal > animal thrown
protect | protéger | 보호하다 | person animal > person animal building plant
wake,woke | réveiller | 깨우다 | person animal > person animal
respect | respecter | 존경하다 | person > person | state
save | sauver | 구하다 | person animal > person animal
build,built | construire | 짓다:s | person > building
destroy | détruire | 파괴하다 | person > building building_like furniture
borrow | emprunter | 빌리다 | person > object vehicle clothing
drive,drove | conduire | 운전하다 | person > driven
use | utiliser | 사용하다 | person > tool
throw,threw | lancer | 던지다 | person > thrown
pull | tirer | 당기다 | person animal > heavy
push | pousser | 밀다 | person animal > heavy
lift | soulever | 들어_올리다 | person > heavy
choose,chose | choisir | 고르다 | person > food clothing object
accept | accepter | 받아들이다 | person > plan_like
refuse | refuser | 거절하다 | person > plan_like sendable
receive | recevoir | 받다 | person > sendable
bring,brought | apporter | 가져오다 | person animal > object food drink | nowhere
touch | toucher | 만지다 | person animal > object animal plant
explain | expliquer | 설명하다 | person > abstract | recipient
translate | traduire | 번역하다 | person > writing
count | compter | 세다 | person animal > animal fruit object
plant | planter | 심다 | person > plant
pick | cueillir | 따다 | person animal > fruit
photograph | photographier | 촬영하다 | person > person animal building scenery building_like
imagine | imaginer | 상상하다 | person > abstract building
describe | décrire | 묘사하다 | person > person animal building scenery
observe | observer | 관찰하다 | person animal > animal scenery plant
recognize | reconnaître | 알아보다 | person animal > person
wait_for | attendre | 기다리다 | person animal > person transit
marry | épouser | 결혼하다 와 | person > person
fight,fought | combattre | 싸우다 와 | person animal > animal thief soldier
obey | obéir à | 복종하다 에게 | person animal > person
answer | répondre à | 대답하다 에게 | person > person
phone | téléphoner à | 전화하다 에게 | person > person
talk_to | parler à | 이야기하다 와 | person > person
examine | examiner | 검사하다 | person > machine vehicle animal fruit
climb | escalader | 오르다 에 | person animal > climbed | nowhere
criticize | critiquer | 비판하다 | person > person plan_like
give,gave | donner | 주다 | person > object clothing food drink | recipient
send,sent | envoyer | 보내다 | person > sendable object | recipient
show | montrer | 보여주다 | person > object clothing vehicle building | recipient
offer | offrir | 제공하다 | person > food drink sendable | recipient
lend,lent | prêter | 빌려주다 | person > object vehicle clothing | recipient
sleep,slept | dormir | 자다 | person animal
run,ran | courir | 달리다 | person animal
walk | marcher | 걷다:t | person animal
dance | danser | 춤추다 | person animal
sing,sang | chanter | 노래하다 | person flyer
laugh | rire | 웃다 | person
cry | pleurer | 울다 | person
smile | sourire | 미소_짓다:s | person
work | travailler | 일하다 | person
swim,swam | nager | 헤엄치다 | person animal
fly,flew | voler | 날다 | flyer
jump | sauter | 뛰다 | person animal
fall,fell | tomber être | 넘어지다 | person animal
cough | tousser | 기침하다 | person animal
shout | crier | 소리치다 | person
bark | aboyer | 짖다 | barker
hesitate | hésiter | 망설이다 | person animal
play | jouer | 놀다 | person animal
disappear | disparaître | 사라지다 | person animal vehicle object
shine,shone | briller | 빛나다 | shining
sneeze | éternuer | 재채기하다 | person animal
tremble | trembler | 떨다 | person animal
whisper | murmurer | 속삭이다 | person
breathe | respirer | 숨쉬다 | person animal
cook | cuisiner | 요리하다 | person
win,won | gagner | 이기다 | person animal
travel | voyager | 여행하다 | person | motion
stay | rester être | 머무르다 | person animal | home
live | habiter | 살다 | person animal | home state
go,went | aller être | 가다 | person animal | goal motion
come,came | venir être | 오다 | person animal | goal motion
return | retourner être | 돌아가다 | person animal | goal motion
arrive | arriver être | 도착하다 | person vehicle | goal motion
"""

THAT_VERBS = """
think,thought | penser | 생각하다 | person
say,said | dire | 말하다 | person
believe | croire | 믿다 | person
know,knew | savoir | 알다 | person | fact
declare | déclarer | 선언하다 | person
announce | annoncer | 발표하다 | person
claim | prétendre | 주장하다 | person
"""
