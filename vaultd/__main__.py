"""`python -m vaultd` and the `vaultd` script."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; the exit code. `vaultd hook` is answered before anything heavy is loaded."""
    if sys.argv[1:2] == ["hook"] and "-h" not in sys.argv and "--help" not in sys.argv:
        from vaultd.cli.hook import run_hook

        return run_hook(sys.argv[2:])
    from vaultd.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
