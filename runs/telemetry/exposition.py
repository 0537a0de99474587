"""Writes figures in the text format 0.0.4 of Prometheus."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from runs.telemetry.tallies import BOUNDS, Spread

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric with its samples, each a value with its labels."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    help: str
    samples: Sequence[tuple[Labels, float]] = ()
    spread: Spread | None = None


def gauge(name: str, words: str, value: float | None) -> Family:
    """A figure without labels; without samples where it could not be told."""
    return Family(name, "gauge", words, [] if value is None else [({}, value)])


def text(families: Iterable[Family]) -> str:
    """All of them, in their order."""
    return "".join(line for family in families for line in _lines(family))


def _lines(family: Family) -> Iterable[str]:
    yield f"# HELP {family.name} {_escaped(family.help)}\n"
    yield f"# TYPE {family.name} {family.kind}\n"
    for labels, value in family.samples:
        yield f"{family.name}{_labels(labels)} {_number(value)}\n"
    if family.spread is not None:
        yield from _histogram(family.name, family.spread)


def _histogram(name: str, spread: Spread) -> Iterable[str]:
    for bound, count in zip(BOUNDS, spread.at_most, strict=True):
        yield f'{name}_bucket{{le="{_number(bound)}"}} {count}\n'
    yield f'{name}_bucket{{le="+Inf"}} {spread.count}\n'
    yield f"{name}_sum {_number(spread.total)}\n"
    yield f"{name}_count {spread.count}\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    inside = ",".join(f'{name}="{_quoted(value)}"' for name, value in labels.items())
    return f"{{{inside}}}"


def _quoted(value: str) -> str:
    return _escaped(value).replace('"', '\\"')


def _escaped(words: str) -> str:
    return words.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isinf(value) or math.isnan(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    return str(int(value)) if value == int(value) else repr(float(value))
