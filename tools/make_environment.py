"""Write environment.yml, the workshop for conda (a part of make lock).

It is made from pyproject.toml and requirements/workshop.lock.

--check writes nothing, and ends with 1 where the three differ (a part of make lint)."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = """\
# The workshop for conda, JupyterHub images and Binder: what pyproject.toml names, in the versions of
# requirements/workshop.lock.
# Written by: make lock. Only {horovod} is missing below: it is compiled here, against the packages below, and pip
# would begin with that before they are in place. One more command compiles it and puts in the workshop's own package:
#
#   conda env create -f environment.yml && conda activate scaleout
#   python tools/setup_env.py
#
# After that `make lab` and the others use this environment, as long as it is active.
# Not yet tried with conda itself: make lint compares this file with the lock, but no conda has solved it. If yours
# refuses it, `make lab` without conda makes the same environment in .venv.
name: scaleout
channels:
  - conda-forge
  - nodefaults
dependencies:
  - python=3.11
  - pip
  - make
  - gxx_linux-64=13
  - sysroot_linux-64=2.28  # the C library that the wheels below were built for
  - pip:
"""
WHY = {
    "scikit-learn-intelex": "brings daal4py",
    "tensorflow-cpu": "TensorFlow with oneDNN, without what GPUs need",
}


def direct(project: str) -> set[str]:
    """The packages that pyproject.toml names, extras and groups included."""
    table = tomllib.loads(project)
    lists = [table["project"]["dependencies"]]
    lists += [*table["project"]["optional-dependencies"].values()]
    lists += [*table["dependency-groups"].values()]
    names = {re.match(r"[\w.-]+", line)[0] for lines in lists for line in lines}
    return names - {table["project"]["name"]}


def environment(project: str, lock: str) -> str:
    """The text of environment.yml."""
    pins = dict(re.findall(r"^([a-z0-9-]+)==([^ ]+)", lock, re.M))
    lines = [HEAD.format(horovod=f"horovod=={pins['horovod']}")]
    for name in sorted(direct(project) - {"horovod"}):
        why = f"  # {WHY[name]}" if name in WHY else ""
        lines.append(f"      - {name}=={pins[name]}{why}\n")
    return "".join(lines)


def main(only_check: bool) -> int:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lock = (ROOT / "requirements/workshop.lock").read_text(encoding="utf-8")
    if missing := direct(project) - set(re.findall(r"^([a-z0-9-]+)==", lock, re.M)):
        print(f"requirements/workshop.lock has no {', '.join(sorted(missing))}: type  make lock")
        return 1
    path = ROOT / "environment.yml"
    text = environment(project, lock)
    if not only_check:
        path.write_text(text, encoding="utf-8")
    elif path.read_text(encoding="utf-8") != text:
        print("environment.yml differs from pyproject.toml and requirements/workshop.lock: type")
        print("  python tools/make_environment.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] == ["--check"]))
