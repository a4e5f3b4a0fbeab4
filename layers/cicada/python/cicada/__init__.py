"""Cicada's library: all behaviour. Handlers, stacks, clients and the local cloud are thin around it."""

__version__ = "0.1.0"
