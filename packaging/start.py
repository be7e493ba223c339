"""The first code that runs in the single file."""

import os
import sys

from app.__main__ import main

# The bootloader points the linker at the unpacked libraries, which it has read by now.  Programs that we start,
# such as the browser for a link, must find their own.
before = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
if before is not None:
    os.environ["LD_LIBRARY_PATH"] = before
else:
    os.environ.pop("LD_LIBRARY_PATH", None)

sys.exit(main())
