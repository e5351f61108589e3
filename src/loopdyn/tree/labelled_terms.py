"""Terms of the equations of motion with labels and units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loopdyn.quantities.labels import dataset
from loopdyn.quantities.units import Units
from loopdyn.system.labels import FORCE_OF

if TYPE_CHECKING:
    import xarray

    from loopdyn.tree.functions import Terms

RATES = ("row_units", "row_speed_units", "row_acceleration_units")


def labelled(terms: Terms) -> xarray.Dataset:
    """Dataset of the terms, SI; ``units`` of a variable name the coordinates that have the unit of each label."""
    s, si = terms.system, Units()
    moved, rows = [s.labels.speeds[label].dimension for label in s.speeds], s.row_dimensions
    return dataset(
        {
            "M": (("speed", "speed2"), terms.M, {"units": "load_units per acceleration_units"}),
            "h": ("speed", terms.h, {"units": "load_units"}),
            "J": (("row", "speed"), terms.J, {"units": "row_speed_units per speed_units"}),
            "gamma": ("row", terms.gamma, {"units": "row_acceleration_units"}),
            "phi": ("row", terms.phi, {"units": "row_units"}),
            "phi_t": ("row", terms.phi_t, {"units": "row_speed_units"}),
        },
        {
            "speed": list(s.speeds),
            "speed2": list(s.speeds),
            "row": list(s.constraint_rows),
            "load_units": ("speed", [si.symbol(FORCE_OF[d]) for d in moved]),
            "speed_units": ("speed", [si.symbol(d, 1) for d in moved]),
            "acceleration_units": ("speed2", [si.symbol(d, 2) for d in moved]),
            **{name: ("row", [si.symbol(d, k) for d in rows]) for k, name in enumerate(RATES)},
        },
    )
