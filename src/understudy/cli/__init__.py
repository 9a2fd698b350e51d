"""The command line: one verb per stage, thin."""

from understudy.cli.app import main

__all__ = ["main"]
