"""A run whose agent said that it is done: real git, and a record as a real program leaves it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from runs.core import tokens
from runs.core.states import Claim, RunState
from runs.gates import evidence
from runs.gates.hold import Hold
from runs.gates.rules import Decision
from runs.models import AgentProfile, Attempt, CheckRun
from runs.validation import specs
from runs.validation.specs import Command, Coverage, Kind, Scope, Terms
from tests import make
from tests.conversation.long_talk import SESSION, Claude
from tests.gates.rooms import take_over
from tests.real import RealWorld, git
from tests.world import agent_homes as homes

RECORDED = Path(__file__).parents[1] / "evidence" / "recorded"
CHECK = Command("check", ("./check.sh",), Kind.TEST)
_TIME = re.compile(rb'"timestamp":\s?"([^"]+)"')


class ClaimedRun:
    """A project on real git, a run of Claude Code on it, and one attempt after the other."""

    def __init__(
        self,
        real: RealWorld,
        *commands: Command,
        tracker: str = "memory",
        key: str = "7",
        **profile: Any,
    ) -> None:
        self.real = real
        self.lab = replace(real.lab, pause=self._pause)
        self.pauses = 0
        self.begun = real.lab.now() - timedelta(minutes=5)
        project = real.project()
        project.tracker = tracker
        project.save()
        self.repo = project.repo(real.paths)
        self.fork = real.repos.upstream(self.repo, "main")
        self.tree = real.paths.worktrees / f"demo-{key}"
        real.repos.add_worktree(self.repo, self.tree, f"afk/{key}", self.fork)
        about = {"name": "An agent", "argv": ["claude", "{prompt}"], "trust": "claude", **profile}
        self.run = make.a_run(
            project,
            key,
            profile=AgentProfile.objects.create(**about),
            worktree=str(self.tree),
            fork_point=self.fork,
            agent_session=SESSION,
            state=RunState.CHECKING,
            checking_at=real.lab.now(),
            requested_at=self.begun,
            started_at=self.begun,
        )
        self.terms = Terms(commands or (CHECK,), coverage=Coverage(enabled=False))
        self.talk = Claude(str(self.tree))
        self._calls = 0

    def _pause(self, _seconds: float) -> None:
        self.pauses += 1

    @property
    def home(self) -> Path:
        return Path(self.real.environ["HOME"])

    @property
    def path(self) -> Path:
        """Claude Code's own record of the session."""
        return homes.claude_path(self.home, str(self.tree))

    def commit(self, message: str = "feat: more (#7)", **files: str) -> str:
        for name, text in (files or {"more.txt": message}).items():
            (self.tree / name).write_text(text)
        git(self.tree, "add", "-A")
        git(self.tree, "commit", "-q", "-m", message)
        return git(self.tree, "rev-parse", "HEAD")

    def record(self, lines: Sequence[Mapping[str, Any] | bytes], path: Path | None = None) -> None:
        """Add lines to a record, the first one now, as its program would."""
        path = path or self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = [one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in lines]
        with path.open("ab") as file:
            file.write(moved(b"".join(raw), self.real.lab.now()))

    def ran(self, line: str = "./check.sh", text: str = "ok", status: int = 0) -> list[Any]:
        """A command that Claude Code ran, and its result."""
        self._calls += 1
        call = f"toolu_{self._calls:04}"
        said = f"Exit code {status}\n{text}" if status else text
        return [
            self.talk.does(call, "Bash", command=line),
            self.talk.gets(call, said, is_error=bool(status)),
        ]

    def recorded(self, name: str) -> bytes:
        """What a real program left, as if in this worktree."""
        found = (RECORDED / f"{name}.jsonl").read_bytes()
        found = found.replace(b"/srv/trees/demo-7", str(self.tree).encode())
        return found.replace(b"/srv/trees", str(self.tree.parent).encode())

    def checked(self, *results: Mapping[str, Any], tree: str = "", **fields: Any) -> CheckRun:
        """What `labctl check` left for the files that are in the worktree now."""
        base = {"command": "check", "argv": ["./check.sh"], "status": 0, "seconds": 1.5}
        return CheckRun.objects.create(
            run=self.run,
            host=self.lab.host,
            results=[{**base, **one} for one in results or ({},)],
            tree=tree or self.lab.repos.worktree_tree(self.tree),
            mark=tokens.new_mark(),
            **{
                "is_running": False,
                "asked_at": self.lab.now(),
                "ended_at": self.lab.now(),
                **fields,
            },
        )

    def hold(self, claim: Claim = Claim.DONE, rationale: str = "") -> Hold:
        """The next attempt; one that ran is ended."""
        last = Attempt.objects.filter(run=self.run).order_by("-number").first()
        Attempt.objects.filter(run=self.run, state="running").update(
            state="failed", ended_at=self.lab.now()
        )
        attempt = Attempt.objects.create(
            run=self.run,
            project=self.run.project,
            host=self.lab.host,
            number=last.number + 1 if last else 1,
            claim=claim,
            rationale=rationale,
            evidence_from=last.evidence_from if last else {},
            spec=specs.to_json(specs.effective(self.terms, Scope.PER_ISSUE)),
            mark=tokens.new_mark(),
            began_at=self.lab.now(),
        )
        return take_over(self.lab, attempt)

    def judge(self, claim: Claim = Claim.DONE, rationale: str = "") -> Decision:
        """Gate 1 of the next attempt."""
        return evidence.judge(self.lab, self.hold(claim, rationale))

    @property
    def attempt(self) -> Attempt:
        """The newest attempt, as it is stored."""
        found = Attempt.objects.filter(run=self.run).order_by("-number").first()
        assert found is not None
        return found

    @property
    def entry(self) -> dict[str, Any]:
        """What is stored of the one command."""
        [found] = self.attempt.evidence
        return dict(found)


def moved(raw: bytes, to: datetime) -> bytes:
    """Lines with their times moved, so that the first of them is at a moment."""
    first = _TIME.search(raw)
    if first is None:
        return raw
    delta = to - datetime.fromisoformat(first[1].decode())

    def later(found: re.Match[bytes]) -> bytes:
        at = datetime.fromisoformat(found[1].decode()) + delta
        return b'"timestamp": "' + at.isoformat(timespec="milliseconds").encode() + b'"'

    return _TIME.sub(later, raw)
