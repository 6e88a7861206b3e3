"""How `make lab` starts JupyterLab: for one person, on this machine, on the first notebook with its lab beside it."""

import json
import os
import sys
from pathlib import Path

from jupyterlab_server.workspaces_handler import WorkspacesManager

HERE = Path(__file__).resolve().parent

c = get_config()  # noqa: F821  (Jupyter puts it there)

c.ServerApp.root_dir = str(HERE.parent)

# The workspace as it is laid out for you the first time. After that Lab keeps it as you leave it.
c.LabApp.workspaces_dir = str(HERE.parent / ".setup/workspaces")
workspaces = WorkspacesManager(c.LabApp.workspaces_dir)
if not workspaces.list_workspaces():
    workspaces.save(
        "default", json.dumps(json.loads((HERE / "workspace.json").read_text(encoding="utf-8")))
    )

# The lab of each notebook opens beside it: see labextensions/scaleout-workspace.
c.LabApp.extra_labextensions_path = [str(HERE / "labextensions")]

# From elsewhere, come through an ssh tunnel. The token is Jupyter's own: new, and random, at every start.
c.ServerApp.ip = "localhost"

# The workshop works offline and its versions are pinned: no questions to the outside, no installing from Lab.
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
c.LabApp.news_url = None
c.LabApp.extension_manager = "readonly"
c.LanguageServerManager.autodetect = False

if os.geteuid() == 0:
    print(
        "You are root, so every cell you run is root too: fine in a container, unwise elsewhere.",
        file=sys.stderr,
    )
    c.ServerApp.allow_root = True
