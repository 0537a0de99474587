"""HTTP to Django, streams and WebSockets to the feed, each behind its own checks."""

from __future__ import annotations

import asyncio
import os
from importlib import import_module
from typing import Any

from labsite.loading import share_heap, share_interpreter, undisturbed

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
share_heap()
share_interpreter()
with undisturbed():
    from channels.routing import ProtocolTypeRouter, URLRouter
    from channels.sessions import SessionMiddlewareStack
    from django.core.asgi import get_asgi_application
    from django.urls import re_path

    django_application = get_asgi_application()

    # What follows needs the apps to be ready.
    from labsite import urls  # noqa: F401  (the first request needs all pages)
    from runs.run_pages.screen_socket import Screens, screen_urls
    from runs.web import fragments
    from runs.web.feed import Feed
    from runs.web.feed_reader import Reader
    from runs.web.sockets import SameOriginOnly, socket_urls
    from runs.wiring import lab, rung_elsewhere

feed = Feed(
    reader=lambda: Reader(fragments, lab().now),
    box=lambda: lab().paths.feed_socket(os.getpid()),
    elsewhere=rung_elsewhere,
)
screens = Screens()


class Streams:
    """The streams of the HTTP API, which is loaded when a program first asks for one."""

    _made: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._made is None:
            stream = await asyncio.to_thread(import_module, "runs.api.stream")
            self._made = self._made or stream.TimelineStream(feed)
        await self._made(scope, receive, send)


# To the type checker an address leads to a Django view; here each is an ASGI application.
streams: Any = Streams()
pages: Any = django_application
application = ProtocolTypeRouter(
    {
        "http": URLRouter(
            [
                re_path(r"^api/v1/timeline/stream$", streams),
                re_path("", pages),
            ]
        ),
        "websocket": SameOriginOnly(
            SessionMiddlewareStack(URLRouter([*screen_urls(feed, screens), *socket_urls(feed)]))
        ),
    }
)
