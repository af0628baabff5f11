"""`jumok serve`: trained runs as an HTTP service."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from jumok.errors import BadInput

if TYPE_CHECKING:
    from jumok.serve.models import Models

DOOR, LIMITS = "Who may ask", "Limits"
NEEDED = ("fastapi", "uvicorn", "httptools", "prometheus_client", "python_multipart")


def serve(
    run: list[str] = typer.Option(
        [], "--run", metavar="[NAME=]DIR", help="A run folder; several are served together. (default: the package's)"
    ),
    host: str = typer.Option("127.0.0.1", help="The address to listen on. 0.0.0.0: also from other machines."),
    port: int = typer.Option(8000, min=0, max=65535, help="0: any that is free."),
    device: str = typer.Option("auto", help="auto, cpu, cuda or mps."),
    precision: str = typer.Option("float32", help="float32, bfloat16 or int8: less is faster, with small differences."),
    engine: str = typer.Option("torch", help="Of translators: torch, ct2 (CTranslate2), onnx (onnxruntime)."),
    threads: int | None = typer.Option(None, min=1, help="Of the CPU. (default: one a core)"),
    language: list[str] = typer.Option(
        [], "--language", metavar="NAME=en-fr", help="What a run translates, for clients that choose by language."
    ),
    log: str = typer.Option("text", help="text: what happens to the service; json: that, and each request."),
    # Who may ask
    api_key_file: Path | None = typer.Option(
        None, help="Keys, one a line; or one in the variable JUMOK_API_KEY.", rich_help_panel=DOOR
    ),
    allow_host: list[str] = typer.Option(
        [], "--allow-host", help="A name that this service is called by; may be repeated.", rich_help_panel=DOOR
    ),
    cors: list[str] = typer.Option(
        [], "--cors", metavar="ORIGIN", help="Web pages that may ask (https://example.org).", rich_help_panel=DOOR
    ),
    # Limits
    queue: int = typer.Option(
        256, min=1, help="Texts that wait, of each run; more are refused (429).", rich_help_panel=LIMITS
    ),
    max_request_bytes: int = typer.Option(
        1 << 20, min=1024, help="Of a request; of one with pictures sixteen times that.", rich_help_panel=LIMITS
    ),
    max_text: int = typer.Option(10_000, min=1, help="Characters of a text.", rich_help_panel=LIMITS),
    seconds: float = typer.Option(30.0, help="In which a request must be answered.", rich_help_panel=LIMITS),
) -> None:
    """Serve trained runs over HTTP: translations, labels, tags, answers, vectors, pictures, attention."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise BadInput(f"jumok serve needs {', '.join(missing)}: pip install 'jumok[serve]'")
    from jumok.serve.listening import listening
    from jumok.serve.settings import EVERYWHERE, LOOPBACK, Settings, allowed_hosts, allowed_origins, named, read_keys
    from jumok.serve.waiting import Room

    if log not in ("text", "json"):
        raise BadInput(f"--log {log}: give text or json")
    keys = read_keys(api_key_file)
    room = Room(waiting=queue, seconds=seconds)
    languages = dict(_pair(each) for each in language)
    settings = Settings(
        hosts=allowed_hosts(host, allow_host),
        addresses=host in EVERYWHERE,
        keys=keys,
        origins=allowed_origins(cors),
        bytes=max_request_bytes,
        text=max_text,
        seconds=seconds,
        log=log,
    )
    if not keys and (host in EVERYWHERE or named(host) not in LOOPBACK):
        typer.echo(f"note: whoever reaches {host or 'this machine'} may use this service: --api-key-file", err=True)

    def load() -> Models:
        from jumok.serve.models import Models

        return Models.load(run, device, precision, engine, room, threads, languages)

    def ready(models: Models) -> None:
        typer.echo(f"jumok serve: {url} ({', '.join(models.names)})")

    listener, url = listening(host, port)
    from jumok.serve.server import serve as run_service  # PyTorch: after all that can be told without it

    code = run_service(load, settings, listener, ready)
    if code:
        raise typer.Exit(code)


def _pair(given: str) -> tuple[str, str]:
    name, equals, languages = given.partition("=")
    if not equals or not name or not languages:
        raise BadInput(f"--language {given}: write the name of a run and its languages, as in small=en-fr")
    return name, languages
