"""One job's parts that need no mpirun: ids, variables, and what is remembered of its output."""

import os
import subprocess

import pytest

from scaleout.jobs import environment, ignored


def test_exports_come_out_of_a_shell_as_they_went_in() -> None:
    variables = {"A": "two  words $HOME `id` 'x' \"y\"", "B": "a\nb"}
    text = "\n".join([environment.programs_first(), *environment.exports(variables), "env -0"])
    said = subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True).stdout
    found = dict(line.split("=", 1) for line in said.split("\0") if line)
    assert {name: found[name] for name in variables} == variables
    assert found["PATH"].endswith(":" + os.environ["PATH"])


def test_a_network_that_somebody_has_named_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UCX_NET_DEVICES", "UCX_TLS"):
        monkeypatch.delenv(name, raising=False)
    assert environment.inherited_environment(alone=True)["UCX_NET_DEVICES"] == "lo"
    assert "UCX_NET_DEVICES" not in environment.inherited_environment()
    monkeypatch.setenv("UCX_TLS", "self,sm,tcp")
    assert "UCX_NET_DEVICES" not in environment.inherited_environment(alone=True)


@pytest.mark.parametrize("slurm", [False, True])
def test_slurms_variables_are_inherited_only_inside_its_job(
    monkeypatch: pytest.MonkeyPatch, slurm: bool
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("PMI_RANK", "3")
    kept = environment.inherited_environment(slurm)
    assert (kept.get("SLURM_JOB_ID"), kept.get("SLURM_OVERLAP")) == (
        ("7", "1") if slurm else (None, None)
    )
    assert "PMI_RANK" not in kept


def test_a_job_is_not_given_the_key_to_a_jupyterlab(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"JUPYTERHUB_API_TOKEN", "JPY_API_TOKEN"}
    for name in keys:
        monkeypatch.setenv(name, "secret")
    assert not keys & environment.inherited_environment().keys()


@pytest.mark.parametrize(
    ("shell", "excepted"),
    [
        ({"http_proxy": "http://p:1"}, "127.0.0.1,localhost"),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.org"}, "a.org,127.0.0.1,localhost"),
        ({"grpc_proxy": "p", "no_proxy": "localhost,b"}, "localhost,b,127.0.0.1"),
        ({"no_proxy": "c"}, "c"),
    ],
)
def test_what_is_meant_for_this_machine_goes_past_a_proxy(
    monkeypatch: pytest.MonkeyPatch, shell: dict[str, str], excepted: str
) -> None:
    for name in (*environment.PROXIES, "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name, text in shell.items():
        monkeypatch.setenv(name, text)
    kept = environment.inherited_environment(alone=True)
    assert kept["no_proxy"] == excepted and kept.get("NO_PROXY", excepted) == excepted
    elsewhere = environment.inherited_environment()
    assert elsewhere.get("no_proxy") == shell.get("no_proxy")


@pytest.mark.parametrize(
    ("shell", "threads", "words"),
    [
        (
            {"OPENBLAS_NUM_THREADS": "1"},
            [1, 2],
            "OPENBLAS_NUM_THREADS=1 of this shell goes before -t",
        ),
        (
            {"MKL_NUM_THREADS": "4"},
            [2],
            "type  unset MKL_NUM_THREADS  first, or add  --env MKL_NUM",
        ),
        ({"OMP_THREAD_LIMIT": "1"}, [2], "OMP_THREAD_LIMIT=1"),
        ({"MKL_NUM_THREADS": "1", "BLIS_NUM_THREADS": "1"}, [2], "of this shell go before -t"),
        ({"OMP_THREAD_LIMIT": "64"}, [2], ""),
        ({"OPENBLAS_NUM_THREADS": "2"}, [2], ""),
        ({"OPENBLAS_NUM_THREADS": "1"}, [], ""),
        ({"GOTO_NUM_THREADS": "1"}, [2], ""),
    ],
)
def test_a_variable_of_the_shell_that_undoes_the_threads_is_named(
    monkeypatch: pytest.MonkeyPatch, shell: dict[str, str], threads: list[int], words: str
) -> None:
    for name in ignored.BESIDE:
        monkeypatch.delenv(name, raising=False)
    for name, text in shell.items():
        monkeypatch.setenv(name, text)
    said = ignored.undone(threads, given={"GOTO_NUM_THREADS"})
    assert words in said and bool(said) == bool(words)
