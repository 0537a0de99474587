"""HTTP to Django, streams and WebSockets to the feed, each behind its own checks."""

from __future__ import annotations

import os
from typing import Any

from labsite.loading import undisturbed

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
with undisturbed():
    from channels.routing import ProtocolTypeRouter, URLRouter
    from channels.sessions import SessionMiddlewareStack
    from django.core.asgi import get_asgi_application
    from django.urls import re_path

    django_application = get_asgi_application()

    # What follows needs the apps to be ready.
    from runs.api.stream import TimelineStream
    from runs.web import fragments
    from runs.web.feed import Feed
    from runs.web.feed_reader import Reader
    from runs.web.sockets import SameOriginOnly, socket_urls
    from runs.wiring import lab

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
