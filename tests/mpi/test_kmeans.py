"""04_kmeans: the same answer on any number of ranks and in every mode, and a defined end for every
bad input."""

import sys
from collections.abc import Callable
from pathlib import Path

import daal4py as d4p
import numpy as np
import pytest
from helpers import flags, metrics, run_script
from PIL import Image
from sklearn.cluster import KMeans

from scaleout import data
from scaleout.jobs.job import Run
from scaleout.launch import run as launch

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(600), pytest.mark.usefixtures("results")]

LAB = Path(__file__).resolve().parents[2] / "solutions/04_kmeans"
RELATIVE = {
    "float32": 1e-4,
    "float64": 1e-10,
}  # what the order of additions may cost in this precision
FPTYPE = {"float32": "float", "float64": "double"}
ROWS, COLOURS, ITERATIONS = 10_007, 8, 10  # a prime: no number of ranks divides it

POINTS = """
    import os
    import runpy
    import sys

    from scaleout import data

    points = data.points(slice(0, int(sys.argv.pop(1))), 3)
    data.photo = lambda path: points.reshape(1, -1, 3)
    lab = sys.argv.pop(1)
    sys.path.insert(0, os.path.dirname(lab))
    runpy.run_path(lab, run_name="__main__")
"""


def job(ranks: int, script: str = "runme.py", **given: object) -> Run:
    """Runs a script of the lab; one thread a rank, ended after a minute."""
    return run_script(LAB / script, *flags(given), name="04_kmeans", ranks=ranks)


def close(saw: object, wanted: object, dtype: str = "float64") -> None:
    np.testing.assert_allclose(
        np.array(saw, "float64"), np.array(wanted, "float64"), rtol=RELATIVE[dtype], atol=0
    )


def distances(rows: np.ndarray, palette: np.ndarray) -> np.ndarray:
    return ((rows[:, None] - palette) ** 2).sum(axis=2)


def by_numpy(rows: np.ndarray, palette: np.ndarray) -> np.ndarray:
    rows, palette = rows.astype("float64"), palette.astype("float64")
    for _ in range(ITERATIONS):
        labels = distances(rows, palette).argmin(axis=1)
        palette = np.array([rows[labels == colour].mean(axis=0) for colour in range(COLOURS)])
    return palette


def by_scikit_learn(rows: np.ndarray, palette: np.ndarray) -> np.ndarray:
    return (
        KMeans(COLOURS, init=palette, n_init=1, max_iter=ITERATIONS, tol=0)
        .fit(rows)
        .cluster_centers_
    )


def by_serial_daal4py(rows: np.ndarray, palette: np.ndarray) -> np.ndarray:
    return d4p.kmeans(COLOURS, ITERATIONS, FPTYPE[rows.dtype.name]).compute(rows, palette).centroids


@pytest.mark.parametrize(
    "ranks", [3, *(pytest.param(ranks, marks=pytest.mark.choice) for ranks in (1, 2, 4))]
)
def test_any_number_of_ranks_finds_the_palette_of_one_process(
    ranks: int, script: Callable[..., Path]
) -> None:
    """Random points in the place of the photograph: no two are equally far from a colour."""
    how = flags({"colours": COLOURS, "iterations": ITERATIONS})
    run = run_script(
        script(POINTS), ROWS, LAB / "instruments.py", *how, name="04_kmeans", ranks=ranks
    )
    assert run.talked or ranks == 1, "ranks that talk through daal4py are no copies"
    first = run.records[run.records.seed == 0].set_index("variant").metrics
    saw = first[""]
    rows = data.points(slice(0, ROWS), 3)
    assert [row for held in first["rows"]["found"] for row in held["rows"]] == list(range(ROWS))
    for held in first["palette"]["found"]:
        assert held == first["palette"]["found"][0] and held["palette"] == saw["palette"]
    start = np.array(first["palette"]["found"][0]["start"], "float32")
    for way in (by_serial_daal4py, by_scikit_learn, by_numpy):
        close(saw["palette"], way(rows, start), "float32")
    nearest = distances(rows.astype("float64"), np.array(saw["palette"]))
    close(saw["inertia"], nearest.min(axis=1).sum(), "float32")
    assert saw["count"] == np.bincount(nearest.argmin(axis=1), minlength=COLOURS).tolist()
    assert min(share["peak_mib"] for share in saw["shares"]) > 20


@pytest.mark.parametrize("dtype", [pytest.param("float32", marks=pytest.mark.choice), "float64"])
def test_batch_online_and_distributed_give_one_palette(dtype: str) -> None:
    flags = {
        "rows": ROWS,
        "columns": 5,
        "colours": COLOURS,
        "iterations": ITERATIONS,
        "dtype": dtype,
    }
    rows = data.points(slice(0, ROWS), 5, dtype=dtype)
    wanted = by_numpy(rows, rows[:COLOURS])
    inertia = distances(rows.astype("float64"), wanted).min(axis=1).sum()
    for mode, ranks in (("batch", 1), ("distributed", 2), ("online", 3)):
        saw = metrics(job(ranks, "modes.py", mode=mode, block=999, **flags))
        close(saw["palette"], wanted, dtype)
        close(saw["inertia"], inertia, dtype)


def test_six_methods_are_those_of_numpy_on_one_rank_and_on_three() -> None:
    saw = job(3, "linear.py", rows=ROWS, columns=4).records.set_index("variant")
    assert sorted(saw.index) == [
        "covariance", "linear regression", "pca", "qr", "ridge regression", "svd",
    ]  # fmt: skip
    assert (saw[["metrics.batch", "metrics.distributed"]] < 1e-8).all(axis=None), saw
    # Not what the script says of itself: the coefficients that its points were made with.
    points = data.points(slice(0, ROWS), 5, dtype="float64")
    x, noise = np.column_stack([np.ones(ROWS), points[:, :4]]), points[:, 4] - 0.5
    y = x @ [0.5, 1, 2, 3, 4] + noise
    beta = saw["metrics.answer"]["linear regression"]
    np.testing.assert_allclose(beta, np.linalg.lstsq(x, y, rcond=None)[0], rtol=1e-9)
    np.testing.assert_allclose(saw["metrics.answer"]["covariance"], np.cov(points[:, :4].T))


def picture(folder: Path, mode: str, *colours: object) -> Path:
    """A picture of 23 x 31 pixels in stripes of these colours, written as a PNG of this mode."""
    image = Image.new(mode, (31, 23))
    for x in range(31):
        image.paste(colours[x % len(colours)], (x, 0, x + 1, 23))
    image.save(folder / "mine.png")
    return folder / "mine.png"


@pytest.mark.parametrize(
    ("mode", "colours"),
    [
        pytest.param("L", (0, 90, 180, 255), marks=pytest.mark.choice),
        ("RGBA", ((255, 0, 0, 255), (0, 200, 0, 128), (10, 20, 30, 0))),
        pytest.param("RGB", ((30, 144, 255),), marks=pytest.mark.choice),
    ],
    ids=["grey", "transparent", "one colour"],
)
def test_a_picture_of_few_colours_comes_back_as_it_was(
    mode: str, colours: tuple[object, ...], tmp_path: Path
) -> None:
    """More colours are asked for than there are, so the palette is theirs and no pixel changes."""
    mine = picture(tmp_path, mode, *colours)
    run = job(3, photo=mine, colours=16)
    saw = metrics(run)
    assert (
        saw["colours"] == len(colours)
        and saw["psnr_db"] > 100
        and sum(saw["count"]) == saw["rows"] == 23 * 31
    )
    wanted = Image.open(mine).convert("RGB")
    assert np.array_equal(np.asarray(Image.open(run.folder / "quantised.png")), np.asarray(wanted))
    assert Image.open(run.folder / "palette.png").size == (32 * len(colours), 32)


def refused(command: list[str], ranks: int) -> str:
    """The one sentence with which all ranks end, each with a status of its own that is not 0."""
    watched = [
        "/bin/sh",
        "-c",
        '"$@"; echo "status $?"',
        "sh",
        sys.executable,
        "-m",
        "mpi4py",
        *command,
    ]
    run = launch.run(watched, name="04_kmeans", ranks=ranks, threads=1, timeout=300, echo=None)
    assert sorted(line for line in run.lines if line[1].startswith("status")) == [
        (r, "status 1") for r in range(ranks)
    ]
    said = [(rank, text) for rank, text in run.lines if not text.startswith("status")]
    assert len(said) == 1 and said[0][0] == 0, said
    assert run.records.empty and not list(run.folder.glob("*.png"))
    return said[0][1]


@pytest.mark.parametrize(
    ("ranks", "typed", "words"),
    [
        (3, "runme.py --photo {broken}", "mine.png cannot be read as a picture"),
        *(
            pytest.param(ranks, typed, words, marks=pytest.mark.choice)
            for ranks, typed, words in (
                (3, "runme.py --photo {tiny} --colours 5", "only 4: take fewer ranks or fewer"),
                (2, "modes.py --rows 10 --colours 8", "take more --rows"),
                (2, "fourways.py --way scikit-learn", "scikit-learn knows one process"),
                (2, "fourways.py --rows 10 --colours 8", "take more --rows"),
                (2, "linear.py --rows 5", "take more --rows"),
            )
        ),
    ],
)
def test_bad_input_ends_all_ranks_with_one_sentence(
    ranks: int, typed: str, words: str, tmp_path: Path
) -> None:
    draw = np.random.default_rng(0).integers(0, 255, (31, 3))
    broken = picture(tmp_path, "RGB", *(tuple(map(int, c)) for c in draw))
    broken.write_bytes(broken.read_bytes()[:-60])  # as a download that stopped
    tiny = tmp_path / "tiny.png"
    Image.fromarray(np.arange(36, dtype=np.uint8).reshape(3, 4, 3)).save(tiny)
    script, *flags = typed.format(broken=broken, tiny=tiny).split()
    assert words in refused([str(LAB / script), *flags], ranks)
