"""Bodies and joints in the order of the arrays: axes, reference points and constants of the tree for kernels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopdyn.engine import records as rec
from loopdyn.errors import Path
from loopdyn.forces.base import Freedom
from loopdyn.joints import Free
from loopdyn.model.inertia import MassProperties
from loopdyn.quantities.units import Resolver
from loopdyn.quantities.wording import element_of, nearest
from loopdyn.system.labels import JointLabels
from loopdyn.system.system import JointData, Pose
from loopdyn.system.topology import Topology

Array = NDArray[np.float64]


def row_of(rows: Mapping[str, int], name: str, r: Resolver, element: str, path: Path) -> int:
    """Row of a body; -1, with the problem recorded, if there is none of this name."""
    if name not in rows:
        r.problem(element, f"there is no body '{name}'", nearest(name, rows), path)
    return rows.get(name, -1)


class Placement:
    """Position of everything in the arrays, as forces, constraints and drivers need it.

    Attributes
    ----------
    order : list of str
        Names of the bodies by row, the bases first.
    poses : list of Pose
        Poses of the bodies' own frames at the reference pose, by row.
    own : list of Pose
        User's body frame in kernel terms: origin from the reference point, axes in the body's kernel axes.
    joints : dict of JointData
        By name, with rows of the arrays; joints of floating bodies are added.
    tree, body_data : arrays
        See :mod:`loopdyn.engine.records`.
    """

    def __init__(
        self,
        r: Resolver,
        topology: Topology,
        joints: Mapping[str, JointData],
        poses: Sequence[Pose],
        masses: Sequence[MassProperties],
    ):
        names = topology.names
        self.r, self.n_bases = r, topology.n_bases
        self.order = [*names[: topology.n_bases], *topology.order]
        self.rows = {name: k for k, name in enumerate(self.order)}
        given = {name: k for k, name in enumerate(names)}
        self.poses = [poses[given[name]] for name in self.order]
        n = len(self.order)
        self.tree = np.zeros((n, rec.N_TREE), np.int64)
        self.body_data = np.zeros((n, rec.N_BODY))
        self.own: list[Pose] = [(np.zeros(3), np.eye(3))] * n
        self.q_labels: list[str] = []
        self.v_labels: list[str] = []
        self.joints = dict(joints)
        self.terms: Any = None  # measures for laws of forces, set before these are resolved
        self._place(topology, poses)
        self._mass_data([masses[given[name]] for name in self.order])

    @cached_property
    def labels(self) -> JointLabels:
        """Coordinates and speeds by label."""
        return JointLabels(self.joints.values())

    def _place(self, topology: Topology, poses: Sequence[Pose]) -> None:
        """Bodies with the joints that lead to them, from the roots outwards; then the cut joints."""
        forest, edges = topology.forest, topology.edges
        row = [self.rows[name] for name in topology.names]
        for b in forest.order:
            k = forest.joint[b]
            joint = _free_root(b, topology.names[b], poses[b]) if k < 0 else self.joints[edges[k].name]
            placed = joint.placed(row, body=row[b], q0=len(self.q_labels), v0=len(self.v_labels))
            self.joints[joint.name] = placed
            self._place_body(row[b], row[forest.parent[b]], placed, reverse=joint.child != b)
            q, v = joint.spec.labels(joint.name)
            self.q_labels += q
            self.v_labels += v
        for number, k in enumerate(topology.cut_edges):
            j = self.joints[edges[k].name]
            self.joints[j.name] = j.placed(row, cut=number)

    def with_numbers(
        self,
        r: Resolver,
        topology: Topology,
        joints: Mapping[str, JointData],
        poses: Sequence[Pose],
        masses: Sequence[MassProperties],
        new_joints: Collection[str],
        new_masses: Collection[int],
    ) -> Placement:
        """Placement of the same structure with other numbers; joints and masses that are not `new` are as before."""
        other = object.__new__(Placement)
        other.__dict__.update(self.__dict__)
        other.__dict__.pop("labels", None)  # they refer to joints
        other.r, other.own, other.joints = r, list(self.own), dict(self.joints)
        other.body_data, other.tree = self.body_data.copy(), self.tree.copy()
        names, forest = topology.names, topology.forest
        other.poses = [poses[k] for k in (*range(topology.n_bases), *forest.order)]
        row = [self.rows[name] for name in names]
        for name in new_joints:
            old = self.joints[name]
            other.joints[name] = joints[name].placed(row, old.body, old.q0, old.v0, old.cut)
        moved = set()
        for i, b in enumerate(forest.order, topology.n_bases):
            k, p = forest.joint[b], int(self.tree[i, rec.PARENT])
            if k < 0:
                root = _free_root(b, names[b], poses[b])
                other.joints[root.name] = replace(self.joints[root.name], q_reference=root.q_reference)
            elif p in moved or topology.edges[k].name in new_joints:
                joint = other.joints[topology.edges[k].name]
                other._place_body(i, p, joint, reverse=joint.child != i)
                moved.add(i)
        if moved or new_masses:
            other._mass_data([masses[b] for b in (*range(topology.n_bases), *forest.order)])
        return other

    def _place_body(self, i: int, p: int, joint: JointData, reverse: bool) -> None:
        spec = joint.spec
        inboard, outboard = (joint.M, joint.F) if reverse else (joint.F, joint.M)
        origin, axes = self.own[p]
        A = (axes @ inboard[1]).T  # joint axes as rows; at zero coordinates equal for parent and child
        own_axes = A.T @ outboard[1].T
        self.own[i] = (-own_axes @ outboard[0], own_axes)
        sign = -1.0 if reverse and spec.reversed_by_sign else 1.0
        data = self.body_data[i]
        data[rec.OFFSET : rec.OFFSET + 3] = origin + axes @ inboard[0]
        data[rec.AXES : rec.AXES + 9] = sign * A.ravel()
        data[rec.PAR : rec.PAR + 2] = joint.par
        reversed_in_kernel = reverse and not spec.reversed_by_sign
        self.tree[i] = [p, spec.kind, joint.q0, joint.v0, len(spec.speeds), reversed_in_kernel]

    def _mass_data(self, masses: Sequence[MassProperties]) -> None:
        """Mass properties and own frames of all bodies, in kernel axes."""
        origin, axes = np.array([own[0] for own in self.own]), np.array([own[1] for own in self.own])
        com, inertia = np.array([m[1] for m in masses]), np.array([m[2] for m in masses])
        I = axes @ inertia @ axes.transpose(0, 2, 1)
        data = self.body_data
        data[:, rec.MASS] = [m[0] for m in masses]
        data[:, rec.COM : rec.COM + 3] = origin + (axes @ com[:, :, None])[:, :, 0]
        data[:, rec.INERTIA : rec.INERTIA + 6] = I[:, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        data[:, rec.ORIGIN : rec.ORIGIN + 3] = origin
        data[:, rec.BODY_AXES : rec.BODY_AXES + 9] = axes.reshape(-1, 9)

    def reference_coordinates(self) -> Array:
        """Coordinates of the tree at the reference pose."""
        q = np.zeros(len(self.q_labels))
        for j in self.joints.values():
            if j.in_tree:
                q[j.q0 : j.q0 + len(j.q_reference)] = j.q_reference
        return q

    # ----------------------------------------------------- lookups for forces, constraints and drivers

    def body(self, name: str, element: str, path: Path) -> int:
        """Row of a body; -1, with the problem recorded, if there is none of this name."""
        return row_of(self.rows, name, self.r, element, path)

    def point(self, body: int, p: Array) -> Array:
        """World point at the reference pose, seen from the body's reference point in its kernel axes."""
        x, R = self.poses[body]
        origin, axes = self.own[body]
        result: Array = origin + axes @ (R.T @ (p - x))
        return result

    def axes(self, body: int, R: Array) -> Array:
        """World axes at the reference pose (columns of R), seen in the body's kernel axes."""
        _, R_body = self.poses[body]
        result: Array = self.own[body][1] @ R_body.T @ R
        return result

    def freedom(self, label: str, element: str, path: Path) -> Freedom | None:
        """Freedom called `label`."""
        found = self.labels.speeds.get(label)
        if found is None:
            self._no_freedom(label, element, path)
            return None
        joint, k = found.joint, found.k
        dimension, rotation = found.dimension if found.scalar else "", found.dimension == "angle"
        if joint.in_tree:
            return Freedom(-1, found.place, joint.q0 + k if found.scalar else -1, dimension, rotation)
        return Freedom(joint.cut, k, -1, dimension, rotation)

    def _no_freedom(self, label: str, element: str, path: Path) -> None:
        joint = self.joints.get(element_of(label))
        if joint is None:
            self.r.problem(element, f"there is no joint '{label}'", nearest(label, self.joints), path)
            return
        labels = joint.spec.labels(joint.name)[1]
        hint = f"Name one of its freedoms: {', '.join(labels)}." if labels else "A weld has no freedom."
        self.r.problem(element, f"joint '{joint.name}' has no freedom '{label}'", hint, path)


def _free_root(b: int, name: str, pose: Pose) -> JointData:
    """Free joint of a floating body."""
    nothing = (np.zeros(3), np.eye(3))
    p, R = pose
    return JointData(f"free:{name}", Free(), 0, b, nothing, nothing, (0.0, 0.0), Free.measure(R, p, (0.0, 0.0)))
