"""The command ``loopdyn``: it takes Ctrl-C from its first moment to its last, also while loopdyn is being imported."""

import _thread
import gc
import os
import signal
import sys
import threading

# Objects made before Python searches unused cycles among them: imports make many and keep them, and with its 700 a
# twentieth of the time of a short command is spent looking.
COLLECT_AFTER = 400_000
PRESS_AGAIN = 0.05  # s after which a Ctrl-C that was lost is repeated, in code that can raise by then


def _press() -> None:
    """Press Ctrl-C in the main thread, which a real signal also wakes where it waits."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:  # Windows
        _thread.interrupt_main()


def _repeat_ctrl_c(lost: "sys.UnraisableHookArgs") -> None:
    """Repeat a Ctrl-C that came while an object was being deleted, where Python prints what is raised, and goes on."""
    if lost.exc_type is KeyboardInterrupt:
        again = threading.Timer(PRESS_AGAIN, _press)
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(lost)


def main() -> None:
    """Run the command line; Ctrl-C outside of a command is answered in words, too, with the exit code 130."""
    said = "stopped by Ctrl-C before anything was done"
    sys.unraisablehook = _repeat_ctrl_c
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # to look for them in all packages takes as long
    try:
        from loopdyn.app.cli import main as run

        said = "stopped by Ctrl-C"
        run()
    except KeyboardInterrupt:
        print(said, file=sys.stderr)
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: a Ctrl-C while Python ends must not kill it
