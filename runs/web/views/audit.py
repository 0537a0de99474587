"""Who did what, when: a page with filters whose address can be handed on."""

from __future__ import annotations

from dataclasses import asdict, replace
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from runs import wiring
from runs.domain.states import NoticeKind
from runs.web import answers, chrome, queries
from runs.web.access import oversee
from runs.web.forms import AuditFilter
from runs.work import audit as work
from runs.work.audit import Wanted

PAGE = 50
PEOPLE = 200


@require_GET
@oversee
def audit(request: HttpRequest) -> HttpResponse:
    """One page of acts, newest first. What makes no sense in the address is said at its field."""
    form = AuditFilter(request.GET)
    wanted = form.wanted()
    frame = queries.frame(wiring.lab())
    found = work.acts(wanted, PAGE + 1)
    context = {
        "page": frame,
        "form": form,
        "wanted": wanted,
        "acts": found[:PAGE],
        "older": _address(replace(wanted, before=found[PAGE - 1].pk)) if len(found) > PAGE else "",
        "is_narrowed": wanted != Wanted(),
        "kinds": [kind.value for kind in NoticeKind],
        "people": list(
            User.objects.order_by("username").values_list("username", flat=True)[:PEOPLE]
        ),
        "chrome": chrome.of(frame.board, True, request),
    }
    return answers.fresh(render(request, "audit.html", context))


def _address(wanted: Wanted) -> str:
    """The query string of a filter; always starts with `?`."""
    return "?" + urlencode({name: value for name, value in asdict(wanted).items() if value})
