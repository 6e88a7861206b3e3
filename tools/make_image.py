"""Build the workshop's image, `scaleout`, from the Containerfile, and say how large it is.

    make image

It takes podman, buildah or docker, the first that works here. A site's pip settings (index, proxy,
certificates) reach the build as secrets, so that they are no part of the image. docs/image.md says
how to start it."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setup_env import ROOT, Stop, pip_settings, say

# What each is asked, to see whether it can build. Old docker knows no secrets; its buildx does.
BUILDERS = {"podman": ["--version"], "buildah": ["--version"], "docker": ["buildx", "version"]}
NAME = "scaleout"
# A folder of packages on this machine is none in the image.
HANDED = ("index-url", "extra-index-url", "proxy", "trusted-host", "timeout", "default-timeout")


def builder(environ: dict[str, str]) -> str:
    """The program that builds images here; Stop when there is none."""
    for name, question in BUILDERS.items():
        found = shutil.which(name, path=environ.get("PATH", os.defpath))
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        if found and subprocess.call([found, *question], env=environ, **quiet) == 0:
            return name
    raise Stop(
        "There is no podman, buildah or docker with buildx here to build an image with: "
        "type  sudo apt-get install podman  (Debian, Ubuntu) or  sudo dnf install podman."
    )


def secrets(listed: str, folder: Path) -> list[str]:
    """What `pip config list` shows of this site, as files in the folder, and the build's words for
    them."""
    found = pip_settings(listed)
    lines = ["[global]"]
    for name in HANDED:
        addresses = [each for each in found.get(name, []) if "file:" not in each]
        lines += [f"{name} = {' '.join(addresses)}"] * bool(addresses)
    certificates = " ".join(found.get("cert", []))
    if certificates:
        lines.append("cert = /etc/ssl/certs/ca-certificates.crt")
    (folder / "pip.conf").write_text("\n".join(lines) + "\n")
    words = [f"--secret=id=pip.conf,src={folder / 'pip.conf'}"]
    return words + [f"--secret=id=certificates,src={certificates}"] * bool(certificates)


def main() -> int:
    try:
        by = builder(dict(os.environ))
    except Stop as stop:
        say(str(stop))
        return 1
    pip = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(pip, capture_output=True, text=True, check=False).stdout
    with tempfile.TemporaryDirectory() as scratch:
        build = [by, "build", "--tag", NAME, "--file", "Containerfile"]
        # What has not changed since the last time is taken from there; docker does so unasked.
        build += ["--layers"] * (by != "docker")
        status = subprocess.call([*build, *secrets(listed, Path(scratch)), "."], cwd=ROOT)
    if status:
        say("The image was not built: mend what stands above, then type  make image  again.")
        return 1
    subprocess.call([by, "images", "--format", f"{NAME}: {{{{.Size}}}} unpacked", NAME])
    say("docs/image.md says how to start it.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
