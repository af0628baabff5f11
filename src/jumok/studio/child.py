"""A jumok command in a process of its own, which ends gracefully when the studio lets go of it.

The studio holds the other end of our input. When it closes it (somebody pressed Stop, or the studio ends, or was
killed), we do what Ctrl-C does: a training saves all that it needs to be resumed.

    python -m jumok.studio.child train demo --run runs/demo
"""

from __future__ import annotations

import _thread
import contextlib
import os
import runpy
import signal
import threading


def _stop_when_let_go() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 1):  # not sys.stdin: its lock would be held when the interpreter ends
            pass
    if hasattr(signal, "pthread_kill"):  # to the main thread, so that it also wakes what waits there
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a studio in the background has it ignored
    threading.Thread(target=_stop_when_let_go, daemon=True).start()
    runpy.run_module("jumok", run_name="__main__", alter_sys=False)


if __name__ == "__main__":
    main()
