"""What goes wrong, in one sentence a person can act on."""

import errno

# What a machine says that is full, or that lets nobody open more files: no fault of the site or ours.
FULL = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
WHEN_FULL = (
    "this machine has no room for more now: take fewer ranks, end other jobs, or look at  ulimit -a"
)


class ScaleoutError(Exception):
    """A fault that the reader can mend: its text says what was wrong and what to type instead.

    `status` is the exit status of the command line (1 or 2). A notebook shows the text alone.
    """

    status = 2

    def _render_traceback_(self) -> list[str]:
        """Give IPython, which asks an exception how to show itself, the sentence alone."""
        return [str(self)]
