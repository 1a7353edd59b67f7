#!/usr/bin/env python3
"""Fails if documents, comments or string literals use a phrase of ci/words.txt.

    ci/words.py              all files of the repository
    ci/words.py PATH ...     only files below these paths
    ci/words.py --count      the number of matches for each pattern and each folder
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

root = Path(__file__).resolve().parent.parent

patterns, exceptions = [], []
for line in (root / "ci/words.txt").read_text().splitlines():
    if line.startswith("except: "):
        exceptions.append(line.removeprefix("except: "))
    elif line.strip() and not line.startswith("#"):
        pattern, advice = line.split(" => ")
        patterns.append((re.compile(pattern, re.IGNORECASE), advice))

# One alternative for each form of text, after those forms that could be taken for it. What is in no group is skipped.
RUST = re.compile(r"""//(?P<comment>[^\n]*)|/\*(?P<block>.*?)\*/|b?r(?P<hash>\#*)"(?P<raw>.*?)"(?P=hash)|b?"(?P<text>(?:\\.|[^"\\])*)"|'(?:\\.[^']*|[^\\'\n])'""", re.S | re.X)
PYTHON = re.compile(r"""\#(?P<comment>[^\n]*)|(?P<quote>\"\"\"|''')(?P<block>.*?)(?P=quote)|"(?P<text>(?:\\.|[^"\\\n])*)"|'(?P<raw>(?:\\.|[^'\\\n])*)'""", re.S | re.X)
SCRIPT = re.compile(r"""(?<![:"'\w])//(?P<comment>[^\n]*)|/\*(?P<block>.*?)\*/|"(?P<text>(?:\\.|[^"\\\n])*)"|'(?P<raw>(?:\\.|[^'\\\n])*)'|`(?P<template>(?:\\.|[^`\\])*)`""", re.S | re.X)
SHELL = re.compile(r"""(?:^|(?<=\s))\#(?P<comment>[^\n]*)|"(?P<text>(?:\\.|[^"\\])*)"|'(?P<raw>[^']*)'""", re.S | re.X | re.M)
WHOLE = re.compile(r"(?P<text>.+)", re.S)
forms = {".rs": RUST, ".py": PYTHON, ".pyi": PYTHON, ".js": SCRIPT, ".mjs": SCRIPT, ".css": SCRIPT, ".sh": SHELL, ".toml": SHELL,
         ".yml": SHELL, ".md": WHOLE, ".html": WHOLE, ".ipynb": WHOLE, ".txt": WHOLE}


def passages(file):
    """Yields (line number, line) for each line of text in the file."""
    source = file.read_text(errors="replace")
    for found in forms[file.suffix].finditer(source):
        for group, text in found.groupdict().items():
            if text and group not in ("hash", "quote"):
                first = source.count("\n", 0, found.start(group)) + 1
                for offset, line in enumerate(text.split("\n")):
                    yield first + offset, line


def listed_files(arguments):
    """Yields (name, path) of the tracked text files below the given paths."""
    listed = subprocess.run(["git", "ls-files", "-z", *arguments], cwd=root, capture_output=True, check=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        file = root / name
        if file.suffix in forms and file.is_file():
            yield name, file


def main():
    arguments = [a for a in sys.argv[1:] if a != "--count"]
    matches, counts = 0, Counter()
    for name, file in listed_files(arguments):
        if name in ("ci/words.txt", "ci/words.py"):
            continue
        for number, line in passages(file):
            if any(text in line for text in exceptions):
                continue
            for pattern, advice in patterns:
                found = pattern.search(line)
                if found:
                    matches += 1
                    counts[pattern.pattern] += 1
                    counts["/".join(name.split("/")[:2])] += 1
                    if "--count" not in sys.argv:
                        print(f"{name}:{number}: '{found[0]}': write {advice}\n    {line.strip()[:140]}")
    if "--count" in sys.argv:
        for key, count in counts.most_common():
            print(f"{count:6} {key}")
    print(f"{matches} matches", file=sys.stderr)
    sys.exit(1 if matches else 0)


if __name__ == "__main__":
    main()
