"""A signed file is verified with the owner's public key, and with no other."""

from __future__ import annotations

import pytest
from questions_at_random import small_file

import hedgerow as hr
from hedgerow.release_file.container import pack, unpack

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")


@pytest.fixture
def keys(tmp_path):
    private = ed25519.Ed25519PrivateKey.generate()
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = private.public_key()
    (tmp_path / "owner.pem").write_bytes(pem)
    (tmp_path / "owner.pub").write_bytes(
        public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return tmp_path, private, public.public_bytes_raw().hex()


def test_a_signature_is_verified_in_every_form_of_the_key(keys) -> None:
    folder, private, digits = keys
    document = unpack(small_file()).document
    for key in (private, folder / "owner.pem", str(folder / "owner.pem"), (folder / "owner.pem").read_bytes()):
        signed = pack(document, key)
        for public in (digits, folder / "owner.pub", (folder / "owner.pub").read_bytes(), private.public_key()):
            assert hr.load(signed, key=public).signer == digits
    assert hr.load(signed).signer is None and hr.load(signed).digest == hr.load(small_file()).digest


def test_another_key_another_text_or_no_signature_is_refused(keys) -> None:
    _, private, digits = keys
    document = unpack(small_file()).document
    signed = pack(document, private)
    other = ed25519.Ed25519PrivateKey.generate()
    with pytest.raises(hr.InvalidRelease, match="signed by this key"):
        hr.load(signed, key=other.public_key())
    with pytest.raises(hr.InvalidRelease, match="signed"):
        hr.load(small_file(), key=digits)
    from test_hostile_files import members, zipped

    parts = members(pack(document | {"numbers_given": 999}))
    forged = {"manifest.json": parts["manifest.json"], "signature.json": members(signed)["signature.json"], **parts}
    with pytest.raises(hr.InvalidRelease, match="signed by this key"):
        hr.load(zipped(forged), key=digits)
    assert hr.load(zipped(forged)).digest != hr.load(signed).digest


@pytest.mark.parametrize("key", ["nothing.pem", b"", b"-----BEGIN", 7, "0" * 63])
def test_a_key_of_another_form_is_refused(key) -> None:
    with pytest.raises(hr.InvalidInput, match="key must be"):
        pack({}, key)
    with pytest.raises(hr.InvalidInput, match="key must be"):
        hr.load(small_file(), key=key)
