"""What is public about a table: its columns, their bounds and categories, and their codes."""

from understudy.schema.columns import NULL, Column, Kind, Layout, Role
from understudy.schema.table import PrivacyUnit, Schema, load_schema

__all__ = ["NULL", "Column", "Kind", "Layout", "PrivacyUnit", "Role", "Schema", "load_schema"]
