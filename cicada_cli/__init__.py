"""The command line: ``cicada ask``, ``chat``, ``load`` and ``search``."""
