#!/usr/bin/env python3
"""Checks what the registry and docs.rs read of each crate that is published: metadata, features, files, size.

    ci/release/packages.py [DIRECTORY]

Sizes are those of the packages in DIRECTORY, as `cargo publish --workspace --dry-run` writes them (target/package/tmp-registry).
"""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# In bytes, compressed. The registry allows 10 MB.
MOST = 600_000


def packages() -> list[dict]:
    said = subprocess.run(["cargo", "metadata", "--no-deps", "--format-version", "1"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [one for one in json.loads(said)["packages"] if one["publish"] != []]


def files(package: dict) -> list[str]:
    said = subprocess.run(["cargo", "package", "--list", "--allow-dirty", "-p", package["name"]], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return said.split()


def faults(package: dict) -> list[str]:
    wrong = [f"has no {key}" for key in ("description", "license", "readme", "rust_version", "keywords", "categories") if not package[key]]
    folder = pathlib.Path(package["manifest_path"]).parent
    contents = files(package)
    wrong += [f"its package lacks {name}" for name in ("LICENSE-MIT", "LICENSE-APACHE") if name not in contents]
    wrong += [f"its package has {name}, which is a test" for name in contents if name.startswith(("tests/", "benches/", "fuzz/"))]
    if package["readme"]:
        readme = (folder / package["readme"]).read_text()
        # What a manual shows beside itself is part of the package.
        linked = re.findall(r"\]\(([A-Za-z_]+\.md)\)", readme)
        wrong += [f"its package lacks {name}, which its README links to" for name in linked if name not in contents]
        features = [name for name in package["features"] if name != "default"]
        wrong += [f"its README does not mention the feature `{name}`" for name in features if f"`{name}`" not in readme]
    is_library = any("lib" in target["kind"] for target in package["targets"])
    metadata = (package["metadata"] or {}).get("docs", {}).get("rs", {})
    if is_library and package["features"] and not ("all-features" in metadata or "features" in metadata):
        wrong.append("docs.rs builds its documentation without its features; set package.metadata.docs.rs")
    return [f"{package['name']} {fault}" for fault in wrong]


def main() -> None:
    wrong, sizes = [], []
    every = packages()
    for package in every:
        wrong += faults(package)
        if len(sys.argv) > 1:
            made = pathlib.Path(sys.argv[1]) / f"{package['name']}-{package['version']}.crate"
            if not made.exists():
                wrong.append(f"{made} does not exist")
                continue
            sizes.append(made.stat().st_size)
            if sizes[-1] > MOST:
                wrong.append(f"{made.name} has {sizes[-1]:,} bytes; at most {MOST:,} are allowed")
    for fault in wrong:
        print(f"packages: {fault}", file=sys.stderr)
    of_sizes = f", the largest has {max(sizes):,} bytes" if sizes else ""
    print(f"packages: {len(every)} crates, {len(wrong)} faults{of_sizes}")
    sys.exit(1 if wrong or not every else 0)


if __name__ == "__main__":
    main()
