#!/usr/bin/env python3
"""Prints a random sample of the project's prose, to be judged by a reader: which texts need a second reading?

    ci/prose-sample.py SEED [COUNT]     COUNT doc comments and COUNT sentences of documents; 60 of each by default
"""

import random
import re
import sys

from words import listed_files, root

if len(sys.argv) not in (2, 3) or not all(argument.isdigit() for argument in sys.argv[1:]):
    sys.exit(f"usage: {sys.argv[0]} SEED [COUNT]; both are whole numbers, for example: {sys.argv[0]} 7 60")
generator = random.Random(int(sys.argv[1]))
count = int(sys.argv[2]) if len(sys.argv) == 3 else 60

comments, sentences = [], []
for name, file in listed_files(["."]):
    text = file.read_text(errors="replace")
    if name.endswith(".rs") and "/tests/" not in name:
        for block in re.finditer(r"(?:^[ \t]*//[/!][^\n]*\n)+", text, re.M):
            lines = [re.sub(r"^\s*//[/!] ?", "", line) for line in block[0].splitlines()]
            prose = re.sub(r"```.*?```", " ", "\n".join(lines), flags=re.S)
            if prose.strip():
                comments.append((f"{name}:{text.count(chr(10), 0, block.start()) + 1}", prose.strip()))
    elif name.endswith(".md"):
        prose = re.sub(r"```.*?```|<!--.*?-->", " ", text, flags=re.S)
        for paragraph in re.split(r"\n\s*\n", prose):
            if re.match(r"\s*[|#]", paragraph):
                continue
            for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z`*])", re.sub(r"\s+", " ", paragraph)):
                if len(sentence) > 30:
                    sentences.append((name, sentence.strip()))

for title, texts in (("Doc comments", comments), ("Sentences of documents", sentences)):
    print(f"## {title} ({len(texts)})\n")
    for number, (place, text) in enumerate(generator.sample(texts, min(count, len(texts))), start=1):
        print(f"{number}. {place}\n   " + text.replace("\n", "\n   ") + "\n")
