"""Static files in the state folder, collected anew when they changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command

from runs.core.paths import Paths

MANIFEST = "staticfiles.json"
# Folders of libraries with dozens of files, and what of each is ever asked for. All would be hashed,
# compressed, and looked at by each web process.
SPARED = ("django_htmx/", "admin/js/vendor/select2/i18n/")
USED = (
    "django_htmx/htmx-4.min.js",
    "django_htmx/ext/hx-ptag-4.min.js",
    "django_htmx/ext/hx-ws-4.min.js",
    "admin/js/vendor/select2/i18n/en.js",
)


def collect_static(paths: Paths) -> bool:
    """Collect static files unless they were collected from exactly these; True when it did."""
    stamp = _fingerprint().encode()
    if _all_there():
        if paths.static_stamp.exists() and paths.static_stamp.read_bytes() == stamp:
            return False
    else:
        (Path(settings.STATIC_ROOT) / MANIFEST).unlink(missing_ok=True)
    call_command("collectstatic", interactive=False, verbosity=0, ignore_patterns=_unused())
    paths.static_stamp.write_bytes(stamp)
    return True


def _fingerprint() -> str:
    """Changes whenever a source file, or the way in which it is stored, changes."""
    lines = [settings.STORAGES["staticfiles"]["BACKEND"], *USED, *_sources()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _sources() -> Iterator[str]:
    for finder in get_finders():
        for name, storage in finder.list([]):
            facts = Path(storage.path(name)).stat()
            yield f"{name} {facts.st_size} {facts.st_mtime_ns}"


def _unused() -> list[str]:
    """Names of all files that nothing asks for."""
    names = (name for finder in get_finders() for name, _ in finder.list([]))
    return [name for name in names if name.startswith(SPARED) and name not in USED]


def _all_there() -> bool:
    """Whether every collected file that the manifest names still lies on disk."""
    root = Path(settings.STATIC_ROOT)
    try:
        names = json.loads((root / MANIFEST).read_text())["paths"].values()
        return all((root / name).exists() for name in names)
    except (OSError, ValueError, KeyError, AttributeError):
        return False
