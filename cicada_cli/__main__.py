"""``cicada`` and ``python -m cicada_cli``."""

from __future__ import annotations

import sys

_BROUGHT = frozenset({"Stemmer", "boto3", "botocore", "charset_normalizer", "markdown_it", "numpy", "rich", "yaml"})
"""What the extra ``cli`` installs, by the names that are imported."""


def main() -> int:
    """Run the command; without its packages, say which extra brings them."""
    try:
        from cicada_cli.main import main as run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _BROUGHT:
            raise
        print("cicada: the command needs the extra cli: pip install '.[cli]' in Cicada's repository", file=sys.stderr)
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())
