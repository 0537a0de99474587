"""Holds requests and answers against the extract of the forges' own descriptions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

FOLDER = Path(__file__).parent.parent / "facts"
KINDS: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


@dataclass(frozen=True)
class Operation:
    """One operation of a forge; `pattern` matches its path and names the parts."""

    name: str
    method: str
    pattern: re.Pattern[str]
    query: Mapping[str, Any]
    status: int
    body: Mapping[str, Any] | None
    answer: Mapping[str, Any] | None


class Facts:
    """One forge's extract. Where a schema says nothing about null, `nullable` of the double does."""

    def __init__(self, name: str, nullable: frozenset[str] = frozenset()) -> None:
        told = json.loads((FOLDER / f"{name}.json").read_text())
        self.schemas: dict[str, Any] = told["schemas"]
        self.nullable = nullable
        self.operations = [_operation(one, what) for one, what in told["operations"].items()]
        # The most exact path first: /pulls/{base}/{head} may not swallow /pulls/{index}/merge.
        self.operations.sort(key=lambda one: (one.pattern.pattern.count("(?P<"), one.name))

    def find(self, method: str, path: str) -> tuple[Operation | None, Mapping[str, str], bool]:
        """The operation of a request with the parts of its path, and whether the path is known."""
        is_known = False
        for one in self.operations:
            found = one.pattern.fullmatch(path)
            if found and one.method == method:
                parts = {part: unquote(value) for part, value in found.groupdict().items()}
                return one, parts, True
            is_known = is_known or found is not None
        return None, {}, is_known

    def wrong_query(self, one: Operation, query: Mapping[str, str]) -> Iterator[str]:
        """What a query has that the description does not allow."""
        for name, value in query.items():
            schema = one.query.get(name)
            if schema is None:
                yield f"unknown parameter {name}"
            elif schema["type"] in ("integer", "number") and not value.isascii():
                yield f"parameter {name} is no number"
            elif schema["type"] in ("integer", "number") and not value.isdigit():
                yield f"parameter {name} is no number: {value}"
            elif "enum" in schema and value not in schema["enum"]:
                yield f"parameter {name} cannot be {value}"
        for name, schema in one.query.items():
            if schema.get("required") and name not in query:
                yield f"parameter {name} is missing"

    def wrong(
        self, schema: Mapping[str, Any], value: Any, at: str, name: str = ""
    ) -> Iterator[str]:
        """Where a value is not what the schema says; unknown fields are wrong too."""
        if "ref" in schema:
            name = schema["ref"]
            schema = self.schemas[name]
        if "any of" in schema:
            every = [list(self.wrong(one, value, at)) for one in schema["any of"]]
            if all(every):
                yield from min(every, key=len)
            return
        if schema["type"] == "any" or (value is None and schema.get("null")):
            return
        if not isinstance(value, KINDS[schema["type"]]) or (
            isinstance(value, bool) and schema["type"] != "boolean"
        ):
            yield f"{at} should be {schema['type']}, not {value!r:.60}"
        elif schema["type"] == "array":
            for number, item in enumerate(value):
                yield from self.wrong(schema["items"], item, f"{at}[{number}]")
        elif "fields" in schema:
            yield from self._wrong_fields(schema, value, at, name)
        elif "enum" in schema and value not in schema["enum"]:
            yield f"{at} cannot be {value!r}"

    def _wrong_fields(
        self, schema: Mapping[str, Any], value: Mapping[str, Any], at: str, name: str
    ) -> Iterator[str]:
        for missing in sorted(set(schema["required"]) - set(value)):
            yield f"{at}.{missing} is missing"
        for field, inner in value.items():
            if field not in schema["fields"]:
                yield f"{at}.{field} is unknown"
            elif inner is not None or f"{name}.{field}" not in self.nullable:
                within = f"{name}.{field}"
                yield from self.wrong(schema["fields"][field], inner, f"{at}.{field}", within)


def _operation(name: str, what: Mapping[str, Any]) -> Operation:
    # Paths are matched as they are sent: a slash inside of a label is %2F there.
    pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(what["path"]))
    return Operation(
        name=name,
        method=what["method"],
        pattern=re.compile(pattern),
        query=what["query"],
        status=what["status"],
        body=what.get("body"),
        answer=what.get("answer"),
    )
