"""Notices to the outside: each once, whatever dies or fails; and the ping after a healthy tick."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction

from runs import tick
from runs.core.ports import Lab
from runs.core.states import NoticeKind, Outcome
from runs.groups import monitors
from runs.groups.terms import TaskStatus
from runs.lifecycle import outcomes
from runs.models import Delivery, Notice, NoticeAddress, Outbox, Project, Settings
from runs.notices import addresses, deliveries, pings
from runs.notices.rules import PAUSES
from runs.timeline import announce
from tests import make
from tests.fakes import START, World
from tests.notices.test_notifier_contract import Listener, listener
from tests.real import RealWorld
from tests.world.stories import post_notices

__all__ = ["listener"]
pytestmark = pytest.mark.django_db(transaction=True)

URL = "json://127.0.0.1:1/token77"
TOPICS = ["ended.died", "auto.paused"]


@pytest.fixture
def project(world: World) -> Project:
    return make.a_project()


@pytest.fixture
def address(world: World, operator: User) -> NoticeAddress:
    return addresses.add(world.lab, operator, "phone", URL, TOPICS)


def pauses(world: World, project: Project, text: str = "three in a row") -> None:
    with transaction.atomic():
        announce.tell(world.lab, NoticeKind.AUTO_PAUSED, text, project=project)


def work(world: World, lab: Lab | None = None) -> None:
    """What the periodic task and the queue do."""
    post_notices(lab or world.lab)
    while world.queue.deliveries:
        deliveries.drain(lab or world.lab, world.queue.deliveries.pop(0))


def titles(world: World) -> list[str]:
    return [title for _, title, _ in world.notifier.told]


@pytest.mark.row("RUNE-31", level="contract")
def test_that_a_task_of_a_group_is_stalled_goes_out_with_the_way_to_the_group(
    world: World, project: Project, operator: User
) -> None:
    Settings.current()
    Settings.objects.update(public_address="https://lab.example/")
    kind = NoticeKind.MONITOR_INVESTIGATE
    addresses.add(world.lab, operator, "phone", URL, [kind.value])
    monitor = monitors.start(world.lab, make.a_group(project, tasks=4), by="anna")
    make.a_task(monitor.group, "9", TaskStatus.IN_PROGRESS)
    for _ in range(13):
        tick.tick(world.lab)
        world.clock.forward(seconds=31)
    work(world)
    (_, title, text), *more = world.notifier.told
    assert more == []
    assert title == "demo: a task of a group is stalled: investigate"
    assert "Blockers: #9 Part 9 (stale >5min) Decision: INVESTIGATE" in text
    group = monitor.group_id
    assert text.endswith(f"\nhttps://lab.example/projects/{project.pk}/groups/{group}/")


def test_what_was_chosen_is_told_once_with_a_link(
    world: World, project: Project, address: NoticeAddress
) -> None:
    settings = Settings.current()
    settings.public_address = "https://lab.example/"
    settings.save()
    run = make.a_run(project)
    outcomes.record(world.lab, run, Outcome.DIED, "exit status 3")
    for _ in range(3):
        work(world)
    assert world.notifier.told == [
        (URL, "demo #7: a run ended: died", f"exit status 3\nhttps://lab.example/runs/{run.pk}/")
    ]
    row = Delivery.objects.get()
    assert (row.state, row.tries, row.sent_at) == ("sent", 1, START)


def test_what_was_not_chosen_or_came_before_is_not_told(
    world: World, project: Project, operator: User
) -> None:
    pauses(world, project, "long ago")
    world.clock.forward(seconds=1)
    addresses.add(world.lab, operator, "phone", URL, TOPICS)
    outcomes.record(world.lab, make.a_run(project), Outcome.SUCCEEDED, "a pull request")
    work(world)
    assert world.notifier.told == []


def test_without_an_address_nothing_is_written(world: World, project: Project) -> None:
    pauses(world, project)
    work(world)
    assert not Delivery.objects.exists()
    assert not Outbox.objects.exists()


def test_the_same_thing_is_told_once_an_hour(
    world: World, project: Project, address: NoticeAddress
) -> None:
    for _ in range(3):
        pauses(world, project)
        world.clock.forward(minutes=10)
        work(world)
    pauses(world, project, "something else")
    work(world)
    assert len(titles(world)) == 2
    world.clock.forward(hours=1)
    pauses(world, project)
    work(world)
    assert len(titles(world)) == 3


def test_each_person_is_told_at_each_address_by_their_own_choice(
    world: World, project: Project, address: NoticeAddress, viewer: User
) -> None:
    addresses.add(world.lab, viewer, "mail", "json://127.0.0.1:1/vera", ["auto.paused"])
    pauses(world, project)
    outcomes.record(world.lab, make.a_run(project), Outcome.DIED, "gone")
    work(world)
    assert sorted(url for url, *_ in world.notifier.told) == [
        "json://127.0.0.1:1/token77",
        "json://127.0.0.1:1/token77",
        "json://127.0.0.1:1/vera",
    ]
    User.objects.filter(pk=viewer.pk).update(is_active=False)
    pauses(world, project, "again")
    work(world)
    assert len(world.notifier.told) == 4


def test_a_failed_try_is_repeated_and_given_up_in_the_end(
    world: World, project: Project, address: NoticeAddress
) -> None:
    world.notifier.broken = "status 503"
    pauses(world, project)
    for tries, rest in enumerate(PAUSES, start=1):
        work(world)
        work(world)
        row = Delivery.objects.get()
        assert (row.state, row.tries, row.error) == ("waiting", tries, "status 503")
        assert row.next_at == world.clock.now + rest
        world.clock.jump(seconds=rest.total_seconds())
    work(world)
    row = Delivery.objects.get()
    assert (row.state, row.tries) == ("failed", len(PAUSES) + 1)
    told = Notice.objects.get(kind=NoticeKind.DELIVERY_FAILED)
    assert told.text == "a notice could not be sent to phone: status 503"
    world.notifier.broken = ""
    work(world)
    assert world.notifier.told == []


def test_an_address_that_cannot_work_is_given_up_at_once(
    world: World, project: Project, address: NoticeAddress
) -> None:
    NoticeAddress.objects.update(url="gone://x")
    pauses(world, project)
    work(world)
    assert Delivery.objects.get().state == "failed"


def test_a_notifier_that_was_killed_midway_sends_again_when_its_process_is_dead(
    world: World, project: Project, address: NoticeAddress
) -> None:
    class Killed(BaseException):
        pass

    class Dies:
        def send(self, *args: str) -> None:
            raise Killed

    pauses(world, project)
    dying = replace(world.lab, notifier=Dies(), process="boot:2:2")
    with pytest.raises(Killed):
        work(world, dying)
    assert Delivery.objects.get().state == "sending"
    work(world)
    assert world.notifier.told == []
    world.dead_processes.add("boot:2:2")
    work(world)
    world.clock.forward(minutes=1)
    work(world)
    work(world)
    assert len(titles(world)) == 1
    assert Delivery.objects.get().tries == 2


def test_a_late_answer_changes_nothing_that_another_try_has_said(
    world: World, project: Project, address: NoticeAddress
) -> None:
    """The first try hangs, is taken back, the second one sends; then the first one wakes and fails."""
    pauses(world, project)
    post_notices(world.lab)
    pk = world.queue.deliveries.pop()

    class Slow:
        def send(self, *args: str) -> None:
            world.clock.forward(minutes=3)
            deliveries.post(world.lab)
            world.clock.forward(minutes=1)
            deliveries.carry_out(world.lab, pk)
            raise world_error

    from runs.core.ports import SeamError

    world_error = SeamError("too late")
    deliveries.carry_out(replace(world.lab, notifier=Slow()), pk)
    row = Delivery.objects.get()
    assert (row.state, row.error, row.tries) == ("sent", "", 2)


def test_a_late_answer_does_not_end_the_try_that_goes_on(
    world: World, project: Project, address: NoticeAddress
) -> None:
    pauses(world, project)
    post_notices(world.lab)

    class Slow:
        def send(self, *args: str) -> None:
            Delivery.objects.update(tries=2)

    deliveries.carry_out(replace(world.lab, notifier=Slow()), world.queue.deliveries.pop())
    assert Delivery.objects.get().state == "sending"


def test_two_senders_of_one_delivery_send_it_once(
    world: World, project: Project, address: NoticeAddress
) -> None:
    pauses(world, project)
    post_notices(world.lab)
    deliveries.post(world.lab)
    assert len(world.queue.deliveries) == 2
    work(world)
    assert len(titles(world)) == 1


def test_a_hundred_notices_are_asked_for_once_and_sent_in_bounded_time(
    world: World, project: Project, address: NoticeAddress
) -> None:
    for number in range(100):
        pauses(world, project, f"number {number}")
    post_notices(world.lab)
    assert len(world.queue.deliveries) == 1

    class Slow:
        def send(self, *args: str) -> None:
            world.clock.forward(seconds=5)

    deliveries.drain(replace(world.lab, notifier=Slow()), world.queue.deliveries.pop())
    assert Delivery.objects.filter(state="sent").count() == 3
    work(world)
    assert Delivery.objects.filter(state="sent").count() == 100


def test_a_kill_between_writing_and_asking_loses_nothing(
    world: World, project: Project, address: NoticeAddress
) -> None:
    pauses(world, project)
    post_notices(world.lab)
    world.queue.deliveries.clear()
    work(world)
    assert len(titles(world)) == 1


@pytest.mark.postgres
def test_the_database_refuses_a_second_delivery_and_a_sending_that_nobody_sends(
    world: World, project: Project, address: NoticeAddress
) -> None:
    pauses(world, project)
    work(world)
    row = Delivery.objects.get()
    for wrong in (
        {"notice": row.notice},
        {"state": "sending"},
        {"state": "sent"},
        {"sender": "x"},
    ):
        facts = {"address": address, "title": "x", "text": "", **wrong}
        with pytest.raises(IntegrityError), transaction.atomic():
            Delivery.objects.create(created_at=START, next_at=START, **facts)


@pytest.mark.row("X-05", level="contract")
def test_the_address_is_encrypted_and_in_no_text(
    world: World, project: Project, address: NoticeAddress
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT url FROM runs_noticeaddress")
        assert "token77" not in cursor.fetchone()[0]
    world.notifier.broken = "no"
    pauses(world, project)
    work(world)
    kept = str([*Notice.objects.values(), *Delivery.objects.values()]) + repr(address)
    assert "token77" not in kept + repr(NoticeAddress.objects.get().url)


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("name", "url", "field"),
    [
        pytest.param("phone", "json://other", "name", id="a name twice"),
        pytest.param("other", URL, "url", id="an address twice"),
        pytest.param("other", "nonsense", "url", id="no address at all"),
    ],
)
def test_an_address_is_refused_with_the_reason_at_its_field(
    world: World, address: NoticeAddress, operator: User, name: str, url: str, field: str
) -> None:
    with pytest.raises(addresses.AddressRefused) as refused:
        addresses.add(world.lab, operator, name, url, TOPICS)
    assert refused.value.field == field
    assert NoticeAddress.objects.count() == 1


def a_watcher(**fields: object) -> None:
    Settings.current()
    Settings.objects.update(ping_url="http://watch.example/abc", **fields)


def test_a_healthy_tick_pings_at_most_once_a_minute(world: World) -> None:
    a_watcher()
    for seconds in (0, 30, 29, 2):
        world.clock.forward(seconds=seconds)
        tick.tick(world.lab, force=True)
    assert world.queue.pings == [True, True]
    pings.carry_out(world.lab, True)
    assert world.notifier.pinged == ["http://watch.example/abc"]


def test_no_watcher_no_ping(world: World) -> None:
    tick.tick(world.lab, force=True)
    assert world.queue.pings == []
    pings.carry_out(world.lab, True)
    assert world.notifier.pinged == []


@pytest.mark.parametrize("ping_failures", [False, True])
def test_an_ill_tick_does_not_ping_unless_failures_are_wanted(
    world: World, ping_failures: bool
) -> None:
    a_watcher(ping_failures=ping_failures)
    world.sessions.broken = "no server"
    tick.tick(world.lab, force=True)
    assert world.queue.pings == [False] * ping_failures
    if ping_failures:
        pings.carry_out(world.lab, False)
        assert world.notifier.pinged == ["http://watch.example/abc/fail"]


def test_a_watcher_that_cannot_be_told_is_told_of_once(world: World) -> None:
    a_watcher()
    tick.tick(world.lab, force=True)
    world.notifier.broken = "status 500"
    for _ in range(3):
        pings.carry_out(world.lab, True)
    assert Notice.objects.filter(kind=NoticeKind.DELIVERY_FAILED).count() == 1
    world.notifier.broken = ""
    for _ in range(2):
        pings.carry_out(world.lab, True)
    assert Notice.objects.filter(text__contains="reached again").count() == 1


def test_what_was_sent_is_kept_as_long_as_the_setting_says(
    world: World, project: Project, address: NoticeAddress
) -> None:
    """Also beside something new; what has to go goes in small steps, `runs.notices.pruning`."""
    at = world.clock() - timedelta(days=45)
    for state in ("failed", "waiting"):
        Delivery.objects.create(
            address=address, title=state, state=state, created_at=at, next_at=at
        )
    pauses(world, project)
    post_notices(world.lab)
    assert Delivery.objects.count() == 3


def test_a_queue_that_does_not_take_a_ping_harms_no_tick(world: World) -> None:
    a_watcher()

    class Full:
        def ping(self, healthy: bool) -> None:
            raise OSError("the disk is full")

    assert tick.tick(replace(world.lab, queue=Full()), force=True).errors == []


def test_a_real_program_is_told_and_pinged(
    real: RealWorld, operator: User, listener: Listener
) -> None:
    lab = real.lab
    addresses.add(lab, operator, "phone", f"json://{listener.at}/hook", TOPICS)
    with transaction.atomic():
        announce.tell(lab, NoticeKind.AUTO_PAUSED, "three in a row")
    # A transaction of another database that ends just now holds entries back once (decision 9).
    real.until(lambda: deliveries.post(lab))
    deliveries.carry_out(lab, real.queue.deliveries.pop())
    assert Delivery.objects.get().state == "sent"
    assert listener.heard[0][2]["message"] == "three in a row"
