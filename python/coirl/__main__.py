"""``python -m coirl`` and the ``coirl`` command: the command line, as the wheel brings it along."""

from __future__ import annotations

import signal
import sys

from . import _coirl


def main() -> None:
    """Runs the command line with the arguments of this process."""
    # The program has handlers of its own, and saves a checkpoint at the first Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_coirl.run(["coirl", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
