#!/usr/bin/env python3
"""Writes python/corsair/definition.py from the JSON schema of definitions: a class for each part of it.

    python generate.py            writes it
    python generate.py --check    fails if it is not what would be written
"""

import json
import pathlib
import sys
import textwrap

HERE = pathlib.Path(__file__).parent
SCHEMA = HERE / "../arch/src/definition/schema.json"
OUT = HERE / "python/corsair/definition.py"

# Types whose name in Python differs from the name in Rust.
NAMES = {"ServiceDefinition": "Service"}
# Fields whose names are Python keywords.
FIELDS = {"for": "for_", "from": "from_"}

HEAD = '''"""The parts of a definition, as plain objects.

Made by generate.py from the JSON schema of definitions; change the types of crates/arch/src/definition.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Union

from ._part import Part

__all__ = [
{names}
]

TimeSpan = str
"""A time with its unit: 250us, 1.5ms, 2s, 1m30s."""

Distribution = Union[str, dict[str, Any]]
"""How long something takes: a time, or a distribution of times, which the functions of
these names make."""

Targets = Union[str, dict[str, float]]
"""What is called: an endpoint, or one of several by weight."""
'''

ALIASES = {"TimeSpan", "Distribution", "Targets"}


def name_of(rust: str) -> str:
    name = NAMES.get(rust, rust)
    return name.removesuffix("Definition") if name != "Definition" else name


def doc(text: str, indent: str, fields: list[tuple[str, str]] | None = None) -> str:
    """Returns a docstring. The docstring of a class also lists its fields, so that `help` shows them."""
    lines = textwrap.wrap(plain(text), 112 - len(indent))
    if fields:
        lines += ["", "Fields:"]
        for name, meaning in fields:
            lines += textwrap.wrap(f"{name}: {plain(meaning)}", 112 - len(indent), subsequent_indent="    ")
    if len(lines) == 1:
        return f'{indent}"""{lines[0]}"""\n'
    body = "\n".join(f"{indent}{line}" if line else "" for line in lines)
    return f'{indent}"""{body.removeprefix(indent)}\n{indent}"""\n'


def plain(text: str) -> str:
    """Converts a description to the text of a docstring."""
    return " ".join(text.split()).replace("`", "").replace("\\", "\\\\").replace('"""', "'''")


def reference(schema: dict) -> str | None:
    return schema["$ref"].rsplit("/", 1)[1] if "$ref" in schema else None


def type_of(schema: dict, parts: set[str]) -> tuple[str, str | None, bool]:
    """Returns the type, the function that reads it from JSON, and whether the field may be None."""
    if "anyOf" in schema:
        others = [one for one in schema["anyOf"] if one.get("type") != "null"]
        assert len(others) == 1 and len(schema["anyOf"]) == 2, schema
        kind, read, _ = type_of(others[0], parts)
        return kind, read, True
    of = reference(schema)
    if of:
        name = name_of(of)
        if of == "Rate":
            return "Rate", "rate", False
        return name, (f"part {name}" if of in parts else None), False
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    optional = "null" in kinds
    (kind,) = [one for one in kinds if one != "null"]
    if kind == "array":
        inner, read, _ = type_of(schema["items"], parts)
        read = {None: None}.get(read, f"list {read}")
        return f"list[{inner}]", read, optional
    if kind == "object":
        inner, read, _ = type_of(schema["additionalProperties"], parts)
        return f"dict[str, {inner}]", (f"map {read}" if read else None), optional
    return {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}[kind], None, optional


def alias(name: str, schema: dict) -> str:
    words = [json.dumps(one["const"]) for one in schema["oneOf"]]
    meanings = [f"{one['const']}: {one['description']}" for one in schema["oneOf"]]
    text = " ".join([schema["description"], *meanings])
    return f"\n{name} = Literal[{', '.join(words)}]\n" + doc(text, "")


def dataclass(name: str, schema: dict, parts: set[str]) -> str:
    required = schema.get("required", [])
    properties = schema["properties"]
    first = ["arch", "name", "package"]
    order = sorted(properties, key=lambda key: (key not in required, key not in first, first.index(key) if key in first else 0))
    text = "\n\n@dataclass(slots=True)\n"
    described = [(FIELDS.get(key, key), properties[key].get("description", key)) for key in order]
    text += f"class {name}(Part):\n" + doc(schema["description"], "    ", described) + "\n"
    reads = {}
    keeps_extra = schema.get("additionalProperties") is not False
    for key in order:
        kind, read, optional = type_of(properties[key], parts)
        attribute = FIELDS.get(key, key)
        reads[attribute] = (key, read)
        if key in required:
            default = ""
        elif optional:
            kind, default = f"{kind} | None", " = None"
        elif kind.startswith("list"):
            default = " = field(default_factory=list)"
        elif kind.startswith("dict"):
            default = " = field(default_factory=dict)"
        elif "default" in properties[key] and properties[key]["default"] is not None:
            default = f" = {properties[key]['default']!r}"
        elif read and read.startswith("part"):
            default = f" = field(default_factory=lambda: {kind}())"
        else:
            default = {"str": ' = ""', "bool": " = False", "int": " = 0"}[kind]
        text += f"    {attribute}: {kind}{default}\n" + doc(properties[key].get("description", key), "    ")
    if keeps_extra:
        text += "    extra: dict[str, Any] = field(default_factory=dict)\n"
        text += doc("Notes of your own and of other tools, whose keys begin with x-.", "    ")
    text += "\n    _parts: ClassVar[dict[str, tuple[str, str | None]]] = {\n"
    for attribute, (key, read) in reads.items():
        text += f"        {json.dumps(attribute)}: ({json.dumps(key)}, {json.dumps(read) if read else None}),\n"
    text += "    }\n"
    text += f"    _required: ClassVar[frozenset[str]] = frozenset({sorted(required)!r})\n".replace("'", '"')
    return text


def generated() -> str:
    schema = json.loads(SCHEMA.read_text())
    definitions = schema["$defs"]
    parts = {name for name, one in definitions.items() if "properties" in one}
    words = {name for name, one in definitions.items() if "oneOf" in one}
    names = sorted([*map(name_of, parts | words), "Definition", "Rate", *ALIASES])
    text = HEAD.replace("{names}", "\n".join(f'    "{name}",' for name in names))
    for name in sorted(words):
        text += alias(name_of(name), definitions[name])
    text += '\nRate = Union[float, "list[RatePoint]", dict[str, str]]\n'
    text += doc("Requests per second: a number, points of a profile, or a curve from a file, {'csv': 'curve.csv'}.", "")
    for name in sorted(parts):
        text += dataclass(name_of(name), definitions[name], parts)
    text += dataclass("Definition", schema, parts)
    return text


def main() -> None:
    text = generated()
    if "--check" not in sys.argv:
        OUT.write_text(text)
    elif OUT.read_text() != text:
        sys.exit(f"{OUT.name} is not what the schema says; run python generate.py")


if __name__ == "__main__":
    main()
