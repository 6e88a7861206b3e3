# Every target first sets up what it needs, in .venv or in the active conda environment;
# when nothing changed that costs a fraction of a second.
PYTHON ?= python3
ARGS ?=
IN_ENV = $(PYTHON) tools/setup_env.py $(if $(filter command,$(origin PYTHON)),--this-python)

# Three tests at once, as some mostly wait; tests/conftest.py says which stay together. ARGS='-n 0' is one after another.
WORKERS = -n 3 --dist loadscope --no-loadscope-reorder --durations=30

.PHONY: help lab tour test quick test-all lint clean lock mpis intel ccl torch pages

help:
	@echo "make lab    open the workshop in JupyterLab"
	@echo "make tour   every topic on this machine, one page in results/   (ARGS=--quick: 2 to 4 minutes)"
	@echo "make test   run the tests, 25 to 50 minutes on 2 cores          (ARGS='-k launch' chooses)"
	@echo "make quick  those that start no training, 1 to 2 minutes;  make test-all  all, over an hour"
	@echo "make lint   check the code's style"
	@echo "make clean  remove .venv and everything generated; your labs and results stay"
	@echo "make mpis   Intel MPI and Open MPI beside ours, for the comparison in 03"
	@echo "make intel  TensorFlow's OpenMP build beside ours, for 02 (370 MB, Python 3.11)"
	@echo "make ccl    Horovod on oneCCL beside ours, for 05 (700 MB, 2 minutes to compile)"
	@echo "make torch  PyTorch for CPUs beside ours, for 09, 10, 11 and scripts of your own (270 MB, Python 3.11)"
	@echo "make pages  the course as web pages, in results/pages  (ARGS=--with-answers: the solutions)"
	@echo "make lock   choose all versions anew: writes requirements.lock and environment.yml"
	@echo
	@echo "The first run builds the environment: 3 to 5 minutes. It needs Linux on x86-64,"
	@echo "Python 3.11 or 3.12 (make lab PYTHON=python3.12) and a C++ compiler."

lab:
	@exec env JUPYTER_CONFIG_PATH=$(CURDIR)/etc/jupyter JUPYTER_CONFIG_DIR=$(CURDIR)/.setup/jupyter \
		$(IN_ENV) jupyter lab $(ARGS)

tour:
	@exec $(IN_ENV) scaleout tour $(ARGS)

test:
	@exec $(IN_ENV) pytest $(WORKERS) $(ARGS)

quick:
	@exec $(IN_ENV) pytest $(WORKERS) -m "not mpi and not slow" tests/unit $(ARGS)

# Also with the other MPI libraries and builds, on MNIST itself, and with a class of eight.
test-all: export SCALEOUT_DATA ?= $(CURDIR)/.setup/mnist
test-all: export SCALEOUT_ATTENDEES ?= 8
test-all: mpis intel ccl torch
	@$(IN_ENV) scaleout data fetch mnist
	@$(IN_ENV) pytest $(WORKERS) --everything --ignore tests/classroom $(ARGS)
	@$(IN_ENV) pytest -s tests/classroom

lint:
	@$(IN_ENV) ruff check
	@$(IN_ENV) ruff format --check --quiet
	@$(IN_ENV) lint-imports --no-logo
	@$(IN_ENV) mypy
	@$(IN_ENV) python tools/lint_text.py
	@$(IN_ENV) python tools/make_environment.py --check

clean:
	rm -rf .venv .side .setup build dist src/*.egg-info .pytest_cache .ruff_cache
	find . \( -name .git -o -name results \) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

mpis intel ccl torch:
	@exec $(IN_ENV) python tools/make_$@.py

pages:
	@exec $(IN_ENV) python tools/make_pages.py $(ARGS)

lock:
	@$(PYTHON) tools/make_lock.py
	@$(PYTHON) tools/make_environment.py
