"""The doubles' other ways: GitHub Apps, Enterprise, older servers, repositories with real git."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256

from tests.repositories import a_checkout, git
from tests.trackers.forge import Double, Gitea, GitHub, forgejo
from tests.trackers.forge.repository import back
from tests.trackers.test_forge_double import GITHUB_HEADERS, STYLES, Asker

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PUBLIC = KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)
GRANTED = {"issues": "write", "pull_requests": "write", "metadata": "read"}


def web_token(key: rsa.RSAPrivateKey = KEY, **claims: object) -> str:
    parts = [{"alg": "RS256", "typ": "JWT"}, {"iss": "12", **claims}]
    told = ".".join(_packed(json.dumps(part).encode()) for part in parts)
    return f"{told}.{_packed(key.sign(told.encode(), PKCS1v15(), SHA256()))}"


def _packed(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def ask_for_token(forge: GitHub, told: str) -> tuple[int, dict[str, str]]:
    asker = Asker(forge, "")
    answer = asker.client.post(
        "/app/installations/34/access_tokens",
        headers={**GITHUB_HEADERS, "authorization": f"Bearer {told}"},
        json={},
    )
    return answer.status_code, answer.json()


def test_an_app_buys_a_token_for_an_hour_that_reaches_its_repositories_only(github: GitHub) -> None:
    github.app("12", "34", PUBLIC.decode(), GRANTED, frozenset({"acme/shop"}))
    github.repo("acme/shop").issue("one")
    github.repo("acme/other").issue("two")
    now = int(github.now().timestamp())

    status, told = ask_for_token(github, web_token(iat=now - 60, exp=now + 540))

    assert status == 201
    asker = Asker(github, "")
    asker.headers = {**GITHUB_HEADERS, "authorization": f"Bearer {told['token']}"}
    assert asker.get("/repos/acme/shop/issues").status_code == 200
    assert asker.get("/repos/acme/other/issues").status_code == 404
    assert asker.get("/user").status_code == 403
    assert asker.get(f"/repos/acme/shop/commits/{'a' * 40}/check-runs").status_code == 403
    made = asker.send("POST", "/repos/acme/shop/issues/1/comments", {"body": "hi"})
    assert (made.json()["user"]["login"], made.json()["user"]["type"]) == ("labsite[bot]", "Bot")
    github.clock.advance(timedelta(hours=1).total_seconds() + 1)
    assert asker.get("/repos/acme/shop/issues").status_code == 401


@pytest.mark.parametrize(
    ("iat", "exp", "key"),
    [
        pytest.param(-60, 700, KEY, id="too long"),
        pytest.param(-700, -10, KEY, id="over"),
        pytest.param(60, 300, KEY, id="from the future"),
        pytest.param(
            -60, 300, rsa.generate_private_key(public_exponent=65537, key_size=2048), id="not ours"
        ),
    ],
)
def test_a_web_token_that_is_not_good_buys_nothing(
    github: GitHub, iat: int, exp: int, key: rsa.RSAPrivateKey
) -> None:
    github.app("12", "34", PUBLIC.decode(), GRANTED)
    now = int(github.now().timestamp())

    assert ask_for_token(github, web_token(key, iat=now + iat, exp=now + exp))[0] == 401
    assert ask_for_token(github, "nonsense")[0] == 401


def test_an_enterprise_server_has_its_api_elsewhere() -> None:
    forge = GitHub(enterprise=True)
    forge.repo("acme/shop", roles={"bot": "read"}).issue("one")

    assert forge.api.endswith("/api/v3")
    assert len(Asker(forge).get("/repos/acme/shop/issues").json()) == 1
    forge.check()


def test_forgejo_says_what_it_is_and_which_gitea_it_is_like(forgejo: Gitea) -> None:
    assert Asker(forgejo).get("/version").json() == {"version": "11.0.1+gitea-1.23.0"}


@pytest.mark.parametrize(
    ("version", "labels", "dependencies", "scoped"),
    [("1.19.4", 422, 404, 200), ("1.20.6", 422, 200, 403), ("1.23.0", 200, 200, 403)],
)
def test_older_servers_of_gitea_know_less(
    version: str, labels: int, dependencies: int, scoped: int
) -> None:
    forge = Gitea(version=version)
    repo = forge.repo("acme/shop", roles={"bot": "write"})
    repo.issue("one", labels=["bug"])
    asker, narrow = Asker(forge), Asker(forge, permissions={"user": "read"})
    issue = "/repos/acme/shop/issues/1"

    assert asker.send("POST", f"{issue}/labels", {"labels": ["bug"]}).status_code == labels
    assert asker.send("POST", f"{issue}/labels", {"labels": [repo.labels[0].id]}).status_code == 200
    assert asker.get(f"{issue}/dependencies").status_code == dependencies
    assert narrow.get(issue).status_code == scoped
    forge.check()


def test_a_server_behind_another_name_links_to_that_name(gitea: Gitea) -> None:
    gitea.public_url = "https://inside.test:3000"
    repo = gitea.repo("acme/shop", roles={"bot": "read"})
    for number in range(60):
        repo.issue(f"issue {number}")

    first = Asker(gitea).get("/repos/acme/shop/issues", limit=50)

    assert first.links["next"]["url"].startswith("https://inside.test:3000/api/v1/repos/")


@pytest.mark.real
@pytest.mark.parametrize("style", STYLES)
def test_merges_are_made_in_the_repository_behind_it(style: str, tmp_path: Path) -> None:
    forge: Double = STYLES[style]()
    repo = forge.repo("acme/shop", roles={"bot": "write"})
    back(repo, origin := tmp_path / "origin.git")
    source = a_checkout(tmp_path / "shop", origin)
    git(source, "checkout", "-q", "-b", "afk/7")
    (source / "more.txt").write_text("more\n")
    git(source, "add", "-A")
    git(source, "commit", "-q", "-m", "feat: more")
    git(source, "push", "-q", "origin", "afk/7")
    asker = Asker(forge)
    new = {"title": "More", "head": "afk/7", "base": "main", "body": ""}
    assert asker.send("POST", "/repos/acme/shop/pulls", {**new, "head": "gone"}).status_code >= 400
    number = asker.send("POST", "/repos/acme/shop/pulls", new).json()["number"]
    tip = git(source, "rev-parse", "afk/7")
    assert asker.get(f"/repos/acme/shop/pulls/{number}").json()["head"]["sha"] == tip

    method, body = ("PUT", {"sha": tip}) if style == "github" else ("POST", {"Do": "merge"})
    done = asker.send(method, f"/repos/acme/shop/pulls/{number}/merge", body)

    assert done.status_code == 200
    told = asker.get(f"/repos/acme/shop/pulls/{number}").json()
    assert told["merge_commit_sha"] == git(origin, "rev-parse", "refs/heads/main")
    assert git(origin, "show", "main:more.txt") == "more"
    forge.check()


def test_forgejo_is_made_by_its_own_word() -> None:
    assert forgejo().is_forgejo
    assert not Gitea().is_forgejo
