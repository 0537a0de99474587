"""What a webhook's headers say, and whether a delivery was signed: pure, as tables."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from runs.forges import hook_rules
from runs.forges.hook_rules import HookDid, Sent

BODY = b'{"action": "labeled"}'
SIGNED = hmac.new(b"secret", BODY, hashlib.sha256).hexdigest()
WRONG = "0" * 64

GITHUB = {
    "X-GitHub-Event": "issues",
    "X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
    "X-Hub-Signature": "sha1=" + "1" * 40,
    "X-Hub-Signature-256": f"sha256={SIGNED}",
    "Content-Type": "application/json",
}
GITEA = {
    "X-Gitea-Event": "issues",
    "X-Gitea-Event-Type": "issue_label",
    "X-Gitea-Delivery": "f6266f16-1bf3-46a5-9ea4-602e06ead473",
    "X-Gitea-Signature": SIGNED,
    "Content-Type": "application/json; charset=utf-8",
}
FORGEJO = {
    "X-Forgejo-Event": "issues",
    "X-Forgejo-Delivery": "f6266f16-1bf3-46a5-9ea4-602e06ead473",
    "X-Forgejo-Signature": SIGNED,
    "Content-Type": "application/x-www-form-urlencoded",
}
UUID = "f6266f16-1bf3-46a5-9ea4-602e06ead473"


@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        pytest.param(
            GITHUB,
            Sent("issues", GITHUB["X-GitHub-Delivery"], (SIGNED,), "application/json"),
            id="GitHub",
        ),
        pytest.param(GITEA, Sent("issues", UUID, (SIGNED,), "application/json"), id="Gitea"),
        pytest.param(
            FORGEJO,
            Sent("issues", UUID, (SIGNED,), "application/x-www-form-urlencoded"),
            id="Forgejo, as a form",
        ),
        pytest.param(
            {name.upper(): value for name, value in GITEA.items()},
            Sent("issues", UUID, (SIGNED,), "application/json"),
            id="names in capitals",
        ),
        pytest.param(
            {"X-Gitea-Signature": f" {SIGNED.upper()} "},
            Sent(signatures=(SIGNED,)),
            id="hex in capitals, spaces around it",
        ),
        pytest.param(
            {"X-Hub-Signature-256": f"SHA256={SIGNED}"}, Sent(signatures=(SIGNED,)), id="SHA256="
        ),
        pytest.param(
            {"X-Hub-Signature-256": f"sha256={SIGNED}", "X-Gitea-Signature": WRONG},
            Sent(signatures=(SIGNED, WRONG)),
            id="two signatures",
        ),
        pytest.param({}, Sent(), id="nothing"),
        pytest.param({"X-Hub-Signature": f"sha1={'1' * 40}"}, Sent(), id="only the old signature"),
        pytest.param({"X-Gitea-Signature": SIGNED[:-1]}, Sent(), id="a digit short"),
        pytest.param({"X-Gitea-Signature": f"{SIGNED}0"}, Sent(), id="a digit more"),
        pytest.param({"X-Gitea-Signature": "é" * 64}, Sent(), id="no hex"),
        pytest.param({"X-Hub-Signature-256": f"sha512={SIGNED}"}, Sent(), id="another hash"),
        pytest.param({"X-GitHub-Event": "<script>"}, Sent(), id="an odd event"),
        pytest.param({"X-GitHub-Event": "e" * 61}, Sent(), id="an event that is too long"),
        pytest.param({"X-GitHub-Delivery": "a b"}, Sent(), id="an odd id"),
        pytest.param({"X-GitHub-Delivery": "a" * 101}, Sent(), id="an id that is too long"),
        pytest.param({"X-GitHub-Delivery": "é"}, Sent(), id="an id beyond ASCII"),
        pytest.param(
            {"X-GitHub-Delivery": " ", "X-Gitea-Delivery": UUID},
            Sent(delivery=UUID),
            id="the first one is empty",
        ),
    ],
)
def test_headers_are_read_as_each_forge_sends_them(headers: dict[str, str], sent: Sent) -> None:
    assert hook_rules.read(headers) == sent


@pytest.mark.parametrize(
    ("secret", "body", "signatures", "is_signed"),
    [
        pytest.param("secret", BODY, (SIGNED,), True, id="right"),
        pytest.param("secret", BODY, (WRONG, SIGNED), True, id="one of two is right"),
        pytest.param("secret", BODY, (WRONG,), False, id="wrong"),
        pytest.param("other", BODY, (SIGNED,), False, id="another secret"),
        pytest.param("secret", BODY + b" ", (SIGNED,), False, id="a space more"),
        pytest.param("secret", BODY, (), False, id="not signed"),
        pytest.param(
            "",
            BODY,
            (hmac.new(b"", BODY, hashlib.sha256).hexdigest(),),
            False,
            id="an empty secret signs nothing",
        ),
        pytest.param(
            "secret",
            b"",
            (hmac.new(b"secret", b"", hashlib.sha256).hexdigest(),),
            True,
            id="an empty body",
        ),
    ],
)
def test_only_the_right_signature_of_this_very_body_counts(
    secret: str, body: bytes, signatures: tuple[str, ...], is_signed: bool
) -> None:
    assert hook_rules.is_signed(secret, body, signatures) is is_signed


@pytest.mark.parametrize(
    ("event", "did"),
    [
        pytest.param("ping", HookDid.GREETED, id="ping"),
        pytest.param("star", HookDid.NOTHING, id="star"),
        pytest.param("wiki", HookDid.NOTHING, id="wiki"),
        pytest.param("release", HookDid.NOTHING, id="release"),
        *(
            pytest.param(event, HookDid.WOKE, id=event)
            for event in (
                "issues",
                "issue_comment",
                "pull_request",
                "pull_request_sync",
                "push",
                "create",
                "delete",
                "check_suite",
                "status",
                "label",
                "something_new",
            )
        ),
    ],
)
def test_what_may_be_about_issues_or_code_wakes(event: str, did: HookDid) -> None:
    assert hook_rules.what_to_do(event) is did
