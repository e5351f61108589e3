"""`import loopdyn` costs what is used of it."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import loopdyn as ld
from loopdyn.public_names import MOVED, NAMESPACES


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("library", ["numpy", "scipy", "numba", "pandas", "xarray", "pydantic", "matplotlib"])
def test_nothing_large_is_imported_before_it_is_used(library):
    assert run(f"import loopdyn, sys; print({library!r} in sys.modules)") == "False"


def test_every_public_name_is_found_where_the_list_says():
    found = run("import loopdyn; print(sorted(n for n in loopdyn.__all__ if getattr(loopdyn, n) is None))")
    assert found == "[]"
    assert set(ld.__all__) <= set(dir(ld))


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'simulat'"):
        ld.simulat  # noqa: B018


@pytest.mark.parametrize("old", MOVED)
def test_a_name_that_moved_says_where_it_is_now(old):
    *place, name = old.split(".")
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}'. It is now ld.{MOVED[old]}\.$"):
        getattr(ld.tree if place else ld, name)
    namespace, new = MOVED[old].split(".")
    assert getattr(getattr(ld, namespace), new).__name__ == new


def test_types_at_the_top_are_those_of_the_namespaces():
    assert ld.Revolute is ld.joints.Revolute
    assert ld.Graph is ld.formulations.Graph
    assert ld.results.Run is ld.results.Run
    assert ld.LoopdynError is ld.errors.LoopdynError


def test_arguments_are_checked_if_a_namespace_is_asked_for_first():
    words = run(
        """import loopdyn as ld
try:
    ld.events.Crossing(3)
except Exception as error:
    print(error)"""
    )
    assert words.startswith("Crossing: ")
    assert "is 3. Give" in words


@pytest.mark.parametrize("first", ["ld.Mechanism", "tree", "ld.library"])
def test_arguments_are_checked_whatever_is_asked_for_first(first):
    words = run(
        f"""import loopdyn as ld
from loopdyn import tree
{first}
try:
    tree.terms(3, 4)
except ld.LoopdynError as error:
    print(error)"""
    )
    assert words.startswith("terms: system is 3. Give a System.")


@pytest.mark.parametrize("name", NAMESPACES)
def test_packages_of_further_types_are_there_from_the_start(name):
    assert run(f"import loopdyn as ld; print(ld.{name}.__name__)") == f"loopdyn.{name}"


def test_methods_of_what_functions_return_are_checked():
    """Whoever never asks for `ld.System` or `ld.results.Run` meets them as results."""
    words = run(
        """import loopdyn as ld
system = ld.library.pendulum().compile()
try:
    system.state(t=None)
except ld.LoopdynError as error:
    print(error)"""
    )
    assert words.startswith("System.state: t is nothing")


@pytest.mark.parametrize("name", ["simulate", "reactions", "drive", "report", "terms"])
def test_a_public_function_is_the_same_checked_one_each_time_and_can_be_pickled(name):
    function = getattr(ld, name)
    assert getattr(ld, name) is function
    assert pickle.loads(pickle.dumps(function)) is function
    with pytest.raises(ld.LoopdynError):
        function(1, 2)


# ------------------------------------------------------------------------------------------------ times

FOUR_BAR = Path(__file__).parents[2] / "examples" / "mechanisms" / "four_bar.yaml"
SCRIPT = ("-c", "from loopdyn_command import main; main()")  # as the installed `loopdyn`
NO_YAML = "loopdyn: 1\nbodies: {crank: {mass: 1}\njoints: []\n"
MISSPELT = "loopdyn: 1\nbodies: {crank: {mas: 1}}\n"


@pytest.fixture(scope="module")
def bytecode(tmp_path_factory):
    """Folder for bytecode: an installed package has it, sources here have it only if Python may write it."""
    return str(tmp_path_factory.mktemp("bytecode"))


def seconds(bytecode, *command):
    """Processor time of a process. The first of a kind writes the bytecode of modules that the next ones read."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = bytecode
    started = subprocess.Popen(
        [sys.executable, *command], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    used = os.wait4(started.pid, 0)[2]
    started.returncode = 0  # it has been waited for
    return used.ru_utime + used.ru_stime


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="Windows does not tell the time of a process that has ended")
@pytest.mark.parametrize(
    ("command", "limit"),
    [
        (("-c", "import loopdyn"), 1.0),
        ((*SCRIPT, "--version"), 1.5),
        ((*SCRIPT, "--help"), 1.5),
        ((*SCRIPT, "inspect", NO_YAML), 1.5),
        ((*SCRIPT, "inspect", MISSPELT), 1.5),
    ],
    ids=["import", "version", "help", "no YAML", "misspelt"],
)
def test_what_computes_nothing_takes_little_more_than_numpy_and_scipy(command, limit, tmp_path, bytecode):
    """Limits are multiples of the time of importing NumPy and SciPy's linear algebra, measured beside it.

    The shortest times count, of at most twelve: others on the machine make them longer, never shorter.
    """
    if command[-1].startswith("loopdyn: "):
        file = tmp_path / "broken.yaml"
        file.write_text(command[-1])
        command = (*command[:-1], str(file))
    measured, beside = [], []
    while len(measured) < 4 or (min(measured) > limit * min(beside) and len(measured) < 12):
        measured.append(seconds(bytecode, *command))
        beside.append(seconds(bytecode, "-c", "import numpy, scipy.linalg"))
    assert min(measured) < limit * min(beside)


def test_a_model_is_read_and_compiled_without_numba():
    words = run(
        f"""import sys
from pathlib import Path
from loopdyn.interchange.loading import read_model
system = read_model(Path({str(FOUR_BAR)!r}))[0].compile()
print("numba" in sys.modules, system.nq)
from loopdyn.analysis.assembly import assemble
print(assemble(system).q.size, "numba" in sys.modules)"""
    )
    assert words.split() == ["False", "3", "3", "True"]


def test_a_run_imports_no_more_of_scipy_than_its_linear_algebra():
    """Optimisation, sparse matrices and integrators of SciPy take as long to import as a short run.

    Dask is left out: where it is installed xarray imports it, and Dask imports most of SciPy.
    """
    found = run(
        """import sys
sys.modules["dask"] = None
import loopdyn as ld
system = ld.library.four_bar().compile()
ld.simulate(system, ld.assemble(system), (0, 0.1)).data
print([n for n in ("integrate", "optimize", "sparse", "spatial", "special") if f"scipy.{n}" in sys.modules])
print([n for n in ("matplotlib", "rich", "sympy", "networkx", "openpyxl", "typer") if n in sys.modules])"""
    )
    assert found.split() == ["[]", "[]"]
