"""Log lines say which run, project and host, or which request, they are about."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog
from django.test import Client

from labsite import logs
from runs import tick
from runs.lifecycle.stop import stop
from runs.telemetry import log_context
from tests.fakes import World
from tests.make import a_project, a_run


@pytest.fixture
def lines() -> Iterator[list[dict[str, object]]]:
    """What is logged meanwhile, as LAB_LOG_JSON writes it."""
    found: list[dict[str, object]] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(json.loads(self.format(record)))

    handler = Kept()
    handler.setFormatter(
        logs.Formatter(
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
            foreign_pre_chain=logs.SHARED,
        )
    )
    logging.getLogger().addHandler(handler)
    yield found
    logging.getLogger().removeHandler(handler)


def test_lines_inside_have_the_keys_and_lines_after_have_not(
    lines: list[dict[str, object]],
) -> None:
    logger = logging.getLogger("test")
    with log_context.about(run_id=7, host="local"), log_context.about(project="shop"):
        logger.warning("inside", extra={"run_id": 8, "token": "token=s3cret"})
    logger.warning("after")
    assert {key: lines[0][key] for key in ("run_id", "host", "project")} == {
        "run_id": 8,  # what the line says itself counts more
        "host": "local",
        "project": "shop",
    }
    assert "s3cret" not in str(lines)
    assert "run_id" not in lines[1]


def test_a_key_of_the_context_is_masked_too(lines: list[dict[str, object]]) -> None:
    with log_context.about(project="https://me:s3cret@host/x"):
        logging.getLogger("test").warning("x")
    assert "s3cret" not in str(lines)


@pytest.mark.django_db
def test_trouble_with_a_run_in_a_tick_names_run_project_and_host(
    world: World, lines: list[dict[str, object]]
) -> None:
    run = a_run(a_project("shop"), "1")
    world.live(run)
    world.tracker.add_root("shop")
    world.sessions.broken_kill = "tmux is away"
    stop(world.lab, run, "anna")
    lines.clear()
    tick.tick(world.lab, force=True)
    told = next(line for line in lines if line["event"] == "session was not ended")
    assert (told["run_id"], told["project"], told["host"]) == (run.pk, "shop", "local")


@pytest.mark.django_db
def test_what_a_request_logs_has_the_name_that_it_is_answered_with(
    client: Client, world: World, lines: list[dict[str, object]], settings: object
) -> None:
    answer = client.get("/no-such-page", headers={"X-Request-ID": "of-a-stranger"})
    name = answer.headers["X-Request-ID"]
    assert name not in ("", "of-a-stranger")
    assert {line["request_id"] for line in lines} == {name}
    settings.BEHIND_PROXY = True  # type: ignore[attr-defined]
    answer = client.get("/no-such-page", headers={"X-Request-ID": "of-the-proxy"})
    assert answer.headers["X-Request-ID"] == "of-the-proxy"
    answer = client.get("/no-such-page", headers={"X-Request-ID": "two\twords"})
    assert answer.headers["X-Request-ID"] != "two\twords"
