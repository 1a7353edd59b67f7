"""The command, as it is part of the package."""

import subprocess
import sys


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "corsair", *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def test_the_module_prints_what_the_command_prints(command, tmp_path):
    arguments = ["-a", "lamp", "-d", "2", "--seed", "7", "--format", "json", "--out", str(tmp_path)]
    ours, theirs = run(*arguments), command(*arguments)
    assert ours.returncode == 0, ours.stderr

    def digest(text: str) -> str:
        return next(line for line in text.replace(",", "\n").splitlines() if '"digest"' in line)

    assert digest(ours.stdout) == digest(theirs)


def test_a_flag_that_is_wrong_gives_exit_code_2_and_a_sentence():
    done = run("-d", "soon")
    assert done.returncode == 2
    assert "soon" in done.stderr


def test_help_is_printed_completely():
    done = run("--help")
    assert done.returncode == 0
    assert "capacity" in done.stdout
