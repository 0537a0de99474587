"""Who did what, when: a page with filters whose address can be handed on."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from runs import wiring
from runs.core.states import NoticeKind
from runs.overview import queries
from runs.timeline import audit_page
from runs.timeline.audit import Wanted
from runs.web import fragments, live
from runs.web.access import oversee
from runs.web.forms import AuditFilter
from runs.web.live import Parts

PEOPLE = 200
ROWS = {name: f"{file}.html" for name, file in fragments.AUDIT.items()}


@require_GET
@oversee
def audit(request: HttpRequest) -> HttpResponse:
    """One page of acts, newest first. What makes no sense in the address is said at its field."""
    form = AuditFilter(request.GET)
    wanted = form.wanted()
    names = User.objects.order_by("username").values_list("username", flat=True)
    facts = {
        "form": form,
        "wanted": wanted,
        "kinds": [kind.value for kind in NoticeKind],
        "people": list(names[:PEOPLE]),
        **audit_page.facts(wanted),
    }
    topic = "audit" if wanted == Wanted() else "chrome"
    frame = queries.frame(wiring.lab())
    return live.listed(request, "timeline/audit.html", Parts(ROWS, lambda: facts), frame, topic)


@require_GET
@oversee
def audit_live(request: HttpRequest) -> HttpResponse:
    """The same acts, with those that came since."""
    wanted = AuditFilter(request.GET).wanted()
    return live.relisted(request, Parts(ROWS, lambda: audit_page.facts(wanted)))
