"""git in a session of a project of a GitHub App, with real git, the helper, and the real server."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from labsite import preflight
from runs.agents import orders
from runs.core import tokens
from runs.machine.git import Git
from runs.models import Forge, Settings
from tests import make
from tests.fakes import START, World
from tests.labctl.session import ROOT, Session

WEB = "https://github.example"
Credential = Callable[[str, str], subprocess.CompletedProcess[str]]


def git_in(session: Session, env: Mapping[str, str], settings: str = "") -> Credential:
    """`git credential` as a session has it, with these settings of the machine's user."""
    home = session.folder / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(settings)
    ours = {name: told for name, told in env.items() if name.startswith(("GIT_", "LAB_GIT_"))}

    def ask(act: str, text: str) -> subprocess.CompletedProcess[str]:
        argv = ["git", "credential", act]
        whole = {**session.env, **ours, "HOME": str(home)}
        return subprocess.run(
            argv, input=text, env=whole, cwd=home, capture_output=True, text=True, check=False
        )

    return ask


@pytest.mark.real
@pytest.mark.row("X-05", level="real")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("token", "user", "password"),
    [
        pytest.param("s3cret", "x-access-token", "s3cret", id="token"),
        pytest.param("ann:s3cret", "ann", "s3cret", id="with its user"),
    ],
)
def test_a_token_that_lasts_goes_to_its_own_server_alone(
    world: World, tmp_path: Path, token: str, user: str, password: str
) -> None:
    """A repository may name others, as submodules do, and git asks for each of them."""
    project = make.a_project(url=f"{WEB}/acme/shop.git", token=token)
    world.lab.paths.bin.mkdir(parents=True)
    Git(os.environ, world.lab.paths.bin, lambda: 10.0).ask(tmp_path, "version", token="x")
    order = orders.make(world.lab, make.a_run(project), make.an_agent(), Settings.current())
    session = Session(tmp_path / "session")
    (session.folder / "run" / "git-token").write_text(order.files["git-token"])
    credential = git_in(session, order.env)

    ours = credential("fill", "protocol=https\nhost=github.example\n\n")

    assert f"username={user}\npassword={password}\n" in ours.stdout
    for place in ("protocol=https\nhost=evil.example", "protocol=http\nhost=github.example"):
        other = credential("fill", f"{place}\n\n")
        assert (other.returncode, "s3cret" in other.stdout + other.stderr) == (128, False)
    helper = order.env["GIT_ASKPASS"]
    lfs = [helper, f'Password for "{WEB.replace("//", "//x@")}"']
    env = {**session.env, **order.env, "LAB_RUN_FOLDER": str(session.folder / "run")}
    said = subprocess.run(lfs, env=env, capture_output=True, text=True, check=True)
    assert said.stdout == f"{password}\n"


@pytest.mark.row("X-05", level="real")
@pytest.mark.django_db(transaction=True)
def test_git_is_given_the_apps_token_and_nothing_keeps_it(
    world: World, live_server: Any, tmp_path: Path
) -> None:
    app = {"app_id": "12", "app_installation": "34", "app_key": "pem"}
    forge = Forge.objects.create(
        name="ours", kind="github", api=WEB, web=WEB, credential=app, created_at=START
    )
    project = make.a_project(tracker="github", forge=forge, url=f"{WEB}/acme/shop.git")
    token = tokens.new_token()
    run = make.a_run(project, token_hash=tokens.hash_token(token))
    session = Session(tmp_path / "session", token=token)
    session.address.write_text(live_server.url)
    preflight.write_labctl(world.lab.paths, shutil.which("python3") or "python3", ROOT)
    helper = world.lab.paths.bin / "git-askpass"
    helper.write_text("an older version")
    # The product's own git, which is the first to need the helper, brings it up to date.
    Git(os.environ, world.lab.paths.bin, lambda: 10.0).ask(tmp_path, "version", token="x")
    order = orders.make(world.lab, run, make.an_agent(), Settings.current())
    (tmp_path / "session" / "run" / "token").write_text(order.files["token"])
    kept = tmp_path / "kept"
    credential = git_in(session, order.env, f"[credential]\n\thelper = store --file={kept}\n")

    filled = credential("fill", "protocol=https\nhost=github.example\n\n")
    assert "username=x-access-token\npassword=ghs_12_1" in filled.stdout
    assert credential("approve", filled.stdout).returncode == 0
    assert not kept.exists()

    other = credential("fill", "protocol=https\nhost=evil.example\n\n")
    assert other.returncode != 0
    assert "ghs_" not in other.stdout + other.stderr
    assert world.forges.sold == ["acme/shop"]
