"""Whether git can sign a commit without a person: real git, with programs in place of gpg."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runs.machine import repos as machine
from runs.machine.git import Git
from runs.machine.worktrees import GitWorktrees
from tests.patience import PATIENCE

pytestmark = pytest.mark.real

SIGNS = """#!/bin/sh
echo "[GNUPG:] SIG_CREATED D 1 8 00 1 ABC" >&2
cat >/dev/null
printf -- "-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n"
"""
FAILS = "#!/bin/sh\necho 'gpg: signing failed: No pinentry' >&2\nexit 2\n"
HANGS = "#!/bin/sh\nexec sleep 600\n"


def asked(folder: Path, program: str, settings: str) -> str:
    """What is found where these are the settings of the user, `program` in place of gpg."""
    gpg = folder / "gpg"
    gpg.write_text(program)
    gpg.chmod(0o755)
    (folder / ".gitconfig").write_text(f"{settings}[gpg]\n\tprogram = {gpg}\n")
    named = {f"GIT_COMMITTER_{what}": "a@b" for what in ("NAME", "EMAIL")}
    named |= {f"GIT_AUTHOR_{what}": "a@b" for what in ("NAME", "EMAIL")}
    named |= {"GIT_CONFIG_GLOBAL": str(folder / ".gitconfig"), "GIT_CONFIG_SYSTEM": os.devnull}
    repos = GitWorktrees(Git(os.environ, folder, lambda: PATIENCE))
    return repos.why_unsigned(named)


@pytest.mark.parametrize(
    ("program", "settings", "why"),
    [
        pytest.param(FAILS, "", "", id="signs nothing"),
        pytest.param(FAILS, "[commit]\n\tgpgsign = false\n", "", id="off"),
        pytest.param(SIGNS, "[commit]\n\tgpgsign = true\n", "", id="works"),
        pytest.param(FAILS, "[commit]\n\tgpgsign = yes\n", "failed to sign", id="fails"),
        pytest.param(FAILS, "[tag]\n\tgpgSign = true\n", "failed to sign", id="tags"),
        pytest.param(HANGS, "[commit]\n\tgpgsign = true\n", "not done after", id="hangs"),
    ],
)
def test_whether_git_can_sign_without_a_person(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    settings: str,
    why: str,
) -> None:
    monkeypatch.setattr(machine, "SIGNING", 1.0)
    found = asked(tmp_path, program, settings)
    assert (why in found) if why else found == ""
    assert "\n" not in found
