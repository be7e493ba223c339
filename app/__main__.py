"""Where Causerie starts, from a checkout (`python -m app`), as `causerie`, and as the single file.

In order: child processes of the single file turn off here; text is UTF-8 whatever the locale; the log goes to
its file; the command line is read; without a command the window opens.  Every way out is an exit status: 0
fine, 1 an error that was told, 2 wrong usage, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence

from app import crash_report, logs, terminal
from engine.errors import Cancelled, CauserieError

EXIT_ERROR = 1
EXIT_CTRL_C = 130
EXIT_BROKEN_PIPE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program with the arguments (those of the process where None) and returns the exit status."""
    multiprocessing.freeze_support()
    terminal.use_utf8()
    logs.start()
    try:
        from app import command_line

        status = command_line.run(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # whoever read us has left; what Python still wants to write at exit goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except KeyboardInterrupt:
        return EXIT_CTRL_C
    except Cancelled as error:
        terminal.tell_error(error)
        return EXIT_CTRL_C
    except CauserieError as error:
        terminal.tell_error(error)
    except MemoryError:
        terminal.tell_error(
            CauserieError(
                "The memory of this computer is used up.", "Choose a smaller context size or model."
            )
        )
    except Exception as error:  # the last border: no person ever sees a traceback
        terminal.tell_error(crash_report.write(error))
    return EXIT_ERROR


if __name__ == "__main__":
    sys.exit(main())
