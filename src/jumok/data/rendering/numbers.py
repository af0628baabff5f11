"""Numbers as they are written on things: amounts, prices, dates, times, telephone numbers.

A form is a text with fields, `{hour}:{minute}`, and a field is a list of what may stand there. Only forms whose
characters are all in the charset are used. All values of all fields lie one after the other in one array of ids, so a
number is drawn as a row of places in it (stretches.py).
"""

from __future__ import annotations

import string
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jumok.data.images.drawn_dice import Dice
from jumok.data.rendering.alphabet import Alphabet
from jumok.data.rendering.stretches import Ids, Integers, below, by_weight

FIELDS: dict[str, list[str]] = {
    "one": [str(number) for number in range(1, 10)],
    "two": [str(number) for number in range(10, 100)],
    "three": [str(number) for number in range(100, 1000)],
    "number": [str(number) for number in [*range(1, 10)] * 20 + [*range(10, 100)] * 3 + [*range(100, 1000)]],
    "digit": list(string.digits),
    "digits": [f"{number:02d}" for number in range(100)],
    "thousands": [f"{number:03d}" for number in range(1000)],
    "block": [f"{number:04d}" for number in range(10_000)],
    "cents": ["00", "50", "90", "95", "99", *(f"{number:02d}" for number in range(100))],
    "day": [str(number) for number in range(1, 32)],
    "padded_day": [f"{number:02d}" for number in range(1, 32)],
    "month": [str(number) for number in range(1, 13)],
    "padded_month": [f"{number:02d}" for number in range(1, 13)],
    "month_name": ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    "year": [str(number) for number in [*range(1900, 1990), *[*range(1990, 2040)] * 3]],
    "hour": [str(number) for number in range(24)],
    "padded_hour": [f"{number:02d}" for number in range(24)],
    "hour_of_half": [str(number) for number in range(1, 13)],
    "minute": ["00", "15", "30", "45", *(f"{number:02d}" for number in range(60))],
    "half": ["am", "pm"],
}
FORMS: dict[str, str] = {
    "amounts": """
        {one} {two} {three} {one}{thousands} {one}{block} {two}{block} {three}{thousands} {block} {block}{block}
        {one}{block}{block}{block} {number},{thousands} {number},{thousands},{thousands} {number}.{digit}
        {number}.{digits} 0.{digits} -{number} +{number} {number}% {number}.{digit}% {one}/{one} #{number} no.{number}
        {number}+ x{one} {number}° {number}°c {number}km {number}kg {number}g {number}ml {number}cm {number}m²
        {one}½ {number}호 {number}층 {number}번 {number}개 제{number}회 {number}m {one}+{one} {number}×{number}
    """,
    "prices": """
        ${number} ${number}.{cents} ${number},{thousands} €{number} {number},{cents}€ {number}.{cents} £{number}.{cents}
        £{number} ¥{number},{thousands} {number},- ₩{number},{digit}00 {number},{digit}00원 {number}00원 {one}만원
        {number}¢ {number}만{one}천원
    """,
    "dates": """
        {year} {year} {day}/{month}/{year} {padded_month}/{padded_day}/{year} {padded_day}.{padded_month}.{year}
        {day}.{month}.{digits} {year}-{padded_month}-{padded_day} {year}.{month}.{day} {year}/{padded_month} '{digits}
        {year}-{digits} {day}{month_name}{year} {day}-{month_name}-{digits} {month_name}.{day} {year}년
        {month}월{day}일 {year}년{month}월 {year}년{month}월{day}일
    """,
    "times": """
        {hour}:{minute} {padded_hour}:{minute} {padded_hour}:{minute}:{minute} {hour_of_half}:{minute}{half}
        {hour_of_half}{half} {hour}h{minute} {padded_hour}:{minute}-{padded_hour}:{minute} {hour}시{minute}분
        오전{hour_of_half}시 오후{hour_of_half}시{minute}분
    """,
    "telephones": """
        {three}-{block} 010-{block}-{block} 02-{three}-{block} 0{two}-{three}-{block} ({three}){thousands}-{block}
        {three}-{thousands}-{block} {three}.{thousands}.{block} +82-10-{block}-{block} +{two}{three}{thousands}{block}
        1{three}-{block} 0{one}{digits}{digits}{digits}{digits} 0{three}/{block}{digits} (02){three}-{block}
    """,
}


@dataclass(frozen=True)
class Forms:
    """The forms that a charset and a length allow; each of the kinds comes as often as any other."""

    pool: Ids  # all values of all fields
    starts: Integers  # of each value in it
    lengths: Integers
    first: Integers  # value of each field
    values: Integers  # of each field: how many it has
    fields: Integers  # (forms, parts) the fields of each form, filled up with one that has nothing in it
    cumulative: npt.NDArray[np.float64]  # weights of the forms

    def __len__(self) -> int:
        return len(self.fields)

    def draw(self, dice: Dice, attempt: int = 0) -> tuple[Integers, Integers]:
        """Starts and lengths in the pool, (B, P) each."""
        words = dice.words(f"number {attempt}", 1 + self.fields.shape[1])
        fields_BP = self.fields[by_weight(words[:, 0], self.cumulative)]
        values_BP = self.first[fields_BP] + below(words[:, 1:], self.values[fields_BP])
        return self.starts[values_BP], self.lengths[values_BP]


def forms_of(alphabet: Alphabet, max_length: int) -> Forms:
    """What can be written with these characters, never longer than `max_length`."""
    fields: dict[str, list[list[int]]] = {"": [[]]}
    numbers = {"": 0}
    forms: list[list[int]] = []
    weights: list[float] = []
    for lines in FORMS.values():
        written = [parts for form in lines.split() if (parts := _parts(form, fields, alphabet, max_length))]
        forms += [[numbers.setdefault(part, len(numbers)) for part in parts] for parts in written]
        weights += [1 / len(written) for _ in written]
    values = [value for name in numbers for value in fields[name]]
    lengths = np.array([len(value) for value in values], np.int64)
    counts = np.array([len(fields[name]) for name in numbers], np.int64)
    longest = max(map(len, forms), default=0)
    return Forms(
        pool=np.array([id for value in values for id in value], np.int32),
        starts=np.cumsum(lengths) - lengths,
        lengths=lengths,
        first=np.cumsum(counts) - counts,
        values=counts,
        fields=np.array([form + [0] * (longest - len(form)) for form in forms], np.int64).reshape(len(forms), longest),
        cumulative=np.cumsum(weights),
    )


def _parts(form: str, fields: dict[str, list[list[int]]], alphabet: Alphabet, max_length: int) -> list[str]:
    """The parts of a form, their values added to `fields`; none where the charset or the length does not allow it."""
    parts: dict[str, list[str]] = {}
    order = []
    for literal, name, _, _ in string.Formatter().parse(form):
        if literal:
            parts[literal] = [literal]
            order.append(literal)
        if name:
            parts[f"{{{name}}}"] = FIELDS[name]
            order.append(f"{{{name}}}")
    for part, texts in parts.items():
        if part not in fields:
            fields[part] = [ids for text in texts if (ids := alphabet.ids_of(text))]
        if len(fields[part]) < len(texts):
            return []
    return order if sum(max(map(len, fields[part])) for part in order) <= max_length else []
