"""Recorded values of everything that must not change by accident, one JSON file beside each test file.

``UNDERSTUDY_RECORD_GOLDEN=1 pytest tests/golden/test_bits.py`` writes ``bits.json`` anew.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import torch
from threadpoolctl import threadpool_info, threadpool_limits

RECORD = "UNDERSTUDY_RECORD_GOLDEN"
HOW = f"If that is meant, record anew with {RECORD}=1 in a commit that does nothing else and says why."


def machine() -> dict[str, Any]:
    """What the last digits of floats hang on: libraries, and the instructions that they choose."""
    simd = np.show_config(mode="dicts")["SIMD Extensions"]
    blas = {
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}".strip()
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    return {
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "numpy": np.__version__,
        "numpy_simd": [*simd["baseline"], *simd.get("found", [])],
        "scipy": scipy.__version__,
        "blas": sorted(blas),
        "torch": torch.__version__,
        "torch_cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }


class Golden:
    """Compares with what is recorded, or records."""

    def __init__(self, path: Path, *, records: bool) -> None:
        self.path = path
        self.records = records
        self.machine = machine()
        self.known: dict[str, Any] = {"machine": self.machine, "values": {}}
        if not records:
            self.known = json.loads(path.read_text("utf-8"))
        self.same_machine = self.known["machine"] == self.machine

    @property
    def names(self) -> set[str]:
        """Names of all values on record."""
        return set(self.known["values"])

    @staticmethod
    def sha256(value: object) -> str:
        """Of bytes, of an array's shape, type and little-endian bytes, or of canonical JSON."""
        if isinstance(value, np.ndarray):
            plain = value.astype(value.dtype.newbyteorder("<"))
            value = f"{plain.dtype.str}{plain.shape}".encode() + plain.tobytes()
        if not isinstance(value, bytes):
            value = json.dumps(value, sort_keys=True, ensure_ascii=True).encode()
        return hashlib.sha256(value).hexdigest()

    def check(
        self,
        name: str,
        value: str | dict[str, Any],
        *,
        portable: bool,
        summary: dict[str, float] | None = None,
        tolerance: float = 1e-6,
    ) -> None:
        """Fail if a value is not the recorded one.

        A portable value rests on whole numbers and must be the same everywhere. Any other must be the
        same on a machine that computes as the recording one did; elsewhere its ``summary`` must be near.
        """
        if not portable and summary is None:
            raise ValueError(f"{name}: what is not portable needs a summary")
        entry = {"value": value} | ({} if portable else {"summary": summary})
        entry = json.loads(json.dumps(entry))
        if self.records:
            self.known["values"][name] = entry
            return
        assert name in self.names, f"{name}: nothing is recorded. {HOW}"
        recorded = self.known["values"][name]
        assert recorded.keys() == entry.keys(), f"{name}: portable or not, it was otherwise. {HOW}"
        if portable or self.same_machine:
            assert entry["value"] == recorded["value"], (
                f"{name} differs{_where(entry['value'], recorded['value'])}. {HOW}"
            )
            return
        far = _far(entry["summary"], recorded["summary"], tolerance)
        assert not far, f"{name} differs, also roughly (this is another machine), in {far}. {HOW}"

    def save(self) -> None:
        """Write what was recorded."""
        text = json.dumps(self.known, indent=1, sort_keys=True, ensure_ascii=True)
        self.path.write_text(text + "\n", "utf-8")


def _where(value: Any, recorded: Any) -> str:
    if not (isinstance(value, dict) and isinstance(recorded, dict)):
        return f": {value}, recorded is {recorded}"
    keys = sorted(value.keys() | recorded.keys())
    return f" in {[key for key in keys if value.get(key) != recorded.get(key)]}"


def _far(found: dict[str, float], recorded: dict[str, float], tolerance: float) -> list[str]:
    return [
        f"{key}: {found.get(key)}, recorded is {recorded.get(key)}"
        for key in sorted(found.keys() | recorded.keys())
        if key not in found
        or key not in recorded
        or not math.isclose(found[key], recorded[key], rel_tol=tolerance, abs_tol=tolerance)
    ]


@pytest.fixture(scope="module")
def golden(request: pytest.FixtureRequest) -> Iterator[Golden]:
    """The values recorded for a test file. Floats are summed on one thread, as they were."""
    path = request.path.with_name(f"{request.path.stem.removeprefix('test_')}.json")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(limits=1):
        found = Golden(path, records=bool(os.environ.get(RECORD)))
        yield found
    torch.set_num_threads(threads)
    if found.records:
        found.save()
