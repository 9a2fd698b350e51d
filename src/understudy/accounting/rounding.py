"""Scales of noise that survive being passed on as floats."""

from __future__ import annotations

FLOAT_BITS = 53
"""A scale has at most so many binary digits, so that a float holds it exactly."""


def exact_as_float(scale: int) -> int:
    """The smallest whole number that is not below a scale and that a float holds exactly."""
    step = 1 << max(0, scale.bit_length() - FLOAT_BITS)
    return -(-scale // step) * step
