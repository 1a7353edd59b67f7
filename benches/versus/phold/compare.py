"""Runs PHOLD in corsair and in ROSS in turns, and prints a table of medians. Called by run.sh."""

import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

corsair, ross, rounds, workers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
MEASURED = Path(__file__).resolve().parents[2] / "plots" / "phold.json"

# Processes, lookahead, remote fraction, and the end of ROSS's runs; corsair's runs are longer, because they are faster.
SWEEP = [
    (10_000, 0.1, 0.5, 200.0),
    (100_000, 0.1, 0.5, 20.0),
    (1_000_000, 0.1, 0.5, 3.0),
    (100_000, 1.0, 0.5, 20.0),
    (100_000, 0.01, 0.5, 20.0),
    (100_000, 0.001, 0.5, 20.0),
    (100_000, 0.1, 0.0, 20.0),
    (100_000, 0.1, 0.1, 20.0),
    (100_000, 0.1, 1.0, 20.0),
]
# The mean of the exponential time that follows the lookahead. ROSS's `--mean` is the mean of both together.
MEAN = 0.9
LONGER = 10


def run(command):
    try:
        # ROSS writes statistics into the current folder.
        done = subprocess.run(command, cwd=Path(ross).parent, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout + done.stderr if done.returncode == 0 else None


def rate_of_corsair(processes, lookahead, remote, end):
    words = [processes, workers, lookahead, MEAN, remote, end * LONGER]
    out = run([corsair, *map(str, words)])
    return float(out.split()[2]) if out else None


def rate_of_ross(processes, lookahead, remote, end, synch, ranks):
    command = ["mpirun", "--oversubscribe", "-n", str(ranks)] if ranks > 1 else []
    command += [ross, f"--synch={synch}", f"--nlp={processes // ranks}", f"--mean={MEAN + lookahead}", "--mult=2", "--memory=1000"]
    command += [f"--lookahead={lookahead}", f"--remote={remote}", "--start-events=1", f"--end={end}"]
    out = run(command)
    found = re.search(r"Event Rate \(events/sec\)\s+([\d.]+)", out or "")
    return float(found[1]) if found else None


def by_processor_time(command, events, end, longer):
    """Returns events per second of processor time without setup, from the difference between two lengths of run."""
    measured = []
    for last in (end, end * longer):
        before = os.times()
        out = run(command(last))
        after = os.times()
        if out is None:
            return None
        seconds = after.children_user + after.children_system - before.children_user - before.children_system
        measured.append((events(out), seconds))
    (few, short), (many, long) = measured
    return (many - few) / (long - short) if long > short else None


def processor_time():
    print(f"PHOLD, mean {MEAN}, one event per process, medians of {rounds} rounds, one thread; M events/s of processor time\n")
    print("| LPs | lookahead | remote | corsair | ROSS sequential | corsair / ROSS |")
    print("|---:|---:|---:|---:|---:|---:|")
    for processes, lookahead, remote, end in SWEEP:
        def ours(last):
            return [corsair, *map(str, [processes, 1, lookahead, MEAN, remote, last])]

        def theirs(last):
            options = {"synch": 1, "nlp": processes, "mean": MEAN + lookahead, "mult": 2, "lookahead": lookahead, "remote": remote, "start-events": 1, "end": last}
            return [ross, *(f"--{name}={value}" for name, value in options.items())]

        def net(out):
            return int(re.search(r"Net Events Processed\s+(\d+)", out)[1])

        rates = []
        for _ in range(rounds):
            one = by_processor_time(ours, lambda out: int(out.split()[0]), end, 2 * LONGER)
            other = by_processor_time(theirs, net, end, 2)
            if one and other:
                rates.append((one / 1e6, other / 1e6, one / other))
        if rates:
            one, other, ratio = (statistics.median(each) for each in zip(*rates))
            print(f"| {processes:,} | {lookahead} | {remote} | {one:.2f} | {other:.2f} | {ratio:.0f} |", flush=True)


def main():
    if os.environ.get("PROCESSOR_TIME"):
        return processor_time()
    print(f"PHOLD, mean {MEAN}, one event per process, medians of {rounds} rounds, {workers} workers or processes; M events/s\n")
    print("| LPs | lookahead | remote | corsair | ROSS sequential | conservative | optimistic | corsair / ROSS's best |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    rows = []
    for processes, lookahead, remote, end in SWEEP:
        contenders = {
            "corsair": lambda: rate_of_corsair(processes, lookahead, remote, end),
            "sequential": lambda: rate_of_ross(processes, lookahead, remote, end, 1, 1),
            "conservative": lambda: rate_of_ross(processes, lookahead, remote, end, 2, workers),
            "optimistic": lambda: rate_of_ross(processes, lookahead, remote, end, 3, workers),
        }
        rates = {name: [] for name in contenders}
        for _ in range(rounds):
            for name, measure in contenders.items():
                if (rate := measure()) is not None:
                    rates[name].append(rate / 1e6)
        middle = {name: statistics.median(all_) if all_ else None for name, all_ in rates.items()}
        rows.append({"processes": processes, "lookahead": lookahead, "remote": remote, **middle})
        best = max((middle[name] or 0) for name in contenders if name != "corsair")
        cells = ["failed" if middle[name] is None else f"{middle[name]:.2f}" for name in contenders]
        ratio = f"{middle['corsair'] / best:.0f}" if best and middle["corsair"] else "-"
        print(f"| {processes:,} | {lookahead} | {remote} | " + " | ".join(cells) + f" | {ratio} |", flush=True)
    MEASURED.write_text(json.dumps(rows, indent=2) + "\n")


main()
