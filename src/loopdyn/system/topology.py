"""Topology of a mechanism: spanning tree, cut joints, loops, labelling and matrices [Mufti1983 sections 2, 4]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from loopdyn.errors import LoopdynError, ModelError, Problem
from loopdyn.quantities.wording import nearest
from loopdyn.system.graph import Edge, Forest, Loop, adjacency
from loopdyn.system.short_loops import short_loops
from loopdyn.system.spanning_tree import shallow_forest

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Incidence:
    """Matrices of the graph in Mufti's regular labelling [Mufti1983 eqs. (1), (22)-(25), (62)].

    Row i belongs to ``bodies[i]``, column i of `S` and row i of `T` to the joint that leads to it. An arc has
    +1 at the body it leaves (towards the root) and -1 at the body it enters; the ground has no row.
    """

    bodies: tuple[str, ...]
    joints: tuple[str, ...]  # inboard joint of each body
    S: NDArray[np.int64]
    C: NDArray[np.int64]  # columns of S whose joint connects two bodies or a body and a base: no free roots
    C_star: NDArray[np.int64]  # cut joints, +1 at the declared parent
    cut: tuple[str, ...]

    @property
    def C_c(self) -> NDArray[np.int64]:
        """Incidence of the closed system, (C, C*) [Mufti1983 eq. (62)]."""
        return np.hstack([self.C, self.C_star])

    @cached_property
    def T(self) -> NDArray[np.int64]:
        """Path matrix S^-1: -1 if the joint of the row is on the path to the body of the column."""
        n = len(self.bodies)
        T = np.zeros((n, n), np.int64)
        for body in range(n):
            # [Mufti1983 eq. (24)]: t_i,j- = t_i,j+ - delta_ij; parents have smaller numbers
            above = np.flatnonzero(self.S[:body, body] == 1)
            if above.size:
                T[:, body] = T[:, above[0]]
            T[body, body] -= 1
        return T


@dataclass(frozen=True)
class Topology:
    """Topology of a mechanism: tree, cut joints, loops.

    Attributes
    ----------
    name : str
        Name of the mechanism.
    bases : tuple of str
        Ground, and roots whose motion is given.
    order : tuple of str
        Bodies in the order of the arrays, parents before children.
    cuts : tuple of str
        Joints that are cut, i.e. kept as constraints.
    """

    name: str
    names: tuple[str, ...]
    edges: tuple[Edge, ...]
    n_bases: int
    forest: Forest = field(repr=False)

    @property
    def bases(self) -> tuple[str, ...]:
        """Ground, and roots whose motion is given."""
        return self.names[: self.n_bases]

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Bodies in the order of the arrays, parents before children."""
        return tuple(self.names[b] for b in self.forest.order)

    @cached_property
    def cut_edges(self) -> tuple[int, ...]:
        """Indices of the joints that are not in the tree."""
        tree = set(self.forest.joint)
        return tuple(k for k in range(len(self.edges)) if k not in tree)

    @property
    def cuts(self) -> tuple[str, ...]:
        """Names of the cut joints."""
        return tuple(self.edges[k].name for k in self.cut_edges)

    @property
    def free_roots(self) -> tuple[str, ...]:
        """Floating bodies, which are connected to the ground by an added free joint."""
        return tuple(self.names[b] for b in self.forest.order if self.forest.joint[b] < 0)

    def inboard(self, body: str) -> str | None:
        """Name of the joint that leads to `body` in the tree; None for a free root."""
        if body not in self.names:
            raise ModelError([Problem("topology", f"there is no body '{body}'", nearest(body, self.names))])
        k = self.forest.joint[self.names.index(body)]
        return None if k < 0 else self.edges[k].name

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Basis of short loops: each has a joint that no earlier loop has."""
        adjacent = adjacency(len(self.names), self.edges)
        tree = shallow_forest(self.names, self.edges, adjacent, self.n_bases)
        return tuple(short_loops(self.names, self.edges, tree, self.n_bases))

    @cached_property
    def graph(self) -> networkx.MultiGraph:
        """Graph of bodies and joints as a networkx multigraph."""
        try:
            import networkx as nx
        except ModuleNotFoundError:
            raise LoopdynError(
                "the graph of a mechanism needs networkx, which is not installed. Run: pip install 'loopdyn[graphs]'."
            ) from None
        g = nx.MultiGraph(name=self.name)
        g.add_nodes_from(self.names)
        cut = set(self.cut_edges)
        for k, e in enumerate(self.edges):
            g.add_edge(self.names[e.parent], self.names[e.child], key=e.name, type=e.type, cut=k in cut)
        return g

    # ---------------------------------------------------------------------------------- Mufti's matrices

    def regular_labelling(self) -> tuple[str, ...]:
        """Bodies in Mufti's regular labelling: the outermost get the highest numbers, round by round."""
        f = self.forest
        children = [0] * len(self.names)
        for b in f.order:
            children[f.parent[b]] += 1
        labels: list[int] = []
        outermost = [b for b in reversed(f.order) if children[b] == 0]
        while outermost:
            labels.extend(outermost)
            following = []
            for b in outermost:
                p = f.parent[b]
                children[p] -= 1
                if children[p] == 0 and p >= self.n_bases:
                    following.append(p)
            outermost = following
        return tuple(self.names[b] for b in reversed(labels))

    def incidence(self) -> Incidence:
        """Incidence matrices C, C*, C_c and path matrix T; dense, computed on request."""
        f = self.forest
        bodies = self.regular_labelling()
        index = {name: k for k, name in enumerate(self.names)}
        number = {index[b]: k for k, b in enumerate(bodies)}
        n = len(bodies)
        S = np.zeros((n, n), np.int64)
        joined = []
        names = [""] * n
        for b, k in number.items():
            S[k, k] = -1
            if f.parent[b] in number:
                S[number[f.parent[b]], k] = 1
            names[k] = self.edges[f.joint[b]].name if f.joint[b] >= 0 else f"free:{self.names[b]}"
            joined.append((k, f.joint[b] >= 0))
        C_star = np.zeros((n, len(self.cut_edges)), np.int64)
        for column, e in enumerate(self.edges[k] for k in self.cut_edges):
            if e.parent in number:
                C_star[number[e.parent], column] = 1
            if e.child in number:
                C_star[number[e.child], column] = -1
        keep = [k for k, real in sorted(joined) if real]
        return Incidence(bodies, tuple(names), S, S[:, keep], C_star, self.cuts)

    # ------------------------------------------------------------------------------------------- showing

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self, most: int = 60) -> Iterator[str]:
        bodies = len(self.names) - self.n_bases
        counts = [_count(bodies, "body"), _count(len(self.edges), "joint"), _count(len(self.loops), "loop")]
        yield f"{self.name}: {', '.join(counts)}, {len(self.cuts)} cut"
        yield from islice(self._tree_lines(), most)
        if len(self.names) > most:
            yield f"... and {len(self.names) - most} more bodies"
        cut = [self.edges[k] for k in self.cut_edges]
        for e in cut[:most]:
            yield f"cut: {e.name}, {e.type}, {self.names[e.parent]} - {self.names[e.child]}"
        if len(cut) > most:
            yield f"... and {len(cut) - most} more cut joints"
        for k, loop in enumerate(self.loops[:most]):
            yield f"loop {k + 1}: {loop}   (base {loop.base})"
        if len(self.loops) > most:
            yield f"... and {len(self.loops) - most} more loops"

    def _tree_lines(self) -> Iterator[str]:
        f = self.forest
        children: dict[int, list[int]] = {}
        for b in f.order:
            children.setdefault(f.parent[b], []).append(b)
        for base in range(self.n_bases):
            yield self.names[base] + ("" if base == 0 else " (given motion)")
            below = children.get(base, [])
            stack = [(b, "", b == below[-1]) for b in reversed(below)]
            while stack:
                b, indent, last = stack.pop()
                k = f.joint[b]
                how = "free" if k < 0 else f"{self.edges[k].name}, {self.edges[k].type}"
                turned = k >= 0 and self.edges[k].child != b
                yield f"{indent}{'└─' if last else '├─'} {self.names[b]}  ({how}{', reversed' if turned else ''})"
                below = children.get(b, [])
                inner = indent + ("   " if last else "│  ")
                stack.extend((c, inner, c == below[-1]) for c in reversed(below))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the graph: bodies as nodes, tree joints as full lines, cut joints dashed.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        import matplotlib.pyplot as plt

        graph = self.graph
        import networkx as nx  # there: the graph is one of its own

        ax = plt.subplots(figsize=(7, 5), layout="constrained")[1] if ax is None else ax
        place = nx.kamada_kawai_layout(nx.Graph(graph)) if len(self.names) > 1 else {self.names[0]: (0.0, 0.0)}
        colours = ["0.75" if name in self.bases else "#9ecae1" for name in self.names]
        nx.draw_networkx_nodes(graph, place, nodelist=self.names, node_color=colours, node_size=900, ax=ax)
        nx.draw_networkx_labels(graph, place, font_size=8, ax=ax)
        between: dict[tuple[str, str], list[str]] = {}
        for a, b, key, cut in graph.edges(keys=True, data="cut"):
            style, colour = ("dashed", "#d62728") if cut else ("solid", "0.2")
            nx.draw_networkx_edges(
                graph, place, edgelist=[(a, b, key)], style=style, edge_color=colour, width=1.6, ax=ax
            )
            between.setdefault((a, b), []).append(key)
        labels = {pair: ", ".join(keys) for pair, keys in between.items()}
        nx.draw_networkx_edge_labels(nx.Graph(graph), place, edge_labels=labels, font_size=8, ax=ax)
        ax.set_title(f"{self.name}: tree joints full, cut joints dashed")
        ax.set_axis_off()
        return ax


def _count(n: int, noun: str) -> str:
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{n} {noun if n == 1 else plural}"
