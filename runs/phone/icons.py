"""The icons of the product, drawn here: as SVG with a number, as PNG for home screens. Pure."""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

GROUND, DOT, ALARM, WHITE = (0x16, 0x1B, 0x22), (0x3D, 0xDC, 0x97), "#b92525", (255, 255, 255)
MOST = 99
# A mask may cut a tenth off each side, so the dot of a maskable icon stands on a ground that fills all.
CORNER, RADIUS = 8 / 32, 6 / 32


@dataclass(frozen=True, slots=True)
class Icon:
    """One PNG: its size, whether it fills its square, whether it has one colour for a status bar."""

    size: int
    is_maskable: bool = False
    is_badge: bool = False


ICONS = {
    "180": Icon(180, is_maskable=True),
    "192": Icon(192),
    "512": Icon(512),
    "maskable-512": Icon(512, is_maskable=True),
    "badge-96": Icon(96, is_badge=True),
}


def svg(count: int) -> str:
    """The icon of a tab, with the number of things that wait for a person; without one for 0."""
    number = ""
    if count > 0:
        words = str(count) if count <= MOST else f"{MOST}+"
        size = {1: 17, 2: 15}.get(len(words), 11)
        number = (
            f'<circle cx="20" cy="20" r="12" fill="{ALARM}"/>'
            f'<text x="20" y="20" dy=".36em" text-anchor="middle" font-family="system-ui,sans-serif" '
            f'font-size="{size}" font-weight="700" fill="#fff">{words}</text>'
        )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">'
        '<rect width="32" height="32" rx="8" fill="#161b22"/>'
        f'<circle cx="16" cy="16" r="6" fill="#3ddc97"/>{number}</svg>'
    )


@functools.cache
def png(name: str) -> bytes:
    """The PNG with this name of `ICONS`. Raises KeyError."""
    icon = ICONS[name]
    quarter = _quarter(icon)
    half = [row + row[::-1] for row in quarter]
    rows = [b"\0" + b"".join(row) for row in half + half[::-1]]
    header = struct.pack(">IIBBBBB", icon.size, icon.size, 8, 6, 0, 0, 0)
    body = zlib.compress(b"".join(rows), 9)
    chunks = ((b"IHDR", header), (b"IDAT", body), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    sum_ = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + sum_


def _quarter(icon: Icon) -> list[list[bytes]]:
    """The upper left quarter; the others mirror it."""
    half = icon.size // 2
    colour = _badge if icon.is_badge else _tile
    return [[colour(icon, x, y, half) for x in range(half)] for y in range(half)]


def _tile(icon: Icon, x: int, y: int, half: int) -> bytes:
    """The dot on its ground, whose corners are round unless a mask cuts them."""
    dot = _inside(half, half, RADIUS * icon.size)(x, y)
    mixed = [round(g + (d - g) * dot) for g, d in zip(GROUND, DOT, strict=True)]
    corner, shown = CORNER * icon.size, 1.0
    if not icon.is_maskable and x < corner and y < corner:
        shown = _inside(corner, corner, corner)(x, y)
    return bytes((*mixed, round(255 * shown)))


def _badge(icon: Icon, x: int, y: int, half: int) -> bytes:
    """A ring with a dot in it, in white: a status bar takes its form alone."""
    far, near, dot = (_inside(half, half, part * icon.size)(x, y) for part in (0.42, 0.3, 0.17))
    return bytes((*WHITE, round(255 * max(far - near, dot))))


def _inside(x0: float, y0: float, radius: float) -> Callable[[int, int], float]:
    """How much of a pixel lies within a circle, from 0 to 1."""

    def share(x: int, y: int) -> float:
        far: float = ((x + 0.5 - x0) ** 2 + (y + 0.5 - y0) ** 2) ** 0.5
        return min(1.0, max(0.0, radius - far + 0.5))

    return share
