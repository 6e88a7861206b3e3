"""A notebook's kernel, for what goes wrong in it."""

import queue
import time
from collections.abc import Callable
from pathlib import Path

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import KernelManager, start_new_kernel


class Notebook:
    """A kernel as JupyterLab starts it, and what its cells print."""

    def __init__(self, folder: Path) -> None:
        self.manager: KernelManager
        self.client: BlockingKernelClient
        self.manager, self.client = start_new_kernel(
            kernel_name="python3", cwd=str(folder), startup_timeout=300
        )

    def start_cell(self, code: str) -> str:
        return self.client.execute(code)

    def messages(
        self, cell: str, until: Callable[[dict], bool], within_s: float = 120
    ) -> list[dict]:
        """The messages of one cell up to the first that `until` accepts."""
        end, found = time.monotonic() + within_s, []
        while not found or not until(found[-1]):
            try:
                message = self.client.get_iopub_msg(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"not within {within_s:g} s; so far: {found}") from None
            if message["parent_header"].get("msg_id") == cell:
                found.append(message)
        return found

    def to_the_end(self, cell: str, within_s: float = 120) -> list[dict]:
        return self.messages(
            cell, lambda message: message["content"].get("execution_state") == "idle", within_s
        )

    def run_cell(self, code: str) -> list[dict]:
        return self.to_the_end(self.start_cell(code))

    def said(self, code: str) -> str:
        """What a cell that ends well has printed, its engines' words with it."""
        messages = self.run_cell(code)
        assert not [message for message in messages if message["msg_type"] == "error"], messages
        return text(messages)


def text(messages: list[dict]) -> str:
    contents = [message["content"] for message in messages]
    return "".join(c.get("text", "") + c.get("data", {}).get("text/plain", "") for c in contents)
