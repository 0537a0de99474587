"""The shipped Claude Code in what is no run: a fixer of a validation, a session that a person drives."""

from __future__ import annotations

import json

from runs.manual import acts as manual
from runs.validation.rules import DONE
from tests.agents.script import Say, Shell
from tests.validation.test_validations import Desk


def test_it_mends_what_a_validation_found(house):
    mend = f"echo mended > hello.txt && git commit -qam 'fix: it' -m '{DONE}'"
    house.model.script(Shell(mend), Say("It is mended."))
    desk = Desk(house.real, "grep -q mended hello.txt")
    desk.project.agent = house.profile()
    desk.project.save()
    desk.accept("7", {"a.txt": "x"})
    row = desk.mended(desk.validate())
    assert (row.state, row.attempt) == ("passed", 1), row.reason


def test_it_opens_for_a_person_without_a_dialog(house):
    project = house.project(house.profile())
    row = manual.start(house.real.lab, project, "", "anna")
    manual.carry_out(house.real.lab, row.pk)
    row.refresh_from_db()
    assert row.state == "live", row.warning

    def shown() -> str:
        return house.real.sessions.screens([row.session]).get(row.session, "")

    house.real.until(lambda: "bypass" in shown() and "/effort" in shown())
    assert "❯ 1." not in shown()
    order = json.loads((house.real.paths.run_folders / f"person-{row.pk}" / "order.json").read_text())  # fmt: skip
    assert not [word for word in order["argv"] if "{" in word]
