#!/usr/bin/env python3
"""Runs the commands of the book's pages and compares what they print with the text below them.

Every fenced `sh` block is run by bash, all blocks of a page in one folder, `sh,repository` in the repository. A fenced `text` block that follows is its output.
A block whose info string is `file NAME` is written to that file. A `python` block is run by the Python that `--python` names, if any.
`sh,ignore` is not run; a page says why.
`--update` writes the output into the page instead.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ROOT / "examples" / "book" / "src"
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
# What differs from run to run: times on the wall clock, speeds, memory, ports, tokens.
VARIES = [
    (re.compile(r"\(\S+ \S+/s on \w+, \d+ workers?, \w+ form\)"), "(SPEED)"),
    (re.compile(r"\(\S+ (million|thousand)?/s[^)]*\)"), "(SPEED)"),
    (re.compile(r"[\d.]+(ns|us|µs|ms|s|m[\d.]+s) on the wall clock"), "WALL on the wall clock"),
    (re.compile(r"peak memory +.*"), "peak memory SIZE"),
    (re.compile(r"in [\d.]+ runs/s"), "in RATE"),
    # A seed of a simulation of hosts repeats for one binary.
    (re.compile(r"seed \d+: \d+ of \d+ acknowledged"), "seed N: SOME of ALL acknowledged"),
    (re.compile(r"messages in \d+ ms, check included: \d+ a second"), "messages in WALL"),
    (re.compile(r"messages in [\d.]+[nµm]?s\b"), "messages in WALL"),
    (re.compile(r"in [\d.]+ s: \d+ lines/s, [\d.]+ MB/s"), "in WALL"),
    (re.compile(r"\d+ workers?\b"), "WORKERS"),
    (re.compile(r'"sent":\d+'), '"sent":TIME'),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z?"), "DATE"),
    (re.compile(r"[ \t]+$", re.M), ""),
]


def normal(text: str) -> str:
    for pattern, name in VARIES:
        text = pattern.sub(name, text)
    return text.strip()


def page(path: pathlib.Path, programs: pathlib.Path, python: str, pictures: pathlib.Path, update: bool) -> tuple[int, list[str]]:
    """Runs a page; returns how many commands ran and what is wrong."""
    text = path.read_text()
    name = path.relative_to(PAGES)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    wrong, count, printed, new, end = [], 0, None, [], 0
    with tempfile.TemporaryDirectory() as folder:
        for block in BLOCK.finditer(text):
            info, body = block.groups()
            between = text[end : block.start()]
            if "\n## " in between:
                printed = None
            new.append(between)
            end = block.end()
            if " file " in f" {info} ":
                (pathlib.Path(folder) / info.split("file ")[1].strip()).write_text(body)
            elif info in ("sh", "sh,repository") or info == "python" and python:
                command = [python, "-c", body] if info == "python" else ["bash", "-euo", "pipefail", "-c", body]
                done = subprocess.run(
                    command, cwd=ROOT if "repository" in info else folder, env=environment, text=True,
                    # A command that builds takes minutes on a busy machine; one that only runs has hung.
                    timeout=1800 if "cargo " in body else 300,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False,
                )  # fmt: skip
                count += 1
                printed = done.stdout
                if done.returncode != 0:
                    wrong.append(f"{name}: exit code {done.returncode} of\n{body}{printed}")
            elif info == "text" and printed is not None:
                if update:
                    new.append(f"```text\n{printed.strip(chr(10)).rstrip()}\n```")
                    printed = None
                    continue
                if normal(printed) != normal(body):
                    wrong.append(f"{name}: expected\n{normal(body)}\nprinted\n{normal(printed)}\n")
                printed = None
            new.append(block.group())
        new.append(text[end:])
        for picture in pathlib.Path(folder).glob("*.svg"):
            to = pictures / name.parent
            to.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, to / picture.name)
    if update:
        path.write_text("".join(new))
    return count, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--python", default="")
    parser.add_argument("--pictures", type=pathlib.Path, required=True)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    total, wrong = 0, []
    for path in [p.resolve() for p in arguments.pages] or sorted(PAGES.rglob("*.md")):
        count, faults = page(path, arguments.programs.resolve(), arguments.python, arguments.pictures.resolve(), arguments.update)
        total += count
        wrong += faults
    for fault in wrong:
        print(fault, file=sys.stderr)
    print(f"book: {total} commands ran, {len(wrong)} are wrong")
    if total == 0:
        sys.exit("book: no page has a command")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
