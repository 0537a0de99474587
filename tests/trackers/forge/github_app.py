"""A GitHub App's way in: a web token signed with its key buys a token for one hour."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from tests.trackers.forge.asking import Refusal, Told
from tests.trackers.forge.double import Call, stamp, unpadded

if TYPE_CHECKING:
    from tests.trackers.forge.github import App, GitHub


def token(forge: GitHub, call: Call) -> Told:
    """POST /app/installations/{id}/access_tokens."""
    app = _signed(forge, call)
    if call.parts["installation_id"] != app.installation:
        raise Refusal(forge.error(404))
    until = forge.now() + app.lifetime
    bot = forge.person(f"{app.slug}[bot]", is_bot=True).login
    permissions = dict(app.permissions)
    asked: dict[str, str] = call.body.get("permissions") or {}
    for what, level in asked.items():
        if permissions.get(what) not in (level, "write"):
            raise Refusal(
                forge.error(422, "The permissions requested are not granted to this installation.")
            )
        permissions[what] = level
    repos = app.repos
    if wanted := call.body.get("repository_ids"):
        every = {number: one.full_name for number, one in forge.repos.items()}
        known = {n: name for n, name in every.items() if app.repos is None or name in app.repos}
        if not set(wanted) <= known.keys():
            text = "There is at least one repository that does not exist or is not accessible to the parent installation."
            raise Refusal(forge.error(422, text))
        repos = frozenset(known[one] for one in wanted)
    permissions = {"metadata": "read", **asked} if asked else permissions
    text = forge.token(
        bot,
        f"ghs_{forge.next_id():036d}",
        kind="installation",
        permissions=permissions,
        repos=repos,
        expires_at=until,
    )
    return Told(
        201,
        {
            "token": text,
            "expires_at": stamp(until),
            "permissions": permissions,
            "repository_selection": "all" if repos is None else "selected",
        },
    )


def _signed(forge: GitHub, call: Call) -> App:
    """The App whose key signed the web token; its times may not be off by more than GitHub lets."""
    head, _, rest = call.asked.token.partition(".")
    body, _, signature = rest.partition(".")
    try:
        algorithm = json.loads(unpadded(head))["alg"]
        claims: dict[str, Any] = json.loads(unpadded(body))
        app = forge.apps[str(claims["iss"])]
        key = load_pem_public_key(app.key.encode())
        assert isinstance(key, RSAPublicKey)
        key.verify(unpadded(signature), f"{head}.{body}".encode(), PKCS1v15(), SHA256())
    except (ValueError, KeyError, InvalidSignature) as exc:
        message = "A JSON web token could not be decoded"
        raise Refusal(forge.error(401, message)) from exc
    now = forge.now().timestamp()
    if algorithm != "RS256":
        raise Refusal(forge.error(401, "A JSON web token could not be decoded"))
    if claims["exp"] <= now:
        raise Refusal(forge.error(401, "'Expiration time' claim ('exp') must be in the future"))
    if claims["exp"] > now + 600:
        raise Refusal(forge.error(401, "'Expiration time' claim ('exp') is too far in the future"))
    if claims["iat"] > now:
        raise Refusal(
            forge.error(401, "'Issued at' claim ('iat') must be an Integer, and in the past")
        )
    return app
