"""One module per command.

Each has HELP (one line), `configure(parser)` and `run(args, terminal) -> int` (the exit code). A module imports only
the standard library at the top: `vaultd --help` reads all of them.
"""
