#!/usr/bin/env python3
"""Compares the table of features in .github/RELEASING.md with the artifacts: runs each feature and looks whether the program
refuses it, and looks for each program in the archives.

    ci/release/features.py "source=target/debug/corsair" "static binaries=DIR/corsair" "wheel=VENV/bin/python -m corsair"

An artifact is a column of the table and its command; `source` is a build with the features that are on by default. A cell of
another platform says "compiles" if ci/platforms.sh checks all features that the row names, and not otherwise.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release-files"
RELEASING = ROOT / ".github" / "RELEASING.md"
REFUSED = re.compile(r"--features|needs the feature|was built without|this build (has|runs)|not available on|is a separate program")

# What a row claims, as commands; a row has its cell if none of them is refused. Addresses at which nothing answers are enough.
PROBES = {
    "pirates, architectures, capacity, compare": [
        "-a fsm -p 10 -d 0",
        "compare lamp --set services.memcache.count=2 --seeds 2 -d 1",
        "capacity -a lamp -d 1 --limit 50ms --from 100 --to 200",
    ],
    "`learn`, `sweep`, checkpoints": [
        "learn no-such-file.json",
        "sweep -a lamp --set services.memcache.count=1 -d 1 --out sweep.csv",
        "-a fsm -p 10 -d 1 --checkpoint-at 500ms",
    ],
    "live view (`ui`)": ["view no-such-directory"],
    "OTLP, Zipkin, Neo4j": ["-a lamp -d 1 --otlp http://127.0.0.1:9", "-a lamp -d 1 --zipkin http://127.0.0.1:9", "-a lamp -d 1 -n --neo4jurl http://127.0.0.1:9"],
    "Kafka": ["-a lamp -d 1 -k 127.0.0.1:9"],
    "`compose2arch` (`compose`)": ["compose2arch compose.yaml"],
    "HTTPS (`tls`)": ["-a lamp -d 1 --otlp https://127.0.0.1:9"],
    "Prometheus (`metrics`), `learn --listen` (`otlp`), `rayon`, `sonic`": [
        "-a lamp -d 1 --metrics 127.0.0.1:0",
        "learn --listen 192.0.2.1:9",
        "sum --executor rayon",
        "marshal --format sonic",
    ],
    "CPU profiles (`-cpuprofile`)": ["-a fsm -p 10 -d 0 -cpuprofile profile.pb.gz"],
    "runs over several processes (`mpi`)": ["-a fsm -p 10 -d 0 --processes 2"],
    "streams, messaging": ["stream", "courier"],
}


def table(title: str) -> tuple[list[str], dict[str, dict[str, str]]]:
    """The columns of the table below a heading, and its rows by their first cell."""
    text = RELEASING.read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    columns = cells[0][1:]
    return columns, {row[0]: dict(zip(columns, row[1:], strict=True)) for row in cells[2:]}


def refused(command: str, probe: str, folder: str) -> str | None:
    first, *rest = command.split()
    done = subprocess.run(
        [str(ROOT / first) if (ROOT / first).is_file() else first, *rest, *probe.split()], cwd=folder, text=True, timeout=120,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    found = REFUSED.search(done.stdout)
    return done.stdout.strip().splitlines()[-1] if found and done.returncode != 0 else None


def platforms(rows: dict[str, dict[str, str]]) -> list[str]:
    """What the columns of platforms say about features of the command, and ci/platforms.sh does not check."""
    features = set(re.findall(r"^([a-z]+) = \[", (ROOT / "crates/cli/Cargo.toml").read_text(), re.M))
    checked = set(re.findall(r"corsair-cli/([a-z]+)", (ROOT / "ci/platforms.sh").read_text()))
    wrong = []
    for row, cells in rows.items():
        named = features & set(re.findall(r"`([a-z]+)`", row))
        for column in ("Windows", "macOS", "aarch64 Linux"):
            if named and cells[column] != "no" and (cells[column] == "compiles") != (named <= checked):
                wrong.append(f"{row}, {column}: the table says '{cells[column]}', and ci/platforms.sh checks {', '.join(sorted(named & checked)) or 'nothing'}")
    return wrong


def main() -> None:
    columns, rows = table("Which artifact has which feature")
    wrong, count = platforms(rows), 0
    for argument in sys.argv[1:]:
        column, command = argument.split("=", 1)
        if column not in columns:
            sys.exit(f"features: the table has no column '{column}'; there are {', '.join(columns)}")
        for row, probes in PROBES.items():
            if row not in rows:
                wrong.append(f"the table has no row '{row}'")
                continue
            cell = rows[row][column]
            with tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "compose.yaml").write_text("services:\n  web:\n    image: nginx\n")
                said = [refused(command, probe, folder) for probe in probes]
            count += 1
            if row == "streams, messaging" and column != "wheel":
                # Programs of their own: the archives beside this one.
                has = column == "source" or all(any(FILES.glob(f"corsair-{name}-*.tar.gz")) for name in ("stream", "courier"))
            else:
                has = not any(said)
            # "feature": not on by default.
            claims = cell == "yes" or cell not in ("yes", "no") and column != "source"
            if has != claims:
                wrong.append(f"{row}, {column}: the table says '{cell}', and {'it works' if has else said}")
    for fault in wrong:
        print(f"features: {fault}", file=sys.stderr)
    print(f"features: {count} cells compared, {len(wrong)} are wrong")
    sys.exit(1 if wrong or count == 0 else 0)


if __name__ == "__main__":
    main()
