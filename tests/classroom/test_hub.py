"""Two people on a real JupyterHub: 00 runs for both at once, no file of one is the other's to read, and
their jobs are on cores of their own.

    make hub && make test ARGS="-n 0 -s --everything tests/classroom/test_hub.py"

prints what a head needs. The hub is docs/hub.md's, but for its login: it asks nobody for a password, on the
loopback address, and only for this test."""

import asyncio
import contextlib
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import psutil
import pytest
from helpers import ROOT, pss_mib, until
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import websocket_connect

from scaleout import machine
from scaleout.base.paths import side
from scaleout.teaching.release import release

LIMIT_S = 900
pytestmark = [
    pytest.mark.mpi,
    pytest.mark.slow,
    pytest.mark.choice,
    pytest.mark.timeout(LIMIT_S + 100),
]

USERS = ("scaleout-one", "scaleout-two")
COURSE = "scaleout-workshop"
PAGE = [line.strip() for line in (ROOT / "docs/hub.md").read_text().splitlines()]
CONFIG = """
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allowed_users = {users}
c.JupyterHub.bind_url = "http://127.0.0.1:{ports[0]}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{ports[1]}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{ports[2]}"
c.JupyterHub.services = [{{"name": "test", "api_token": "{token}"}}]
scopes = ["read:users", "admin:servers", "access:servers"]
c.JupyterHub.load_roles = [{{"name": "test", "services": ["test"], "scopes": scopes}}]
c.Spawner.environment = {{"SCALEOUT_QUICK": "1", "SCALEOUT_LEASES": "{shared}/cores"}}
"""
# Each job waits for the other's word, so both run at the same time.
WHERE = """
import json, os, pathlib, time
shared = pathlib.Path({shared!r})
about = {{"cpus": sorted(os.sched_getaffinity(0)), "keys": [k for k in os.environ if "TOKEN" in k]}}
new = shared / f"{{os.getuid()}}.new"
new.write_text(json.dumps(about))
new.rename(new.with_suffix(".json"))
end = time.monotonic() + 120
while len(list(shared.glob("*.json"))) < 2 and time.monotonic() < end:
    time.sleep(0.1)
"""
RUN = """
import pathlib, subprocess
pathlib.Path("where.py").write_text({where!r})
subprocess.run(["scaleout", "run", "where.py", "-n", "1", "-t", "1"], check=True)
"""
# What a person can read of another, in the folders where both may have files.
READ = """
import os, sys
other, *tops = sys.argv[1:]
for top in tops:
    for folder, _, files in os.walk(top):
        for name in files:
            path = os.path.join(folder, name)
            try:
                flags = os.O_RDONLY | os.O_NONBLOCK
                if os.lstat(path).st_uid == int(other) and os.read(os.open(path, flags), 1):
                    print(path)
            except OSError:
                pass
"""


class Hub:
    """A running hub, asked by its REST interface."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, token: str) -> None:
        self.process, self.address = process, f"127.0.0.1:{port}"
        self.headers = {"Authorization": f"token {token}"}
        self.peak = dict.fromkeys(USERS, 0.0)

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        request = HTTPRequest(
            f"http://{self.address}/{path}",
            method,
            self.headers,
            json.dumps(body) if method == "POST" else None,
            request_timeout=120,
        )
        answer = (await AsyncHTTPClient().fetch(request)).body
        return json.loads(answer) if answer else None

    async def start(self, user: str) -> float:
        """Starts a person's JupyterLab; the seconds until it answers."""
        begin = time.monotonic()
        await self.ask("POST", f"hub/api/users/{user}/server")
        while not (
            (await self.ask("GET", f"hub/api/users/{user}"))["servers"].get("", {}).get("ready")
        ):
            await asyncio.sleep(0.1)
        await self.ask("GET", f"user/{user}/api/status")
        return time.monotonic() - begin

    async def run(self, user: str, codes: list[str]) -> str:
        """What a new kernel of this person prints for these cells."""
        wanted = {"name": "python3", "path": f"{COURSE}/notebooks"}
        kernel = (await self.ask("POST", f"user/{user}/api/kernels", wanted))["id"]
        there = f"ws://{self.address}/user/{user}/api/kernels/{kernel}/channels"
        channel = await websocket_connect(HTTPRequest(there, headers=self.headers))
        printed = ""
        for code in codes:
            header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "session": user}
            header |= {"username": user, "version": "5.3", "date": ""}
            content = {"code": code, "silent": False, "allow_stdin": False}
            message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
            await channel.write_message(json.dumps({**message, "channel": "shell", "buffers": []}))
            waiting = {"reply", "idle"}
            while waiting:
                text = await asyncio.wait_for(channel.read_message(), LIMIT_S / 3)
                assert text is not None, f"{user}'s kernel has hung up"
                said = json.loads(text)
                if said["parent_header"].get("msg_id") != header["msg_id"]:
                    continue
                if said["msg_type"] == "stream":
                    printed += said["content"]["text"]
                elif said["msg_type"] == "execute_reply":
                    assert said["content"]["status"] == "ok", (user, code, said["content"])
                    waiting.discard("reply")
                elif said["content"].get("execution_state") == "idle":
                    waiting.discard("idle")
        channel.close()
        await self.ask("DELETE", f"user/{user}/api/kernels/{kernel}")
        return printed

    async def watch(self) -> None:
        """The memory of each person's processes, every second."""
        while True:
            for user in USERS:
                now = sum(map(pss_mib, of(user)))
                self.peak[user] = max(self.peak[user], now)
            await asyncio.sleep(1.0)

    def own_mib(self) -> float:
        """The memory of the hub and its proxy, which run as root."""
        family = [self.process.pid, *(p.pid for p in psutil.Process(self.process.pid).children())]
        return sum(pss_mib(pid) for pid in family if Path(f"/proc/{pid}").stat().st_uid == 0)


def of(user: str) -> list[int]:
    """What runs for a person."""
    number = pwd.getpwnam(user).pw_uid
    seen = psutil.process_iter(["uids", "status"])
    alive = [p for p in seen if p.info["status"] != psutil.STATUS_ZOMBIE]
    return [p.pid for p in alive if p.info["uids"] and p.info["uids"].real == number]


@contextlib.contextmanager
def people(top: Path) -> Iterator[None]:
    """Two users of this machine, each with the course in a home of their own."""
    try:
        for user in USERS:
            home = ["--create-home", "--home-dir", str(top / user), "--key", "HOME_MODE=0700"]
            subprocess.run(["useradd", *home, user], check=True)
            release(top / user / COURSE)
            subprocess.run(["chown", "-R", f"{user}:", top / user], check=True)
        yield
    finally:
        for user in USERS:
            with contextlib.suppress(KeyError):
                for pid in of(user):
                    os.kill(pid, signal.SIGKILL)
                subprocess.run(["userdel", "--force", user], check=True)


@contextlib.contextmanager
def hub_for(top: Path, env: Path) -> Iterator[Hub]:
    """A hub on ports of its own."""
    with contextlib.ExitStack() as taken:
        sockets = [taken.enter_context(socket.socket()) for _ in range(3)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in sockets]
    own, token = top / "hub", secrets.token_hex(16)
    own.mkdir(mode=0o700)
    lines = "\n".join(line for line in PAGE if line.startswith("c."))
    ours = CONFIG.format(users=set(USERS), ports=ports, token=token, shared=top / "shared")
    (own / "jupyterhub_config.py").write_text(f"{lines}\n{ours}")
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    inherited["PATH"] = f"{env / 'bin'}:{os.environ['PATH']}"
    said = own / "said.txt"
    with said.open("wb") as out:
        process = subprocess.Popen(
            ["jupyterhub"], cwd=own, env=inherited, stdout=out, stderr=out, start_new_session=True
        )
    try:
        until(lambda: "JupyterHub is now running" in said.read_text(), what="a hub")
        yield Hub(process, ports[0], token)
    except BaseException:
        print(said.read_text()[-6000:])
        raise
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


async def readable(python: Path, top: Path) -> dict[str, set[str]]:
    """The files of the other that each person can read at this moment."""
    tops = (str(top), tempfile.gettempdir(), "/var/tmp", "/dev/shm", "/run")
    found = {}
    for user, other in zip(USERS, reversed(USERS), strict=True):
        words = ["-I", "-S", "-c", READ, str(pwd.getpwnam(other).pw_uid), *tops]
        who: dict[str, Any] = {"user": user, "group": user, "extra_groups": []}
        look = await asyncio.create_subprocess_exec(
            python, *words, cwd="/", stdout=subprocess.PIPE, **who
        )
        found[user] = set((await look.communicate())[0].decode().splitlines())
    return found


async def a_morning(hub: Hub, python: Path, top: Path) -> dict[str, set[str]]:
    """Both begin, run 00, and run a job at the same time; what each could read of the other."""
    started = {user: await hub.start(user) for user in USERS}
    watch = asyncio.create_task(hub.watch())
    await asyncio.sleep(3.0)
    idle = dict(hub.peak)
    book = nbformat.read(top / USERS[0] / COURSE / "notebooks/00_welcome.ipynb", as_version=4)
    cells = [cell.source for cell in book.cells if cell.cell_type == "code"]
    run = RUN.format(where=WHERE.format(shared=str(top / "shared")))
    begin = time.monotonic()
    both = asyncio.gather(*(hub.run(user, cells) for user in USERS))
    found: dict[str, set[str]] = {user: set() for user in USERS}
    while not both.done():
        await asyncio.sleep(10.0)
        for user, files in (await readable(python, top)).items():
            found[user] |= files
    await both
    took, peak = time.monotonic() - begin, dict(hub.peak)
    await asyncio.gather(*(hub.run(user, [run]) for user in USERS))
    watch.cancel()
    for user, files in (await readable(python, top)).items():
        found[user] |= files
        print(f"\n{user}: JupyterLab after {started[user]:.1f} s, {idle[user]:.0f} MiB;", end=" ")
        print(f"at most {peak[user]:.0f} MiB in 00, which took {took:.0f} s for both")
    print(f"the hub and its proxy: {hub.own_mib():.0f} MiB")
    return found


@pytest.fixture(scope="module")
def seen() -> SimpleNamespace:
    """What was seen of a morning of two people; afterwards nothing of it is on the machine."""
    env = side("hub")
    if os.geteuid() or not shutil.which("useradd"):
        pytest.skip("only root can make two users and start servers in their names")
    if env is None:
        pytest.skip("no JupyterHub here: type  make hub")
    if len(machine.read_cores()[0]) < 2:
        pytest.skip("two people's jobs want two cores")
    probe = [env / "bin" / "python", "-c", "import scaleout, tornado"]
    if subprocess.run(probe, user="nobody", cwd="/", env={}, timeout=60).returncode:
        pytest.skip(f"{ROOT} is closed to other users: chmod a+rX on it, and on what it lies in")
    with tempfile.TemporaryDirectory(prefix="scaleout-hub-") as folder, people(top := Path(folder)):
        top.chmod(0o755)  # as /home is
        (top / "shared").mkdir()
        (top / "shared").chmod(0o1777)
        with hub_for(top, env) as hub:
            morning = a_morning(hub, env / "bin" / "python", top)
            seen = SimpleNamespace(readable=asyncio.run(asyncio.wait_for(morning, LIMIT_S)))
        seen.left = [psutil.Process(pid).cmdline() for user in USERS for pid in of(user)]
        seen.runs, seen.where, seen.shared = {}, {}, {}
        for user in USERS:
            results = top / user / COURSE / "results" / "00_welcome"
            runs = [json.loads(path.read_text()) for path in results.glob("*/run.json")]
            seen.runs[user] = runs
            file = top / "shared" / f"{pwd.getpwnam(user).pw_uid}.json"
            seen.where[user], seen.shared[user] = json.loads(file.read_text()), str(file)
    return seen


def test_00_runs_for_both(seen: SimpleNamespace) -> None:
    for user in USERS:
        assert {1, 2, 3} <= {run["ranks"] for run in seen.runs[user]}
        assert all(run["status"] == 0 for run in seen.runs[user])


def test_no_file_of_one_is_the_others_to_read(seen: SimpleNamespace) -> None:
    for user, other in zip(USERS, reversed(USERS), strict=True):
        assert seen.readable[user] == {seen.shared[other]}, "but for what the job showed on purpose"


def test_their_jobs_are_on_cores_of_their_own_and_hold_no_key(seen: SimpleNamespace) -> None:
    one, two = (set(seen.where[user]["cpus"]) for user in USERS)
    assert one and two and not one & two
    assert [seen.where[user]["keys"] for user in USERS] == [[], []]


def test_nothing_is_left_when_the_hub_ends(seen: SimpleNamespace) -> None:
    assert seen.left == []
