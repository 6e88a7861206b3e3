# Every target first sets up what it needs, in .venv or in the active conda environment;
# when nothing changed that costs a fraction of a second.
PYTHON ?= python3
ARGS ?=
IN_ENV = $(PYTHON) tools/setup_env.py $(if $(filter command,$(origin PYTHON)),--this-python)

.PHONY: help lab tour mpis intel ccl torch cluster cluster-off clean

help::
	@echo "make lab    open the workshop in JupyterLab"
	@echo "make tour   a short version of every topic, one page in results/   (ARGS=--quick: 4 to 6 minutes)"
	@echo "make cluster  a small Slurm on this machine, to learn the queue with;  make cluster-off ends it"
	@echo "make mpis   Intel MPI and Open MPI beside ours, for the comparison in 03"
	@echo "make intel  TensorFlow's OpenMP build beside ours, for 02 (370 MB, Python 3.11)"
	@echo "make ccl    Horovod on oneCCL beside ours, for 05 (700 MB, a minute to compile)"
	@echo "make torch  PyTorch for CPUs beside ours, for 09, 10, 11 and scripts of your own (270 MB, Python 3.11)"
	@echo "make clean  remove .venv and everything generated; your labs and results stay"
	@echo
	@echo "The first run builds the environment: 1 to 3 minutes on 2 cores. It needs Linux on x86-64,"
	@echo "Python 3.11 or 3.12 (make lab PYTHON=python3.12) and a C++ compiler."

lab:
	@exec env JUPYTER_CONFIG_PATH=$(CURDIR)/jupyterlab JUPYTER_CONFIG_DIR=$(CURDIR)/.setup/jupyter \
		$(IN_ENV) jupyter lab $(ARGS)

tour:
	@exec $(IN_ENV) scaleout tour $(ARGS)

mpis intel ccl torch:
	@exec $(IN_ENV) python tools/make_$@.py

cluster:
	@exec $(IN_ENV) python tools/mini_slurm.py on

cluster-off:
	@exec $(IN_ENV) python tools/mini_slurm.py off

clean:
	rm -rf .venv .side .setup build dist src/*.egg-info .pytest_cache .ruff_cache
	find . \( -name .git -o -name results \) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# From here on: not in the copy that a class gets (scaleout release cuts it off at this line).

.PHONY: test quick test-slurm test-all lint masters elsewhere pictures preview pages handouts hub canary image pack lock

help::
	@echo
	@echo "To teach the workshop, or to work on it:"
	@echo
	@echo "make test   run the tests, 8 to 20 minutes on 2 cores           (ARGS='-k launch' chooses)"
	@echo "make quick  those that start no training, 1 to 2 minutes;  make test-all  all, for hours"
	@echo "make test-slurm  those with a queue: a real Slurm of four nodes on this machine, 3 to 6 minutes"
	@echo "make lint   check the code's style, and that outputs belong to their code"
	@echo "make masters  run the solutions' notebooks again whose outputs are stale  (ARGS=05: that one)"
	@echo "make elsewhere  measure the lessons' headlines on this kind of machine, 20 minutes  (ARGS=05: that one)"
	@echo "make pictures  README's two pictures anew, from the masters and from JupyterLab  (needs chromium)"
	@echo "make preview  a page a notebook, to guess on before anything is installed, in docs/preview"
	@echo "make pages  the course as web pages, in results/pages  (ARGS=--with-answers: the solutions)"
	@echo "make handouts  what a class gets on paper: two pages a day, all exercises, tasks for the quick"
	@echo "make hub    a JupyterHub beside ours, for a class on one large machine"
	@echo "make image  the whole workshop as a container image, by podman, buildah or docker"
	@echo "make pack   the environment as one file, for a file system that many nodes share"
	@echo "make canary  which notebook would the next TensorFlow, daal4py or MPICH stop? (700 MB, 10 to 16 minutes)"
	@echo "make lock   choose all versions anew: writes requirements/workshop.lock and environment.yml"

# Two files at once, as the tests of a file may share a fixture; three upset each other on two cores.
# ARGS='-n 0' is one after another.
WORKERS = -n 2 --dist loadscope --no-loadscope-reorder --durations=40

test:
	@exec $(IN_ENV) pytest $(WORKERS) $(ARGS)

# A real Slurm of several nodes on this machine, one test after another.
test-slurm:
	@exec $(IN_ENV) pytest --durations=10 tests/cluster/test_slurm.py $(ARGS)

quick:
	@exec $(IN_ENV) pytest $(WORKERS) -m "not mpi and not slow" tests/unit $(ARGS)

# Also each notebook whole and each wrong fill, with the other MPI libraries and builds, on MNIST itself, with hosts, a
# queue and a browser, with a class of eight, and on a JupyterHub.
test-all: export SCALEOUT_DATA ?= $(CURDIR)/.setup/mnist
test-all: export SCALEOUT_ATTENDEES ?= 8
test-all: mpis intel ccl torch
	-@$(IN_ENV) scaleout data fetch mnist
	@$(IN_ENV) pytest $(WORKERS) --everything $(ARGS)
	@$(IN_ENV) pytest --everything tests/cluster tests/browser
	-@$(IN_ENV) python tools/make_hub.py
	@$(IN_ENV) pytest -s --everything tests/classroom

lint:
	@$(IN_ENV) ruff check
	@$(IN_ENV) ruff format --check --quiet
	@$(IN_ENV) lint-imports --no-logo
	@$(IN_ENV) mypy
	@$(IN_ENV) python tools/lint_text.py
	@$(IN_ENV) python tools/make_environment.py --check
	@$(IN_ENV) python tools/make_machines.py --check
	@$(IN_ENV) python tools/make_preview.py --check

hub:
	@exec $(IN_ENV) python tools/make_hub.py

# On MNIST (scaleout data fetch mnist, or SCALEOUT_DATA) and alone: it waits until the machine is quiet.
masters:
	@exec $(IN_ENV) python tools/make_masters.py $(ARGS)

pictures:
	@exec $(IN_ENV) python tools/make_pictures.py

canary:
	@exec $(IN_ENV) python tools/canary.py

elsewhere:
	@exec $(IN_ENV) python tools/make_elsewhere.py $(ARGS)

preview:
	@exec $(IN_ENV) python tools/make_preview.py $(ARGS)

pages:
	@$(IN_ENV) python tools/make_machines.py
	@$(IN_ENV) python tools/make_preview.py
	@exec $(IN_ENV) python tools/make_pages.py $(ARGS)

handouts:
	@exec $(IN_ENV) python tools/make_handouts.py $(ARGS)

# All is made inside: nothing is set up here.
image:
	@exec $(PYTHON) tools/make_image.py

pack:
	@exec $(IN_ENV) python tools/make_pack.py

lock:
	@$(PYTHON) tools/make_lock.py
	@$(PYTHON) tools/make_environment.py
