"""A view as one file that works without the studio: the same modules, styles and markup, with the answers it was given.

Modules, and the words they import as JSON, become data: addresses in an import map; in their sources only what they
import is renamed, from "./text.js" to "studio/text.js". The file's policy lets it fetch nothing else. The page itself
puts its answers where MARK stands, so no token comes near this: the server is not told what is saved.
"""

from __future__ import annotations

import base64
import json
import posixpath
import re

from jumok.studio import assets
from jumok.studio.answers import Refused

MARK = "<!-- answers -->"
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data: blob:; "
    "connect-src data:"  # words that are imported as JSON: some browsers count them as asked for, not as scripts
)
IMPORTED = re.compile(r"""(\b(?:from|import)\s*\(?\s*)(["'])(\.{1,2}/[^"']+)\2""")
ROOT = "studio/"


def offline_page(page: str) -> str:
    """The file of a page, without its answers."""
    module = f"pages/{page}.js"
    if module not in assets.files():
        raise Refused(404, "there is no such page")
    sources = dict(modules(["shell.js", module]))
    table = {f"{ROOT}{name}": _address(assets.kind(name), source) for name, source in sources.items()}
    styles = assets.text("studio.css")
    if f"pages/{page}.css" in assets.files():
        styles += assets.text(f"pages/{page}.css")
    head = (
        f'<meta http-equiv="content-security-policy" content="{POLICY}">\n'
        f"<style>\n{styles.replace('</', '<_/')}</style>\n"
        f"<script>{assets.text('theme.js')}</script>\n"
        f'<script type="importmap">{_json({"imports": table})}</script>'
    )
    text = assets.text("index.html")
    text = re.sub(r'<link rel="(?:modulepreload|icon)"[^>]*>\n', "", text)
    text = re.sub(r'<script src="static/theme.js"></script>\n', "", text)
    text = re.sub(r'<script type="module"[^>]*></script>\n', "", text)
    text = re.sub(r'<link rel="stylesheet"[^>]*>', lambda _: head, text)
    return text.replace("</body>", f'{MARK}\n<script type="module">import "{ROOT}shell.js";</script>\n</body>')


def modules(names: list[str]) -> list[tuple[str, str]]:
    """These modules and all that they import, with names that the import map knows."""
    found: dict[str, str] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        parts: list[str] = []

        def renamed(match: re.Match[str], name: str = name, parts: list[str] = parts) -> str:
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), match[3]))
            parts.append(target)
            return f"{match[1]}{match[2]}{ROOT}{target}{match[2]}"

        found[name] = IMPORTED.sub(renamed, assets.text(name))
        waiting += [part for part in parts if part in assets.files()]
    return list(found.items())


def _address(kind: str, text: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"


def _json(value: object) -> str:
    """JSON that can stand in a script element."""
    return json.dumps(value).replace("<", "\\u003c")
