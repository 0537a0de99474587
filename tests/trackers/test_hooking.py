"""Webhooks set up by the API of a forge: every event that counts, one hook an address, or why not."""

from __future__ import annotations

import pytest

from tests.trackers.forge import faults
from tests.trackers.stand import FORGES, ROOT, Stand, a_stand
from trackers.base import Refused, TrackerError

ADDRESS = "https://lab.example/hooks/demo/"


@pytest.fixture(params=FORGES)
def stand(request: pytest.FixtureRequest) -> Stand:
    return a_stand(FORGES[request.param]())


def test_a_hook_is_made_with_its_events_and_replaced_by_the_next_one(stand: Stand) -> None:
    stand.repo.roles.update(bot="admin")
    other = {"id": 5, "config": {"url": "https://ci.example/"}}
    stand.repo.hooks.append(other)

    for secret in ("first", "second"):
        stand.tracker.set_hook(ROOT, ADDRESS, secret)

    kept, made = stand.repo.hooks
    assert kept is other
    assert made["config"] == {"url": ADDRESS, "content_type": "json"}
    assert made["active"] is True
    wanted = {"issues", "issue_comment", "pull_request", "push", "status"}
    more = {"gitea": {"issue_label", "pull_request_sync"}, "github": {"check_run"}}
    assert set(made["events"]) == wanted | more[stand.forge.style]
    stand.forge.check()


def test_who_is_no_admin_is_told_what_it_takes(stand: Stand) -> None:
    with pytest.raises(Refused, match=r"To set webhooks up, it takes .* the role of an admin"):
        stand.tracker.set_hook(ROOT, ADDRESS, "secret")
    assert stand.repo.hooks == []


@pytest.mark.parametrize("kind", ["gitea", "forgejo"])
def test_a_forge_that_fails_to_make_the_new_hook_still_has_the_old_one(kind: str) -> None:
    stand = a_stand(FORGES[kind](), role="admin")
    stand.tracker.set_hook(ROOT, ADDRESS, "first")
    before = list(stand.repo.hooks)
    stand.forge.faults.add(faults.status(502), method="POST", path="/hooks")
    with pytest.raises(TrackerError):
        stand.tracker.set_hook(ROOT, ADDRESS, "second")
    assert stand.repo.hooks == before
