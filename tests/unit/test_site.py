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
        ('sbatch = ["--output=slurm-%j.out"]', "sbatch: '--output=slurm-%j.out' is not for a site file: take"),
        ('sbatch = ["--exclusive", "-e", "err.txt"]', "sbatch: '-e' is not for a site file: take it out"),
        ('sbatch = ["--array=0-1"]', "write a loop of submits, or take  scaleout sweep"),
        ('sbatch = ["-a 0-1"]', "write a loop of submits, or take  scaleout sweep"),
        ('sbatch = ["--array=1-10%2"]', "'--array=1-10%2' is not for a site file: submit runs one job"),
        ('sbatch = ["-a1-3"]', "'-a1-3' is not for a site file: submit runs one job"),
        ('sbatch = ["--arr=0-1"]', "'--arr=0-1' is not for a site file: submit runs one job"),
        ('sbatch = ["--time=01:00:00"]', "use the key minutes"),
        ('sbatch = ["-t60"]', "use the key minutes"),
        ('sbatch = ["--exclusive --part=short"]', "'--part=short' is not for a site file: use the key partition"),
        ('sbatch = ["-A me"]', "use the key account"),
        ('sbatch = ["--reservation=class"]', "use the key reservation"),
        ('sbatch = ["-N", "2"]', "give it on the command line, with  -n RANKS -N NODES"),
        ('sbatch = ["--ntasks-per-node=4"]', "-n RANKS -N NODES"),
        ('sbatch = ["--cpus-per-task=4"]', "-t THREADS"),
        ('sbatch = ["--chdir=/work"]', "the key scratch says where it writes"),
        ('sbatch = ["-W"]', "submit waits for the job's end"),
        ('sbatch = ["--clusters=b"]', "type  export SLURM_CLUSTERS=NAME"),
        ('sbatch = ["-M b"]', "'-M' is not for a site file: type  export SLURM_CLUSTERS=NAME"),
        ('sbatch = ["-Mb"]', "'-Mb' is not for a site file: type  export SLURM_CLUSTERS=NAME"),
        ('sbatch = ["--cluster=b"]', "'--cluster=b' is not for a site file: type  export SLURM_CLUSTERS=NAME"),
        ('sbatch = ["--requeue"]', "take it out, as a job that begins anew"),
        ('sbatch = ["--comment=mine"]', "finds its jobs again by it"),
        ('sbatch = ["#SBATCH --mem=4G"]', 'as in  sbatch = ["--mem=4G"]'),
        ('sbatch = ["--mail-type", "END"]', 'as in  sbatch = ["--mail-type END"]'),
        ('sbatch = ["exclusive"]', "'exclusive' is no option"),
        ('sbatch = ["--exclusive", ""]', "sbatch must be a list, such as [\"--exclusive\"]; '' cannot stand in it"),
        ('srun = ["--mpi=pmi2", "--output=out.txt"]', "srun: '--output=out.txt' is not for a site file"),
        ('srun = ["-n 4"]', "srun: '-n' is not for a site file: give it on the command line"),
        ('srun = ["--mpi=pmi2 -n 4"]', "srun: '-n' is not for a site file: give it on the command line"),
        ('srun = ["--export NONE"]', "'--export' hides the job's variables from the ranks"),
        ('srun = ["--export=NONE"]', "begin with ALL, as in --export=ALL"),
        ('srun = ["--export=A=1"]', "'--export=A=1' hides the job's variables from the ranks: begin with ALL"),
        ('srun = ["--export", "NONE"]', "'--export' hides the job's variables from the ranks"),
        ('srun = ["--exp=NONE"]', "begin with ALL, as in --export=ALL"),
        ('srun = ["--export=NIL"]', "'--export=NIL' hides the job's variables from the ranks: begin with ALL"),
        ('srun = ["--cpu-bind=none"]', 'scaleout binds the ranks, unless the site file has  bind = "none"'),
        ('options = ["-bind-to", "none"]', 'scaleout binds the ranks, unless the site file has  bind = "none"'),
        ('options = ["-np", "4"]', "options: '-np' is not for a site file: give the ranks"),
        ('options = ["--hostfile", "h"]', "use the key hosts"),
        ('modules = ["gcc/12", "open mpi;x"]', "'open mpi;x' cannot stand in it"),
        ('modules = ["gcc/12", "a,b"]', "'a,b' cannot stand in it"),
        ('modules = [12]', "12 cannot stand in it"),
        ('modules = ["gcc/12", "module load mpi"]', "modules: 'module load mpi' is a shell line"),
        ('modules = ["purge"]', "other lines in the key prelude"),
        ('prelude = ["ulimit -s unlimited", "#SBATCH --mem=4G"]', 'as in  sbatch = ["--mem=4G"]'),
        ('prelude = ["set -e", ""]', "'' cannot stand in it"),
        ('hosts = ["a", "b c"]', "'b c' is no name of a machine"),
    ],
)  # fmt: skip
def test_what_does_not_belong_into_a_list_is_named_with_what_to_use(
    line: str, words: str, file: Path
) -> None:
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
        'sbatch = ["--export=NONE", "--get-user-env", "--ntasks-per-core=1", "--time-min=5", "--wait-all-nodes=1"]',
        'sbatch = ["--mail-type=END --mail-user=me@here", "--dependency=afterok:12", "--constraint=\'a&b\'"]',
        'sbatch = ["-d afterok:12", "-m block:block", "--nodelist=a", "--no-kill", "--open-mode=append", "-O"]',
        'srun = ["--mpi=pmi2", "--unbuffered", "--export=ALL,A=1", "--export", "ALL", "-v", "--distribution=block"]',
        'srun = ["--cpu-bind=map_cpu:0,1"]\nbind = "none"',
        'srun = ["--mpi pmi2 --unbuffered", "--export ALL"]',
        'options = ["--map-by", ":OVERSUBSCRIBE"]',
        'options = ["-iface", "ib0", "-genv", "A", "b c", "-ppn", 2]',
        'modules = ["openmpi@4.1.5%gcc@12", "~me/gcc", "gcc/12:x=1", "A B C", "spack", "-openmpi"]',
        'prelude = ["module purge", "##SBATCH --mem=4G", "set -e\\nulimit -s unlimited"]',
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
