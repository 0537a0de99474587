"""How log lines look: one line each, plain keys, secrets removed. JSON with LAB_LOG_JSON=1."""

from __future__ import annotations

from labsite import env
from labsite.loading import without
from runs.telemetry import log_context

with without("rich", "better_exceptions", "twisted"):  # for colours, and for logs of Twisted's own
    import structlog
    from structlog.typing import EventDict, Processor, WrappedLogger

from labsite.redact import hide_secrets
from runs.core import masking

Formatter = structlog.stdlib.ProcessorFormatter


def _redact(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    return {
        # What begins with an underscore belongs to the library and is not written.
        key: value if key.startswith("_") else _plain(value)
        for key, value in event.items()
    }


def _plain(value: object) -> object:
    """Whatever is logged will be a text in the end, so all but numbers is looked at as one."""
    if value is None or isinstance(value, int | float):
        return value
    return hide_secrets(masking.remembered(str(value)))


def _in_context(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """With the run or the request that the line belongs to; what the line says itself counts more."""
    return {**log_context.current(), **event}


SHARED: list[Processor] = [
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    _in_context,
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
