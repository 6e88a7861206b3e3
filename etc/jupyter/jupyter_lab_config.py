"""How `make lab` starts JupyterLab: for one person, on this machine, on the first notebook."""

import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821  (Jupyter puts it there)

c.ServerApp.root_dir = str(Path(__file__).resolve().parents[2])
c.LabApp.default_url = "/lab/tree/notebooks/00_welcome.ipynb"

# From elsewhere, come through an ssh tunnel. The token is Jupyter's own: new, and random, at every start.
c.ServerApp.ip = "localhost"

# The workshop works offline and its versions are pinned: no questions to the outside, no installing from Lab.
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
c.LabApp.news_url = None
c.LabApp.extension_manager = "readonly"
c.LanguageServerManager.autodetect = False

if os.geteuid() == 0:
    print("You are root, so every cell you run is root too: fine in a container, unwise elsewhere.", file=sys.stderr)
    c.ServerApp.allow_root = True
