"""The documentation's site: MkDocs' hooks, and the command that builds it."""
