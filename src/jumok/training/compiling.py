"""`training.compile`: the objective through torch.compile, where shapes repeat.

Compiling takes a minute and is kept in the user's cache, so the next run of the same model begins at once. Where there
is no compiler the run goes on without, and says so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from jumok.data.store import default_cache
from jumok.tasks.objective import Loss, Objective
from jumok.training.batches import kind
from jumok.training.device import is_out_of_memory

MOST = 24  # kinds of batches that are compiled for; others are computed plainly


class Compiled:
    """Called like the objective, with batches whose shapes repeat: each new kind of batch is compiled for."""

    def __init__(self, objective: Objective, say: Callable[[str], None]) -> None:
        import torch._dynamo  # late: it takes a second, and few runs compile

        _keep_what_is_compiled()
        self.objective, self.say = objective, say
        torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, MOST)
        self.compiled: Callable[[Any], Loss] | None = torch.compile(objective, dynamic=False)
        self.seen: set[Any] = set()

    def __call__(self, batch: Any) -> Loss:
        if self.compiled is None or (len(self.seen) == MOST and kind(batch) not in self.seen):
            return self.objective(batch)
        if kind(batch) in self.seen:
            return self.compiled(batch)
        began = time.perf_counter()
        if not self.seen:
            self.say("compiling: a minute or more, once (training.compile=false goes without) …")
        try:
            loss = self.compiled(batch)
        except Exception as error:  # whatever the tool chain raises, the plain way is still there
            if isinstance(error, RuntimeError) and is_out_of_memory(error):
                raise
            self.compiled = None
            problem = str(error).strip().partition("\n")[0][:200]
            self.say(f"training.compile: this machine cannot compile it ({problem}). The run goes on without")
            return self.objective(batch)
        self.seen.add(kind(batch))
        self.say(f"compiled in {time.perf_counter() - began:.0f} s (training.compile; kept for the next run)")
        return loss


def _keep_what_is_compiled() -> None:
    """In our cache, unless the user has named another place; PyTorch's own choice is a temporary one."""
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    named = os.environ.get(PLACE)
    if named in (None, os.path.abspath(default_cache_dir()), _chosen[0]):
        _chosen[0] = os.environ[PLACE] = str(default_cache() / "compiled")


PLACE = "TORCHINDUCTOR_CACHE_DIR"  # PyTorch writes its own choice there too
_chosen: list[str | None] = [None]
