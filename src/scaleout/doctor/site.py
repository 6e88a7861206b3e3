"""What `scaleout doctor --site` looks at: each host before a job goes there, or the Slurm that
takes it."""

import math
import re
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from tempfile import NamedTemporaryFile
from typing import Any

from ..errors import ScaleoutError
from ..jobs import hosts
from ..jobs import slurm_commands as slurm
from ..jobs.site import Site
from ..paths import results
from .checks import Check, short

CLOCK_S = 2.0


def judge(host: str, said: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[Check]:
    """The checks of one host."""
    name = f"host {host}"
    if "error" in said and not said.get("reached"):
        fix = f"ssh-copy-id {host}   (and try  ssh {host} true)"
        yield Check(name, "fail", f"cannot be reached without a password: {said['error']}", fix)
        return
    if "error" in said or "broken" in said:
        seen = (
            f"has no environment in {short(ours['prefix'])}: {said.get('error') or said['broken']}"
        )
        yield Check(
            name,
            "fail",
            seen,
            f"share that folder with {host}, or run  make lab  there in the same place",
        )
        return
    differ = [
        f"{key} {said['versions'].get(key, 'missing')} (here {value})"
        for key, value in ours["versions"].items()
        if said["versions"].get(key) != value
    ]
    status = "fail" if differ else "ok"
    seen = (
        f"not the environment that is here: {', '.join(differ)}"
        if differ
        else "the same environment"
    )
    yield Check(name, status, seen, "git pull && make lab   (on that host)" if differ else "")
    if said["mpirun"] != ours["mpirun"]:
        seen = f"its mpirun is {said['mpirun']}, ours is {ours['mpirun']}"
        yield Check(f"{name}: MPI", "fail", seen, f"make clean && make lab   (on {host})")
    else:
        yield Check(f"{name}: MPI", "ok", said["mpirun"])
    if said["back"] and not said["address_back"]:
        seen = (
            f"cannot reach us by the name {ours['home']} ({said['back']}), but by {said['address']}"
        )
        yield Check(
            f"{name}: way back",
            "fail",
            seen,
            f'options = ["-localhost", "{said["address"]}"]   (site file)',
        )
    elif said["back"]:
        seen = f"cannot reach us at {ours['home']}: {said['back']}"
        yield Check(
            f"{name}: way back",
            "fail",
            seen,
            "open the firewall between the hosts for all ports above 1024",
        )
    else:
        yield Check(f"{name}: way back", "ok", f"reaches us at {ours['home']}")
    off = max(
        said["time"] - said["ended"], said["began"] - said["time"], 0.0
    )  # by at least so much
    seen = f"{'is off by' if off > CLOCK_S else 'agrees within'} {max(off, said['ended'] - said['began']):.1f} s"
    clock = (
        ("warn", "timedatectl set-ntp true   (as root, on that host)")
        if off > CLOCK_S
        else ("ok", "")
    )
    yield Check(f"{name}: clock", clock[0], seen, clock[1])
    if not (said["folder"] and said["shared"]):
        what = "this folder" if not said["folder"] else "our results folder"
        fix = "share it between the hosts, or  export SCALEOUT_RESULTS=A_SHARED_FOLDER"
        yield Check(f"{name}: files", "fail", f"does not see {what}", fix)
    else:
        yield Check(f"{name}: files", "ok", "sees this folder and our results")
    free = said["cores"] - said["load"]
    seen = f"about {max(0, round(free))} of {said['cores']} free (load {said['load']:.1f})"
    busy = free < 0.5 * said["cores"]
    yield Check(
        f"{name}: cores",
        "warn" if busy else "ok",
        seen,
        "wait, or take another host: see  uptime" if busy else "",
    )


def _hosts(site: Site) -> list[Check]:
    at = [site.options[i + 1] for i, word in enumerate(site.options[:-1]) if word == "-localhost"]
    home = at[0] if at else socket.gethostname()
    ours = {
        "versions": hosts.versions(),
        "mpirun": hosts.mpirun(),
        "prefix": sys.prefix,
        "home": home,
    }
    with (
        socket.create_server(("", 0)) as back,
        NamedTemporaryFile(dir=results(), prefix=".doctor-") as mark,
    ):
        port = back.getsockname()[1]
        with ThreadPoolExecutor(len(site.hosts)) as pool:
            said = list(
                pool.map(lambda host: hosts.ask(site, host, home, port, mark.name), site.hosts)
            )
    return [
        check
        for host, answer in zip(site.hosts, said, strict=True)
        for check in judge(host, answer, ours)
    ]


def _slurm(site: Site) -> Iterator[Check]:
    """What Slurm says to the smallest job of this site, which it is asked about but not given."""
    if not slurm.there_is("sbatch"):
        yield Check(
            "Slurm", "fail", "there is no sbatch here", "log in to the cluster, and ask there"
        )
        return
    ping = slurm.ask("scontrol", "ping")
    if "UP" not in ping.stdout:
        seen = f"its controller does not answer: {(ping.stdout + ping.stderr).strip() or 'no word'}"
        yield Check(
            "Slurm", "fail", seen, "ask the cluster's people; `sinfo` shows when it is back"
        )
        return
    yield Check("Slurm", "ok", ping.stdout.strip())
    asked = {"partition": site.partition, "account": site.account, "reservation": site.reservation}
    words = [f"--{key}={value}" for key, value in asked.items() if value]
    where = ["--partition", site.partition] if site.partition else []
    listed = slurm.ask("sinfo", "--noheader", "--format=%P %D %T %l", *where).stdout.split("\n")
    shown = "; ".join(
        "{}: {} {}, up to {}".format(*line.split()) for line in listed if len(line.split()) == 4
    )
    tried = slurm.ask(
        "sbatch", "--test-only", f"--time={site.minutes}", *words, *site.sbatch, "--wrap=true"
    )
    limits = _limits(listed)
    if tried.returncode:
        said = slurm.complaint(tried.stderr) or "no word"
        yield Check(
            "Slurm takes it",
            "fail",
            f"{said} ({shown})",
            "correct partition, account or minutes in the site file",
        )
    elif limits and site.minutes > max(limits):
        yield Check(
            "Slurm takes it",
            "fail",
            f"{site.minutes} minutes are more than the partition allows: it would wait for ever ({shown})",
            f"minutes = {math.floor(max(limits))}   (site file), or another partition",
        )
    else:
        yield Check("Slurm takes it", "ok", shown)


def _limits(listed: Iterable[str]) -> list[float]:
    """The time limits, in minutes, of the partitions that a job of this site may go to."""
    rows = [fields for line in listed if len(fields := line.split()) == 4]
    chosen = [row for row in rows if row[0].endswith("*")] or rows
    return [_minutes(row[3]) for row in chosen]


def _minutes(limit: str) -> float:
    """A limit as Slurm writes it, such as 20:00, 2:00:00 or 1-00:00:00, in minutes."""
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", limit)
    if not found:  # infinite, or n/a
        return math.inf
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return days * 1440 + hours * 60 + minutes + seconds / 60


def checks(site: Site) -> list[Check]:
    """Asks every host of the site, all at once, or its Slurm; at most half a minute."""
    if site.scheduler:
        return list(_slurm(site))
    if not site.hosts:
        return [Check("site", "ok", "this machine alone")]
    try:
        return _hosts(site)
    except ScaleoutError as error:
        return [Check("site", "fail", str(error).partition(": type ")[0], "mend `results` first")]
