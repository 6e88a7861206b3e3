"""A site file: what it may hold, and what a wrong one says."""

import re
from pathlib import Path

import pytest

from scaleout.base.errors import ScaleoutError
from scaleout.site import Site, words_of

SITES = sorted(Path(__file__).resolve().parents[2].glob("sites/*.toml"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "site.toml"


@pytest.mark.parametrize("path", SITES, ids=lambda path: path.stem)
def test_every_site_of_the_workshop_can_be_read(path: Path) -> None:
    assert isinstance(Site.read(path), Site)


def test_the_laptop_is_the_default() -> None:
    assert Site.read(next(path for path in SITES if path.stem == "laptop")) == Site()


def test_a_site_is_read_whole(file: Path) -> None:
    file.write_text(
        'mpirun = "/opt/mpi/bin/mpirun"\noptions = ["-ppn", 2]\ncores = 8\n[env]\nA = 1\nB = "two"\n'
    )
    assert Site.read(file) == Site("/opt/mpi/bin/mpirun", ("-ppn", "2"), {"A": "1", "B": "two"}, 8)


def test_the_model_of_a_cluster_names_no_site(file: Path) -> None:
    slurm = next(path for path in SITES if path.stem == "slurm")
    site = Site.read(slurm)
    assert site.scheduler == "slurm" and not (
        site.partition or site.account or site.reservation or site.scratch
    )
    commented = re.sub(
        r"^# (\w+ = )", r"\1", slurm.read_text(), flags=re.M
    )  # what may be needed can be read too
    file.write_text(commented)
    assert Site.read(file).partition == "short" and Site.read(file).modules == ("gcc/12",)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('sbatch = ["--output=slurm-%j.out"]', "sbatch: '--output=slurm-%j.out' is not for a site file"),
        ('sbatch = ["--exclusive", "-e", "err.txt"]', "sbatch: '-e' is not for a site file"),
        ('sbatch = ["--array=1-10%2"]', "'--array=1-10%2' is not for a site file"),
        ('sbatch = ["-a 0-1"]', "'-a' is not for a site file"),
        ('sbatch = ["-a1-3"]', "'-a1-3' is not for a site file"),
        ('sbatch = ["--exclusive --arr=0-1"]', "'--arr=0-1' is not for a site file"),
        ('sbatch = ["--comment=mine"]', "'--comment=mine' is not for a site file"),
        ('sbatch = ["-N", "2"]', "'-N' is not for a site file, as scaleout itself says"),
        ('sbatch = ["--ntasks=4"]', "how often (-n, -N, -t)"),
        ('sbatch = ["--ntasks-per-node=4"]', "how often (-n, -N, -t)"),
        ('sbatch = ["-c4"]', "how often (-n, -N, -t)"),
        ('sbatch = ["--wrap=true"]', "says what starts"),
        ('sbatch = ["-W"]', "'-W' is not for a site file"),
        ('sbatch = ["--requeue"]', "'--requeue' is not for a site file"),
        ('sbatch = ["--cluster=b"]', "'--cluster=b' is not for a site file"),
        ('sbatch = ["-Mb"]', "'-Mb' is not for a site file"),
        ('sbatch = ["--exclusive", ""]', "sbatch must be a list, such as [\"--exclusive\"]; '' cannot stand in it"),
        ('srun = ["--mpi=pmi2", "--output=out.txt"]', "srun: '--output=out.txt' is not for a site file"),
        ('srun = ["--mpi=pmi2 -n 4"]', "srun: '-n' is not for a site file"),
        ('srun = ["--nodes=2", "--ntasks-per-node=2"]', "srun: '--nodes=2' is not for a site file"),
        ('srun = ["--export NONE"]', "--export hides the job's variables from the ranks"),
        ('srun = ["--export", "NONE"]', "--export hides the job's variables from the ranks"),
        ('srun = ["--export=A=1"]', "begin with ALL, as in --export=ALL"),
        ('srun = ["--exp=NONE"]', "begin with ALL, as in --export=ALL"),
        ('options = ["-np", "4"]', "options: '-np' is not for a site file"),
        ('options = ["--hostfile", "h"]', "on which machines (hosts, or Slurm)"),
        ('options = ["-outfile-pattern=%r.txt"]', "where its output goes"),
        ('modules = ["gcc/12", "open mpi;x"]', "'open mpi;x' cannot stand in it"),
        ('modules = ["gcc/12", "a,b"]', "'a,b' cannot stand in it"),
        ('modules = [12]', "12 cannot stand in it"),
        ('prelude = ["set -e", ""]', "'' cannot stand in it"),
        ('hosts = ["a", "b c"]', "'b c' is no name of a machine"),
    ],
)  # fmt: skip
def test_what_does_not_belong_into_a_list_is_named(line: str, words: str, file: Path) -> None:
    scheduler = "" if line.startswith("hosts") else 'scheduler = "slurm"\n'
    file.write_text(scheduler + line)
    with pytest.raises(ScaleoutError) as caught:
        Site.read(file)
    said = str(caught.value)
    assert said.startswith(f"{file}: ") and words in said and "\n" not in said


@pytest.mark.parametrize(
    "line",
    [
        'sbatch = ["--exclusive", "--hint=nomultithread", "--mem=4G", "--qos long", "-C haswell", "-w node1"]',
        'sbatch = ["--export=NONE", "--ntasks-per-core=1", "--time-min=5", "--wait-all-nodes=1", "--nodelist=a"]',
        'sbatch = ["-d afterok:12", "-m block:block", "--no-kill", "--open-mode=append", "-O", "-t 60"]',
        'sbatch = ["--mail-type=END --mail-user=me@here", "--constraint=\'a&b\'"]',
        'srun = ["--mpi=pmi2", "--unbuffered", "--export=ALL,A=1", "--export", "ALL", "-v", "--distribution=block"]',
        'srun = ["--mpi pmi2 --unbuffered", "--export ALL", "--cpu-bind=map_cpu:0,1"]',
        'options = ["-iface", "ib0", "-genv", "A", "b c", "-ppn", 2, "--map-by", ":OVERSUBSCRIBE"]',
        'modules = ["openmpi@4.1.5%gcc@12", "~me/gcc", "gcc/12:x=1", "A B C", "spack", "-openmpi"]',
        'prelude = ["module purge", "set -e\\nulimit -s unlimited"]',
    ],
)  # fmt: skip
def test_what_belongs_into_a_list_is_taken(line: str, file: Path) -> None:
    file.write_text(f'scheduler = "slurm"\n{line}')
    assert Site.read(file).scheduler == "slurm"


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["--mem 4G"], ["--mem", "4G"]),
        (["-iface ib0", "-genv A 'b c'"], ["-iface", "ib0", "-genv", "A", "b c"]),
        (["-iface", "ib0", "-genv", "A", "b c"], ["-iface", "ib0", "-genv", "A", "b c"]),
        (["--constraint='a&b'  # fast ones"], ["--constraint=a&b"]),
        (["--mpi=pmi2"], ["--mpi=pmi2"]),
    ],
)
def test_options_are_split_into_words_as_a_shell_does(texts: list[str], words: list[str]) -> None:
    assert words_of(texts) == words
