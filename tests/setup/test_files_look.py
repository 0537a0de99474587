"""The settings page Set-up with files, looked at: accessible, fitting, light and dark."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User

from runs.core.history_ports import Commit
from runs.models import Project, ProjectFile
from runs.setup import file_acts
from tests.fake_history import AT, Made
from tests.fakes import World
from tests.web import board_rows as rows
from tests.web.browsing import OpenPage
from tests.web.looking import looks

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "services/billing/config/environments/local-development.settings.json"


def test_files_are_pasted_refused_and_removed(
    open_page: OpenPage, operator: User, world: World, tmp_path: Path
) -> None:
    project: Project = rows.a_tracked_project("billing")
    Project.objects.update(source=str(tmp_path))
    (tmp_path / ".git").mkdir()
    commit = world.repos.upstream(tmp_path, "main")
    files = {".worktreeinclude": f".env\n{LONG}\n"}
    world.repos.made[commit] = Made(Commit(commit, (), "", AT, ""), files)
    file_acts.store(world.lab, project, LONG, "{}", by="anna")
    page = open_page(f"/projects/{project.pk}/settings/setup/", operator)
    wrong = looks(page, "setup-files")
    page.fill("#id_file-path", ".git/config")
    page.fill("#id_file-content", "API_KEY=s3cret-of-anna")
    page.click("text=Store file")
    page.wait_for_selector("#id_file-path_error")
    assert page.input_value("#id_file-content") == ""
    wrong += looks(page, "setup-files-refused")
    assert wrong == []
    page.fill("#id_file-path", ".env")
    page.fill("#id_file-content", "API_KEY=s3cret-of-anna")
    page.click("text=Store file")
    page.wait_for_selector("text=.env stored.")
    assert "s3cret" not in page.content()
    remove = page.get_by_role("button", name="Remove .env")
    remove.click()
    page.get_by_text("Press again").first.click()
    page.wait_for_selector("text=Removed.")
    assert [row.path for row in ProjectFile.objects.all()] == [LONG]
