"""What may be asked, and what is answered: the types that requests are checked with, and that OpenAPI shows.

Requests are strict: an unknown key, a number as text, or one out of bounds is refused with its place. Answers are
written as plain dictionaries (nothing is checked twice); their classes here describe them, and tests hold them to it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

BEAM = 32  # a service is for many: a wider one is for `jumok translate`
LONGEST = 1024  # tokens of a translation
LISTED = 1024  # texts of a request, at the very most: the settings say less

Name = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Phrase = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Phrases = Annotated[list[Phrase], Field(max_length=16)]
Texts = Annotated[list[str], Field(min_length=1, max_length=LISTED)]
Best = Annotated[int, Field(ge=1, le=100)]


class Ask(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)

    model: Name | None = Field(None, description="Which of the models of /v1/models. Without it: the first that can.")


class TextsAsk(Ask):
    text: str | Texts = Field(description="A text, or several: they are answered together, in order.")

    def texts(self) -> list[str]:
        return [self.text] if isinstance(self.text, str) else self.text


class TranslateAsk(TextsAsk):
    """Sentences to translate. What is not said is as the run's recipe says."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "I am a student."}]})

    tag: Name | None = Field(None, description="The language to write, where the model knows several (2de).")
    stream: bool = Field(False, description="Of one text: send what is written as it is written (server-sent events).")
    nbest: int = Field(1, ge=1, le=BEAM, description="Translations of each text.")
    beam: int | None = Field(None, ge=1, le=BEAM, description="Hypotheses kept at each step; 1 is greedy.")
    length_penalty: float | None = Field(None, ge=0, le=10, description="Scores are divided by length to this power.")
    coverage_penalty: float | None = Field(
        None, ge=0, le=10, description="What a source word that was hardly looked at costs."
    )
    min_length: int = Field(1, ge=1, le=LONGEST, description="Fewest tokens, <eos> included.")
    max_length: int | None = Field(None, ge=1, le=LONGEST, description="Most tokens, <eos> included.")
    no_repeat_ngram: int | None = Field(
        None, ge=0, le=LONGEST, description="No so many tokens twice in the same order; 0: they may."
    )
    sample: bool = Field(False, description="Draw words instead of searching for the best.")
    temperature: float = Field(1.0, gt=0, le=100, description="Below 1 unlikely words are rarer.")
    top_k: int = Field(0, ge=0, le=1_000_000, description="Draw among the k likeliest; 0: among all.")
    top_p: float = Field(1.0, gt=0, le=1, description="Draw among the likeliest that have this probability together.")
    seed: int = Field(0, ge=0, lt=1 << 32, description="The same seed draws the same words.")
    prefix: str = Field("", max_length=1000, description="How every translation begins.")
    require: Phrases = Field([], description="Phrases that every translation holds.")
    forbid: Phrases = Field([], description="Phrases that none holds.")
    too_long: Literal["error", "truncate", "skip"] = Field(
        "error", description="Texts over the model's limit: refused, cut, or left empty."
    )


class ClassifyAsk(TextsAsk):
    """Texts (or pairs of them) to label."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "A clever film."}]})

    second: str | Texts | None = Field(None, description="Of pairs: the second text of each.")
    best: Best = Field(1, description="How many labels to tell of each.")


class TagAsk(TextsAsk):
    """Sentences whose words (what stands between spaces) are to be tagged."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "The cat drinks milk ."}]})


class AnswerAsk(Ask):
    """Questions about a text."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"question": "Who sleeps?", "context": "The young cat sleeps."}]}
    )

    question: str | Texts = Field(description="A question, or several about the same text.")
    context: str = Field(min_length=1, description="The text to find the answers in.")
    best: Best = Field(1, description="How many answers to tell of each.")


class EmbedAsk(TextsAsk):
    """Texts to turn into vectors."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": ["The young cat sleeps.", "The dog eats."]}]})

    pooling: Literal["mean", "first", "max"] = Field("mean", description="Over all tokens, or the vector of [CLS].")
    normalise: bool = Field(True, description="Make them of length 1, so that inner products are cosines.")


class FillAsk(TextsAsk):
    """Texts with [MASK] where words are to be guessed."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "The young [MASK] sleeps."}]})

    best: Best = Field(5, description="How many guesses to tell for each [MASK].")


Picture = Annotated[str, StringConstraints(min_length=1)]


class PicturesAsk(Ask):
    image: Picture | Annotated[list[Picture], Field(min_length=1, max_length=LISTED)] = Field(
        description="A picture as base64 (standard alphabet), or several."
    )

    def images(self) -> list[str]:
        return [self.image] if isinstance(self.image, str) else self.image


class ImageClassifyAsk(PicturesAsk):
    """Pictures to tell the class of."""

    best: Best = Field(1, description="How many classes to tell of each.")


class ImageReadAsk(PicturesAsk):
    """Pictures of words to read."""

    fast: bool = Field(False, description="Read with the CTC head of a model that has one: faster.")
    sure: float = Field(
        1.0,
        ge=0,
        le=1,
        description="Take words from that head where it is so sure, write only the others: nearly as fast.",
    )
    beam: int = Field(1, ge=1, le=BEAM, description="Readings followed at once, of models that write by character.")
    turn: bool = Field(False, description="Try pictures more than twice as high as wide turned, too.")
    characters: bool = Field(False, description="Tell how sure the model is of each character.")


class AttendAsk(Ask):
    """A sentence whose translation's attention is to be seen."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"text": "I am a student."}]})

    text: str = Field(min_length=1, description="The sentence.")
    target: str | None = Field(None, min_length=1, description="Look at this translation instead of the model's own.")
    tag: Name | None = Field(None, description="The language to write, where the model knows several.")
    tokens: bool = Field(False, description="By tokens instead of words.")
    layer: int | None = Field(None, ge=0, le=1000, description="Of a Transformer. (default: the second to last)")
    head: int | None = Field(None, ge=0, le=1000, description="One of its heads. (default: their mean)")
    kind: Literal["cross", "self", "causal"] = Field("cross", description="Who looks at whom.")
    format: Literal["json", "html"] = Field("json", description="The weights, or a page that shows them offline.")


class LibreAsk(BaseModel):
    """As LibreTranslate's clients ask; keys of it that change nothing here are let pass."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False, frozen=True)

    q: str | Texts = Field(description="A text, or several.")
    source: Name = Field(description='The language it is in, or "auto".')
    target: Name = Field(description="The language to write.")
    format: Literal["text", "html"] = Field("text", description="Only text: tags would be translated as words.")
    alternatives: int = Field(0, ge=0, le=BEAM - 1, description="How many more translations of each text.")
    api_key: str | None = Field(None, max_length=1000, description="A key, where the service asks for one.")


# ---------------------------------------------------------------- answers


class Told(BaseModel):
    """Answers are only described here."""


class Written(Told):
    text: str
    score: float | None = Field(description="The log-probability by length, and the coverage penalty.")
    finished: bool = Field(description="False: cut at the longest length.")


class Translated(Written):
    alternatives: list[Written] | None = Field(None, description="The next best, where nbest is above 1.")


class TranslateTold(Told):
    model: str
    translations: list[Translated] = Field(description="One for each text, in order.")


class Labelled(Told):
    label: str | float | None = Field(description="The likeliest label; the number, of a run that tells numbers.")
    probabilities: dict[str, float | None] | None = Field(None, description="Of the best labels.")


class ClassifyTold(Told):
    model: str
    labels: list[Labelled]


class Tagged(Told):
    words: list[str]
    tags: list[str]


class TagTold(Told):
    model: str
    sentences: list[Tagged]


class Found(Told):
    text: str = Field(description="Empty: the text has no answer.")
    start: int = Field(description="The character of the context where it begins.")
    probability: float | None


class AnswerTold(Told):
    model: str
    answers: list[list[Found]] = Field(description="For each question its answers, best first.")


class EmbedTold(Told):
    model: str
    vectors: list[list[float | None]]


class Guessed(Told):
    token: str
    probability: float | None
    text: str


class FillTold(Told):
    model: str
    guesses: list[list[list[Guessed]]] = Field(description="For each text, each [MASK] of it: the guesses.")


class ImageClassifyTold(Told):
    model: str
    images: list[Labelled]


class WordRead(Told):
    text: str
    confidence: float | None
    turned: int = Field(description="Degrees, against the clock, that the picture was turned by.")
    characters: list[tuple[str, float]] | None = None


class ImageReadTold(Told):
    model: str
    images: list[WordRead]


class AttendTold(Told):
    model: str
    source: list[str] = Field(description="The keys: what was looked at.")
    target: list[str] = Field(description="The queries: what looked.")
    weights: list[list[float | None]] = Field(description="weights[t][s]: how much target t looked at source s.")
    score: float | None
    kind: str
    name: str


class LibreTold(Told):
    translatedText: str | list[str]  # noqa: N815  LibreTranslate's name
    detectedLanguage: dict[str, Any] | list[dict[str, Any]] | None = None  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None


class Wrong(Told):
    code: str = Field(description="What kind of error, for programs.")
    message: str = Field(description="What is wrong and what to do, for people.")
    where: str = Field(description="The key it is about; empty where there is none.")


class ProblemTold(Told):
    error: Wrong


class LibreProblemTold(Told):
    error: str


ASKED: tuple[type[BaseModel], ...] = (
    TranslateAsk, ClassifyAsk, TagAsk, AnswerAsk, EmbedAsk, FillAsk, ImageClassifyAsk, ImageReadAsk, AttendAsk,
    LibreAsk,
)  # fmt: skip
