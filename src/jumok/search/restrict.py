"""What may not come next in steps that are not plain: prefixes, lengths, constraints and draws.

All of them make continuations impossible before these are ranked, so that the search itself knows nothing of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jumok.search.row import Row
from jumok.search.sampling import draw, uniform
from jumok.search.scores import Integers, Scores

if TYPE_CHECKING:
    from jumok.search.beam import Beam

Booleans = NDArray[np.bool_]
WITH_FLOAT64 = ("cpu", "cuda")  # devices that can draw by themselves; MPS has float32 at most


class Limits(NamedTuple):
    """What such a step says about `<eos>`, for each hypothesis (N)."""

    barred: Booleans  # it may not come
    sure: Booleans  # it comes, whatever its rank
    unwilling: Booleans  # it comes because of the maximum length: the model would have gone on
    free: Booleans  # it comes because of that and costs nothing, as the library transformers has it


def restrict(beam: Beam, scores: Scores) -> Limits:
    limits = Limits(*(np.zeros(len(beam.row_N), bool) for _ in range(4)))
    first = np.searchsorted(beam.row_N, np.arange(len(beam.rows) + 1)).tolist()
    drawn: list[int] = []
    if any(_overwrites(row, length) for row, length in zip(beam.rows, beam.length_R.tolist(), strict=True)):
        scores.check()  # afterwards it could not be seen any more
    for index, (row, length) in enumerate(zip(beam.rows, beam.length_R.tolist(), strict=True)):
        here = np.arange(first[index], first[index + 1])
        if length < len(row.options.prefix):
            token = np.array([row.options.prefix[length]])
            scores.only(here, token, scores.pick(here, token))
            limits.barred[here] = True
            continue
        if beam.unequal and (others := row.banned.difference(beam.banned)):
            scores.block(here.repeat(len(others)), np.array([*others] * len(here)))
        if row.blocked:
            hypotheses, tokens = row.blocked.after(beam.tokens_NL[here, :length])
            scores.block(here[hypotheses], tokens)
        if length + 1 == row.limit:
            _close(beam, row, here, scores, limits)
            continue
        limits.barred[here] = not row.ends or length + 1 < row.options.min_length
        if row.options.sample:
            drawn += here.tolist()
        if row.required:
            _place(beam, row, here, scores, limits)
    if drawn:
        _draw(beam, np.array(drawn), scores, limits)
    return limits


def _overwrites(row: Row, length: int) -> bool:
    return length < len(row.options.prefix) or length + 1 == row.limit or row.options.sample or bool(row.required)


def _close(beam: Beam, row: Row, here: Integers, scores: Scores, limits: Limits) -> None:
    """The last token is `<eos>`, unless a required phrase is still missing."""
    limits.unwilling[here] = scores.whole(here).amax(dim=1).cpu().double().numpy() > scores.ends(here)
    limits.free[here] = row.guesses
    if row.required:
        limits.barred[here] = [row.required.missing(output) > 0 for output in _outputs(beam, here)]
    scores.silence(here)


def _place(beam: Beam, row: Row, here: Integers, scores: Scores, limits: Limits) -> None:
    """Choose for a row with required phrases, and leave nothing but the choice."""
    assert row.required is not None
    width, special = row.options.beam, row.required.tokens
    whole_KV = scores.whole(here).cpu().double().numpy()
    ends = np.where(limits.barred[here], -np.inf, scores.ends(here))
    candidates: list[tuple[float, int, int]] = []
    for place, (total, values_V) in enumerate(zip(beam.total_N[here].tolist(), whole_KV, strict=True)):
        count = min(width + len(special), len(values_V))
        edge = np.partition(values_V, -count)[-count]
        tokens = np.union1d(np.flatnonzero(values_V >= edge), special)
        listed = [(total + float(values_V[token]), place, token) for token in tokens.tolist()]
        candidates += [*listed, (total + float(ends[place]), place, beam.end)]
    possible = [candidate for candidate in candidates if candidate[0] > -np.inf]
    chosen, ending = row.required.place(_outputs(beam, here), possible, beam.end, width)
    limits.barred[here] = True
    limits.barred[here[ending]] = False
    limits.sure[here[ending]] = True
    scores.silence(here)
    if chosen:
        hypotheses, tokens = (np.array([item[part] for item in chosen], np.int64) for part in (1, 2))
        scores.only(here[hypotheses], tokens, whole_KV[hypotheses, tokens])


def _draw(beam: Beam, drawn: Integers, scores: Scores, limits: Limits) -> None:
    ends = np.where(limits.barred[drawn], -np.inf, scores.ends(drawn))
    values_NV = scores.whole(drawn)
    if values_NV.device.type not in WITH_FLOAT64:
        values_NV = values_NV.cpu()
    values_NV[:, beam.end] = values_NV.new_tensor(ends.tolist())
    possible = values_NV.amax(dim=1).cpu().numpy() > -np.inf
    if not possible.all():
        drawn, values_NV = drawn[possible], values_NV[possible]
    if not len(drawn):
        return
    options = [beam.rows[row].options for row in beam.row_N[drawn]]
    lengths = beam.length_R[beam.row_N[drawn]].tolist()
    numbers = [uniform(o.seed, o.stream, length) for o, length in zip(options, lengths, strict=True)]
    tokens_N = draw(values_NV, options, numbers)
    values = values_NV.gather(1, tokens_N[:, None])[:, 0].cpu().double().numpy()
    tokens = tokens_N.cpu().numpy()
    is_end = tokens == beam.end
    limits.barred[drawn], limits.sure[drawn] = ~is_end, is_end
    scores.only(drawn, tokens, np.where(is_end, -np.inf, values))


def _outputs(beam: Beam, here: Integers) -> list[tuple[int, ...]]:
    length = int(beam.length_R[beam.row_N[here[0]]])
    return [tuple(tokens) for tokens in beam.tokens_NL[here, :length].tolist()]
