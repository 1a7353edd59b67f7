#!/usr/bin/env python3
"""Checks that every guarantee has a test, and prints the index of guarantees and tests.

    ci/semantics.py            check
    ci/semantics.py --index    print `guarantee  test` for each pair

A guarantee is a list item `- **core-6. Title** ...` of a `crates/*/SEMANTICS.md`. A test carries
`// Guarantee: core-6, core-9.` on the line above its attributes; scripts in ci/ carry `# Guarantee: courier-13.`
A guarantee that no test can hold ends with `(No test: reason.)`.
"""

import re
import sys
from pathlib import Path

root = Path(__file__).resolve().parent.parent
problems = []

guarantees = {}
for document in sorted(root.glob("crates/*/SEMANTICS.md")):
    crate, text = document.parent.name, document.read_text()
    items = re.split(r"(?m)^- \*\*", text)[1:]
    for count, item in enumerate(items, start=1):
        expected = f"{crate}-{count}"
        name = re.match(r"[a-z-]+-\d+", item)
        if not name or name[0] != expected:
            problems.append(f"{document.relative_to(root)}: item {count} starts with '{item[:40]}'; expected '{expected}. '")
            continue
        guarantees[expected] = "(No test:" in item.split("\n## ")[0]

files = [*root.glob("crates/*/src/**/*.rs"), *root.glob("crates/*/tests/**/*"), *root.glob("examples/zoo/tests/*"), *root.glob("ci/**/*")]
marker = re.compile(r"^\s*(?://|#) Guarantees?: (.*)\.$")
tests = []
for file in sorted(files):
    if file.suffix not in {".rs", ".py", ".sh", ".mjs"}:
        continue
    lines, place = file.read_text().splitlines(), file.relative_to(root)
    for number, line in enumerate(lines, start=1):
        found = marker.match(line)
        if not found:
            continue
        test = str(place)
        if file.suffix == ".rs":
            following = "\n".join(lines[number : number + 12])
            named = re.match(r"(?s)(?:\s*(?:#\[.*?\]|//[^\n]*)\n)*\s*(?:(?:pub )?(?:async )?fn )?([a-z]\w*)", following)
            is_test = re.match(r"(?s)(?:\s*//[^\n]*\n)*\s*(?:#\[(?:tokio::)?test|[a-z]\w*(?: =>.*)?\s|#\[)", following)
            if not named or not is_test:
                problems.append(f"{place}:{number}: no test follows this line; move it above the test's attributes")
                continue
            test += f"::{named[1]}"
        for name in re.split(r",\s*", found[1]):
            if name not in guarantees:
                problems.append(f"{place}:{number}: there is no guarantee '{name}' in crates/*/SEMANTICS.md")
            tests.append((name, test))

held = {name for name, _ in tests}
for name, exempt in guarantees.items():
    if name not in held and not exempt:
        problems.append(f"{name} has no test; write one with '// Guarantee: {name}.', or end the item with '(No test: reason.)'")
    if name in held and exempt:
        problems.append(f"{name} says that it has no test, but a test names it")

if sys.argv[1:] == ["--index"]:
    for name, test in sorted(tests, key=lambda pair: (pair[0].rsplit("-", 1)[0], int(pair[0].rsplit("-", 1)[1]), pair[1])):
        print(f"{name:<12} {test}")
for problem in problems:
    print(problem, file=sys.stderr)
if not problems:
    print(f"{len(guarantees)} guarantees, held by {len(tests)} references from {len({test for _, test in tests})} tests", file=sys.stderr)
sys.exit(1 if problems else 0)
