"""The Atom feed of a filter: what ended last, for whoever has a personal token."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from datetime import timedelta

from django.http import HttpRequest

from runs.core.ports import Lab
from runs.history.filters import Wanted
from runs.history.finding import narrowed
from runs.models import ApiToken, Run
from runs.people import api_tokens
from runs.spending import limit_rules
from runs.web import access, words

ENTRIES = 50
TITLE = 200
# What XML does not allow at all.
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def may_read(lab: Lab, request: HttpRequest) -> bool:
    """Whether the request shows a token whose owner may look: a login of a browser opens nothing.

    In the address a token has to be one that may look only, since addresses are written down.
    """
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    if kind.casefold() == "bearer":
        return _owner_may_look(api_tokens.find(lab, given.strip()))
    if kind.casefold() == "basic":
        return _owner_may_look(api_tokens.find(lab, _password(given)))
    found = api_tokens.find(lab, request.GET.get("token", "").strip())
    return found is not None and found.scope == ApiToken.Scope.LOOK and _owner_may_look(found)


def newest(wanted: Wanted) -> Sequence[Run]:
    """The runs of a filter that ended last."""
    rows = Run.objects.past().exclude(outcome="").filter(narrowed(wanted))
    return list(rows.order_by("-ended_at", "-id")[:ENTRIES])


def atom(lab: Lab, runs: Sequence[Run], said: str, page: str, site: str) -> str:
    """The feed as text. `page` is the list that it is about, `site` where addresses begin."""
    from django.utils.feedgenerator import Atom1Feed

    feed = Atom1Feed(title=_fit(f"labsite: {said}"), link=f"{site}{page}", description="")
    for run in runs:
        url = f"{site}/runs/{run.pk}/"
        title = f"{run.project.name} #{run.issue_key} {words.outcome_words(run.outcome)}"
        feed.add_item(
            title=_fit(lab.mask(words.one_line(f"{title}: {run.issue_title}", TITLE))),
            link=url,
            unique_id=url,
            description=_fit(lab.mask(_summary(run))),
            pubdate=run.ended_at,
            updateddate=run.ended_at,
            author_name=_fit(run.agent or "labsite"),
        )
    return str(feed.writeString("utf-8"))


def _summary(run: Run) -> str:
    said = [words.one_line(run.reason, 2 * TITLE)]
    if run.took_seconds is not None:
        said.append(words.duration(timedelta(seconds=run.took_seconds)))
    if run.cost_usd is not None:
        said.append(limit_rules.money(run.cost_usd))
    return " · ".join(one for one in said if one)


def _owner_may_look(token: ApiToken | None) -> bool:
    return token is not None and access.may_look(token.user)


def _password(given: str) -> str:
    """What stands behind the colon of a Basic log-in; the name before it is not looked at."""
    try:
        return base64.b64decode(given, validate=True).decode().partition(":")[2]
    except ValueError:  # no base64, no UTF-8
        return ""


def _fit(text: str) -> str:
    return _UNFIT.sub("\ufffd", text)
