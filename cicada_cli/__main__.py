"""``cicada`` and ``python -m cicada_cli``."""

from __future__ import annotations

import sys

from cicada_cli.main import main

if __name__ == "__main__":
    sys.exit(main())
