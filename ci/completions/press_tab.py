#!/usr/bin/env python3
"""Types lines into shells, presses tab, and compares what stands there then."""

import fcntl
import os
import pathlib
import pty
import re
import select
import signal
import struct
import sys
import tempfile
import termios
import time

SHOP = """{"arch": "shop", "version": "arch-0.1", "services": [
  {"name": "cart", "package": "service", "count": 1, "endpoints": [{"name": "list", "steps": [{"work": "1ms"}]}]},
  {"name": "www", "package": "denominator", "dependencies": ["cart"]}]}
"""

# What is typed, and what stands there after tab; the `@` typed behind it shows whether a space was added.
CASES = [
    ("corsair -a lam", "corsair -a lamp @"),
    ("corsair --arch=lam", "corsair --arch=lamp @"),
    ("corsair -a sho", "corsair -a shop @"),
    ("corsair -a netfl", "corsair -a netflix@"),
    ("corsair -a ./json_arch/sh", "corsair -a ./json_arch/shop_arch.json @"),
    ("corsair compare la", "corsair compare lamp @"),
    ("corsair compare lamp --set ser", "corsair compare lamp --set services.@"),
    ("corsair compare lamp --set services.mem", "corsair compare lamp --set services.memcache.@"),
    ("corsair compare lamp --set services.memcache.cou", "corsair compare lamp --set services.memcache.count=@"),
    ("corsair compare lamp --set=services.memcache.cou", "corsair compare lamp --set=services.memcache.count=@"),
    ("corsair compare lamp --set services.memcache.count=", "corsair compare lamp --set services.memcache.count=1 @"),
    ("corsair sweep -a shop --set load.w", "corsair sweep -a shop --set load.www.@"),
    ("corsair capacity -a lamp --find instances:mem", "corsair capacity -a lamp --find instances:memcache @"),
    ("corsair capacity -a shop --slo cart.l", "corsair capacity -a shop --slo cart.list @"),
    ("corsair gate sho", "corsair gate shop @"),
    ("corsair gate shop --base lam", "corsair gate shop --base lamp @"),
    ("corsair gate shop --set services.ca", "corsair gate shop --set services.cart.@"),
    ("corsair why lam", "corsair why lamp @"),
    ("corsair why shop --of cart.l", "corsair why shop --of cart.list @"),
    ("corsair stability sho", "corsair stability shop @"),
    ("corsair stability shop --set services.cart.cou", "corsair stability shop --set services.cart.count=@"),
    ("corsair stability shop --fault ca", "corsair stability shop --fault cart=@"),
    ("corsair patch lam", "corsair patch lamp @"),
    ("corsair hunt -a lam", "corsair hunt -a lamp @"),
    ("corsair hunt -a shop --budget err", "corsair hunt -a shop --budget errors @"),
    ("corsair maelstrom -w broad", "corsair maelstrom -w broadcast @"),
    ("corsair maelstrom --workload lin", "corsair maelstrom --workload lin-kv @"),
    ("corsair maelstrom --latency-dist exp", "corsair maelstrom --latency-dist exponential @"),
    ("corsair check --model regi", "corsair check --model register @"),
    ("corsair host ru", "corsair host run @"),
    ("corsair demo --op", "corsair demo --open @"),
    ("corsair --config nig", "corsair --config nightly @"),
    ("corsair --execu", "corsair --executor @"),
    ("corsair --executor thr", "corsair --executor threads @"),
    ("corsair capa", "corsair capacity @"),
]

SHELLS = {
    "bash": (["bash", "--noprofile", "--norc", "-i"], "PS1='>>> '; source <(corsair completions bash)\n"),
    "zsh": (
        ["zsh", "-f", "-i"],
        "PS1='>>> '; unset zle_bracketed_paste; autoload -U compinit; compinit -u -d .dump; source <(corsair completions zsh)\n",
    ),
    "zsh, autoloaded": (
        ["zsh", "-f", "-i"],
        "PS1='>>> '; unset zle_bracketed_paste; mkdir -p functions; corsair completions zsh >functions/_corsair; fpath=($PWD/functions $fpath); autoload -U compinit; compinit -u -d .dump2\n",
    ),
    "fish": (
        ["fish", "--no-config", "-i"],
        "function fish_prompt; printf '>>> '; end; set -g fish_autosuggestion_enabled 0; corsair completions fish | source\n",
    ),
}


class Terminal:
    def __init__(self, command: list[str], folder: str, programs: str) -> None:
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            environment = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": folder, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
            os.execvpe(command[0], command, environment)
        # Wide enough that no line wraps.
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.end, text.encode())

    def read(self, until: str | None, seconds: float) -> str:
        """What is printed until a text appears, or until nothing is printed for a moment."""
        printed, deadline = "", time.monotonic() + seconds
        while time.monotonic() < deadline:
            quiet = not select.select([self.end], [], [], 0.3)[0]
            if quiet and until is None:
                return printed
            if quiet:
                continue
            try:
                printed += os.read(self.end, 65536).decode(errors="replace")
            except OSError:
                return printed
            if until is not None and until in printed:
                return printed
        return printed

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.end)


def complete(terminal: Terminal, typed: str) -> str:
    """The line after tab. `echo` is put before it, so that the shell itself prints what it understood."""
    terminal.type(typed)
    terminal.read(None, 2)
    terminal.type("\t")
    terminal.read(None, 10)
    terminal.type("@\x01echo BEGIN \x05; echo 'E''ND'\r")
    printed = terminal.read("END\r\n", 10)
    terminal.read(None, 2)
    lines = [line for line in printed.replace("\r", "\n").split("\n") if line.startswith("BEGIN ")]
    return lines[-1].removeprefix("BEGIN ") if lines else repr(printed[-400:])


def main() -> None:
    programs = str(pathlib.Path(sys.argv[1]).resolve())
    wrong = 0
    for name, (command, setup) in SHELLS.items():
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "json_arch").mkdir()
            (pathlib.Path(folder) / "json_arch" / "shop_arch.json").write_text(SHOP)
            (pathlib.Path(folder) / "json_arch" / "nightly_conf.json").write_text("{}")
            terminal = Terminal(command, folder, programs)
            terminal.read(None, 10)
            terminal.type(setup)
            terminal.read(None, 20)
            before = wrong
            for typed, expected in CASES:
                found = complete(terminal, typed)
                # zsh joins a long flag and its value by `=`.
                if found not in (expected, re.sub(r"^(corsair --[a-z]+) @$", r"\1=@", expected)):
                    wrong += 1
                    print(f"{name}: '{typed}' became '{found}', expected '{expected}'", file=sys.stderr)
            terminal.close()
            print(f"{name}: {len(CASES) - (wrong - before)} of {len(CASES)} lines are completed")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
