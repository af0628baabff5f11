"""`jumok studio`: a page where people look."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import typer

from jumok.errors import BadInput

NEEDED = ("starlette", "uvicorn")


def studio(
    run: list[Path] = typer.Option(
        [], "--run", metavar="DIR", help="A run folder, or one that holds some; may be repeated. (default: runs)"
    ),
    host: str = typer.Option("127.0.0.1", help="The address to listen on."),
    allow_host: list[str] = typer.Option(
        [], "--allow-host", metavar="NAME", help="A name that a proxy in front goes by; may be repeated."
    ),
    port: int = typer.Option(8765, min=0, max=65535, help="0: any that is free."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
    open_browser: bool = typer.Option(True, "--open/--no-open", help="Open the page in the browser."),
    first: bool = typer.Option(
        True, "--first/--no-first", help="Train a tiny Transformer once, to look at (a minute, in the background)."
    ),
) -> None:
    """Open a page where you see what models look at: translations, heads, gates, pictures, runs as they train."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise BadInput(f"jumok studio needs {', '.join(missing)}: pip install 'jumok[studio]'")
    from jumok.serve.listening import listening
    from jumok.serve.settings import EVERYWHERE, LOOPBACK, allowed_hosts, named
    from jumok.studio.settings import Settings

    for folder in run:
        if not folder.is_dir():
            raise BadInput(f"--run {folder}: there is no such folder. Make one with: jumok train RECIPE --run {folder}")
    proxied = tuple(dict.fromkeys(named(name) for name in allow_host))
    settings = Settings(hosts=allowed_hosts(host, []), proxied=proxied, addresses=host in EVERYWHERE)
    if host in EVERYWHERE or named(host) not in LOOPBACK:
        typer.echo(f"note: whoever reaches {host or 'this machine'} may look at your runs", err=True)
    listener, url = listening(host, port)
    from jumok.studio.first import First  # PyTorch: after all that can be told without it
    from jumok.studio.server import serve
    from jumok.studio.shelf import Shelf

    shelf = Shelf.of(run, device, usual=[] if run else [settings.runs])
    serve(shelf, settings, listener, url, First() if first else None, open_browser, typer.echo)
