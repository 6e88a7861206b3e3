"""What goes wrong, in one sentence a person can act on."""


class ScaleoutError(Exception):
    """A fault that the reader can mend: its text says what was wrong and what to type instead.

    `status` is the exit status of the command line (1 or 2). A notebook shows the text alone.
    """

    status = 2

    def _render_traceback_(self) -> list[str]:
        """Give IPython, which asks an exception how to show itself, the sentence alone."""
        return [str(self)]
