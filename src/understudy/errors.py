"""Refusals: each says what, which rule, and how to mend it, and never quotes a cell."""

from __future__ import annotations


class UnderstudyError(Exception):
    """A refusal that a person can act on.

    Args:
        where: what the refusal is about, such as ``column 'bmi'`` or a file name.
        rule: the rule that was broken.
        remedy: what to do about it.
    """

    exit_code = 1

    def __init__(self, where: str, rule: str, remedy: str = "") -> None:
        self.where = where
        self.rule = rule
        self.remedy = remedy
        super().__init__(f"{where}: {rule}." + (f" {remedy}." if remedy else ""))


class InputError(UnderstudyError):
    """A file, table or schema that cannot be used as it is (exit code 1)."""


class ArrayError(InputError, ValueError):
    """Rows that are no features and labels; a ValueError, too, as callers of scikit-learn expect."""


class UsageError(UnderstudyError):
    """An argument outside its rules (exit code 2)."""

    exit_code = 2


class BudgetError(UnderstudyError):
    """A release that the ledger's cap, or what a party allows, forbids (exit code 3)."""

    exit_code = 3


class MissingExtraError(UnderstudyError):
    """An optional package that this step needs is not installed (exit code 1)."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"package '{package}'",
            "this step needs it and it is not installed",
            f"Install understudy with its extra '{extra}' (pip install '.[{extra}]' in its folder)",
        )
