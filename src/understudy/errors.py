"""Refusals: each says what, which rule, and how to mend it, and never quotes a cell."""

from __future__ import annotations


def visible(text: str) -> str:
    """Words with everything escaped that a terminal acts on or hides: a name in a file may hold anything.

    Line breaks, control characters, marks that turn the direction of writing, bytes that are no text; a space that
    keeps a number with its unit is a space.
    """
    text = text.replace("\u00a0", " ")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class UnderstudyError(Exception):
    """A refusal that a person can act on.

    Args:
        where: what the refusal is about, such as ``column 'bmi'`` or a file name.
        rule: the rule that was broken.
        remedy: what to do about it.
    """

    exit_code = 1

    def __init__(self, where: str, rule: str, remedy: str = "") -> None:
        self.where, self.rule, self.remedy = map(visible, (where, rule, remedy))
        words = f"{self.where}: {self.rule}."
        super().__init__(words + (f" {self.remedy}." if remedy else ""))


class InputError(UnderstudyError):
    """A file, table or schema that cannot be used as it is (exit code 1)."""


def column_error(name: str, rule: str, remedy: str = "") -> InputError:
    """The refusal of a column, or of what is said of it."""
    return InputError(f"column '{name}'", rule, remedy)


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


class SchemaWarning(UserWarning):
    """A release's own noisy counts say that the schema does not fit the table."""
