"""Vision: images → batches, model → objective, scores → how many are right.

    −Σ log softmax(W pool(h) + b)_y

Two images that were mixed (mixup, cutmix) have two labels, each with the share that its image has.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.data.images.augment import Augment
from jumok.data.images.batch import ImageBatch
from jumok.data.images.csv_list import KEY
from jumok.data.images.drawn import Drawn
from jumok.data.images.mixing import Mix
from jumok.data.images.order import Order
from jumok.data.images.sources import ImageSource, open_images
from jumok.data.images.store import ImageStore, open_store
from jumok.data.plan import FEW, FEW_SAY_LITTLE, HELD_OUT, HELD_OUT_SHARE, KEPT_BACK, LayoutPlan
from jumok.data.shuffle import Shuffle
from jumok.errors import BadInput
from jumok.files import replace_file
from jumok.models.vit import ImageLabeller
from jumok.recipe import Augmentation, Corpus, Recipe, VitSection
from jumok.tasks.example_task import LABELS
from jumok.tasks.labelling import Classes
from jumok.tasks.objective import Loss, Objective
from jumok.text.tokenizer import Tokenizer

Say = Callable[[str], None]
Labels = npt.NDArray[np.int64]
ROWS = 512  # images looked at together where nothing is learned


class VisionObjective(Objective):
    model: ImageLabeller
    counted = "images"

    def __init__(
        self, model: ImageLabeller, augmentation: Augmentation, weights: Sequence[float] | None, smoothing: float
    ) -> None:
        super().__init__()
        self.model, self.smoothing = model, smoothing
        self.augment, self.mix = Augment(augmentation), Mix(augmentation)
        self.register_buffer("weights", None if weights is None else torch.tensor(weights), persistent=False)

    def forward(self, batch: ImageBatch) -> Loss:
        if not self.training:
            return Loss(self.entropy(self.model(batch.images).float(), batch.labels).sum(), batch.tokens)
        images = self.augment(batch.images)
        if not self.mix.section.mixes:
            return Loss(self.entropy(self.model(images).float(), batch.labels).sum(), batch.tokens)
        mixed = self.mix(images, batch.labels)
        scores_BL = self.model(mixed.images).float()
        entropy_B = mixed.share * self.entropy(scores_BL, mixed.labels)
        entropy_B = entropy_B + (1 - mixed.share) * self.entropy(scores_BL, mixed.others)
        return Loss(entropy_B.sum(), batch.tokens)

    def entropy(self, scores_BL: Tensor, labels_B: Tensor) -> Tensor:
        """Of each image: (B,)."""
        weights = self.weights if isinstance(self.weights, Tensor) else None
        return F.cross_entropy(scores_BL, labels_B, weights, reduction="none", label_smoothing=self.smoothing)


class VisionTask:
    """Everything `jumok train` needs to know about images."""

    objective: VisionObjective

    def __init__(self, recipe: Recipe, device: torch.device, say: Say) -> None:
        assert isinstance(recipe.model, VitSection)
        self.recipe, self.device, self.section = recipe, device, recipe.model
        training = recipe.training
        self.stores = [self._open(corpus, "train", say) for corpus in recipe.data.train]
        held = [self._open(corpus, "valid", say) for corpus in recipe.data.valid]
        self.classes = Classes.learned([store.classes[label] for store in self.stores for label in store.labels])
        self.labels = [self._labels(store) for store in self.stores]
        self.split: list[str] = []  # a key, where other images are kept back than in older versions
        numbers = [np.arange(len(store)) for store in self.stores]
        self.held = [(store, self._labels(store), np.arange(len(store))) for store in held]
        if not held:
            numbers[0], kept = self._keep_back(say)
            self.held = [(self.stores[0], self.labels[0], kept)]
        orders = [Order(each, min(training.batch_images, len(each))) for each in numbers]
        weights = [corpus.weight for corpus in recipe.data.train]
        self.plan = LayoutPlan(orders, weights, recipe.seed, training.accumulate)
        torch.manual_seed(recipe.seed)
        model = ImageLabeller(self.section, self.classes.size)
        importance = self.classes.weights(training)
        self.objective = VisionObjective(model, recipe.augment, importance, training.label_smoothing)

    def _open(self, corpus: Corpus, part: str, say: Say) -> ImageStore:
        section = self.section
        with keys_of(part):
            source = source_of(corpus, part, min(section.image))
            store = open_store(source, section.image, section.channels, self.recipe.data.resize, say)
        if store.lost:
            more = f" (nor of {len(store.lost) - 1} more)" if len(store.lost) > 1 else ""
            raise BadInput(
                f'no image of class "{store.lost[0]}" can be read{more}: put good ones there, or take it out'
            )
        return store

    def _labels(self, store: ImageStore) -> Labels:
        """As the model counts them. A class that training has not seen is named with its first image."""
        known = {name: number for number, name in enumerate(self.classes.names)}
        for number, name in enumerate(store.classes):
            if name not in known:
                self.classes.index(name, store.names[int((store.labels == number).argmax())])
        found: Labels = np.array([known[name] for name in store.classes], np.int64)[store.labels]
        return found

    def _keep_back(self, say: Say) -> tuple[Labels, Labels]:
        """Images of the first corpus to learn from, and to validate on: some at random, but never the last one of a
        class, which could not be learned."""
        size = len(self.stores[0])
        if size < 2:
            raise BadInput(
                "a single image: none can be kept back for validation. Add some, or name data.valid (--valid)"
            )
        count = max(1, min(self.recipe.data.hold_out, size // HELD_OUT_SHARE))
        left = np.bincount(np.concatenate(self.labels))
        chosen: list[int] = []
        shuffled = Shuffle(size, self.recipe.seed, HELD_OUT)(np.arange(size))
        for number in map(int, shuffled):
            if left[label := self.labels[0][number]] > 1:
                left[label] -= 1
                chosen.append(number)
            if len(chosen) == count:
                break
        if not chosen:
            raise BadInput(
                f"none of {size} images can be kept back for validation: each is the only one of its class. Add some, "
                "or name data.valid (--valid)"
            )
        kept = np.sort(np.array(chosen))
        if not np.array_equal(kept, np.sort(shuffled[:count])):  # which were kept back when classes did not matter
            self.split = [KEPT_BACK + hashlib.sha256(json.dumps(kept.tolist()).encode()).hexdigest()[:32]]
        few = "" if len(kept) >= FEW else FEW_SAY_LITTLE
        many = "images are" if len(kept) > 1 else "image is"
        say(f"no validation data given: {len(kept):,} training {many} kept back for it{few}")
        return np.setdiff1d(np.arange(size), kept), kept

    @property
    def tokenizers(self) -> Mapping[str, Tokenizer]:
        return {}

    @property
    def data_keys(self) -> list[str]:
        return [store.content for store in (*self.stores, *(store for store, _, _ in self.held))] + self.split

    def keep(self, folder: Path) -> None:
        if not (folder / LABELS).exists():
            replace_file(folder / LABELS, json.dumps(self.classes.to_json(), ensure_ascii=False, indent=1) + "\n")

    def sizes(self) -> str:
        learned = sum(len(order.numbers) for order in self.plan.layouts if isinstance(order, Order))
        kept, batches = sum(len(numbers) for _, _, numbers in self.held), self.plan.batches_per_epoch
        said = f"{learned:,} image{'s' * (learned != 1)} of {self.classes.size} classes, {kept:,} for validation"
        return f"{said}, {batches:,} batch{'es' * (batches > 1)} an epoch"

    def batches(self, update: int, only: Sequence[int] | None = None) -> list[ImageBatch]:
        return [
            self.stores[micro.corpus].batch(micro.indices, self.labels[micro.corpus], micro.corpus)
            for micro in self.plan.at(update, only)
        ]

    def name_batch(self, batch: ImageBatch) -> str:
        names = [self.stores[batch.corpus].names[index] for index in batch.indices[:5]]
        more = f" and {len(batch.indices) - 5} more" if len(batch.indices) > 5 else ""
        return f"the batch of {'; '.join(names)}{more}"

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Mean loss and share of images that are right, over all validation data by their weights."""
        self.objective.eval()
        weights = [corpus.weight for corpus in self.recipe.data.valid] or [1]
        loss = right = 0.0
        for (store, labels, numbers), weight in zip(self.held, weights, strict=True):
            sums = torch.zeros(2, dtype=torch.float64, device=self.device)
            for start in range(0, len(numbers), ROWS):
                batch = store.batch(numbers[start : start + ROWS], labels).to(self.device)
                scores_BL = self.objective.model(batch.images).float()
                entropy = F.cross_entropy(scores_BL, batch.labels, reduction="sum")
                sums += torch.stack([entropy, (scores_BL.argmax(dim=-1) == batch.labels).sum()])
            loss += weight * float(sums[0]) / len(numbers)
            right += weight * float(sums[1]) / len(numbers)
        return {"loss": loss / sum(weights), "accuracy": right / sum(weights)}


def source_of(corpus: Corpus, part: str, size: int) -> ImageSource:
    """The images that a recipe names: files, or those drawn in the model's own size."""
    if corpus.drawn is not None:
        return Drawn(corpus.pairs, corpus.split or part, size)
    return open_images(corpus.images, corpus.fields)


@contextmanager
def keys_of(part: str) -> Iterator[None]:
    """The columns of images to validate on are said by keys of their own: what is told of them names these."""
    try:
        yield
    except BadInput as error:
        raise BadInput(str(error).replace(KEY, f"data.{part}.fields")) from None
