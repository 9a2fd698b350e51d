"""Encrypted files for what has no noise yet: partial sums of one site, and checkpoints of a pass."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from understudy.errors import InputError, MissingExtraError, UsageError
from understudy.files import MOST_TENSOR_BYTES, parse_json, read_file

MAGIC = b"UNDERSTUDY SECRET 1\n"
KEY_BYTES = 32
NONCE_BYTES = 12
LENGTH_BYTES = 4
KEY_VARIABLE = "UNDERSTUDY_KEY"
MOST_KEY_BYTES = 2**10
HOW_TO_MAKE = "Make one: openssl rand -hex 32 > FILE, and chmod 600 FILE"


def read_key(path: Path | str | None) -> bytes:
    """A key of 32 bytes in hexadecimal, from a file, or else from the variable UNDERSTUDY_KEY."""
    where = f"key file '{path}'" if path is not None else f"variable {KEY_VARIABLE}"
    if path is None and KEY_VARIABLE not in os.environ:
        raise UsageError(where, "is not set, and no key file was given", f"Add --key-file FILE. {HOW_TO_MAKE}")
    if path is not None and not Path(path).is_file():
        raise UsageError(where, "is not there", HOW_TO_MAKE)
    key = b""
    with suppress(InputError, ValueError):
        found = os.environ[KEY_VARIABLE] if path is None else read_file(path, most=MOST_KEY_BYTES, follow=True).decode()
        key = bytes.fromhex(found.strip())
    if len(key) != KEY_BYTES:
        raise UsageError(where, f"must hold a key of {2 * KEY_BYTES} hexadecimal digits", HOW_TO_MAKE)
    return key


def check_secret_target(path: Path | str, key: bytes) -> None:
    """Refuse what would keep an encrypted file from being written, before anything is paid for it."""
    if Path(path).exists():
        raise InputError(f"file '{path}'", "exists already", "Choose another name")
    if not os.access(Path(path).absolute().parent, os.W_OK | os.X_OK):
        raise InputError(f"file '{path}'", "its directory is not there, or not to be written to", "Make it first")
    if len(key) != KEY_BYTES:
        raise UsageError("key", f"must have {KEY_BYTES} bytes", HOW_TO_MAKE)
    _cipher(key)


def write_secret(path: Path | str, header: dict[str, Any], content: bytes, *, key: bytes) -> None:
    """Encrypt content with AES-256-GCM into a file that only its owner may read.

    Guarantee:
        The file tells the header and the length of the content. Nobody without the key can read the content,
        or change either unnoticed (NIST SP 800-38D; every file has a random nonce of its own) (proofs/parties.md).
    """
    cipher, encoded_header = _cipher(key), json.dumps(header, sort_keys=True).encode()
    front = MAGIC + len(encoded_header).to_bytes(LENGTH_BYTES, "big") + encoded_header
    nonce = secrets.token_bytes(NONCE_BYTES)
    whole = front + nonce + cipher.encrypt(nonce, content, front)
    beside = Path(f"{path}.{secrets.token_hex(4)}.part")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(whole)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)  # there only if this was cut short


def read_secret(path: Path | str, keys: Sequence[bytes]) -> tuple[dict[str, Any], bytes]:
    """The header and content of an encrypted file, by whichever key fits it.

    Raises:
        InputError: it is not such a file, it was changed, or no key fits.
    """
    where = f"file '{Path(path).name}'"
    try:
        whole = read_file(path, most=MOST_TENSOR_BYTES, follow=True)
        start = len(MAGIC) + LENGTH_BYTES
        end = start + int.from_bytes(whole[len(MAGIC) : start], "big")
        header = parse_json(whole[start:end])
        if not whole.startswith(MAGIC) or not isinstance(header, dict):
            raise ValueError
    except (InputError, ValueError):
        raise InputError(where, "is not a secret file of this program", "Check the path") from None
    front, nonce, sealed = whole[:end], whole[end : end + NONCE_BYTES], whole[end + NONCE_BYTES :]
    ciphers = [_cipher(key) for key in keys]
    from cryptography.exceptions import InvalidTag

    for cipher in ciphers:
        with suppress(InvalidTag, ValueError):
            return header, bytes(cipher.decrypt(nonce, sealed, front))
    raise InputError(where, "no key given opens it, or it was changed", "Use the key that it was written with")


def _cipher(key: bytes) -> Any:
    if find_spec("cryptography") is None:
        raise MissingExtraError("cryptography", "parties")
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)
