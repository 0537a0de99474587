"""Real agents in a `RealWorld`: the product's agent API, shipped profiles, a model that follows a script."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

from django.apps import apps

from labsite.preflight import write_labctl
from runs.issues import acts as issues
from runs.migrations import _seed
from runs.models import AgentProfile, Project, Run, Settings
from tests.agents.model_server import ModelServer
from tests.agents.script import Say, Shell, Step
from tests.patience import PATIENCE
from tests.real import RealWorld
from tests.world import stories

ROOT = Path(__file__).resolve().parents[2]
CLAUDE, PRINT, CODEX = "Claude Code", "Claude Code (print)", "Codex"
LOOK_EVERY = 1.0
KEY = "sk-ant-scripted-0123456789-abcdefghijkl"


def ship() -> None:
    """The profiles as the migrations leave them on a new database; tests empty their tables."""
    AgentProfile.objects.all().delete()
    _seed.profiles(apps)


def environment(name: str, url: str, folder: Path) -> dict[str, str]:
    """What an operator adds to a profile so that its program asks the model at `url`.

    The tests may run as root, where Claude Code wants to be told that it is in a sandbox. Left to
    itself it tries a refused call ten times, which takes minutes.
    """
    local = {"NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}
    if name != CODEX:
        given = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY, "IS_SANDBOX": "1"}
        return {**local, **given, "CLAUDE_CODE_MAX_RETRIES": "1"}
    home = folder / "codex-home"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(
        'model_provider = "scripted"\nmodel = "scripted"\n'
        f'[model_providers.scripted]\nname = "scripted"\nbase_url = "{url}/v1"\n'
        'env_key = "SCRIPTED_KEY"\nwire_api = "responses"\n'
    )
    return {**local, "CODEX_HOME": str(home), "SCRIPTED_KEY": KEY}


def hold(name: str = "go-on") -> Shell:
    """Work until a file of this name is in the worktree. A lone `sleep` the newest programs refuse."""
    return Shell(f"while [ ! -e {name} ]; do sleep 0.1; done")


def work_on(key: str = "1") -> list[Step]:
    """What a good agent does with its task."""
    return [
        Shell(f"labctl issue view {key}"),
        Shell("echo 'hello again' >> hello.txt && git commit -qam 'feat: greet again'"),
        Shell(f"git push -q origin afk/{key}"),
        Shell(f'labctl pr create --title "Greet again" --body "Closes #{key}"'),
        Say("The pull request is open."),
    ]


class AgentHouse:
    """What a test of a real agent needs."""

    def __init__(self, real: RealWorld, model: ModelServer, url: str) -> None:
        self.real = real
        self.model = model
        write_labctl(real.paths, sys.executable, ROOT)
        real.paths.address.write_text(url)
        model.forget()
        ship()
        # Scripts say what an agent does when it is asked nothing more; the tests of that turn it on.
        Settings.current()
        Settings.objects.update(nudges=False)

    @property
    def home(self) -> Path:
        """The home folder of everything that is started; empty at first."""
        return Path(self.real.environ["HOME"])

    def profile(self, name: str = CLAUDE, **env: str) -> AgentProfile:
        """A shipped profile with the environment that an operator gives it."""
        found = AgentProfile.objects.get(name=name)
        found.env = {**found.env, **environment(name, self.model.url, self.real.folder), **env}
        found.save()
        return found

    def codex_on_screen(self, *flags: str) -> AgentProfile:
        """Codex as a person works with it; no shipped profile starts it so."""
        found = self.profile(CODEX)
        quiet = ("-c", "check_for_update_on_startup=false", "-c", "analytics.enabled=false")
        found.argv = ["codex", *quiet, *flags, "{prompt}"]
        found.mode, found.output, found.login_command = "interactive", "", []
        found.save()
        return found

    def project(self, profile: AgentProfile, name: str = "demo") -> Project:
        """A project on the built-in tracker, whose issue 1 is ready."""
        made = self.real.project(name, tracker="builtin")
        made.agent.delete()  # type: ignore[union-attr]
        made.agent = profile
        made.save()
        self.issue(made)
        return made

    def trust_codex(self, project: Project) -> None:
        """What a person answers whom Codex asks before it works on issue 1."""
        tree = self.real.paths.worktrees / f"{project.slug}-1"
        config = self.real.folder / "codex-home" / "config.toml"
        with config.open("a") as file:
            file.write(f'[projects."{tree}"]\ntrust_level = "trusted"\n')

    def issue(self, project: Project) -> str:
        """One more ready issue; its key."""
        made = issues.create(
            self.real.lab,
            project,
            title="Greet again",
            body="Add a second line to hello.txt.",
            labels=[project.ready_label],
            by="anna",
        )
        return str(made)

    def start(self, project: Project, key: str = "1") -> Run:
        """Press *Start*."""
        asked = stories.press_start(self.real, project, wanted=key)
        assert asked.run is not None, asked.text
        return asked.run

    def until(self, run: Run, happened: Callable[[Run], object], seconds: float = PATIENCE) -> Run:
        """Look as the worker does until something is so; says what the session showed if it never is."""

        def is_so() -> bool:
            run.refresh_from_db()
            return bool(happened(run))

        self.look_until(is_so, lambda: self.told(run), seconds)
        return run

    def look_until(
        self, happened: Callable[[], bool], told: Callable[[], object], seconds: float = PATIENCE
    ) -> None:
        """Look when a program asked or left something, and each second, until something is so.

        On a busy machine more rarely: looks must not take the time from whom they wait for.
        """
        end = time.monotonic() + seconds
        before, next_at = None, 0.0
        while True:
            signs, now = self._signs(), time.monotonic()
            if signs != before or now >= next_at:
                stories.look(self.real)
                stories.work(self.real)
                if happened():
                    return
                took = time.monotonic() - now
                assert time.monotonic() < end, told()
                before, next_at = signs, time.monotonic() + max(LOOK_EVERY, 10 * took)
            time.sleep(0.1)

    def _signs(self) -> object:
        """What changes when a program goes on: requests of the model, what lies in the runs' folders."""
        sizes = {}
        for path in self.real.paths.run_folders.rglob("*"):
            with contextlib.suppress(OSError):
                sizes[path] = path.lstat().st_size
        return len(self.model.all_asked()), sizes

    def until_over(self, run: Run, seconds: float = PATIENCE) -> Run:
        """Wait until the run has ended and is settled."""
        return self.until(run, lambda run: run.settled_at is not None, seconds)

    def screen(self, run: Run) -> str:
        """What the session shows now."""
        return self.real.sessions.screens([run.session]).get(run.session, "")

    def told(self, run: Run) -> str:
        """Everything that explains why something did not happen."""
        asked = [f"{one.path} {one.word}" for one in self.model.all_asked()]
        return (
            f"it never happened; run {run.outcome or run.state}: {run.reason}\n"
            f"{self.screen(run) or run.last_words}\nrequests: {asked}"
        )
