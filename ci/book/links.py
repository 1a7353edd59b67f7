#!/usr/bin/env python3
"""Checks that every relative link, anchor and picture of a built book exists."""

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.ids.add(given["id"] or "")
        for name in ("href", "src"):
            if given.get(name):
                self.links.append(given[name] or "")


def main() -> None:
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = {path: Page(path.read_text()) for path in root.rglob("*.html")}
    if not pages:
        sys.exit(f"links: there is no page in {root}")
    broken, count = [], 0
    for path, page in pages.items():
        # The page for a wrong address has addresses of the site.
        if path.name in ("404.html", "toc.html"):
            continue
        for link in page.links:
            split = urllib.parse.urlsplit(link)
            if split.scheme or split.netloc:
                continue
            count += 1
            to = (path.parent / urllib.parse.unquote(split.path)).resolve() if split.path else path
            if to.is_dir():
                to /= "index.html"
            if not to.exists():
                broken.append(f"{path.relative_to(root)}: {link} does not exist")
            elif split.fragment and to in pages and urllib.parse.unquote(split.fragment) not in pages[to].ids:
                broken.append(f"{path.relative_to(root)}: {link} has no such anchor")
    print("\n".join(broken), file=sys.stderr)
    print(f"book: {len(pages)} pages, {count} links, {len(broken)} broken")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
