"""Poses, velocities and accelerations of random closed mechanisms against Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest

import loopdyn as ld

pin = pytest.importorskip("pinocchio", reason="Pinocchio has no wheels for this platform")

from tests.external.pinocchio_models import Twin  # noqa: E402  after the check that Pinocchio is there
from tests.external.test_pinocchio import assert_same_motion  # noqa: E402


@pytest.mark.parametrize("seed", range(10))
def test_motions_of_closed_mechanisms_equal_pinocchios(seed):
    m = ld.library.random_mechanism(seed, 8, 2)
    system = m.compile()
    state = ld.assemble(system, v=np.random.default_rng(seed).normal(size=system.nv))
    twin, a = Twin(m, system), np.random.default_rng(seed).normal(size=system.nv)
    twin.update(state, a)
    assert_same_motion(twin, ld.kinematics(system, state, a=a)._accelerated, f"seed {seed}")
