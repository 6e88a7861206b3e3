"""JupyterLab as `make lab` starts it, in a real browser: the first notebook opens, runs, and shows its picture."""

import os
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address, token included, that `make lab` prints. It must end by itself when it is told to."""
    log = tmp_path_factory.mktemp("lab") / "log.txt"
    environment = {**os.environ, "SCALEOUT_RESULTS": str(log.parent), "SCALEOUT_QUICK": "1"}
    with log.open("w") as file:
        command = ["make", "lab", "ARGS=--no-browser"]
        make = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=file, stderr=file, start_new_session=True)
    try:
        end = time.monotonic() + 90
        while not (found := re.search(r"http://127\.0\.0\.1:\S+", log.read_text())):
            assert make.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.5)
        yield found[0]
    finally:
        family = psutil.Process(make.pid).children(recursive=True)
        os.killpg(make.pid, signal.SIGTERM)
        make.wait(60)
        _, left = psutil.wait_procs(family, timeout=30)
        assert left == [], f"still there after the server was told to end: {left}"


def test_the_server_is_closed_to_others(server: str) -> None:
    port = int(re.search(r":(\d+)/", server)[1])  # type: ignore[index]
    listening = {c.laddr.ip for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr.port == port}
    assert listening and listening <= {"127.0.0.1", "::1"}
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/api/contents", timeout=10)
    token = re.search(r"token=(\w{32,})", server)
    assert token, "no token, or a short one"
    urllib.request.urlopen(f"http://127.0.0.1:{port}/api/contents?token={token[1]}", timeout=10)


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (Debian: apt install chromium)")
@pytest.mark.timeout(240)
def test_the_first_notebook_opens_and_runs(server: str) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.goto(server)
        page.wait_for_selector(".jp-Notebook h1:has-text('know your machine')", timeout=60_000)
        page.click(".jp-Notebook h1")
        for _ in range(7):  # down to the picture of the machine
            page.keyboard.press("Shift+Enter")
        page.wait_for_selector(".jp-Notebook .jp-OutputArea-output img", timeout=120_000)
        assert page.locator(".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.stderr']").count() == 0
        assert page.locator("text=Jupyter news").count() == 0, "Lab asks about news"
        picture = page.locator(".jp-OutputArea-output img").first.bounding_box()
        assert picture and picture["width"] > 500, "the picture is smaller than the text beside it"
        browser.close()
