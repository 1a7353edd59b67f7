#!/usr/bin/env python3
"""Fails if the log of `strace -f -qq` has a call that reached the real network or wrote a file.

    ci/host/strace.py LOG

A call that the filter of a host stops is followed by SIGSYS on its thread; the simulated kernel serves it.
"""

import re
import sys

pending, reached, served = {}, [], 0
for line in open(sys.argv[1], errors="replace"):
    thread, _, text = line.strip().partition(" ")
    text = text.strip()
    if text.startswith("--- SIGSYS"):
        served += pending.pop(thread, None) is not None
        continue
    if call := pending.pop(thread, None):
        reached.append(call)
    if text.startswith(("---", "+++", "<...")) or "O_RDONLY" in text or re.match(r"socketpair\(AF_UNIX", text):
        continue
    pending[thread] = f"{thread} {text}"
reached += pending.values()
for call in reached[:20]:
    print(call)
print(f"{served} calls were served by the simulated kernel; {len(reached)} reached the real network or a file")
sys.exit(bool(reached))
