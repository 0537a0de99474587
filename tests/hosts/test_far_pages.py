"""Pages of a run and of kept work whose files are on another host: its worker answers, or is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client

from runs.core.ports import Lab, MaybeGiven, SeamError
from runs.hosts import kept_elsewhere
from runs.kept import counts, discard
from runs.models import Discarding, Host, Notice, Parked, Project, Rescue, Run
from runs.notices import rules as notice_rules
from runs.on_behalf import OnBehalf
from runs.remote import messages
from runs.remote.records import FarRecords
from runs.web import fragments
from tests import make
from tests.api.program import Program
from tests.conversation import long_talk
from tests.fakes import FakeTree, World
from tests.web.people import confirmed, text_of

pytestmark = pytest.mark.django_db

TREE = "/srv/trees/demo-7"
KEY = b"k" * 32
HTMX: Any = {"headers": {"HX-Request": "true"}}


class Wire:
    """Something of another host, to which nothing comes but messages, nor back."""

    def __init__(self, target: object, there: Path, here: Path) -> None:
        self._target, self._there, self._here = target, there, here
        self.trouble: SeamError | None = None
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.asked.append(name)
            if self.trouble is not None:
                raise self.trouble
            sent = self._passed(list(args), self._here, self._there)
            answer = getattr(self._target, name)(*sent)
            return self._passed(answer, self._there, self._here)

        return call

    def _passed(self, value: Any, home: Path, to: Path) -> Any:
        text = messages.written(KEY, {"value": value}, home, 16_000_000)
        return messages.read(KEY, text, to)["value"]


class Far:
    """The host gpu: a machine of its own, whose worker is asked over the wire."""

    def __init__(self, world: World, folder: Path) -> None:
        self.own = World(folder)
        shared = {"now": world.clock, "steady": world.clock.steady}
        trackers = {"tracker_for": {"memory": world.tracker}.get}
        self.lab = replace(self.own.lab, host="gpu", process="gpu:1:1", **shared, **trackers)
        places = (self.lab.paths.state, world.lab.paths.state)
        self.wire = Wire(OnBehalf(self.lab), *places)
        self.repos = Wire(self.lab.repos, *places)
        self.home = folder.parent / "home"
        object.__setattr__(world.lab, "others", self._at)
        Host.objects.create(name="gpu", seen_at=Now(), version="0.1.0+98")

    def _at(self, lab: Lab, host: str) -> Lab:
        assert host == "gpu"
        wire: Any = self.wire
        repos: Any = self.repos
        records = FarRecords(wire)
        return replace(lab, host=host, repos=repos, records=records, elsewhere=wire)


@pytest.fixture
def far(world: World, tmp_path: Path, db: None) -> Far:
    return Far(world, tmp_path / "far" / "state")


@pytest.fixture
def anna(anna: Client, world: World) -> Client:
    """She was asked who she is just now."""
    return confirmed(anna)


@pytest.fixture
def program(world: World, operator: User) -> Program:
    return Program.of(operator)


@pytest.fixture
def run(far: Far) -> Run:
    profile = make.an_agent("My Claude", argv=["claude", "{prompt}"], trust="claude")
    told = {"worktree": TREE, "agent_session": long_talk.SESSION, "agent": "My Claude"}
    return make.a_run(make.a_project(), profile=profile, host="gpu", **told)


@pytest.fixture
def kept(world: World, far: Far) -> Project:
    """Issue 7 is parked on gpu, issue 8 here."""
    world.tracker.add_root("demo")
    made = make.a_project()
    world.repos.heads[made.repo(world.lab.paths)] = {"afk/8": "b" * 40}
    world.repos.counts = {"afk/8": 0}
    tree = far.lab.paths.worktrees / "demo-7"
    tree.mkdir(parents=True)
    far.own.repos.heads[made.repo(far.lab.paths)] = {"afk/7": "a" * 40}
    far.own.repos.trees[tree] = FakeTree("afk/7", "a" * 40, is_dirty=True)
    far.own.repos.counts = {"afk/7": 2}
    given = {"host": "gpu", "worktree": str(tree), "fork_point": "f" * 40}
    make.a_run(made, "7", outcome="stopped", **given)
    counts.take(world.lab, made)
    counts.take(far.lab, made)
    return made


def test_the_conversation_of_a_run_of_another_host_is_read_through_its_worker(
    anna: Client, far: Far, run: Run
) -> None:
    long_talk.write_claude(far.home, TREE)
    page = f"/runs/{run.pk}/conversation/"
    html = text_of(anna.get(page))
    assert "I'll read the parser first" in html
    assert "python -m pytest -q" in html
    assert set(far.wire.asked) == {"records", "read"}
    assert str(far.home) not in html
    assert "parser" in text_of(anna.get(f"{page}search?q=parser"))


def test_a_host_that_does_not_answer_is_named_and_the_end_of_the_screen_is_shown(
    anna: Client, far: Far, run: Run
) -> None:
    Run.objects.update(last_words="the last screen")
    far.wire.trouble = SeamError("host gpu did not answer within 4 s")
    page = f"/runs/{run.pk}/conversation/"
    html = text_of(anna.get(page))
    assert "host gpu did not answer within 4 s" in html
    assert "Nothing of it is lost" in html.replace("\n", " ")
    assert "the last screen" in html
    for rest in ("search?q=a", "conversation.json", "conversation.md", "text?at=0&part=0"):
        answer = anna.get(f"{page}{rest}", **HTMX)
        assert answer.status_code == 502, rest
        assert "host gpu did not answer" in text_of(answer)


def test_nothing_is_read_of_a_run_that_is_not_of_the_host_that_is_asked(far: Far, run: Run) -> None:
    long_talk.write_claude(far.home, TREE)
    assert OnBehalf(far.lab).records(run.pk) != []
    Run.objects.update(host="local")
    assert OnBehalf(far.lab).records(run.pk) == []
    assert OnBehalf(far.lab).read(run.pk, long_talk.SESSION, 0, 10) is None


def test_what_another_host_keeps_is_listed_discarded_and_brought_back_there(
    anna: Client, world: World, far: Far, kept: Project
) -> None:
    world.tracker.add_pull("demo", "afk/7", "open")
    at = f"/projects/{kept.pk}/parked/"
    html = text_of(anna.get(at))
    there = html.partition("On host gpu")[2]
    for words in (
        "afk/7",
        "dirty",
        "2 commits ahead",
        "2 unpushed",
        "stopped",
        "pull request 1 open",
    ):
        assert words in there, words
    assert "afk/8" in html.partition("On host gpu")[0]
    asked = text_of(anna.post(f"{at}discard?host=gpu", {"branch": "afk/7"}))
    assert '<input type="hidden" name="host" value="gpu">' in asked
    sure = {"branch": "afk/7", "host": "gpu", "sure": "yes"}
    assert anna.post(f"{at}discard", sure, follow=True).status_code == 200
    assert not Parked.objects.filter(host="gpu").exists()
    (rescue,) = Rescue.objects.filter(branch="afk/7")
    assert "On host gpu" not in text_of(anna.get(at))
    assert kept_elsewhere.host_of(world.lab, rescue) == "gpu"
    answer = anna.post(f"/projects/{kept.pk}/rescues/{rescue.pk}/restore", follow=True)
    assert answer.status_code == 200
    rescue.refresh_from_db()
    assert (rescue.restored_as, rescue.restored_by) == ("afk/7", "anna")
    assert Parked.objects.filter(host="gpu", branch="afk/7").exists()
    again = anna.post(f"/projects/{kept.pk}/rescues/{rescue.pk}/restore", **HTMX)
    assert again.status_code == 409


def test_a_host_that_keeps_work_and_is_silent_is_named_with_what_was_counted(
    anna: Client, far: Far, kept: Project
) -> None:
    at = f"/projects/{kept.pk}/parked/"
    far.wire.trouble = SeamError("host gpu did not answer within 4 s")
    html = text_of(anna.get(at))
    assert "1 branch kept there, as last counted" in html
    assert "host gpu did not answer within 4 s" in html
    sure = {"branch": "afk/7", "host": "gpu", "sure": "yes"}
    failed = anna.post(f"{at}discard", sure, **HTMX)
    assert failed.status_code == 502
    assert "afk/7 was not discarded" in text_of(failed)
    far.wire.trouble = MaybeGiven("host gpu did not answer within 4 s")
    assert "whether it happened is shown here" in text_of(anna.post(f"{at}discard", sure, **HTMX))
    far.wire.asked.clear()
    Host.objects.filter(name="gpu").update(seen_at=Now() - timedelta(minutes=9))
    assert "host gpu gives no sign of life" in text_of(anna.get(at))
    assert far.wire.asked == []  # nobody waits for one that is known to be away
    Host.objects.filter(name="gpu").update(removed_at=Now())
    assert "host gpu was removed" in text_of(anna.get(at))


def test_a_long_discard_is_carried_out_by_the_host_that_keeps_the_branch(
    world: World, far: Far, kept: Project
) -> None:
    Parked.objects.exclude(host="gpu").delete()
    asked_at = world.clock.now - timedelta(hours=1)
    row = Discarding.objects.create(project=kept, branch="afk/7", by="anna", asked_at=asked_at)
    discard.tend(world.lab)
    row.refresh_from_db()
    assert row.asked_at == asked_at
    discard.tend(far.lab)
    row.refresh_from_db()
    assert row.asked_at > asked_at


def test_rows_of_a_newer_version_are_shown_and_pass_an_older_one_by(
    anna: Client, world: World, program: Program, kept: Project
) -> None:
    """As an older web process beside a newer worker meets them: a notice of a kind that it lacks."""
    told = {"at": world.clock.now, "text": "host a levitates", "project": kept}
    notice = Notice.objects.create(kind="host.levitates", **told)
    assert "host a levitates" in text_of(anna.get("/"))
    assert fragments.topics_of(notice) >= {"overview", f"project:{kept.pk}"}
    assert notice_rules.topic_of(notice.kind, "") == ""
    told = [one["text"] for one in program.get("/timeline").json()["items"]]
    assert "host a levitates" in told
