"""Figures of the sources of a checkout: how large they are, how long their parts, how much stands there twice.

    python benchmarks/house.py [CHECKOUT ...]

Lines of code of a function are counted without documentation, comments and empty lines, joined as Python would print
them. A constant is a name of capitals that a module sets to a number or a tuple of numbers. A duplicated run has more
than ten lines in a row that stand, but for white space, in two places; imports, comments, empty lines and lone brackets
do not count.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

RUN = 11  # lines that make a duplicated run
HERE = Path(__file__).parents[1]


def code_lines(node: ast.FunctionDef) -> int:
    body = node.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1:
        body = body[1:]
    return len(ast.unparse(ast.Module(body, [])).splitlines())


def constants(tree: ast.Module) -> int:
    """Names of a module that are numbers."""
    found = 0
    for line in tree.body:
        if isinstance(line, ast.Assign) and line.value is not None:
            names = [n.id for target in line.targets for n in ast.walk(target) if isinstance(n, ast.Name)]
            parts = [n for n in ast.walk(line.value) if isinstance(n, ast.Constant)]
            kinds = (ast.Constant, ast.Tuple, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.expr_context)
            numbers = parts and all(isinstance(n, kinds) for n in ast.walk(line.value))
            if numbers and all(type(n.value) in (int, float) for n in parts):
                found += sum(name.strip("_").isupper() for name in names)
    return found


def counted_lines(text: str) -> list[str]:
    """Lines that can be duplicated."""
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = [line.strip() for n, line in enumerate(text.splitlines(), 1) if n not in imported]
    return [line for line in lines if any(c.isalnum() for c in line) and not line.startswith("#")]


def duplicated_runs(texts: dict[str, str]) -> list[tuple[str, str]]:
    """The two files, or the file twice, of each run that stands in two places."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, text in texts.items():
        lines = counted_lines(text)
        for n in range(len(lines) - RUN + 1):
            places[tuple(lines[n : n + RUN])].append((name, n))
    pairs = [(p, q) for group in places.values() for k, p in enumerate(group) for q in group[k + 1 :]]
    starts = set(pairs)
    # a run goes on where the window one line before is a pair as well
    first = [(p, q) for p, q in pairs if ((p[0], p[1] - 1), (q[0], q[1] - 1)) not in starts]
    return sorted((p[0], q[0]) for p, q in first)


def figures(checkout: Path) -> dict[str, object]:
    """What is said of a checkout."""
    root = checkout / "src" / "loopdyn"
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    functions = sorted(
        (code_lines(node), f"{name}: {node.name}")
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    )
    files = sorted((len(text.splitlines()), name) for name, text in texts.items())
    lengths, sizes = [n for n, _ in functions], [n for n, _ in files]
    return {
        "files": len(files),
        "files and packages at the root": len({name.partition("/")[0] for name in texts}),
        "lines": sum(sizes),
        "longest file": f"{files[-1][0]} ({files[-1][1]})",
        "files above 600 lines": sum(n > 600 for n in sizes),
        "median of files": int(median(sizes)),
        "functions": len(functions),
        "longest function": f"{functions[-1][0]} ({functions[-1][1]})",
        "functions above 60 lines": sum(n > 60 for n in lengths),
        "median of functions": int(median(lengths)),
        "numeric constants of modules": sum(constants(tree) for tree in trees.values()),
        "duplicated runs": len(duplicated_runs(texts)),
    }


def main() -> None:
    """A row a figure, a column a checkout."""
    checkouts = [Path(name) for name in sys.argv[1:]] or [HERE]
    columns = [figures(checkout) for checkout in checkouts]
    for name in columns[0]:
        print(f"| {name} | {' | '.join(str(column[name]) for column in columns)} |")


if __name__ == "__main__":
    main()
