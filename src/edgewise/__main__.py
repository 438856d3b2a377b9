"""`python -m edgewise` is the command line."""

import sys

from edgewise.cli import main

sys.exit(main())
