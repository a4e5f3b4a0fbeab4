"""Cicada's library: all behaviour. Handlers, stacks, clients and the local cloud are thin around it."""

__version__ = "0.2.0"
"""The release: the only place that says it. See docs/releases.md."""
