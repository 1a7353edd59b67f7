"""The command `corsair`: ``python -m corsair -a netflixoss -d 2``."""

import signal
import sys

from ._corsair import command


def main() -> None:
    """Runs the command with the arguments of this process, and exits with its exit code."""
    # Python acts on Ctrl-C only between its own instructions, and the command runs as a single instruction.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(command(sys.argv[1:]))


if __name__ == "__main__":
    main()
