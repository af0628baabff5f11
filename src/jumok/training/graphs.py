"""CUDA graphs: forward and backward of a batch recorded once and replayed as one launch.

A small model on a large GPU waits for the CPU to launch its thousands of kernels. Where a batch of the same shapes
comes again, the recorded launches are replayed on it: its tensors are copied into those of the recording, dropout draws
from the generator as it stands, and gradients are added to the parameters' own, all at once. What is computed is what
would be computed without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from jumok.tasks.objective import Loss
from jumok.training.batches import kind, mapped, tensors
from jumok.training.device import is_out_of_memory
from jumok.training.precision import Precision

MOST = 16  # recordings that are kept; shapes beyond them are computed launch by launch
WARM = 3  # runs before a recording: libraries make their choices and claim their memory then


@dataclass(frozen=True)
class Recording:
    graph: torch.cuda.CUDAGraph
    batch: Any  # what it reads
    share: Tensor  # what the loss is multiplied by before the backward pass: scale / count
    names: list[str]
    sums: Tensor  # what it writes


class Graphs:
    def __init__(
        self,
        compute: Callable[[Any], Loss],
        parameters: Iterable[nn.Parameter],
        precision: Precision,
        say: Callable[[str], None],
    ) -> None:
        self.compute, self.precision, self.say = compute, precision, say
        self.most = MOST
        self.parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self.recordings: dict[Any, Recording] = {}
        self.pool: Any = None

    def ready(self, batch: Any) -> Recording | None:
        """The recording for batches like this one, made now if need be; None where there are too many already.

        The parameters' gradients must exist; they are left as they are. The generator is not.
        """
        key = kind(batch)
        if key not in self.recordings and len(self.recordings) < self.most:
            # a copy of its own: what is on a GPU already would be written over by the next batch
            own = mapped(batch, lambda tensor: tensor.to(self.precision.device).clone())
            former = torch.cuda.current_stream()
            gradients = [parameter.grad.clone() for parameter in self.parameters if parameter.grad is not None]
            try:
                self.recordings[key] = self._record(own)
            except RuntimeError as error:
                self._give_up(error, former)
            finally:  # trying it out has added to them
                for parameter, gradient in zip(self.parameters, gradients, strict=True):
                    assert parameter.grad is not None
                    parameter.grad.copy_(gradient)
        return self.recordings.get(key)

    def _give_up(self, error: RuntimeError, former: torch.cuda.Stream) -> None:
        """No more recordings: those that are there still serve."""
        self.most = len(self.recordings)
        torch.cuda.set_stream(former)  # a recording that broke off does not leave its own
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        with suppress(RuntimeError):  # nor does the generator know that it is over
            generator.graphsafe_set_state(generator.clone_state())
        torch.cuda.empty_cache()
        problem = str(error).strip().partition("\n")[0][:200]
        what = "there is no memory for it" if is_out_of_memory(error) else f"this model cannot be recorded: {problem}"
        self.say(f"training.graphs: {what}. The run goes on {'with those it has' if self.most else 'without'}")

    def replay(self, recording: Recording, batch: Any, share: Tensor) -> dict[str, Tensor]:
        """Gradients of share · loss, added to the parameters'; the sums that the loss consists of."""
        for kept, new in zip(tensors(recording.batch), tensors(batch), strict=True):
            kept.copy_(new, non_blocking=True)
        recording.share.copy_(share)
        recording.graph.replay()
        return dict(zip(recording.names, recording.sums.clone().unbind(), strict=True))

    def _record(self, batch: Any) -> Recording:
        share = torch.ones((), device=self.precision.device)
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM):
                names, _ = self._once(batch, share)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        # the thread that prepares batches may ask for memory meanwhile: that is its own affair
        with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            names, sums = self._once(batch, share)
        self.pool = self.pool or graph.pool()
        return Recording(graph, batch, share, names, sums)

    def _once(self, batch: Any, share: Tensor) -> tuple[list[str], Tensor]:
        with self.precision.context():
            loss = self.compute(batch)
        gradients = torch.autograd.grad(loss.sum * share, self.parameters, allow_unused=True)
        pairs = [
            (parameter.grad, gradient)
            for parameter, gradient in zip(self.parameters, gradients, strict=True)
            if gradient is not None
        ]
        # `backward` would add each with a kernel of its own: hundreds, most of them for a few numbers
        torch._foreach_add_([own for own, _ in pairs if own is not None], [new for _, new in pairs])
        sums = {"loss": loss.sum, **loss.parts}
        return list(sums), torch.stack([value.detach().float() for value in sums.values()])
