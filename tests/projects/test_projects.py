"""Projects from paths and URLs: cloned beside, never touched, nothing half made. On real git."""

from __future__ import annotations

import dataclasses
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from runs.core.states import ProjectState
from runs.models import Notice, Project
from runs.projects import acts as projects
from runs.projects.acts import ProjectRefused
from tests.real import a_checkout, git
from tests.world.stories import look, start

pytestmark = pytest.mark.django_db(transaction=True)


def _add(real, source: Path | str, name: str = "demo", token: str = "") -> Project:  # type: ignore[no-untyped-def]
    project = projects.add(real.lab, name=name, source=str(source), token=token, by="anna")
    real.work()
    project.refresh_from_db()
    return project


def _everything(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_path_with_an_origin_uses_that_origin_and_leaves_the_checkout_alone(real, tmp_path):
    checkout = a_checkout(tmp_path / "shop", tmp_path / "origin.git")
    (checkout / "unsaved.txt").write_text("unsaved")
    before = _everything(checkout)
    project = _add(real, checkout)
    assert (project.state, project.url, project.is_hosted) == (
        "ready",
        str(tmp_path / "origin.git"),
        False,
    )
    assert project.default_branch == "main"
    assert _everything(checkout) == before


@pytest.mark.row("LAB-115", level="real")
def test_a_path_without_an_origin_gets_one_of_the_products_own(real, tmp_path):
    checkout = a_checkout(tmp_path / "shop")
    (checkout / "unsaved.txt").write_text("unsaved")
    before = _everything(checkout)
    project = _add(real, checkout)
    project.tracker, project.tracker_root = "memory", real.memory.add_root("demo")
    project.save()
    assert (project.is_hosted, project.url) == (True, str(project.origin(real.paths)))
    from runs.models import AgentProfile
    from tests.real import IDLE

    project.agent = AgentProfile.objects.create(name="idle", argv=IDLE)
    project.save()
    run = start(real, project)
    tree = Path(run.worktree)
    (tree / "work.txt").write_text("work")
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "feat: work")
    git(tree, "push", "-q", "origin", "afk/7")
    assert git(Path(project.url), "rev-parse", "refs/heads/afk/7") == git(tree, "rev-parse", "HEAD")
    assert _everything(checkout) == before


def test_new_commits_of_a_path_without_origin_are_the_base_of_the_next_run(real, tmp_path):
    checkout = a_checkout(tmp_path / "shop")
    project = _add(real, checkout)
    (checkout / "newer.txt").write_text("newer")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "feat: newer")
    assert real.repos.refill(project.origin(real.paths), checkout) == ""
    real.repos.fetch(project.repo(real.paths))
    real.repos.add_worktree(
        project.repo(real.paths),
        tmp_path / "tree",
        "afk/1",
        real.repos.upstream(project.repo(real.paths), "main"),
    )
    assert (tmp_path / "tree" / "newer.txt").exists()


def test_a_rewritten_path_is_told_and_not_forced(real, tmp_path):
    checkout = a_checkout(tmp_path / "shop")
    project = _add(real, checkout)
    before = git(project.origin(real.paths), "rev-parse", "refs/heads/main")
    git(checkout, "commit", "-q", "--amend", "-m", "chore: rewritten")
    assert "different ways" in real.repos.refill(project.origin(real.paths), checkout)
    assert git(project.origin(real.paths), "rev-parse", "refs/heads/main") == before


@pytest.mark.parametrize(
    ("source", "name", "field", "says"),
    [
        pytest.param("{tmp}/nowhere", "demo", "source", "no folder", id="no such folder"),
        pytest.param(
            "{tmp}/plain", "demo", "source", "not a git repository", id="not a repository"
        ),
        pytest.param("{tmp}/empty", "demo", "source", "empty", id="no commit yet"),
        pytest.param("file://{tmp}/nowhere.git", "demo", "source", "cannot be read", id="bad URL"),
        pytest.param("~nosuchuser/x", "demo", "source", "cannot be read", id="no such user"),
        pytest.param("/" + "a" * 300, "demo", "source", "cannot be read", id="too long a path"),
        pytest.param(
            "ssh://bob:s3cret@forge.example/x", "demo", "source", "token field", id="ssh password"
        ),
        pytest.param(
            "https://bob:s3cret@forge.example/x", "demo", "source", "token field", id="password"
        ),
        pytest.param(
            "ext::sh -c evil", "demo", "source", "neither", id="a transport that runs commands"
        ),
        pytest.param("{tmp}/shop", "Taken", "name", "already", id="name clash"),
        pytest.param("{tmp}/shop", "ta.ken!", "name", "already", id="same in session names"),
        pytest.param("{tmp}/shop", "~~~", "name", "letters", id="no letter"),
    ],
)
def test_what_cannot_be_added_is_an_answer_at_the_field_and_leaves_nothing(
    real, tmp_path, source, name, field, says
):
    a_checkout(tmp_path / "shop")
    (tmp_path / "plain").mkdir()
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "-q")
    _add(real, tmp_path / "shop", "ta_ken_")
    _add(real, tmp_path / "shop", "taken")
    rows, notices = Project.objects.count(), Notice.objects.count()
    with pytest.raises(ProjectRefused) as refused:
        _add(real, source.format(tmp=tmp_path), name)
    assert refused.value.field == field
    assert says in refused.value.text
    assert (Project.objects.count(), Notice.objects.count()) == (rows, notices)
    assert len(list(real.paths.repos.glob("*"))) == 2


def test_a_clone_that_fails_says_why_leaves_no_folder_and_can_be_tried_again(real, tmp_path):
    checkout = a_checkout(tmp_path / "shop", tmp_path / "origin.git")
    project = projects.add(real.lab, name="demo", source=str(checkout), token="", by="anna")
    (tmp_path / "origin.git").rename(tmp_path / "moved.git")
    real.work()
    project.refresh_from_db()
    assert project.state == ProjectState.FAILED
    assert "origin.git" in project.error
    assert not project.repo(real.paths).exists()
    (tmp_path / "moved.git").rename(tmp_path / "origin.git")
    projects.retry(real.lab, project, "anna")
    real.work()
    project.refresh_from_db()
    assert (project.state, project.error) == ("ready", "")


def test_a_clone_whose_worker_died_is_taken_up_again(real, tmp_path):
    project = projects.add(
        real.lab, name="demo", source=str(a_checkout(tmp_path / "shop")), token="", by="anna"
    )
    real.queue.clones.clear()
    real.offset = timedelta(seconds=10)
    look(real)
    real.work()
    project.refresh_from_db()
    assert project.state == ProjectState.READY
    Project.objects.filter(pk=project.pk).update(
        state=ProjectState.CLONING, clone_deadline=real.lab.now()
    )
    shutil.rmtree(project.repo(real.paths))
    real.offset = timedelta(seconds=20)
    look(real)
    real.work()
    project.refresh_from_db()
    assert project.state == ProjectState.READY


def test_progress_of_a_clone_is_kept_for_the_page(real, tmp_path):
    checkout = a_checkout(tmp_path / "shop", tmp_path / "origin.git")
    project = _add(real, f"file://{tmp_path}/origin.git")
    assert checkout.exists()
    assert "%" in project.clone_progress or "done" in project.clone_progress


@pytest.mark.row("X-05", level="real")
def test_a_token_is_encrypted_at_rest_and_hidden_in_repr(real, tmp_path):
    from django.db import connection

    project = _add(real, a_checkout(tmp_path / "shop"), token="s3cret-token")
    with connection.cursor() as cursor:
        cursor.execute("select token from runs_project")
        stored = cursor.fetchone()[0]
    assert stored
    assert "s3cret" not in stored
    project = Project.objects.get()
    assert project.token == "s3cret-token"
    assert "s3cret" not in repr(project.token)
    assert "s3cret" not in repr(vars(project))


@pytest.mark.row("LAB-134", level="contract")
def test_a_secret_from_another_key_reads_as_empty_instead_of_failing(world, settings):
    from tests import make

    project = make.a_project(token="s3cret")
    settings.SECRET_KEY = "another key"
    assert Project.objects.get(pk=project.pk).token == ""


def _branches(repo: Path) -> str:
    return git(repo, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")


def test_adding_a_project_again_after_the_database_was_lost_keeps_the_agents_branches(
    real, tmp_path
):
    checkout = a_checkout(tmp_path / "shop")
    project = _add(real, checkout)
    repo, origin = project.repo(real.paths), project.origin(real.paths)
    tree = str(tmp_path / "tree")
    git(repo, "worktree", "add", "-q", "-b", "afk/7", tree, "refs/remotes/origin/main")
    git(tmp_path / "tree", "commit", "-q", "--allow-empty", "-m", "feat: work")
    git(tmp_path / "tree", "push", "-q", "origin", "afk/7")
    held = (_branches(repo), _branches(origin))
    Project.objects.all().delete()
    again = _add(real, checkout)
    assert again.state == ProjectState.READY
    kept_repo = list(real.paths.repos.glob("demo.git.kept-*"))
    kept_origin = list(real.paths.origins.glob("demo.git.kept-*"))
    assert [_branches(*kept_repo), _branches(*kept_origin)] == [*held]
    assert "afk/7" in held[0] and "afk/7" in held[1]


def test_a_failed_clone_removes_nothing_that_an_earlier_project_left(real, tmp_path):
    checkout = a_checkout(tmp_path / "shop")
    project = _add(real, checkout)
    origin = project.origin(real.paths)
    held = _branches(origin)
    Project.objects.all().delete()
    projects.add(real.lab, name="demo", source=str(checkout), token="", by="anna")
    shutil.rmtree(checkout)
    real.work()
    again = Project.objects.get()
    assert again.state == ProjectState.FAILED
    assert not origin.exists()
    assert again.repo(real.paths).exists()
    assert [_branches(kept) for kept in real.paths.origins.glob("demo.git.kept-*")] == [held]


@pytest.mark.row("X-05", level="real")
@pytest.mark.parametrize(
    ("typed", "kept"), [("", "bob:s3c/ret"), ("typed-token", "typed-token")], ids=["none", "typed"]
)
def test_a_password_in_a_checkouts_url_becomes_the_encrypted_token(real, tmp_path, typed, kept):
    from django.db import connection

    checkout = a_checkout(tmp_path / "shop", tmp_path / "origin.git")
    config = tmp_path / "gitconfig"
    config.write_text(f'[url "{tmp_path}/origin.git"]\n\tinsteadOf = https://forge.example/x.git\n')
    real.repos._git._env["GIT_CONFIG_GLOBAL"] = str(config)
    git(checkout, "remote", "set-url", "origin", "https://bob:s3c%2Fret@forge.example/x.git")
    project = _add(real, checkout, token=typed)
    assert (project.state, project.url) == ("ready", "https://forge.example/x.git")
    assert project.token == kept
    with connection.cursor() as cursor:
        cursor.execute("select * from runs_project")
        stored = str(cursor.fetchall())
    # What is encrypted is random letters, which hold a short word by chance.
    assert not {word for word in ("s3c/ret", "s3c%2Fret") if word in stored}
    assert "s3c" not in (project.repo(real.paths) / "config").read_text()


def test_a_checkout_whose_origin_is_a_relative_path_is_followed_from_the_checkout(real, tmp_path):
    checkout = a_checkout(tmp_path / "shop", tmp_path / "origin.git")
    git(checkout, "remote", "set-url", "origin", "../origin.git")
    (checkout / "deep").mkdir()
    project = _add(real, checkout / "deep")
    assert (project.state, project.url) == ("ready", str((tmp_path / "origin.git").resolve()))


class _Quiet:
    """Repos whose fetch first does something else: what a long and silent fetch gives time for."""

    def __init__(self, repos, meanwhile) -> None:  # type: ignore[no-untyped-def]
        self._repos = repos
        self._meanwhile = meanwhile

    def __getattr__(self, name: str):  # type: ignore[no-untyped-def]
        return getattr(self._repos, name)

    def fetch(self, repo, *args, **kwargs):  # type: ignore[no-untyped-def]
        self._meanwhile(repo, kwargs["progress"])
        return self._repos.fetch(repo, *args, **kwargs)


def test_a_quiet_clone_is_never_taken_over_while_it_goes_on(real, tmp_path):
    checkout = a_checkout(tmp_path / "shop", tmp_path / "origin.git")
    project = projects.add(real.lab, name="demo", source=str(checkout), token="", by="anna")
    real.queue.clones.clear()

    def meanwhile(repo, progress):  # type: ignore[no-untyped-def]
        (repo / "half").touch()
        real.offset = timedelta(hours=1)
        look(real)
        assert real.queue.clones == [project.pk]
        real.work()
        assert (repo / "half").exists()

    lab = dataclasses.replace(real.lab, repos=_Quiet(real.repos, meanwhile))
    projects.carry_out_clone(lab, project.pk)
    project.refresh_from_db()
    assert (project.state, project.error) == ("ready", "")


def test_a_clone_that_says_nothing_new_still_counts_as_going_on(real, tmp_path):
    checkout = a_checkout(tmp_path / "shop", tmp_path / "origin.git")
    project = projects.add(real.lab, name="demo", source=str(checkout), token="", by="anna")
    real.queue.clones.clear()

    def meanwhile(repo, progress):  # type: ignore[no-untyped-def]
        for minute in (1, 2, 3):
            real.offset = timedelta(minutes=minute)
            progress("")
            look(real)
        assert real.queue.clones == []

    lab = dataclasses.replace(real.lab, repos=_Quiet(real.repos, meanwhile))
    projects.carry_out_clone(lab, project.pk)
    project.refresh_from_db()
    assert project.state == "ready"
