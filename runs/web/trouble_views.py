"""What is answered when nothing else could be: a mistake of ours, or a database that cannot be used."""

from __future__ import annotations

import sys

from django.db import DataError, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseBase
from django.template.loader import render_to_string
from django.views.defaults import server_error

from runs.core.database_trouble import database_words
from runs.web import answers
from runs.web.refusals import UNFIT

UNSURE = "Load the page again to see how things stand."


def failed(request: HttpRequest) -> HttpResponseBase:
    """500 for a mistake, 503 with a sentence when the database could not be used.

    400 when it could not take a value that was sent, which PostgreSQL says and SQLite keeps.

    Nothing here asks the database. Django calls it while it handles the exception.
    """
    error = sys.exc_info()[1]
    if isinstance(error, DataError):
        return HttpResponseBadRequest(f"{UNFIT}\n", content_type="text/plain")
    if not isinstance(error, OperationalError | InterfaceError):
        return server_error(request)
    text = database_words(str(error))
    if answers.is_htmx(request):
        return answers.failed(request, f"{text} {UNSURE}", 503, back="/")
    page = render_to_string("503.html", {"text": text, "unsure": UNSURE})
    return answers.fresh(HttpResponse(page, status=503, headers={"Retry-After": "5"}))
