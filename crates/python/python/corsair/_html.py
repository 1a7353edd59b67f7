"""HTML for notebooks."""

from __future__ import annotations

import html


def rows_table(head: list[str], rows: list[list[str]], left: int) -> str:
    """Returns a table of texts, with a line about the number of rows left out."""
    more = f"<p>and {left} more rows</p>" if left else ""
    return html_table(head, rows) + more


def html_table(head: list[str], rows: list[list[str]]) -> str:
    """Returns a table of texts."""
    cells = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{cells}</tr>{body}</table>"
