"""The command line: parse, call, print. No mathematics lives here."""

import signal
import threading

__all__ = ["main"]


def main() -> None:
    """Run a command. Until all is loaded, Ctrl-C just ends the process: there is nothing to tidy up or to say."""
    if threading.current_thread() is not threading.main_thread():
        before = None
    else:
        before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        import lasca.cli.commands  # noqa: F401  the verbs register themselves
        from lasca.cli.app import main as run
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
    run()
