"""How log lines look: one line each, plain keys, secrets removed. JSON with LAB_LOG_JSON=1."""

from __future__ import annotations

import re

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from labsite import env

_SECRETS = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*://)[^/\s:@]+(?::[^@\s]*)?@|(?P<key>(?:token|password|secret|authorization)\s*[=:]\s*)\S+",
    re.IGNORECASE,
)


def hide_secrets(text: str) -> str:
    """`text` without credentials in URLs and without values that name themselves secret."""
    return _SECRETS.sub(
        lambda found: (
            f"{found['scheme'] or found['key']}[hidden]" + ("@" if found["scheme"] else "")
        ),
        text,
    )


def _redact(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    return {
        key: hide_secrets(value) if isinstance(value, str) else value
        for key, value in event.items()
    }


SHARED: list[Processor] = [
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
    _redact,
]
PROCESSORS: list[Processor] = [
    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
    structlog.processors.JSONRenderer()
    if env.flag("LAB_LOG_JSON")
    else structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0, pad_level=False),
]
