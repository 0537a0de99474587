"""Tries at a door, as requests make them: counted first, and told in words when there were too many."""

from __future__ import annotations

import math
from datetime import timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from runs import wiring
from runs.people import client_ip, throttle
from runs.people.throttle import Door, TooManyTries
from runs.web import answers, words

__all__ = ["TooManyTries"]


def counted(request: HttpRequest, name: str = "") -> list[Door]:
    """Count a try from this browser; give the answer to `was_right`. Raises TooManyTries."""
    doors = throttle.doors(client_ip.address(request), name)
    throttle.attempt(wiring.lab(), doors)
    return doors


def question(request: HttpRequest) -> None:
    """Count a question for a passkey, which is kept in a session. Raises TooManyTries."""
    throttle.attempt(wiring.lab(), throttle.question_doors(client_ip.address(request)))


def wrong_hook(request: HttpRequest) -> None:
    """Count a webhook's delivery whose signature is wrong. Raises TooManyTries."""
    throttle.attempt(wiring.lab(), throttle.hook_doors(client_ip.address(request)))


def was_right(doors: list[Door]) -> None:
    throttle.was_right(wiring.lab(), doors)


def said(wait: timedelta) -> str:
    """The refusal in words. It is the same for names that exist and names that do not."""
    length = words.duration(timedelta(seconds=_seconds(wait)))
    return f"Too many tries. Nothing was changed. Wait {length}, then try again."


def refused(request: HttpRequest, wait: timedelta) -> HttpResponse:
    """429 as a page, with the time to wait."""
    page = render(request, "people/refused.html", {"text": said(wait)}, status=429)
    return told(page, wait)


def told(response: HttpResponse, wait: timedelta) -> HttpResponse:
    """The same answer with status 429 and the wait for programs."""
    response.status_code = 429
    response["Retry-After"] = str(_seconds(wait))
    return answers.fresh(response)


def _seconds(wait: timedelta) -> int:
    return math.ceil(wait.total_seconds())
