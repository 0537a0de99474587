"""A device with passkeys, in software: makes and shows them as a browser would hand them on."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Device:
    """One key. What is wrong about its answers can be set from outside."""

    def __init__(self, origin: str = "http://localhost") -> None:
        self.origin = origin
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.id = os.urandom(32)
        self.handle = ""
        self.count = 0
        self.counts = True
        self.flags = PRESENT | VERIFIED

    def make(self, options: dict[str, Any]) -> str:
        """The answer to an invitation."""
        self.handle = options["user"]["id"]
        numbers = self.key.public_key().public_numbers()
        key = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)}
        attested = bytes(16) + struct.pack(">H", len(self.id)) + self.id + cbor2.dumps(key)
        data = self._data(options["rp"]["id"], self.flags | ATTESTED) + attested
        statement = {"fmt": "none", "attStmt": {}, "authData": data}
        return self._answer(
            clientDataJSON=self._client("webauthn.create", options),
            attestationObject=b64(cbor2.dumps(statement)),
            transports=["internal"],
        )

    def show(self, options: dict[str, Any], *, handle: str | None = None) -> str:
        """The answer to a question."""
        self.count += self.counts
        client = self._client("webauthn.get", options)
        data = self._data(options["rpId"], self.flags)
        signed = data + hashlib.sha256(unb64(client)).digest()
        return self._answer(
            clientDataJSON=client,
            authenticatorData=b64(data),
            signature=b64(self.key.sign(signed, ec.ECDSA(hashes.SHA256()))),
            userHandle=self.handle if handle is None else handle,
        )

    def _client(self, kind: str, options: dict[str, Any]) -> str:
        said = {"type": kind, "challenge": options["challenge"], "origin": self.origin}
        return b64(json.dumps(said).encode())

    def _data(self, site: str, flags: int) -> bytes:
        return hashlib.sha256(site.encode()).digest() + struct.pack(">BI", flags, self.count)

    def _answer(self, **response: Any) -> str:
        known = {"id": b64(self.id), "rawId": b64(self.id), "type": "public-key"}
        return json.dumps({**known, "clientExtensionResults": {}, "response": response})
