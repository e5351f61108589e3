"""Runs with armature: energy, and momentum steps beside the other formulations."""

from __future__ import annotations

import pytest

import loopdyn as ld


def test_energy_is_kept_with_armature_and_momentum_steps_agree_with_the_others():
    """No damping: what falls goes into both inertias."""
    m = ld.library.four_bar()
    m.joints["A"] = m.joints["A"].model_copy(update={"armature": 0.3})
    system = m.compile()
    state = ld.assemble(system, q={"A": 0.4}, v={"A": 2.0})
    options = {"progress": False, "rtol": 1e-6, "atol": 1e-7}
    one = ld.simulate(system, state, (0.0, 0.1), formulation="graph", **options)
    two = ld.simulate(system, state, (0.0, 0.1), formulation="momentum", **options)
    assert one.energy_error < 1e-5
    assert two.energy_error < 1e-4
    assert two.path.q[-1] == pytest.approx(one.path.q[-1], abs=1e-5)  # both to their tolerances
