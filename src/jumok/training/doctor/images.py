"""Images before they are learned from: broken ones, copies, what is in both training and validation, rare classes."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from jumok.data.images.store import ImageStore
from jumok.tasks.vision import VisionTask
from jumok.training.doctor.findings import Report

SHOWN = 3  # images named in a finding
RARE = 10  # images of a class that are too few to learn it from
MOST_IMAGES = 200_000  # of a store are compared, evenly spaced


def check_images(task: VisionTask, report: Report) -> None:
    counts = dict(zip(task.classes.names, task.classes.counts, strict=True))
    report.know("images", classes=counts, size=list(task.section.image))
    for store in {store.key: store for store in (*task.stores, *(held for held, _, _ in task.held))}.values():
        for note in store.notes():
            report.add("warning", "data", note, str(store.folder), "mend or remove these files")
    rare = [f"{name} ({count})" for name, count in counts.items() if count < RARE]
    if rare:
        what = f"{len(rare)} class{'es' * (len(rare) > 1)} of fewer than {RARE} images"
        where = ", ".join(rare[:SHOWN]) + (" …" if len(rare) > SHOWN else "")
        report.add("warning", "data", what, where, "add images, or merge it with a class that it belongs to")
    if max(counts.values()) > 10 * min(counts.values()):
        most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
        what = f"the classes are uneven: {counts[most]:,} images of {most}, {counts[least]:,} of {least}"
        report.add("note", "data", what, "data.train", "training.class_weights=balanced lets each class count alike")
    _check_copies(task, report)


def _check_copies(task: VisionTask, report: Report) -> None:
    """What looks the same to the model, to the last pixel."""
    learned: dict[bytes, list[tuple[ImageStore, int]]] = defaultdict(list)
    numbers = [getattr(layout, "numbers", np.empty(0, np.int64)) for layout in task.plan.layouts]
    for store, here in zip(task.stores, numbers, strict=True):
        for number, digest in _digests(store, here):
            learned[digest].append((store, number))
    both = [
        (store.names[number], learned[digest][0])
        for store, _, held in task.held
        for number, digest in _digests(store, held)
        if digest in learned
    ]
    if both:
        shown = "; ".join(f"{name} is {store.names[number]}" for name, (store, number) in both[:SHOWN])
        total = sum(len(held) for _, _, held in task.held)
        what = f"{len(both):,} of {total:,} validation images are among the training images too"
        advice = "take them out of the one or the other: what was learned by heart says nothing about new images"
        report.add("warning" if len(both) > 0.01 * total else "note", "data", what, shown, advice)
    torn = [copies for copies in learned.values() if len({store.classes[store.labels[n]] for store, n in copies}) > 1]
    if torn:
        (one, first), *_ = torn[0]
        own = one.classes[one.labels[first]]
        other, second = next(each for each in torn[0] if each[0].classes[each[0].labels[each[1]]] != own)
        what = f"{len(torn):,} image{'s are' if len(torn) > 1 else ' is'} there with two classes"
        where = f"{one.names[first]} and {other.names[second]}"
        report.add("warning", "data", what, where, "keep it in the class where it belongs")


def _digests(store: ImageStore, numbers: Iterable[int]) -> Iterable[tuple[int, bytes]]:
    chosen = np.asarray(list(numbers))
    for number in chosen[:: max(1, -(-len(chosen) // MOST_IMAGES))]:  # spread over all classes
        yield int(number), hashlib.blake2b(store.images[number].tobytes(), digest_size=16).digest()
