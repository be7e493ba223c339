"""Where Causerie starts, from a checkout (`python -m app`), as `causerie`, and as the single file.

In order: child processes of the single file turn off here; text is UTF-8 whatever the locale; the log goes to
its file; the command line is read; without a command the window opens.  Every way out is an exit status: 0
fine, 1 an error that was told, 2 wrong usage, 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence

from app import crash_report, logs, terminal
from app.errors import OutputError
from engine.errors import Cancelled, CauserieError

EXIT_ERROR = 1
EXIT_CTRL_C = 130
EXIT_BROKEN_PIPE = 141
FULL = frozenset(
    getattr(errno, name) for name in ("ENOSPC", "EFBIG", "EIO", "EDQUOT") if hasattr(errno, name)
)
"""What the system answers where nothing more can be written to a file or a device."""


def main() -> int:
    """The whole process: runs what its arguments ask for and returns the exit status."""
    multiprocessing.freeze_support()
    status = run_program(sys.argv[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a late Ctrl-C must not change the status of what is done
    return status


def run_program(arguments: Sequence[str]) -> int:
    """Runs the program with these arguments; returns the exit status, whatever happens.

    Only wrong usage and a plea for help end in `SystemExit`, as argparse has it.
    """
    terminal.fill_missing_streams()
    terminal.use_utf8()
    logs.start()
    try:
        from app import command_line

        try:
            return command_line.run(list(arguments))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read us has left
        _write_nothing_more()
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
        if isinstance(error, OSError) and _is_failed_output(error):
            _write_nothing_more()
            terminal.tell_error(OutputError(f"The output could not be written: {error.strerror}."))
        else:
            terminal.tell_error(crash_report.write(error))
    return EXIT_ERROR


def _is_failed_output(error: OSError) -> bool:
    """Writing to a stream that is open already names no file, unlike opening one."""
    return error.filename is None and error.errno in FULL


def _write_nothing_more() -> None:
    """What Python still wants to write to stdout at its exit goes nowhere, instead of failing again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
