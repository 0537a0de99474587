"""The description of the API: for programs as OpenAPI, for people as a page in our look."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET
from ninja.errors import AuthenticationError

from runs.api import problems, replies
from runs.api.api import description
from runs.api.asked import BIGGEST_NUMBER
from runs.api.gate import allowed
from runs.web import access, answers
from runs.web.access import look
from runs.wiring import lab

_REF = re.compile(r"#/components/schemas/(\w+)")
EXPECTED = replies.ALWAYS - {404}
METHODS = ("get", "post", "put", "patch", "delete")
EXAMPLES: Mapping[str, Any] = {
    "label": "try it",
    "source": "/home/me/shop",
    "title": "Add a retry",
    "body": "Why, and what done means.",
    "labels": ["ready-for-agent"],
    "issue": "7",
    "state": "closed",
    "agent": 1,
    "session_cap": 4,
    "kind": "gitea",
    "name": "Robot",
    "web": "https://git.example.org",
    "tracker": "builtin",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A parameter or a field: its name, what fits, and what it means."""

    name: str
    place: str
    kind: str
    is_required: bool
    text: str


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: its status and what it holds."""

    status: str
    shape: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation as the page shows it."""

    id: str
    method: str
    path: str
    summary: str
    text: str
    parts: Sequence[Part]
    replies: Sequence[Reply]
    refusals: Sequence[int]
    curl: str


@login_not_required
@require_GET
def openapi(request: HttpRequest) -> HttpResponse:
    """The OpenAPI description, for a token or for a browser that is logged in."""
    if not access.may_look(request.user):
        try:
            shown_token(request)
        except Exception as error:
            return problems.shown(problems.meaning(error))
    return answers.fresh(JsonResponse(description()))


def shown_token(request: HttpRequest) -> None:
    """Passes when the request carries a valid token. Raises Denied."""
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    if scheme.casefold() != "bearer" or not text.strip():
        raise AuthenticationError
    allowed(lab(), text)


@require_GET
@look
def page(request: HttpRequest) -> HttpResponse:
    """Every operation with its parameters, its answers, and an example to try."""
    base = request.build_absolute_uri("/").rstrip("/")
    found = description()
    context = {
        "groups": groups(found, base),
        "base": base,
        "text": _flowing(found["info"]["description"]),
        "shapes": shapes_of(found),
    }
    return answers.fresh(render(request, "api/page.html", context))


def groups(found: Mapping[str, Any], base: str) -> dict[str, list[Operation]]:
    """The operations by what they are about, in the order of the description."""
    by_tag: dict[str, list[Operation]] = {}
    for path, methods in found["paths"].items():
        for method in METHODS:
            if method in methods:
                made = _operation(found, path, method, methods[method], base)
                by_tag.setdefault(methods[method]["tags"][0], []).append(made)
    return by_tag


def shapes_of(found: Mapping[str, Any]) -> dict[str, list[Part]]:
    """The fields of everything that is answered, and of what those hold."""
    schemas = found["components"]["schemas"]
    return {
        name: list(_fields(schemas[name], ""))
        for name in sorted(_answered(found))
        if schemas[name].get("properties")
    }


def _answered(found: Mapping[str, Any]) -> set[str]:
    """The names of all shapes that some answer holds, itself or further in."""
    told = [one["responses"] for path in found["paths"].values() for one in path.values()]
    names, fresh = set(), set(_REF.findall(json.dumps(told)))
    while fresh:
        names |= fresh
        inner = json.dumps([found["components"]["schemas"][name] for name in fresh])
        fresh = set(_REF.findall(inner)) - names
    return names


def _operation(
    found: Mapping[str, Any], path: str, method: str, about: Mapping[str, Any], base: str
) -> Operation:
    parts = [
        Part(
            one["name"],
            one["in"],
            _kind(one["schema"]),
            one["required"],
            one.get("description", ""),
        )
        for one in about["parameters"]
    ]
    answered = sorted(about["responses"].items())
    schema = _body(found, about)
    parts += _fields(schema, "body") if schema else ()
    return Operation(
        about["operationId"],
        method.upper(),
        path,
        about["summary"],
        _flowing(about.get("description", "")),
        parts,
        [Reply(str(status), _shape(one)) for status, one in answered if status < 400],
        [status for status, _ in answered if status >= 400 and status not in EXPECTED],
        _curl(method, base + path, schema),
    )


def _flowing(text: str) -> str:
    """A text whose lines were broken for the source, with only its paragraphs left."""
    return "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _body(found: Mapping[str, Any], about: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of the body, {} without one."""
    content = about.get("requestBody", {}).get("content", {})
    schema: Mapping[str, Any] = content.get("application/json", {}).get("schema", {})
    name = schema.get("$ref", "").rpartition("/")[2]
    resolved: Mapping[str, Any] = found["components"]["schemas"].get(name, schema)
    return resolved


def _fields(schema: Mapping[str, Any], place: str) -> Iterator[Part]:
    required = schema.get("required", ())
    for name, one in schema.get("properties", {}).items():
        yield Part(name, place, _kind(one), name in required, one.get("description", ""))


def _kind(schema: Mapping[str, Any]) -> str:
    """What fits, in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"“{one}”" for one in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    kind = str(schema.get("format") or schema.get("const") or schema.get("type", "anything"))
    return kind + _limits(schema)


def _limits(schema: Mapping[str, Any]) -> str:
    """The limits that are worth knowing; those of ids are not."""
    if "maxLength" in schema:
        return f", at most {schema['maxLength']} letters"
    if schema.get("maximum", BIGGEST_NUMBER) < BIGGEST_NUMBER:
        if "exclusiveMinimum" in schema:
            return f", more than {schema['exclusiveMinimum']}, at most {schema['maximum']}"
        return f", {schema.get('minimum', 0)} to {schema['maximum']}"
    return ""


def _shape(reply: Mapping[str, Any]) -> str:
    for kind, content in reply.get("content", {}).items():
        return _kind(content["schema"]) if kind == "application/json" else kind
    return "nothing"


def _curl(method: str, url: str, body: Mapping[str, Any]) -> str:
    """A command to try, with the required fields of the body filled in."""
    lines = ['curl -H "Authorization: Bearer $LAB_API"']
    if method != "get":
        lines[0] += f" -X {method.upper()}"
    if body:
        names = body.get("required") or list(body.get("properties", {}))[:1]
        sent = {name: EXAMPLES.get(name, 30) for name in names}
        lines += ['-H "Content-Type: application/json"', f"-d '{json.dumps(sent)}'"]
    address = re.sub(r"\{\w+\}", "1", url)
    return " \\\n  ".join([*lines, address])
