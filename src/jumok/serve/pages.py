"""Two pages without scripts, and nothing fetched from elsewhere: what this service is, and what can be asked of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jumok.inspect.html import document, escape

STYLES = ["page.css", "service.css"]


def front_page(models: Sequence[Mapping[str, Any]], phase: str) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(str(one['name']))}</code></td><td>{escape(str(one['task']))}</td>"
        f"<td>{escape(_languages(one))}</td></tr>"
        for one in models
    )
    table = f"<table><thead><tr><th>model</th><th>task</th><th>languages</th></tr></thead><tbody>{rows}</tbody></table>"
    links = [
        ("/docs", "what can be asked, with examples"),
        ("/openapi.json", "the same for programs (OpenAPI)"),
        ("/v1/models", "the models"),
        ("/ready", "whether it takes work"),
        ("/metrics", "numbers for Prometheus"),
    ]
    items = "".join(f'<li><a href="{path}">{path}</a> {what}</li>' for path, what in links)
    body = f"<main><h1>jumok serve</h1><p>This service is {escape(phase)}.</p>{table}<ul>{items}</ul></main>"
    return document("jumok serve", body, STYLES, [])


def _languages(about: Mapping[str, Any]) -> str:
    return f"{about['source']} → {about['target']}" if about.get("source") and about.get("target") else ""


def operations_page(openapi: Mapping[str, Any], host: str) -> str:
    """What OpenAPI says, for people. `host`: how the service was called, for examples that work as they are."""
    schemas: Mapping[str, Any] = openapi["components"]["schemas"]
    parts = []
    for path, operations in openapi["paths"].items():
        for method, about in operations.items():
            if method in ("get", "post"):
                parts.append("".join(_operation(path, method, about, schemas, host)))
    body = f"<main><h1>What can be asked</h1>{''.join(parts)}</main>"
    return document("jumok serve: what can be asked", body, STYLES, [])


def _operation(
    path: str, method: str, about: Mapping[str, Any], schemas: Mapping[str, Any], host: str
) -> Iterator[str]:
    yield f"<section><h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(about.get('summary', ''))}</p>"
    content = about.get("requestBody", {}).get("content", {})
    schema = _followed(content.get("application/json", {}).get("schema", {}), schemas)
    if schema.get("properties"):
        if schema.get("examples"):
            data = json.dumps(schema["examples"][0], ensure_ascii=False)
            command = f"curl -s http://{host}{path} -H 'Content-Type: application/json' -d '{data}'"
            yield f"<pre>{escape(command)}</pre>"
        needed = set(schema.get("required", ()))
        yield "<table><thead><tr><th>key</th><th>type</th><th>meaning</th></tr></thead><tbody>"
        for key, one in schema["properties"].items():
            mark = " (needed)" * (key in needed)
            meaning = escape(str(one.get("description", "")))
            yield f"<tr><td><code>{escape(key)}</code>{mark}</td><td>{escape(_type(one))}</td><td>{meaning}</td></tr>"
        yield "</tbody></table>"
    others = [kind for kind in content if kind != "application/json"]
    if others:
        yield f"<p>Also as: {escape(', '.join(others))}</p>"
    yield "</section>"


def _followed(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    found: Mapping[str, Any] = schemas[reference.rpartition("/")[2]] if reference else schema
    return found


def _type(schema: Mapping[str, Any]) -> str:
    """In a few words: `integer, 1 to 32`."""
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"] if one.get("type") != "null"))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    low, high = schema.get("minimum"), schema.get("maximum")
    bounds = f", {low} to {high}" if low is not None and high is not None else ""
    return f"{schema.get('type', 'any')}{bounds}"
