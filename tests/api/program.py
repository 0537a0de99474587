"""A program with a personal token, and what it expects of every refusal."""

from __future__ import annotations

import json
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from runs.models import ApiToken
from runs.people import api_tokens
from runs.wiring import lab

V1 = "/api/v1"


class Program:
    """Asks with a token and nothing else; CSRF is checked as in a browser's request."""

    def __init__(self, token: str = "") -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.client = Client(headers=headers, enforce_csrf_checks=True)

    @classmethod
    def of(cls, user: User, scope: str = "act") -> Program:
        return cls(
            a_token(user, scope, "script" if scope == "act" else f"script that may {scope}")[1]
        )

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(V1 + path, query)

    def send(self, method: str, path: str, content: Any = None) -> Any:
        data = b"" if content is None else json.dumps(content)
        return self.client.generic(method, V1 + path, data, content_type="application/json")

    def post(self, path: str, content: Any = None) -> Any:
        return self.send("POST", path, content)


def a_token(user: User, scope: str = "act", name: str = "script") -> tuple[ApiToken, str]:
    return api_tokens.make(lab(), user, name, ApiToken.Scope(scope))


def denied(answer: Any, status: int, code: str) -> dict[str, Any]:
    """A refusal in the one shape: JSON, a code, a sentence, fields."""
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/json"
    assert answer["Cache-Control"] == "no-store"
    said = answer.json()
    assert set(said) == {"code", "text", "fields"}
    assert said["code"] == code
    assert said["text"].endswith((".", ".git", "' not found")), said["text"]
    assert "Traceback" not in said["text"]
    return dict(said)
