"""CTC: values and gradients as PyTorch's own, sums over all paths, rows for themselves, and what the best path says."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from jumok.layers.ctc import BLANK, best_path, ctc_loss


def ours(logits_BTV: Tensor, ids_BS: Tensor, lengths_B: Tensor) -> Tensor:
    """The loss from log-probabilities of all labels, as a head gives those that are asked for."""
    log_probs_BTV = torch.log_softmax(logits_BTV, dim=-1)
    asked = ids_BS[:, None].expand(-1, logits_BTV.size(1), -1)
    return ctc_loss(log_probs_BTV.gather(2, asked), log_probs_BTV[..., BLANK], ids_BS, lengths_B)


def theirs(logits_BTV: Tensor, ids_BS: Tensor, lengths_B: Tensor) -> Tensor:
    rows, frames, _ = logits_BTV.shape
    return F.ctc_loss(
        torch.log_softmax(logits_BTV, dim=-1).transpose(0, 1),
        ids_BS,
        torch.full((rows,), frames),
        lengths_B,
        blank=BLANK,
        reduction="none",
        zero_infinity=True,
    )


def random_case(rows: int, frames: int, labels: int, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Few labels, so that neighbours are often equal; padding behind the end is 0, the blank."""
    logits = 3 * torch.randn(rows, frames, size, dtype=torch.float64)
    lengths = torch.randint(0, labels + 1, (rows,))
    lengths[0], lengths[1] = 0, labels
    ids = torch.randint(1, size, (rows, labels))
    ids[torch.arange(labels) >= lengths[:, None]] = BLANK
    return logits, ids, lengths


@pytest.mark.parametrize(("frames", "labels", "size"), [(12, 5, 3), (7, 6, 4), (30, 9, 50), (3, 6, 4), (1, 1, 3)])
def test_values_and_gradients_are_those_of_pytorch(frames: int, labels: int, size: int) -> None:
    logits, ids, lengths = random_case(40, frames, labels, size)
    weights = torch.rand(40, dtype=torch.float64)
    found, gradients = [], []
    for loss_of in (ours, theirs):
        given = logits.clone().requires_grad_()
        loss = loss_of(given, ids, lengths)
        (loss * weights).sum().backward()
        assert given.grad is not None
        found.append(loss.detach())
        gradients.append(given.grad)
    torch.testing.assert_close(found[0], found[1])
    torch.testing.assert_close(gradients[0], gradients[1])


def test_it_is_the_sum_over_all_paths() -> None:
    logits, ids, lengths = random_case(4, 5, 3, 3)
    log_probs = torch.log_softmax(logits, dim=-1)
    for row, loss in enumerate(ours(logits, ids, lengths)):
        word = ids[row, : lengths[row]].tolist()
        total = 0.0
        for path in product(range(3), repeat=5):
            said = [label for place, label in enumerate(path) if label and (not place or label != path[place - 1])]
            if said == word:
                total += float(log_probs[row, torch.arange(5), torch.tensor(path)].sum().exp())
        expected = -torch.tensor(total, dtype=torch.float64).log() if total else torch.tensor(0.0, dtype=torch.float64)
        torch.testing.assert_close(loss, expected)


def test_the_gradient_is_that_of_its_differences() -> None:
    logits, ids, lengths = random_case(3, 6, 3, 4)
    assert torch.autograd.gradcheck(lambda x: ours(x, ids, lengths), logits.requires_grad_())


def test_what_cannot_be_said_counts_nothing() -> None:
    """Four equal labels need seven frames; six have no path."""
    ids, lengths = torch.full((2, 4), 1), torch.tensor([4, 3])
    logits = torch.randn(2, 6, 3, requires_grad=True)
    loss = ours(logits, ids, lengths)
    assert loss[0] == 0
    assert loss[1] > 0
    loss.sum().backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[0] == 0).all()
    assert (logits.grad[1] != 0).any()
    assert ours(torch.randn(1, 7, 3), ids[:1], lengths[:1]) > 0


def test_float32_holds_where_labels_are_all_but_impossible() -> None:
    logits, ids, lengths = random_case(20, 32, 10, 5)
    logits = logits * 100
    given = logits.float().requires_grad_()
    loss = ours(given, ids, lengths)
    torch.testing.assert_close(loss, theirs(logits, ids, lengths).float(), rtol=1e-4, atol=1e-3)
    loss.sum().backward()
    assert given.grad is not None
    assert torch.isfinite(given.grad).all()


def test_rows_know_nothing_of_each_other_nor_of_padding() -> None:
    logits, ids, lengths = random_case(6, 14, 5, 4)
    together = ours(logits, ids, lengths)
    for row in range(6):
        alone = ours(logits[row : row + 1], ids[row : row + 1, : max(1, int(lengths[row]))], lengths[row : row + 1])
        torch.testing.assert_close(alone[0], together[row])
    other = ids.clone()
    other[torch.arange(5) >= lengths[:, None]] = 3
    torch.testing.assert_close(ours(logits, other, lengths), together)


def test_nothing_waits_and_shapes_are_fixed() -> None:
    """Whatever the lengths: the same program on tensors without data."""
    with torch.device("meta"):
        loss = ctc_loss(torch.empty(2, 9, 4), torch.empty(2, 9), torch.ones(2, 4).long(), torch.ones(2).long())
    assert loss.shape == (2,)


def test_the_best_path() -> None:
    said = torch.tensor([[0, 5, 5, 0, 5, 6, 6, 0], [0] * 8, [7] * 8, [4, 5, 4, 5, 4, 5, 4, 5]])
    log_probs = -torch.rand(4, 8)
    ids, lengths, surest, blanks = best_path(log_probs, said)
    assert [row[:length].tolist() for row, length in zip(ids, lengths, strict=True)] == [
        [5, 5, 6],
        [],
        [7],
        [4, 5, 4, 5, 4, 5, 4, 5],
    ]
    expected = [log_probs[0, 1:3].max(), log_probs[0, 4], log_probs[0, 5:7].max()]
    torch.testing.assert_close(surest[0], torch.tensor([*expected, *[0.0] * 5]))
    torch.testing.assert_close(surest[2], torch.tensor([log_probs[2].max(), *[0.0] * 7]))
    torch.testing.assert_close(surest[3], log_probs[3])
    behind = torch.arange(8) >= lengths[:, None]
    assert (ids[behind] == 0).all()
    assert (surest[behind] == 0).all()
    torch.testing.assert_close(blanks, (log_probs * (said == 0)).sum(dim=1))
