"""``python -m cicada_cli``."""

import sys

from cicada_cli.main import main

sys.exit(main())
