"""A host that nobody knows is named, not Hydra's own words about it."""

import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import run_script

from scaleout.jobs.job import JobFailed
from scaleout.jobs.site import Site

pytestmark = [pytest.mark.mpi]


def test_a_host_that_cannot_be_reached_is_named(
    script: Callable[..., Path], tmp_path: Path, results: Path
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text("#!/bin/sh\necho 'ssh: Could not resolve hostname' >&2\nexit 255\n")
    ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
    site = Site(hosts=("nosuchhost",), ssh=str(ssh))
    with pytest.raises(JobFailed) as caught:
        run_script(script("print(1)"), site=site)
    assert str(caught.value) == (
        "nosuchhost cannot be reached over ssh: correct the name, or type  ssh nosuchhost true  "
        "to see why."
    )
    assert caught.value.status != 0
