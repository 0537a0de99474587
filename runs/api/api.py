"""The HTTP API at /api/v1: its operations, and the one door around each of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponseBase, JsonResponse
from django.urls import URLPattern
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError
from ninja.operation import Operation

from runs import wiring
from runs.api import problems
from runs.api.gate import Gate, StrictJson
from runs.conversation import api as conversation_api
from runs.followups import api as follow_ups
from runs.forges import api as tracker_api
from runs.gate_pages import api as gates_api
from runs.groups import api as groups_api
from runs.groups import monitors_api
from runs.history import api as history_api
from runs.history import plots_api
from runs.hosts import api as hosts_api
from runs.issues import api as issues
from runs.kept import api as kept_api
from runs.lifecycle import api as runs
from runs.loop_pages import api as loops_api
from runs.manual import api as sessions
from runs.projects import api as projects
from runs.pulls import api as pulls
from runs.run_pages import api as run_pages_api
from runs.settings import api as settings_api
from runs.setup import file_api
from runs.specs import api as specs_api
from runs.spending import api as spending_api
from runs.timeline import api as timeline_api
from runs.timeline import audit_api
from runs.waits import api as waits_api
from runs.watch import api as watches_api
from runs.web.refusals import Denied
from runs.workflows import api as workflows_api

PREFIX = "/api/v1/"
ABOUT = """What the browser can do, for programs. Every answer is JSON; every refusal has a `code`
for programs, a sentence in `text`, and in `fields` a sentence for each wrong field. Lists give
`next`: ask again with `cursor=next`. Times are UTC."""

View = Callable[..., HttpResponseBase]


def declared(request: HttpRequest) -> frozenset[str]:
    """The names that the description lists for the query of this request's operation."""
    match = request.resolver_match
    route = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", match.route if match else "")
    operation = description()["paths"].get(f"/{route}", {}).get((request.method or "").lower(), {})
    parameters = operation.get("parameters", ())
    return frozenset(one["name"] for one in parameters if one["in"] == "query")


@functools.cache
def description() -> dict[str, Any]:
    """The OpenAPI description, made when it is first asked for."""
    return dict(api.get_openapi_schema(path_prefix=PREFIX))


class LabAPI(NinjaAPI):
    """Operations are named by their functions, which generated clients take as method names."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        return operation.view_func.__name__


gate = Gate(lambda: wiring.lab(), declared)
api = LabAPI(
    title="labsite",
    version="1",
    description=ABOUT,
    openapi_url=None,
    docs_url=None,
    auth=gate,
    parser=StrictJson(),
)
for kind in (Exception, Http404, HttpError, ValidationError):
    api.add_exception_handler(kind, problems.handle)
api.add_router("projects", projects.router)
api.add_router("projects", issues.router)
api.add_router("projects", pulls.router)
api.add_router("projects", runs.of_project)
api.add_router("projects", sessions.router)
api.add_router("projects", kept_api.router)
api.add_router("projects", tracker_api.router)
api.add_router("forges", tracker_api.accounts)
api.add_router("projects", watches_api.router)
api.add_router("projects", workflows_api.router)
api.add_router("projects", groups_api.router)
api.add_router("projects", monitors_api.router)
api.add_router("projects", specs_api.router)
api.add_router("projects", loops_api.of_project)
api.add_router("projects", file_api.router)
api.add_router("projects", history_api.router)
api.add_router("projects", plots_api.of_project)
api.add_router("plots", plots_api.router)
api.add_router("presets", monitors_api.presets)
api.add_router("runs", runs.router)
api.add_router("runs", waits_api.router)
api.add_router("runs", follow_ups.router)
api.add_router("runs", conversation_api.router)
api.add_router("runs", run_pages_api.router)
api.add_router("runs", gates_api.router)
api.add_router("runs", loops_api.router)
api.add_router("timeline", timeline_api.router)
api.add_router("audit", audit_api.router)
api.add_router("agents", projects.agents)
api.add_router("hosts", hosts_api.router)
api.add_router("spending", spending_api.router)
api.add_router("settings", settings_api.router)
api.add_router("me", settings_api.me)


def door(view: View) -> View:
    """One address of the API. No session and no cookie is looked at, so there is nothing to forge."""

    @csrf_exempt
    @login_not_required
    @functools.wraps(view)
    def answer(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        try:
            made = view(request, **kwargs)
        except Exception as error:  # the edge: a program never gets a traceback
            made = problems.handle(request, error)
        if made.status_code == 405:
            made = wrong_method(made["Allow"])
        made["Cache-Control"] = "no-store"
        return made

    return answer


def nothing(request: HttpRequest, rest: str = "") -> HttpResponseBase:
    """An address that is none."""
    raise Denied(404, "not_found", "There is nothing at this address.")


def operations() -> list[URLPattern]:
    """The addresses of all operations, each behind the door."""
    patterns = [one for one in api.urls[0] if isinstance(one, URLPattern)]
    return [
        URLPattern(one.pattern, door(one.callback), one.default_args, one.name) for one in patterns
    ]


def wrong_method(allowed: str) -> JsonResponse:
    """The refusal of a method that an address does not answer."""
    text = f"This address answers {allowed.replace(', ', ' and ')}."
    made = problems.shown(Denied(405, "wrong_method", text))
    made["Allow"] = allowed
    return made
