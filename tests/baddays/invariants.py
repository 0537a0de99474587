"""What must hold after every bad day, whatever happened (issue "More doors, and bad days").

`Work` is what agents had made before; `check` looks two ticks later and raises AssertionError with
everything that is not as promised.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from django.db.models import Count, Q

from runs import tick
from runs.core import naming
from runs.core.paths import Paths
from runs.core.ports import Lab
from runs.core.states import RunState
from runs.dispatch import reserve
from runs.models import Project, Run, Settings
from tests.patience import PATIENCE
from tests.real import git


@dataclass
class Work:
    """Every commit of every repository and every file of every worktree, as they were."""

    commits: dict[Path, set[str]] = field(default_factory=dict)
    files: dict[Path, str] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Paths) -> Work:
        """All that there is now: reference repositories, origins of ours, and worktrees."""
        repos = [*paths.repos.glob("*.git"), *paths.origins.glob("*.git")]
        files = {
            file: _digest(file)
            for tree in paths.worktrees.glob("*")
            for file in tree.rglob("*")
            if file.is_file() and ".git" not in file.parts
        }
        return cls({repo: _commits(repo) for repo in repos}, files)

    def lost(self) -> Iterator[str]:
        """What is not there any more. A file may be gone when git still has its content."""
        for repo, before in self.commits.items():
            for commit in sorted(before - _commits(repo)):
                yield f"commit {commit[:10]} of {repo.name} is lost"
        kept = {repo: _contents(repo) for repo in self.commits}
        for file, digest in self.files.items():
            if file.exists() and _digest(file) == digest:
                continue
            if not any(digest in contents for contents in kept.values()):
                yield f"{file} is not what it was, and git does not have its content"


def check(
    lab: Lab,
    work: Work | None = None,
    *,
    settle: Callable[[], object] = lambda: None,
    ticks: int = 2,
) -> None:
    """Tick twice, then raise AssertionError unless all promises hold; `settle` runs the queue."""
    for _ in range(ticks):
        report = tick.tick(lab, force=True)
        assert not report.errors, report.errors
        settle()
    assert list(broken(lab, work)) == []


def broken(lab: Lab, work: Work | None = None) -> Iterator[str]:
    """Each promise that does not hold now, in a sentence."""
    if work is not None:
        yield from work.lost()
    yield from _shared_issues()
    yield from _outcomes()
    yield from _sessions_and_slots(lab)
    yield from _claims(lab)
    yield from _held(lab)


def _shared_issues() -> Iterator[str]:
    active = Run.objects.active().values_list("project__slug", "issue_key")
    for (project, key), number in Counter(active).items():
        if number > 1:
            yield f"issue {key} of {project} has {number} active runs"


def _outcomes() -> Iterator[str]:
    told = Run.objects.annotate(
        ends=Count("notice", filter=Q(notice__kind="run.ended")),
        reaps=Count("notice", filter=Q(notice__kind="run.reaped")),
    )
    for run in told:
        if run.ends != int(bool(run.outcome)):
            yield f"run {run.pk} ({run.outcome or run.state}) was told to have ended {run.ends} times"
        if run.outcome and (run.settled_at is None or run.reaps != 1):
            yield f"run {run.pk} ({run.outcome}) was settled {run.reaps} times"


def _sessions_and_slots(lab: Lab) -> Iterator[str]:
    """Sessions of runs are exactly those of the rows, and each slot is counted once."""
    sightings = lab.sessions.look()
    there = {name for name in sightings if naming.parse_session(name)}
    rows = {run.session: run for run in Run.objects.active().filter(host=lab.host)}
    for name in sorted(there - set(rows)):
        yield f"session {name} has no row"
    for name, run in rows.items():
        if name not in there and run.state == RunState.WORKING:
            yield f"run {run.pk} is {run.state} without a session"
        if name in there and run.is_held:
            yield f"run {run.pk} is held and has a session"
    live = {name for name, seen in sightings.items() if seen.alive and name in there}
    starting = {name for name, run in rows.items() if run.state == RunState.STARTING}
    room = reserve.room(lab, Settings.current(), sightings)
    if room.occupied != len(live | starting):
        yield f"{room.occupied} slots are counted for {len(live | starting)} sessions and starts"
    slots = [run.slot for run in rows.values() if run.slot]
    if len(slots) != len(set(slots)):
        yield f"slots are used twice: {sorted(slots)}"


def _claims(lab: Lab) -> Iterator[str]:
    """A start that failed leaves no claim behind, unless an agent or a person wrote into it."""
    for project in Project.objects.usable():
        claims = lab.repos.claims(project.repo(lab.paths))
        runs = Run.objects.filter(project=project)
        ran = set(runs.filter(Q(outcome="") | Q(started_at__isnull=False)).values_list("issue_key"))
        kept = set(runs.filter(reason__contains="kept").values_list("issue_key"))
        for key in claims:
            if (key,) not in ran | kept and runs.filter(issue_key=key).exists():
                yield f"issue {key} of {project.slug} is claimed by a start that failed"


def _held(lab: Lab) -> Iterator[str]:
    """A held run keeps what it needs to go on: its branch and its worktree."""
    for run in Run.objects.held().select_related("project"):
        if run.issue_key not in lab.repos.claims(run.project.repo(lab.paths)):
            yield f"held run {run.pk} has lost its branch"
        if run.worktree and not Path(run.worktree).is_dir():
            yield f"held run {run.pk} has lost its worktree"


def _own(repo: Path) -> list[Path]:
    """Return the worktrees whose own repository borrows the objects of this one."""
    lent = f"{(repo / 'objects').resolve()}\n"
    trees = (repo.parent.parent / "worktrees").glob("*")
    return [
        tree
        for tree in trees
        if (said := tree / ".git/objects/info/alternates").is_file() and said.read_text() == lent
    ]


def _commits(repo: Path) -> set[str]:
    """Every commit that a head or the HEAD of a worktree still reaches, here or in a run's own repository."""
    found = set().union(
        *(git(tree, "rev-list", "HEAD", "--branches").split() for tree in _own(repo))
    )
    trees = [
        line.removeprefix("HEAD ")
        for line in git(repo, "worktree", "list", "--porcelain").splitlines()
        if line.startswith("HEAD ") and set(line[5:]) != {"0"}
    ]
    return found | set(git(repo, "rev-list", "--branches", *trees).split())


def _contents(repo: Path) -> set[str]:
    """Digests of every file content that the repository's heads reach, and those of its runs' own."""
    return set().union(*(_contents_of(one) for one in (repo, *_own(repo))))


def _contents_of(repo: Path) -> set[str]:
    names = [line.split()[0] for line in git(repo, "rev-list", "--objects", "--all").splitlines()]
    found = subprocess.run(
        ["git", "-C", str(repo), "cat-file", "--batch"],
        input="\n".join(names).encode(),
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    ).stdout
    digests, rest = set(), found
    while rest:
        head, _, rest = rest.partition(b"\n")
        size = int(head.split()[2])
        digests.add(hashlib.sha256(rest[:size]).hexdigest())
        rest = rest[size + 1 :]
    return digests


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()
