"""Ready-made mechanisms: textbook linkages, benchmark problems, families of any size, random ones.

Each is a short function that returns a :class:`loopdyn.Mechanism`, closed at its reference pose, where all joint
coordinates are zero. Its dimensions are parameters (``four_bar().with_(crank=0.25)``) and `start` holds the state in
which its source starts it, where there is one. :data:`ALL` names them all, each at a small size.

Examples
--------
>>> for name, build in ALL.items():
...     print(name, len(build().bodies))
pendulum 1
double_pendulum 2
four_bar 3
watt 5
stephenson 5
slider_crank 3
quick_return 5
five_bar 4
n_four_bar 5
andrews 7
bricard 5
bricard_slender 5
flyball 4
rssr 3
bennett 3
stewart_3rrs 7
stewart_6ups 13
ladder 7
star_ladder 7
tower 9
random_mechanism 8
peaucellier 7
theo_jansen 7
scissor_lift 7
double_wishbone 6
delta_robot 10
cardan_shaft 4
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from loopdyn.arguments import check_public
from loopdyn.library.benchmarks import andrews, bricard, flyball, n_four_bar
from loopdyn.library.ladders import ladder, star_ladder, tower
from loopdyn.library.machines import cardan_shaft, delta_robot, double_wishbone
from loopdyn.library.planar import (
    double_pendulum,
    five_bar,
    four_bar,
    peaucellier,
    pendulum,
    quick_return,
    scissor_lift,
    slider_crank,
    stephenson,
    theo_jansen,
    watt,
)
from loopdyn.library.random import random_mechanism
from loopdyn.library.spatial import bennett, rssr, stewart_3rrs, stewart_6ups
from loopdyn.library.turning import turned
from loopdyn.model.mechanism import Mechanism

__all__ = [
    "ALL",
    "andrews",
    "bennett",
    "bricard",
    "cardan_shaft",
    "delta_robot",
    "double_pendulum",
    "double_wishbone",
    "five_bar",
    "flyball",
    "four_bar",
    "ladder",
    "n_four_bar",
    "peaucellier",
    "pendulum",
    "quick_return",
    "random_mechanism",
    "rssr",
    "scissor_lift",
    "slider_crank",
    "star_ladder",
    "stephenson",
    "stewart_3rrs",
    "stewart_6ups",
    "theo_jansen",
    "tower",
    "turned",
    "watt",
]

ALL: dict[str, Callable[[], Mechanism]] = {
    "pendulum": pendulum,
    "double_pendulum": double_pendulum,
    "four_bar": four_bar,
    "watt": watt,
    "stephenson": stephenson,
    "slider_crank": slider_crank,
    "quick_return": quick_return,
    "five_bar": five_bar,
    "n_four_bar": n_four_bar,
    "andrews": andrews,
    "bricard": bricard,
    "bricard_slender": partial(bricard, slender=True),
    "flyball": flyball,
    "rssr": rssr,
    "bennett": bennett,
    "stewart_3rrs": stewart_3rrs,
    "stewart_6ups": stewart_6ups,
    "ladder": ladder,
    "star_ladder": star_ladder,
    "tower": tower,
    "random_mechanism": partial(random_mechanism, 1),
    "peaucellier": peaucellier,
    "theo_jansen": theo_jansen,
    "scissor_lift": partial(scissor_lift, 2),
    "double_wishbone": double_wishbone,
    "delta_robot": delta_robot,
    "cardan_shaft": cardan_shaft,
}

check_public(globals(), __all__)
