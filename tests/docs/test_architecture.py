"""The page on the architecture says what is there, and files and functions stay short."""

import ast
import importlib.util
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]


def layers():
    spec = importlib.util.spec_from_file_location("layers", ROOT / "docs" / "layers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_of_the_layers_is_that_of_the_sources():
    picture = layers()
    assert picture.PICTURE.read_text() == picture.drawn(), "run: python docs/layers.py"


def test_no_package_is_imported_from_below():
    picture = layers()
    level = {name: n for n, row in enumerate(picture.layers()) for name in row}
    allowed = {("model", "system")}  # Mechanism.compile, inside the method; nothing when it is loaded
    upward = {(a, b) for a, others in picture.imports().items() for b in others if level[b] < level[a]}
    assert upward <= allowed


def lines_of_code(function: ast.AST) -> int:
    """Lines of a function without its documentation, comments and empty lines."""
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1:
        body = body[1:]
    return len(ast.unparse(ast.Module(body, [])).splitlines())


def test_files_and_functions_are_short():
    long_files, long_functions = [], []
    for file in sorted((ROOT / "src").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        functions = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)]
        long_files += [file.name] * (len(text.splitlines()) > 600)
        long_functions += [f"{file.name}: {f.name}" for f in functions if lines_of_code(f) > 60]
    assert (long_files, long_functions) == ([], [])


def test_a_threshold_of_the_table_is_set_nowhere_else():
    """`ROUNDING` may be: what rounding makes of a sum depends on the sum."""
    package = ROOT / "src" / "loopdyn"
    table = set(re.findall(r"^([A-Z_]+) = ", (package / "thresholds.py").read_text(), re.M)) - {"ROUNDING"}
    assert "CLOSED" in table
    elsewhere = []
    for file in sorted(package.rglob("*.py")):
        for line in ast.parse(file.read_text(encoding="utf-8")).body:
            if file.name != "thresholds.py" and isinstance(line, ast.Assign):
                names = {n.id for target in line.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
                elsewhere += [(file.name, name) for name in names & table]
    assert elsewhere == []


def uses_of_py_func(source: str) -> int:
    """Number of places that use `py_func` of Numba's dispatchers, as an attribute or by its name."""
    nodes = list(ast.walk(ast.parse(source)))
    attributes = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == "py_func"]
    names = [node for node in nodes if isinstance(node, ast.Constant) and node.value == "py_func"]
    return len(attributes) + len(names)


def test_only_the_engine_asks_for_the_python_function_of_a_kernel():
    """Other code calls `python_function` of `engine/uncompiled.py`."""
    package = ROOT / "src" / "loopdyn"
    uses = {file: uses_of_py_func(file.read_text(encoding="utf-8")) for file in package.rglob("*.py")}
    assert uses[package / "engine" / "uncompiled.py"] == 1
    assert [str(file) for file, count in uses.items() if count and package / "engine" not in file.parents] == []


def test_a_use_of_py_func_is_noticed_in_each_form():
    forms = ["f.py_func(1)", "getattr(f, 'py_func', f)", "hasattr(f, 'py_func')"]
    assert [uses_of_py_func(source) for source in forms] == [1, 1, 1]
    assert uses_of_py_func("# py_func\npython_function(f)") == 0


def test_a_class_has_a_name_of_its_own():
    found = Counter(
        line.name
        for file in (ROOT / "src" / "loopdyn").rglob("*.py")
        for line in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(line, ast.ClassDef) and not line.name.startswith("_")
    )
    assert [name for name, count in found.items() if count > 1] == []
