# Every target first sets up what it needs, in .venv or in the active conda environment;
# when nothing changed that costs a fraction of a second.
PYTHON ?= python3
ARGS ?=
IN_ENV = $(PYTHON) tools/setup_env.py $(if $(filter command,$(origin PYTHON)),--this-python)

.PHONY: help lab tour test lint clean lock

help:
	@echo "make lab    open the workshop in JupyterLab"
	@echo "make tour   every topic on this machine, one page in results/   (ARGS=--quick: under 2 minutes)"
	@echo "make test   run the tests                                       (ARGS='-k launch' chooses)"
	@echo "make lint   check the code's style"
	@echo "make clean  remove .venv and everything generated; your labs and results stay"
	@echo "make lock   choose all versions anew: writes requirements.lock"
	@echo
	@echo "The first run builds the environment: about 5 minutes. It needs Linux on x86-64,"
	@echo "Python 3.11 or 3.12 (make lab PYTHON=python3.12) and a C++ compiler."

lab:
	@$(IN_ENV) jupyter lab --config=etc/jupyter/jupyter_lab_config.py $(ARGS)

tour:
	@$(IN_ENV) scaleout tour $(ARGS)

test:
	@$(IN_ENV) pytest $(ARGS)

lint:
	@$(IN_ENV) ruff check $(ARGS)

clean:
	@$(PYTHON) tools/setup_env.py --clean

lock:
	@$(PYTHON) tools/setup_env.py --lock
