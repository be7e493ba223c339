"""The first code that runs in the single file."""

import sys

from app.__main__ import main

sys.exit(main())
