"""Docstrings in NumPy's sections: what is public and takes two things or more says what each is."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import scaleout

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(scaleout.__path__, "scaleout.")
    if ".starters." not in module.name
)


def _named(text: str, *sections: str) -> set[str]:
    """The names in these sections of a docstring: `name : type`, `a, b : type`, `**rest`."""
    lines = inspect.cleandoc(text).split("\n")
    found: set[str] = set()
    inside = False
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if re.fullmatch("-{3,}", below):
            inside = line in sections
        elif inside and line and not line.startswith((" ", "---")):
            found.update(name.strip().lstrip("*") for name in line.split(" : ")[0].split(","))
    return found


def _takes(function: Callable[..., Any]) -> set[str]:
    """Its parameters, `self` and `cls` and private ones left out."""
    names = inspect.signature(function).parameters
    return {name for name in names if name not in ("self", "cls") and not name.startswith("_")}


def _methods(kind: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, value in vars(kind).items():
        method = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if inspect.isfunction(method) and not name.startswith("_"):
            yield f"{kind.__name__}.{name}", method


def _public(module: str) -> Iterator[tuple[str, set[str], str]]:
    """Each function, class and method that a module lists: its name, parameters and docstring."""
    loaded = importlib.import_module(module)
    for name in getattr(loaded, "__all__", []):
        value = getattr(loaded, name)
        if getattr(value, "__module__", None) != module:
            continue  # listed where it is made
        if inspect.isclass(value):
            own = {"__init__", "__new__"} & set(vars(value))  # a dataclass has one too
            if own and not getattr(value, "_is_protocol", False):
                yield name, _takes(value), value.__doc__ or ""
            for called, method in _methods(value):
                yield called, _takes(method), method.__doc__ or ""
        elif inspect.isfunction(value):
            yield name, _takes(value), value.__doc__ or ""


def _faults(takes: set[str], text: str) -> set[str]:
    """What a docstring leaves out, and what it names that is no parameter (any more)."""
    unknown = _named(text, "Parameters") - takes
    missing = takes - _named(text, "Parameters", "Attributes")
    return unknown | (missing if len(takes) > 1 else set())


def test_the_package_has_public_names_to_look_at() -> None:
    found = {name for module in MODULES for name, _, _ in _public(module)}
    assert {"run", "compare", "speed_up", "Site", "Topic.run", "Site.read", "Comparison"} <= found


@pytest.mark.parametrize("module", MODULES)
def test_each_parameter_of_what_is_public_is_documented_by_name(module: str) -> None:
    wrong = {
        f"{name}({', '.join(sorted(faults))})"
        for name, takes, text in _public(module)
        if (faults := _faults(takes, text))
    }
    assert not wrong, f"missing from Parameters, or no parameter: {', '.join(sorted(wrong))}"


GOOD = """What it does.

    Parameters
    ----------
    ranks, threads : int
        How many.
    **more
        The rest.

    Returns
    -------
    int
    """


@pytest.mark.parametrize(
    ("takes", "text", "faults"),
    [
        ({"ranks", "threads", "more"}, GOOD, set()),
        ({"ranks", "threads", "more", "env"}, GOOD, {"env"}),
        ({"ranks", "threads"}, GOOD, {"more"}),
        ({"ranks", "env"}, "What it does with ranks. env: variables.", {"ranks", "env"}),
        ({"int", "ranks", "threads", "more"}, GOOD, {"int"}),
        ({"ranks"}, "What it does on so many ranks.", set()),
    ],
)
def test_a_name_that_is_left_out_or_outlived_is_seen(
    takes: set[str], text: str, faults: set[str]
) -> None:
    assert _faults(takes, text) == faults
