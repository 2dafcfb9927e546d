"""`python -m vaultd` and the `vaultd` script."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the command line; the exit code. `vaultd hook` is answered before anything heavy is loaded."""
    if sys.getfilesystemencoding() != "utf-8":
        # Names and pages are UTF-8 whatever the locale says: once more, in UTF-8 mode.
        os.execv(sys.executable, [sys.executable, "-X", "utf8", "-P", "-m", "vaultd", *sys.argv[1:]])
    if sys.argv[1:2] == ["hook"] and "-h" not in sys.argv and "--help" not in sys.argv:
        from vaultd.cli.hook import run_hook

        return run_hook(sys.argv[2:])
    from vaultd.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
