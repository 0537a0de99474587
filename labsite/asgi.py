"""HTTP to Django, streams and WebSockets to the feed, each behind its own checks."""

from __future__ import annotations

import os
from typing import Any

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.sessions import SessionMiddlewareStack
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
django_application = get_asgi_application()

# What follows needs the apps to be ready.
from django.urls import re_path  # noqa: E402

from runs.web import fragments  # noqa: E402
from runs.web.api.stream import TimelineStream  # noqa: E402
from runs.web.feed import Feed  # noqa: E402
from runs.web.feed_reader import Reader  # noqa: E402
from runs.web.sockets import SameOriginOnly, socket_urls  # noqa: E402
from runs.wiring import lab  # noqa: E402

feed = Feed(
    reader=lambda: Reader(fragments, lab().now),
    box=lambda: lab().paths.feed_socket(os.getpid()),
)
# To the type checker an address leads to a Django view; here each is an ASGI application.
streams: Any = TimelineStream(feed)
pages: Any = django_application
application = ProtocolTypeRouter(
    {
        "http": URLRouter(
            [
                re_path(r"^api/v1/timeline/stream$", streams),
                re_path("", pages),
            ]
        ),
        "websocket": SameOriginOnly(SessionMiddlewareStack(URLRouter(socket_urls(feed)))),
    }
)
