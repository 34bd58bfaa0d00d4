"""Sign a release file with the owner's Ed25519 key, and verify it with the public half (the extra ``signing``)."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from hedgerow._extras import extra
from hedgerow.errors import InvalidInput, InvalidRelease

PrivateKey: TypeAlias = "str | Path | bytes | Any"
"""A path to a PEM file, its bytes, or an ``Ed25519PrivateKey``."""
PublicKey: TypeAlias = "str | Path | bytes | Any"
"""A path to a PEM file, its bytes, the 64 hexadecimal digits of the key, or an ``Ed25519PublicKey``."""
ALGORITHM = "Ed25519"


def sign(manifest: bytes, key: PrivateKey) -> dict[str, str]:
    """Return the signature of a manifest, with the public key that verifies it."""
    private = private_key(key)
    signature = base64.b64encode(private.sign(manifest)).decode("ascii")
    return {"algorithm": ALGORITHM, "key": fingerprint(private.public_key()), "signature": signature}


def verify(manifest: bytes, signature: Any, key: PublicKey) -> str:
    """Return the signer's key in hexadecimal digits; refuse a signature that is not by ``key``."""
    public = public_key(key)
    if not isinstance(signature, dict) or set(signature) != {"algorithm", "key", "signature"}:
        _refuse()
    if signature["algorithm"] != ALGORITHM or not isinstance(signature["signature"], str):
        _refuse()
    try:
        sign_bytes = base64.b64decode(signature["signature"].encode("ascii"), validate=True)
    except (ValueError, binascii.Error):
        _refuse()
    try:
        public.verify(sign_bytes, manifest)
    except extra("cryptography.exceptions").InvalidSignature:
        _refuse()
    return fingerprint(public)


def fingerprint(public: Any) -> str:
    """Return a public key as 64 hexadecimal digits, to be compared by eye or kept in a list."""
    raw: bytes = public.public_bytes_raw()
    return raw.hex()


def private_key(key: PrivateKey) -> Any:
    """Load the owner's private key."""
    ed25519 = extra("cryptography.hazmat.primitives.asymmetric.ed25519")
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key
    serialization = extra("cryptography.hazmat.primitives.serialization")
    try:
        found = serialization.load_pem_private_key(_pem(key), password=None)
    except (ValueError, TypeError):
        found = None
    if not isinstance(found, ed25519.Ed25519PrivateKey):
        raise InvalidInput(
            "key must be an Ed25519 private key in PEM form, without a password. Found another key. Make one: "
            "openssl genpkey -algorithm ed25519 -out owner.pem."
        )
    return found


def public_key(key: PublicKey) -> Any:
    """Load the owner's public key, or that of their private key."""
    ed25519 = extra("cryptography.hazmat.primitives.asymmetric.ed25519")
    if isinstance(key, ed25519.Ed25519PublicKey):
        return key
    if isinstance(key, str) and len(key) == 64 and all(digit in "0123456789abcdef" for digit in key):
        return ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
    serialization = extra("cryptography.hazmat.primitives.serialization")
    try:
        found = serialization.load_pem_public_key(_pem(key))
    except (ValueError, TypeError):
        found = None
    if not isinstance(found, ed25519.Ed25519PublicKey):
        raise InvalidInput(
            "key must be an Ed25519 public key in PEM form, or its 64 hexadecimal digits. Found another key. "
            "Make one: openssl pkey -in owner.pem -pubout -out owner.pub."
        )
    return found


def _pem(key: Any) -> bytes:
    """Return the bytes of a PEM file."""
    if isinstance(key, bytes):
        return key
    if isinstance(key, str | Path):
        try:
            return Path(key).read_bytes()
        except OSError:
            raise InvalidInput(f"key must be a file that can be read. Found {str(key)!r}. Check the path.") from None
    raise InvalidInput(f"key must be a path or the bytes of a PEM file. Found {type(key).__name__}. Pass one of these.")


def _refuse() -> NoReturn:
    raise InvalidRelease(
        "A release file must be signed by this key. Found another signature. Ask the owner which key signed it."
    )
