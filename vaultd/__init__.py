"""One long-term memory for coding agents, kept as a plain Markdown git vault."""

__version__ = "0.1.0"
