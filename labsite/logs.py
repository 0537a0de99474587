"""How log lines look: one line each, plain keys, secrets removed. JSON with LAB_LOG_JSON=1."""

from __future__ import annotations

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from labsite import env
from labsite.redact import hide_secrets


def _redact(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    return {
        key: hide_secrets(str(value)) if isinstance(value, str) or key == "request" else value
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
