"""HTTP to Django, WebSockets to the feed behind origin and login checks."""

from __future__ import annotations

import os

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "labsite.settings")
django_application = get_asgi_application()

from runs.web.sockets import SameOriginOnly, socket_urls  # noqa: E402  (needs the apps to be ready)

application = ProtocolTypeRouter(
    {
        "http": django_application,
        "websocket": SameOriginOnly(AuthMiddlewareStack(URLRouter(socket_urls))),
    }
)
