"""Arrays of a system: one of integers, one of floats, in the layout of :mod:`loopdyn.engine.records`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from loopdyn.constraints.base import LinearRecord, PairRecord
from loopdyn.engine import records as rec
from loopdyn.forces.base import Force, Record
from loopdyn.forces.loading import LAW_VARIABLES
from loopdyn.forces.measured import TERM_VARIABLES
from loopdyn.quantities.expressions import Program, pack
from loopdyn.system.cut_angles import AnglePath, Tables, cut_angle_path
from loopdyn.system.placement import Placement
from loopdyn.system.system import JointData, Pose

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Freezer:
    """Contents of the arrays, as records of SI numbers."""

    placement: Placement
    n_bases: int
    cut_joints: Sequence[JointData]
    forces: Sequence[tuple[Force, Record]]
    pairs: Sequence[tuple[int, PairRecord]]  # with type codes
    linear: Sequence[tuple[int, LinearRecord]]
    n_rows: int  # of all constraints ...
    n_user_rows: int  # ... and, at the end, of the user's functions
    base_programs: Sequence[Sequence[Program | None]]
    gravity: Array
    armature: Array  # armature of each speed of the tree, kg m^2 or kg
    read: Sequence[str]  # angles on whose full turns an element depends

    def freeze(self, wanted: Sequence[str] | None) -> tuple[NDArray[np.int64], Array, list[str]]:
        """Integer array, float array, and the angles of cut joints that are additional coordinates.

        These are all of `read` whose full turns do not follow from the tree, or those of them that are `wanted`.
        """
        p = self.placement
        programs: list[Program] = []
        force_ints = np.empty((len(self.forces), rec.N_FORCE_INTS), np.int64)
        force_data = np.zeros((len(self.forces), rec.N_FORCE_FLOATS))
        for n, (force, record) in enumerate(self.forces):
            force_ints[n] = record.packed(force, len(programs))
            force_data[n, : len(record.floats)] = record.floats
            programs += record.programs
        base = np.full((self.n_bases, rec.N_BASE_PROGRAMS), -1, np.int64)
        for i, line in enumerate(self.base_programs):
            for k, program in enumerate(line):
                if program is not None:
                    base[i, k] = len(programs)
                    programs.append(program)
        cut, cut_frames = self._cut_data(programs)
        linear, entries, factors = self._linear_data(programs)
        code, constants, start, depth = pack(programs)
        base_pose = np.array([np.concatenate([x, R.ravel()]) for x, R in p.poses[: self.n_bases]])
        paths = self._paths(base, base_pose, cut, cut_frames)
        counted = [label for label in paths if paths[label] is None and (wanted is None or label in wanted)]
        reader, path, reader_angle = self._readers(paths, counted)
        nq = len(p.q_labels) + len(counted)
        terms = p.terms
        of_laws = LAW_VARIABLES + TERM_VARIABLES * len(terms.labels)
        variables = [of_laws, *(1 + 2 * len(c.freedoms) for _, c in self.linear)]
        header = {
            rec.H_BODIES: len(p.order), rec.H_BASES: self.n_bases, rec.H_NQ: nq, rec.H_NV: len(p.v_labels),
            rec.H_CUTS: len(cut), rec.H_NC: self.n_rows, rec.H_FORCES: len(self.forces), rec.H_CODE: len(code),
            rec.H_PROGRAMS: len(programs), rec.H_CONSTANTS: len(constants), rec.H_LINEAR: len(linear),
            rec.H_ENTRIES: len(entries), rec.H_DEPTH: max(depth, 1), rec.H_JETS: max(variables),
            rec.H_USER: self.n_user_rows, rec.H_PATH: len(path), rec.H_COUNTED: len(counted),
            rec.H_TERMS: len(terms.labels),
        }  # fmt: skip
        ints, floats = rec.pack_model(
            header,
            tree=p.tree, body=p.body_data, cut=cut, cut_frames=cut_frames, force=force_ints, force_data=force_data,
            code=code, program=start, constants=constants, base_programs=base, base_pose=base_pose, linear=linear,
            term=np.array(terms.ints, np.int64), term_point=np.array(terms.points),
            entry=entries, factor=factors, gravity=self.gravity, reader=reader, path=path,
            counted=[self._cut_freedom(label) for label in counted], reader_angle=reader_angle, armature=self.armature,
        )  # fmt: skip
        ints.flags.writeable = floats.flags.writeable = False
        return ints, floats, counted

    def _cut_freedom(self, label: str) -> tuple[int, int]:
        """Index of a cut joint, and index of one of its freedoms."""
        found = self.placement.labels.coordinates[label]
        return found.joint.cut, found.k

    def _paths(
        self, base: NDArray[np.int64], base_pose: Array, cut: NDArray[np.int64], cut_frames: Array
    ) -> dict[str, AnglePath | None]:
        """Paths of the cut angles in `read`, by label; None if their full turns do not follow from the tree."""
        p = self.placement
        tables = Tables(p.tree, p.body_data, base, base_pose, p.reference_coordinates())
        return {
            label: cut_angle_path(tables, cut, cut_frames, *self._cut_freedom(label))
            for label in self.read
            if not p.labels.coordinates[label].joint.in_tree
        }

    def _readers(
        self, paths: Mapping[str, AnglePath | None], counted: Sequence[str]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
        """Tables by which forces, entries of relations and terms read cut angles: readers, paths, offsets."""
        own = {label: len(self.placement.q_labels) + k for k, label in enumerate(counted)}
        found: dict[tuple[int, int], AnglePath] = {}
        for label, p in paths.items():
            if label in own:
                found[self._cut_freedom(label)] = AnglePath(((own[label], 1),), 0.0)
            elif p is not None:
                found[self._cut_freedom(label)] = p
        freedoms = [record.freedom for _, record in self.forces]
        read = [(-1, -1) if f is None else (f.cut, f.index) for f in freedoms]
        read += [(f.cut, f.index) for _, c in self.linear for f in c.freedoms]
        read += [(cut, index) if body < 0 else (-1, -1) for body, cut, index, _ in self.placement.terms.ints]
        reader, offsets = np.zeros((len(read), rec.N_READER), np.int64), np.zeros(len(read))
        steps: list[tuple[int, int]] = []
        for k, what in enumerate(read):
            if what in found:
                reader[k] = len(steps), len(found[what].steps)
                steps += found[what].steps
                offsets[k] = found[what].offset
        return reader, np.array(steps, np.int64).reshape(-1, rec.N_STEP), offsets

    def _cut_data(self, programs: list[Program]) -> tuple[NDArray[np.int64], Array]:
        """Tables of cut joints, then of pair constraints."""
        joints = self.cut_joints
        n = len(joints) + len(self.pairs)
        cut = np.zeros((n, rec.N_CUT), np.int64)
        frames = np.zeros((n, rec.N_CUT_FRAMES))
        row = 0
        for k, j in enumerate(joints):
            rows = len(j.spec.rows_when_cut)
            cut[k] = [j.parent, j.child, j.spec.kind, row, rows, -1, 0]
            row += rows
        frames[: len(joints)] = frames_of_cuts(joints, self.placement.own)
        for k, (code, c) in enumerate(self.pairs, len(joints)):
            cut[k] = [*c.bodies, code, row, len(c.rows), len(programs) if c.programs else -1, 0]
            programs += c.programs
            row += len(c.rows)
            frames[k] = np.concatenate([c.F_point, c.F_axes.ravel(), c.M_point, c.M_axes.ravel(), c.par])
        return cut, frames

    def _linear_data(self, programs: list[Program]) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
        """Tables of relations between coordinates: relations, their entries, and the factors of the entries."""
        first_row = self.n_rows - len(self.linear) - self.n_user_rows
        linear: list[list[int]] = []
        entries: list[list[int]] = []
        factors: list[float] = []
        for n, (code, c) in enumerate(self.linear):
            linear.append([first_row + n, len(entries), len(c.freedoms), len(programs), code])
            programs.append(c.program)
            entries += [[f.cut, f.index, f.coordinate] for f in c.freedoms]
            factors += c.coefficients
        return (
            np.array(linear, np.int64).reshape(-1, rec.N_LINEAR),
            np.array(entries, np.int64).reshape(-1, rec.N_ENTRY),
            np.array(factors, float),
        )


def frames_of_cuts(joints: Sequence[JointData], own: Sequence[Pose]) -> Array:
    """Table of frames of cut joints, a line each; `own`: frames of all bodies in kernel axes."""
    if not joints:
        return np.zeros((0, rec.N_CUT_FRAMES))
    bodies = [j.parent for j in joints] + [j.child for j in joints]
    frames = [j.F for j in joints] + [j.M for j in joints]
    origin, axes = np.array([own[b][0] for b in bodies]), np.array([own[b][1] for b in bodies])
    p, R = np.array([frame[0] for frame in frames]), np.array([frame[1] for frame in frames])
    n, found = len(joints), np.empty((len(joints), rec.N_CUT_FRAMES))
    points, turned = origin + (axes @ p[:, :, None])[:, :, 0], (axes @ R).transpose(0, 2, 1).reshape(-1, 9)
    found[:, :3], found[:, 3:12], found[:, 12:15], found[:, 15:24] = points[:n], turned[:n], points[n:], turned[n:]
    found[:, 24:] = [j.par for j in joints]
    return found
