#!/usr/bin/env python3
"""Writes the reference pages of the book from the programs: flags from their help, definitions from the schema."""

import argparse
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def printed(program: pathlib.Path, *arguments: str) -> str:
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=True).stdout


def flags(programs: pathlib.Path) -> str:
    command = programs / "corsair"
    top = printed(command, "--help")
    subcommands = re.findall(r"^  ([a-z][a-z0-9]+)  +\S", top.split("Commands:")[1].split("\n\n")[0], re.M)
    pages = [("corsair", top)]
    pages += [(f"corsair {name}", printed(command, name, "--help")) for name in subcommands]
    for program in ("corsair-stream", "corsair-courier"):
        pages.append((f"{program} serve", printed(programs / program, "serve", "--help")))
    text = "".join(f"\n## {name}\n\n```text\n{shown.strip()}\n```\n" for name, shown in pages)
    return f"# Flags\n\nThe help of every command.\n{text}"


def kind(field: dict) -> str:
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[1]
        return f"[{name}](#{name.lower()})"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    for several in ("anyOf", "oneOf"):
        if several in field:
            kinds = [kind(one) for one in field[several] if one.get("type") != "null"]
            return " or ".join(dict.fromkeys(kinds))
    if field.get("type") == "array":
        return f"list of {kind(field.get('items', {}))}"
    if field.get("type") == "object" and isinstance(field.get("additionalProperties"), dict):
        return f"object of {kind(field['additionalProperties'])}"
    given = field.get("type", "any")
    return " or ".join(one for one in given if one != "null") if isinstance(given, list) else given


def table(schema: dict) -> str:
    required = schema.get("required", [])
    rows = "".join(
        f"| `{name}`{' (required)' if name in required else ''} | {kind(field)} | {cell(field)} |\n"
        for name, field in schema.get("properties", {}).items()
    )
    return f"\n| field | type | meaning |\n|---|---|---|\n{rows}" if rows else ""


def cell(field: dict) -> str:
    return field.get("description", "").replace("\n", " ").replace("|", "\\|")


def definition(programs: pathlib.Path) -> str:
    schema = json.loads(printed(programs / "corsair", "schema"))
    parts = [f"# Definitions\n\n{schema['description']} `corsair schema` prints the JSON schema.\n{table(schema)}"]
    for name, part in sorted(schema["$defs"].items()):
        parts.append(f"\n## {name}\n\n{part.get('description', '')}\n{table(part)}")
        for several in ("anyOf", "oneOf"):
            for one in part.get(several, []):
                said = one.get("description", "")
                parts.append(table(one) or f"\n- {kind(one)}{': ' + said if said else ''}\n")
    return "".join(parts)


def formats() -> str:
    """The sections of the manuals and guarantees that describe files."""
    text = (ROOT / "crates/observe/README.md").read_text()
    text = re.sub(r"^#", "##", text, flags=re.M)
    # Links of a manual are relative to its crate.
    text = re.sub(r"\[([^\]]*)\]\((?!http)[^)]*\)", r"\1", text)
    return f"# File formats\n\nFrom the manual of `corsair-observe`, which writes these files.\n\n{text}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=pathlib.Path, required=True)
    parser.add_argument("--to", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    arguments.to.mkdir(parents=True, exist_ok=True)
    programs = arguments.programs.resolve()
    (arguments.to / "flags.md").write_text(flags(programs))
    (arguments.to / "definition.md").write_text(definition(programs))
    (arguments.to / "formats.md").write_text(formats())


if __name__ == "__main__":
    main()
