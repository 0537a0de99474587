"""Who did what, when: a page with filters whose address can be handed on."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from runs.core.states import NoticeKind
from runs.timeline import audit_page
from runs.timeline.audit import Wanted
from runs.web import fragments, live
from runs.web.access import oversee
from runs.web.forms import AuditFilter
from runs.web.live import Live

PEOPLE = 200


@require_GET
@oversee
def audit(request: HttpRequest) -> HttpResponse:
    """One page of acts, newest first. What makes no sense in the address is said at its field."""
    form = AuditFilter(request.GET)
    wanted = form.wanted()
    names = User.objects.order_by("username").values_list("username", flat=True)
    facts: dict[str, Any] = {
        "form": form,
        "wanted": wanted,
        "kinds": [kind.value for kind in NoticeKind],
        "people": list(names[:PEOPLE]),
    }
    return live.page(request, "timeline/audit.html", _acts(wanted), "runs:audit-live", **facts)


@require_GET
@oversee
def audit_live(request: HttpRequest) -> HttpResponse:
    """The same acts, with those that came since."""
    return live.refresh(request, _acts(AuditFilter(request.GET).wanted()))


def _acts(wanted: Wanted) -> Live:
    # A push shows what is newest, so a page on something else hears of the frame alone.
    pushed = "audit" if wanted == Wanted() else ""
    return Live("chrome", fragments.AUDIT, lambda: audit_page.facts(wanted), pushed=pushed)
