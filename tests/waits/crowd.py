"""Five people who press at the same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import connection

from runs.models import Run
from runs.waits.acts import AnswerRefused


def refusals(run: Run, press: Callable[[Run, str], None]) -> list[str]:
    """The codes with which those were refused who were not let through; `press` gets a row and a name."""
    gate, refused = threading.Barrier(5), []

    def pressed(name: str) -> None:
        mine = Run.objects.get(pk=run.pk)
        gate.wait()
        try:
            press(mine, name)
        except AnswerRefused as error:
            refused.append(error.code)
        finally:
            connection.close()

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(pressed, "abcde"))
    return refused
