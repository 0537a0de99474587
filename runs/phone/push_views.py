"""What devices ask of labsite: an act from a notification, and what became of a push.

Both are doors of their own right: a device shows a token of 256 bits that only its person's browser
could decrypt. So no log-in and no CSRF token is asked; a GET changes nothing.
"""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from runs import wiring
from runs.notices import addresses, pushes
from runs.phone import acts
from runs.web import answers

SEEN, DELIVERED = "seen", "delivered"


@csrf_exempt
@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def push_act(request: HttpRequest, token: str) -> HttpResponse:
    """What a link of a push will do; with a POST it is done, once."""
    lab = wiring.lab()
    row, asker = acts.find(lab, token), _asker(request)
    is_json = request.headers.get("Accept", "") == "application/json"
    if request.method != "POST":
        said = acts.dead(lab, row, asker)
        facts: dict[str, object] = {"row": None if said else row, "said": said}
        status = 410 if said else 200
        return answers.fresh(render(request, "phone/act.html", facts, status=status))
    done = acts.perform(lab, row, asker) if row is not None else acts.Done(False, acts.UNKNOWN)
    status = 200 if done.ok else 409
    if is_json:
        told = {"ok": done.ok, "text": done.text, "url": done.url}
        return answers.fresh(JsonResponse(told, status=status))
    facts = {"row": None, "said": done.text, "url": done.url, "ok": done.ok}
    return answers.fresh(render(request, "phone/act.html", facts, status=status))


def _asker(request: HttpRequest) -> User | None:
    """Whoever is logged in here, if anybody: a link is for nobody else."""
    return request.user if isinstance(request.user, User) else None


@csrf_exempt
@login_not_required
@require_POST
def push_receipt(request: HttpRequest) -> HttpResponse:
    """A device says that a push has arrived, or was seen: by the id that came with it."""
    what = request.POST.get("what", "")
    receipt = request.POST.get("id", "")[:100]
    is_known = what in (SEEN, DELIVERED) and pushes.answered(
        wiring.lab(), receipt, is_seen=what == SEEN
    )
    return answers.fresh(HttpResponse(status=204 if is_known else 404))


@csrf_exempt
@login_not_required
@sensitive_post_parameters()
@require_POST
def push_renew(request: HttpRequest) -> HttpResponse:
    """A browser has a new subscription in place of one of ours, which it shows that it held.

    Nobody else knows the endpoint and the secret of the old one: they are that device's own token.
    """
    given = {name: request.POST.get(name, "")[:2000] for name in ("endpoint", "p256dh", "auth")}
    old = request.POST.get("old", "")[:2000], request.POST.get("old_auth", "")[:200]
    try:
        is_known = addresses.renew(wiring.lab(), *old, addresses.Device(**given))
    except addresses.AddressRefused:
        return answers.fresh(HttpResponse(status=400))
    return answers.fresh(HttpResponse(status=204 if is_known else 404))
