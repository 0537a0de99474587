"""Who acts at the command line, and what they may name."""

from __future__ import annotations

import contextlib
import getpass

from django.db.models import Q

from labsite.beside.refused import Refusal
from runs.models import Project

MOST_NAMES = 12


def who() -> str:
    """The name that the timeline keeps for acts of this command."""
    name = ""
    with contextlib.suppress(OSError, KeyError):
        name = getpass.getuser()
    return f"{name or 'somebody'} at the command line"


def project_named(name: str) -> Project:
    """The project of this name. Raises Refusal, which says what there is."""
    named = Q(name__iexact=name) | Q(slug__iexact=name)
    found = Project.objects.filter(named).order_by("pk").first()
    if found is None:
        raise Refusal(f"Error: there is no project {name}. {_known()} Nothing was started.")
    return found


def _known() -> str:
    names = list(Project.objects.order_by("name").values_list("name", flat=True)[:MOST_NAMES])
    return f"There is: {', '.join(names)}." if names else "There is none yet; add one in the page."
