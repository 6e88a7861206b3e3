"""What a rank is told in torch's words, from what each launcher says."""

import os
import re
import subprocess
import sys

import pytest

from scaleout.jobs import meeting, rank

HYDRA = {"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
OPENMPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
SRUN = {
    "SLURM_PROCID": "3",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
}
WANTED = {
    **{"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"},
    **{"GROUP_RANK": "1", "GROUP_WORLD_SIZE": "2", "ROLE_RANK": "3", "ROLE_WORLD_SIZE": "4"},
    **{"TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0"},
    "TORCHELASTIC_RUN_ID": "7f",
}


@pytest.mark.parametrize("said", [HYDRA, OPENMPI, SRUN], ids=["hydra", "openmpi", "srun"])
def test_each_launcher_is_understood(said: dict[str, str]) -> None:
    told = rank.torch_variables({**said, "GLOO_SOCKET_IFNAME": "ib0", "SCALEOUT_RUN_ID": "7f"})
    assert told == WANTED, "and the network that somebody named is left alone"


@pytest.mark.parametrize(("node", "tasks"), [("0", "3"), ("1", "3"), ("2", "1"), ("9", "4")])
def test_tasks_of_a_node_as_srun_writes_them(node: str, tasks: str) -> None:
    said = {**SRUN, "SLURM_STEP_TASKS_PER_NODE": "3(x2),1", "SLURM_NODEID": node}
    assert rank.torch_variables(said)["LOCAL_WORLD_SIZE"] == tasks


@pytest.mark.parametrize(
    ("said", "node", "nodes"),
    [
        ({**HYDRA, "MPI_LOCALNRANKS": "4"}, "0", "1"),
        ({**HYDRA, "PMI_RANK": "1"}, "0", "2"),
        ({**HYDRA, "PMI_RANK": "5", "PMI_SIZE": "8"}, "2", "4"),
        ({**OPENMPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, "3", "4"),
        ({**SRUN, "SLURM_STEP_TASKS_PER_NODE": "3(x2),1", "SLURM_NODEID": "2"}, "2", "3"),
        ({**SRUN, "SLURM_PROCID": "0", "SLURM_NODEID": "1"}, "1", "2"),  # dealt out in turns
        ({"PMI_RANK": "0", "PMI_SIZE": "1"}, "0", "1"),
    ],
)
def test_torchs_groups_are_nodes(said: dict[str, str], node: str, nodes: str) -> None:
    told = rank.torch_variables(said)
    assert (told["GROUP_RANK"], told["GROUP_WORLD_SIZE"]) == (node, nodes)
    assert told["ROLE_RANK"] == told["RANK"] and told["ROLE_WORLD_SIZE"] == told["WORLD_SIZE"]
    assert told["TORCHELASTIC_RUN_ID"] == "none", "as torchrun says where nobody named the job"


# 5 ranks on two nodes, 3 + 2: each rank, its local rank, and how many ranks its node has.
UNLIKE = [(0, 0, 3), (1, 1, 3), (2, 2, 3), (3, 0, 2), (4, 1, 2)]


def _unlike(number: int, local: int, on_node: int) -> dict[str, str]:
    hydra = {"PMI_RANK": number, "PMI_SIZE": 5, "MPI_LOCALRANKID": local}
    return {name: str(text) for name, text in {**hydra, "MPI_LOCALNRANKS": on_node}.items()}


@pytest.mark.parametrize("its", UNLIKE)
def test_nodes_with_unlike_numbers_of_ranks_are_counted_as_the_job_was_shared_out(
    its: tuple[int, int, int],
) -> None:
    told = rank.torch_variables(_unlike(*its), per_node=3)
    assert (told["GROUP_RANK"], told["GROUP_WORLD_SIZE"]) == (str(its[0] // 3), "2")
    assert (told["LOCAL_RANK"], told["LOCAL_WORLD_SIZE"]) == (str(its[1]), str(its[2]))


@pytest.mark.parametrize("its", UNLIKE)
def test_where_nobody_knows_the_nodes_none_are_told(its: tuple[int, int, int]) -> None:
    told = rank.torch_variables(_unlike(*its))
    assert "GROUP_RANK" not in told and "GROUP_WORLD_SIZE" not in told
    assert told["LOCAL_WORLD_SIZE"] == str(its[2]) and told["ROLE_RANK"] == str(its[0])


def test_without_a_launcher_nothing_is_told() -> None:
    assert rank.torch_variables({"SCALEOUT_RUN_ID": "7f"}) == {}


def test_on_one_machine_ranks_use_its_own_loop() -> None:
    told = rank.torch_variables({**HYDRA, "MPI_LOCALNRANKS": "4"})
    assert told["GLOO_SOCKET_IFNAME"] == "lo"


def _become(*command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*rank.COMMAND, *command],
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_it_becomes_the_command_and_tells_it() -> None:
    done = _become("sh", "-c", "echo $$ $RANK $0", "two words", **HYDRA)
    assert re.fullmatch(r"\d+ 3 two words\n", done.stdout) and done.returncode == 0


def test_a_rank_binds_itself_where_it_is_told_so() -> None:
    cpu = min(os.sched_getaffinity(0))
    show = "import os; print(*os.sched_getaffinity(0))"
    for rank_0 in ("0", f"0+{cpu}"):
        done = _become(
            rank.BIND, f"{rank_0},{cpu}", sys.executable, "-c", show, PMI_RANK="1", PMI_SIZE="2"
        )
        assert done.stdout.split() == [str(cpu)], done


def test_what_is_not_there_is_named() -> None:
    done = _become("no-such-program", **HYDRA)
    assert done.returncode == 127
    assert done.stderr == "no-such-program cannot be started: No such file or directory\n"


def test_two_jobs_at_once_meet_at_different_ports() -> None:
    with meeting.variables("a") as one, meeting.variables("b") as other:
        assert one["MASTER_ADDR"] == other["MASTER_ADDR"] == "127.0.0.1"
        assert one["MASTER_PORT"] != other["MASTER_PORT"]


def test_on_another_node_each_job_has_a_port_of_its_own() -> None:
    def port(run_id: str) -> int:
        with meeting.variables(run_id, "node1") as where:
            assert where["MASTER_ADDR"] == "node1"
            return int(where["MASTER_PORT"])

    assert port("a") == port("a") != port("b")
    assert 20_000 <= port("a") < 30_000
