"""HTTP to Django, WebSockets to the feed behind origin and login checks."""

from __future__ import annotations

import os

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.sessions import SessionMiddlewareStack
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
django_application = get_asgi_application()

# What follows needs the apps to be ready.
from runs.web import fragments  # noqa: E402
from runs.web.feed import Feed  # noqa: E402
from runs.web.feed_reader import Reader  # noqa: E402
from runs.web.sockets import SameOriginOnly, socket_urls  # noqa: E402
from runs.wiring import lab  # noqa: E402

feed = Feed(
    reader=lambda: Reader(fragments, lab().now),
    box=lambda: lab().paths.feed_socket(os.getpid()),
)
application = ProtocolTypeRouter(
    {
        "http": django_application,
        "websocket": SameOriginOnly(SessionMiddlewareStack(URLRouter(socket_urls(feed)))),
    }
)
