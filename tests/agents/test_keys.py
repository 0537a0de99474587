"""Which values of an agent's environment are secrets."""

from __future__ import annotations

import json

import pytest

from runs.secrets import keys

RANDOM = "Qw3rTyabcdefGHIJKL0123456789"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("name", "value", "secrets"),
    [
        (
            "ANTHROPIC_API_KEY",
            "sk-ant-api03-abc_DEF-0123456789",
            ["sk-ant-api03-abc_DEF-0123456789"],
        ),
        ("ANTHROPIC_AUTH_TOKEN", "0123abcd", ["0123abcd"]),
        ("apiKey", "hunter2hunter2", ["hunter2hunter2"]),
        ("OPENAIKEY", "hunter2hunter2", ["hunter2hunter2"]),
        ("DB_PASSWORD", "c0rrect horse!", ["c0rrect horse!"]),
        (
            "MY_TOKEN",
            "4f2d6c1e-aaaa-bbbb-cccc-0123456789ab",
            ["4f2d6c1e-aaaa-bbbb-cccc-0123456789ab"],
        ),
        ("X", "sk-ant-api03-abcdefghijklmnop", ["sk-ant-api03-abcdefghijklmnop"]),
        (
            "X",
            "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
            ["ghp_abcdefghijklmnopqrstuvwxyz0123456789"],
        ),
        ("X", RANDOM, [RANDOM]),
        ("ANTHROPIC_CUSTOM_HEADERS", "X-Api-Key: hunter2hunter2\nX-Team: shop", ["hunter2hunter2"]),
        ("ANTHROPIC_CUSTOM_HEADERS", "Authorization: Bearer hunter2hunter2", ["hunter2hunter2"]),
        ("AUTHORIZATION", "Bearer hunter2hunter2", ["hunter2hunter2"]),
        ("HTTPS_PROXY", "http://me:s3cret-word@proxy:3128", ["s3cret-word"]),
        ("DATABASE_URL", "postgres://me:a%2Fbcdefgh@db/x", ["a%2Fbcdefgh", "a/bcdefgh"]),
        ("GIT_URL", f"https://{RANDOM}@host/x.git", [RANDOM]),
        ("PING", f"https://hc.example/ping/{RANDOM}", [RANDOM]),
        ("PING", "https://hc.example/x?token=hunter2hunter2", ["hunter2hunter2"]),
        ("GOOGLE", json.dumps({"type": "service_account", "private_key": PEM}), [PEM]),
        ("DEPLOY", PEM, [PEM]),
        # None of these is one.
        ("API_KEY", "true", []),
        ("API_KEY", "1234567", []),
        ("MAX_TOKENS", "64000", []),
        ("MAX_TOKENS", "12345678901", []),
        ("AUTH_METHOD", "kerberos", []),
        ("AUTH_KIND", "service-account", []),
        ("ANTHROPIC_AUTH_TOKEN_FILE", "/run/secrets/anthropic", []),
        ("SSH_AUTH_SOCK", "/tmp/ssh-XXXXabc123/agent.77", []),
        ("TOKEN_URL", "https://login.example/oauth/token", []),
        ("KEY_SERVER", "keys.example.org:8080", []),
        ("PUBLIC_KEY", "ssh-ed25519-AAAAC3NzaC1lZDI1NTE5", []),
        ("ANTHROPIC_BASE_URL", "https://me@gateway.example:8080/v1", []),
        ("ANTHROPIC_MODEL", "us.anthropic.claude-opus-4-20250514-v1:0", []),
        ("COMMIT", "8131de2c4b825dc642cb6eb9a060e54bf8d69288", []),
        ("PATH", "/usr/local/bin:/usr/bin:/home/Anna/Go1234567890abcdefg/bin", []),
        ("LS_COLORS", "rs=0:di=01;34:ln=01;36:mh=00:pi=40;33", []),
        ("PASSWORD", "", []),
    ],
)
def test_a_secret_is_known_by_name_and_form(name: str, value: str, secrets: list[str]) -> None:
    assert sorted(keys.of(name, value)) == sorted(secrets)


def test_an_environment_gives_all_its_secrets() -> None:
    env = {
        "A_KEY": "hunter2hunter2",
        "IS_SANDBOX": "1",
        "N": 5,
        "deep": {"token": "hunter3hunter3"},
    }
    assert list(keys.secrets_of(env)) == ["hunter2hunter2", "hunter3hunter3"]
