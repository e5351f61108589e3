"""Files are written beside and renamed; what cannot be written is said in words and destroys nothing."""

import contextlib
import csv
import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import openpyxl
import pytest

import loopdyn as ld
from loopdyn.files import HINTS, WritingError, replacing, write
from loopdyn.interchange.mjcf.writing import write_mjcf
from loopdyn.interchange.urdf_writing import write_urdf

matplotlib.use("Agg")
LIVE = "=cmd|' /C calc'!A0"


@pytest.fixture(scope="module")
def run() -> ld.results.Run:
    system = ld.library.pendulum().compile()
    return ld.simulate(system, system.state(), (0, 0.1), progress=False)


@pytest.fixture(scope="module")
def driven() -> ld.results.Drive:
    system = ld.library.four_bar().compile()
    return ld.drive(system, "A", (0, 1, 11))


WRITERS = {
    "run.nc": lambda run, driven, file: run.save(file),
    "run.csv": lambda run, driven, file: run.to_csv(file),
    "run.xlsx": lambda run, driven, file: run.to_excel(file),
    "run.html": lambda run, driven, file: run.animate(file),
    "run.gif": lambda run, driven, file: run.animate(file, fps=5),
    "run.png": lambda run, driven, file: run.plot.save(file),
    "run.pdf": lambda run, driven, file: run.plot.save(file),
    "drive.csv": lambda run, driven, file: driven.to_csv(file),
    "model.yaml": lambda run, driven, file: run.system.mechanism.save(file),
    "model.xml": lambda run, driven, file: write_mjcf(run.system.mechanism, file),
    "model.urdf": lambda run, driven, file: write_urdf(run.system.mechanism, file),
}


@pytest.fixture
def at_most():
    """`at_most(n)`: files of this process cannot become longer than n bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(n: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (n, before[1]))

    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_cannot_be_completed_leaves_the_old_one_as_it_was(tmp_path, run, driven, at_most, name):
    file = tmp_path / name
    file.write_text("old")
    at_most(2000 if name == "run.nc" else 100)  # the model inside a run is read from a temporary file
    reason = "" if name == "run.gif" else "File too large"  # a film is made in another place, by others
    with pytest.raises(ld.LoopdynError, match=f"{name}' cannot be written: {reason}"):
        WRITERS[name](run, driven, file)
    assert file.read_text() == "old"
    assert [f.name for f in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", WRITERS)
def test_a_folder_that_is_not_there_is_said(tmp_path, run, driven, name):
    with pytest.raises(ld.LoopdynError, match=r"cannot be written: No such file or directory\. Create"):
        WRITERS[name](run, driven, tmp_path / "no" / name)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(file: Path) -> None:
    """Write until nothing more can be written."""
    with contextlib.suppress(OSError), file.open("wb", buffering=0) as stream:
        while True:
            stream.write(b"0" * 512)


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_is_said_and_the_old_file_stays(small_disk, run, driven, name):
    file = small_disk / name
    file.write_text("old")
    fill(small_disk / "rest")
    with pytest.raises(ld.LoopdynError, match=f"{name}' cannot be written: No space left on device. Free some space"):
        WRITERS[name](run, driven, file)
    assert file.read_text() == "old"
    assert sorted(f.name for f in small_disk.iterdir()) == sorted([name, "rest"])


def test_a_run_is_not_lost_where_its_checkpoint_cannot_be_written(small_disk):
    system = ld.library.pendulum().compile()
    with pytest.warns(UserWarning, match="No space left on device"):
        run = ld.simulate(system, system.state(), (0, 30), progress=False, checkpoint=small_disk / "run")
    assert run.status == "finished"
    assert run.path.t[-1] == 30.0


def test_a_checkpoint_that_cannot_even_begin_is_refused(small_disk):
    fill(small_disk / "rest")
    system = ld.library.pendulum().compile()
    with pytest.raises(WritingError, match="No space left on device"):
        ld.simulate(system, system.state(), (0, 1), progress=False, checkpoint=small_disk / "run")


def test_devices_are_written_to_directly():
    write(os.devnull, "x")
    with pytest.raises(WritingError, match="'/dev/full' cannot be written: No space left on device"):
        write("/dev/full", "x")


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(WritingError, match="Give the name of a file"):
        write(tmp_path, "x")


def test_a_link_keeps_pointing_to_its_file_and_permissions_stay(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    write(link, "new")
    assert link.is_symlink()
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o640


def test_whoever_is_interrupted_while_writing_leaves_the_old_file(tmp_path):
    file = tmp_path / "file"
    file.write_text("old")

    def interrupted() -> None:
        with replacing(file) as part:
            part.write_text("ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [f.name for f in tmp_path.iterdir()] == ["file"]
    assert file.read_text() == "old"


def test_every_reason_of_a_refusal_has_a_hint():
    assert {errno.ENOSPC, errno.EACCES, errno.EROFS, errno.ENOENT} <= HINTS.keys()


# ------------------------------------------------------------------------------------------------------ formulas


@pytest.fixture(scope="module")
def dangerous() -> ld.results.Run:
    """A rod whose joint is named like a formula."""
    m = ld.Mechanism("=1+1", gravity=(0, -10, 0))
    m.add_body("rod", ld.Inertia.rod(mass=1.0, start=(0, 0, 0), end=(1, 0, 0)))
    m.add_joint(LIVE, ld.Revolute(axis=(0, 0, 1)), m.ground, "rod", at=(0, 0, 0))
    system = m.compile()
    return ld.simulate(system, system.state(), (0, 0.1), events=[ld.events.At(0.05, "@SUM(1)")], progress=False)


def test_names_do_not_become_formulas_in_workbooks(tmp_path, dangerous):
    dangerous.to_excel(tmp_path / "run.xlsx")
    book = openpyxl.load_workbook(tmp_path / "run.xlsx")
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert not [cell.coordinate for cell in cells if cell.data_type == "f"]
    words = [str(cell.value) for cell in cells]
    assert any(word.startswith(LIVE) for word in words)  # the names themselves are unchanged
    assert "=1+1" in words


def test_names_do_not_become_formulas_in_tables(tmp_path, dangerous):
    dangerous.to_csv(tmp_path / "run.csv")
    both = ld.analyses.variants(
        dangerous.system.mechanism.model_copy(update={"parameters": {"p": 1.0}}),
        [{"name": LIVE}],
        (0, 0.01),
        progress=False,
    )
    both.to_csv(tmp_path / "variants.csv")
    heads = 0
    for name in ("run.csv", "variants.csv"):
        with (tmp_path / name).open(newline="") as stream:
            for row in csv.reader(stream):
                for cell in row:
                    heads += LIVE in cell
                    assert not cell.startswith(("=", "+", "@", "\t", "\r")), cell
                    assert not cell.startswith("-") or np.isfinite(float(cell))
    assert heads > 6


# ------------------------------------------------------------------------------------------------- the command


def command(*words: str, **options) -> subprocess.CompletedProcess:
    code = "from loopdyn_command import main; main()"
    return subprocess.run([sys.executable, "-c", code, *words], check=False, text=True, timeout=120, **options)


@pytest.fixture
def model(tmp_path) -> Path:
    ld.library.four_bar().save(tmp_path / "four_bar.yaml")
    return tmp_path / "four_bar.yaml"


def test_a_full_disk_below_standard_output_is_said(model):
    with open("/dev/full", "w") as full:
        ended = command("inspect", str(model), stdout=full, stderr=subprocess.PIPE)
    assert ended.returncode == 1
    assert ended.stderr == "standard output cannot be written: No space left on device. Free some space.\n"


def test_a_closed_pipe_is_no_traceback(model):
    read, written = os.pipe()
    os.close(read)
    ended = command("schema", stdout=written, stderr=subprocess.PIPE)
    os.close(written)
    assert ended.returncode == 1
    assert ended.stderr == ""
