"""PostgreSQL goes away while a run is at the gates: nothing is lost, nothing is run twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runs.gates.hold import WAITS
from tests import postgres
from tests.house.product import Product, until
from tests.real import a_checkout, git
from tests.story.conftest import Story

pytestmark = [
    pytest.mark.skipif(
        postgres.programs() is None, reason="PostgreSQL's server programs are not installed"
    ),
    pytest.mark.real,
]

AGENT = """
echo 'hello again' >> hello.txt
git commit -qam "feat: greet again (#$LAB_ISSUE)"
labctl check
git push -q origin "$LAB_BRANCH"
labctl done
while read -r line; do echo "heard: $line"; done
"""
# Says that it runs, and ends when the test lets it. In the agent's own worktree it ends at once.
STEP = """#!/bin/sh
case $PWD in */worktrees/*) exit 0;; esac
cat > /dev/null
echo "$PWD" >> {folder}/{name}.ran
while [ ! -e {folder}/{name}.go ]; do sleep 0.1; done
echo '{{"findings": []}}'
echo ended >> {folder}/{name}.ended
"""
MADE = """
from runs.issues import acts as issues
from runs.models import AgentProfile, Project, Reviewer, Settings
from runs.projects import acts as projects
from runs.specs import acts
from runs.validation.specs import Command, Kind
from runs.wiring import lab
agent = AgentProfile.objects.create(name='Scripted', argv=['sh', {agent!r}, '{{prompt}}'])
project = projects.add(lab(), name='shop', source={source!r}, token='', by='anna')
Project.objects.update(agent=agent)
issues.create(lab(), project, title='Greet', labels=['ready-for-agent'], by='anna')
Settings.objects.update_or_create(pk=1, defaults={{'tick_seconds': 5}})
acts.store_policy(lab(), project, 'gates', by='anna')
acts.add_command(lab(), project, Command('tests', ({tests!r},), Kind.TEST), by='anna')
acts.store_terms(lab(), project, {{'disabled': ['coverage', 'e2e', 'run-level-validate']}}, by='anna')
Reviewer.objects.create(project=project, name='eyes', command=[{review!r}])
"""
READY = "from runs.models import Project; print(Project.objects.get().state)"
ASK = "from runs.wiring import lab; from runs.models import Project; from runs.dispatch import start_requests as starts; starts.request(lab(), Project.objects.get(), 'anna')"
CLOSED = "from runs.models import Run; print(bool(Run.objects.get().closed_at))"
TOLD = "from runs.models import Notice; print('\\n'.join(Notice.objects.order_by('pk').values_list('text', flat=True)))"
ENDED = """
from runs.models import Attempt, Job, Run
run, attempt = Run.objects.get(), Attempt.objects.get()
job = Job.objects.get(kind='attempt')
said = [one['gate'] for one in attempt.decisions]
print(run.outcome, run.attempts, attempt.state, job.losses, repr(job.owner), *said)
"""


@pytest.fixture
def server() -> Iterator[postgres.Server]:
    made = postgres.Server()
    made.start()
    yield made
    made.close()


@pytest.fixture
def night(server: postgres.Server, tmp_path: Path) -> Iterator[Story]:
    """A product whose database lies on a server that the test stops."""
    made = Story(tmp_path / "state")
    made.more = {"LAB_DATABASE_URL": server.url()}
    yield made
    made.close()


def _until_it_waits(product: Product, times: int) -> None:
    """What a gate has said cannot be written down."""
    until(lambda: product.log.count(WAITS) > times, told=lambda: product.log)


@pytest.mark.row("X-09", "MALA-V-99", level="real")
def test_a_server_that_goes_away_in_each_step_of_a_chain_loses_nothing(
    server: postgres.Server, night: Story, tmp_path: Path
) -> None:
    source = a_checkout(tmp_path / "shop", tmp_path / "shop-origin.git")
    programs = {}
    for name in ("tests", "review"):
        programs[name] = tmp_path / name
        programs[name].write_text(STEP.format(folder=tmp_path, name=name))
        programs[name].chmod(0o755)
    (tmp_path / "agent.sh").write_text(AGENT)
    product = night.up()
    about = {name: str(path) for name, path in programs.items()}
    night.shell(MADE.format(agent=str(tmp_path / "agent.sh"), source=str(source), **about))
    until(lambda: night.shell(READY) == "ready", told=lambda: product.log)
    night.shell(ASK)
    children = product.children()
    for name in programs:
        ran = tmp_path / f"{name}.ran"
        until(ran.exists, told=lambda: f"{night.shell(TOLD)}\n{product.log}")
        before = product.log.count(WAITS)
        server.stop()
        # Looks of the worker fail, and so does the writing of the step, which ends meanwhile.
        (tmp_path / f"{name}.go").touch()
        _until_it_waits(product, before)
        assert (tmp_path / f"{name}.ended").exists()
        assert product.get("/readyz") == 503
        server.start()
    until(
        lambda: night.shell(CLOSED) == "True",
        told=lambda: f"{night.shell(ENDED)}\n{night.shell(TOLD)}\n{product.log}",
    )
    told = night.shell(TOLD)
    assert night.shell(ENDED) == "succeeded 1 passed 0 '' evidence clean_room review", told
    for name in ("tests", "review"):
        assert len((tmp_path / f"{name}.ran").read_text().splitlines()) == 1, told
    assert "tried again" not in told and "the worker was gone" not in told
    assert product.children() == children
    assert git(tmp_path / "shop-origin.git", "show", "afk/1:hello.txt").endswith("hello again")
    assert list(night.paths.clean_rooms.glob("*")) == []
