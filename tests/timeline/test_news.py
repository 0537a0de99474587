"""What pages of many runs tell: news, and not the steps of each run."""

from __future__ import annotations

import pytest
from django.db import transaction

from runs.core.states import NoticeKind
from runs.models import Notice
from runs.timeline import announce
from tests.fakes import World
from tests.make import a_project, a_run

STEPS = {NoticeKind.RUN_STEP, NoticeKind.RUN_OUTPUT, NoticeKind.GATE_STEP}
STEPS |= {NoticeKind.VALIDATION_STEP, NoticeKind.WATCH_IDLE}
STEPS |= {NoticeKind.LOOP_TURN, NoticeKind.LOOP_STEP}
STEPS |= {NoticeKind.TASK_ADDED, NoticeKind.TASK_CLAIMED, NoticeKind.TASK_COMPLETED}
STEPS |= {NoticeKind.TASK_HANDED_BACK, NoticeKind.MONITOR_PROGRESS, NoticeKind.MONITOR_WARNED}
LOGINS = {NoticeKind.PERSON_IN, NoticeKind.PERSON_OUT}


@pytest.mark.django_db
@pytest.mark.parametrize("kind", list(NoticeKind))
def test_everything_but_the_steps_of_a_run_and_logins_is_news(
    world: World, kind: NoticeKind
) -> None:
    run = a_run(a_project())
    with transaction.atomic():
        announce.tell(world.lab, kind, "it happened", run=run)
    assert Notice.objects.get().is_news is (kind not in STEPS | LOGINS)
