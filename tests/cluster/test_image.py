"""The image: what opens it names what is in it. Built for real, it works offline, as its own user,
and leaves no process."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import make_image
import pytest
from helpers import ROOT, processes_with, until

STEPS = (ROOT / "Containerfile").read_text(encoding="utf-8")
FOLDER = re.findall(r"^WORKDIR (.+)$", STEPS, re.M)[-1]
USER = re.findall(r"^USER (.+)$", STEPS, re.M)[-1]
BASE = "debian:bookworm-slim"
NEEDED = ("buildah", "mmdebstrap", "unshare", "ip")
MISSING = [name for name in NEEDED if not shutil.which(name)]
WHY_NOT = f"builds an image as root, by {', '.join(NEEDED)} (missing: {', '.join(MISSING)})"
STORAGE = '[storage]\ndriver = "overlay"\ngraphroot = "{0}/graph"\nrunroot = "{0}/run"\n'


def test_what_opens_the_image_names_what_is_in_it() -> None:
    opened = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert (opened["workspaceFolder"], opened["remoteUser"]) == (FOLDER, USER) and USER != "root"
    assert (
        f"VOLUME {FOLDER}/results\n" in STEPS and f"={FOLDER}/results," in opened["workspaceMount"]
    )
    assert f"PATH={FOLDER}/.venv/bin:" in (ROOT / "apptainer.def").read_text()


def test_no_text_of_ours_stands_before_the_environment() -> None:
    """Else a changed page would bring 2 GiB along."""
    before = STEPS[: STEPS.rindex("\nFROM ")]
    copied = " ".join(re.findall(r"^COPY --chown=\w+ (.+) \S+$", before, re.M))
    assert copied == "pyproject.toml requirements/workshop.lock tools/setup_env.py"


def test_a_sites_packages_reach_the_build_as_secrets(tmp_path: Path) -> None:
    listed = (
        "global.extra-index-url='file:///opt/own https://me:word@site.example/simple'\n"
        "global.find-links='/opt/wheels'\n:env:.cert='/etc/site.pem'\n"
    )
    words = make_image.secrets(listed, tmp_path)
    assert words[1:] == ["--secret=id=certificates,src=/etc/site.pem"] and "word" not in str(words)
    conf = (tmp_path / "pip.conf").read_text()
    assert "extra-index-url = https://me:word@site.example/simple\n" in conf and "/opt/" not in conf
    assert make_image.secrets("", tmp_path) == words[:1]


def test_a_builder_that_does_not_work_is_passed_over(tmp_path: Path) -> None:
    for name, status in {"podman": 1, "buildah": 0}.items():
        with pytest.raises(make_image.Stop, match="type  sudo apt-get install podman"):
            make_image.builder({"PATH": str(tmp_path)})
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {status}\n")
        (tmp_path / name).chmod(0o755)
    assert make_image.builder({"PATH": str(tmp_path)}) == "buildah"


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """buildah("images"), in a storage of its own that has the image."""
    folder = tmp_path_factory.mktemp("storage")
    (folder / "storage.conf").write_text(STORAGE.format(folder))
    own = {"CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"), "BUILDAH_ISOLATION": "chroot"}
    environ = {**os.environ, **own}

    def call(*words: object, before: tuple[str, ...] = ("buildah",)) -> str:
        command = [*before, *map(str, words)]
        done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, text=True, timeout=2400)
        assert done.returncode == 0, command
        return done.stdout.strip()

    try:
        if subprocess.call(["buildah", "pull", BASE], env=environ):  # no registry of images here
            tar = folder / "base.tar"
            sources = Path("/etc/apt/sources.list.d/debian.sources")
            own_sources = [str(sources)] * sources.exists()
            call("--variant=minbase", "bookworm", tar, *own_sources, before=("mmdebstrap",))
            base = call("from", "scratch")
            call("add", base, tar, "/")
            call("commit", "--rm", base, BASE)
            tar.unlink()
        path = folder / "bin"  # buildah alone, whatever else could build
        path.mkdir()
        (path / "buildah").symlink_to(str(shutil.which("buildah")))
        (path / "podman").symlink_to("/bin/false")
        only = {**environ, "PATH": f"{path}:{os.environ['PATH']}"}
        python = ["python3", str(ROOT / "tools/make_image.py")]
        assert subprocess.call(python, env=only, cwd=ROOT) == 0
        yield call
    finally:
        shutil.rmtree(folder)


@pytest.mark.choice
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(os.geteuid() != 0 or bool(MISSING), reason=WHY_NOT)
def test_built_for_real_it_works_offline_as_its_user(
    buildah: Callable[..., str], tmp_path: Path
) -> None:
    buildah("push", "scaleout", f"oci:{tmp_path}/oci:scaleout")
    blobs = [
        json.loads(path.read_text())
        for path in tmp_path.glob("oci/blobs/sha256/*")
        if path.stat().st_size < 9999
    ]
    (layers,) = ([layer["size"] for layer in blob["layers"]] for blob in blobs if "layers" in blob)
    print("layers, compressed, in MiB:", [round(size / 2**20, 1) for size in layers])
    assert sum(layers) < 1.8 * 2**30 and layers[-1] < 2**24

    results = tmp_path / "results"
    results.mkdir()
    results.chmod(0o777)  # the image's user is nobody here
    container = buildah("from", "scaleout")
    offline = ("unshare", "--net", "sh", "-c", 'ip link set lo up && exec buildah "$@"', "sh")
    mark = f"MARK={tmp_path}"

    def inside(line: str) -> str:
        # buildah invents a name for the host, and does not tell it to /etc/hosts as podman does.
        words = ("run", "--hostname", "localhost", "--env", mark)
        volume = f"{results}:{FOLDER}/results"
        return buildah(*words, "--volume", volume, container, "bash", "-c", line, before=offline)

    assert inside("id -un; pwd") == f"{USER}\n{FOLDER}"
    inside("make tour ARGS=--quick >&2")
    (page,) = results.glob("tour/*/index.html")
    print("the tour's page:", page)
    inside("SCALEOUT_QUICK=1 pytest -q tests/notebooks -k 00_welcome >&2")
    line = "from mpi4py import MPI; print('of', MPI.COMM_WORLD.size, flush=True)"
    assert inside(f'mpirun -n 2 python -m mpi4py -c "{line}"').split("\n") == ["of 2", "of 2"]
    submit = "scaleout submit 03_spmd --site sites/mini.toml -n 2 -N 2"
    assert "nothing of it is left" in inside(f"make cluster && {submit} && make cluster-off")
    until(lambda: not processes_with(*mark.split("=")), 10, "the end of every process")
