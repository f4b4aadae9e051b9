"""What results look like in a notebook."""

from __future__ import annotations

import html


def table(title: str, rows: list[tuple[str, str]]) -> str:
    """A small table for notebooks."""
    body = "".join(f"<tr><th style='text-align:left'>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in rows if v)
    return f"<table><caption>{html.escape(title)}</caption><tbody>{body}</tbody></table>"
