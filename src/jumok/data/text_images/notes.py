"""What is said once about pictures and their texts that is no error."""

from __future__ import annotations

from collections.abc import Sequence

from jumok.data.images.raw import shown


def unnamed_note(labels: str, unnamed: Sequence[str], count: int, place: str) -> str:
    """Pictures that the labels do not speak of."""
    are = "are" if len(unnamed) > 1 else "is"
    what = f"{len(unnamed):,} of the {count:,} pictures in {place} {are} not in {labels}"
    return f"{what} and passed over, as {shown(unnamed[0])}"


def no_labels_note(place: str, lists: Sequence[str]) -> str:
    """Files that may have the labels, but are not called so."""
    named = ", ".join(shown(name) for name in lists[:5]) + (", …" if len(lists) > 5 else "")
    return f"{place}: no labels file (labels.txt, gt.txt, …). If the texts are in one of these, name it: {named}"
