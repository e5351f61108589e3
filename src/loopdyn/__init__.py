"""loopdyn: dynamics of closed-loop and constrained rigid multibody systems."""

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from loopdyn import library, tree
from loopdyn.analysis.assembly import assemble
from loopdyn.analysis.branches import Branches, branches, singular_poses
from loopdyn.analysis.coordinates import Coordinates, coordinates
from loopdyn.analysis.drive import Drive, DriveEvent, drive
from loopdyn.analysis.equations import Equations, equations
from loopdyn.analysis.equilibrium import Equilibria, Equilibrium, Preload, equilibrium, preload, zero_force
from loopdyn.analysis.inverse_dynamics import InverseDynamics, inverse_dynamics
from loopdyn.analysis.loads import reactions
from loopdyn.analysis.mobility import Mobility, mobility
from loopdyn.analysis.reconnect import Change, reconnect
from loopdyn.arguments import check_class, check_public
from loopdyn.constraints import (
    Coupler,
    Distance,
    Driver,
    PointMotion,
    PointOnCurve,
    PointOnLine,
    PointOnPlane,
    Relation,
    Rolling,
    Slot,
    UserConstraint,
    VelocityRelation,
)
from loopdyn.engine.notice import NOTICE
from loopdyn.errors import (
    AssemblyError,
    ConvergenceError,
    ExpressionError,
    LoopdynError,
    LoopdynWarning,
    ModelError,
    Problem,
    SingularityError,
)
from loopdyn.forces import (
    Actuator,
    AppliedForce,
    Bushing,
    JointFriction,
    JointSpring,
    Motor,
    SpringDamper,
    Table,
    UserForce,
)
from loopdyn.formulations.auto.formulation import Auto
from loopdyn.formulations.base import Formulation, Solution
from loopdyn.formulations.closure.formulation import Closure
from loopdyn.formulations.graph import Graph
from loopdyn.formulations.momentum.formulation import Momentum
from loopdyn.formulations.oracle import Oracle
from loopdyn.formulations.partition.formulation import Partition
from loopdyn.formulations.rcr.formulation import Rcr
from loopdyn.formulations.registry import accelerations, prepare
from loopdyn.formulations.relative import Relative
from loopdyn.integrators.base import (
    ABM,
    DOP853,
    DP5,
    RK4,
    Baumgarte,
    Extrapolation,
    GeneralizedAlpha,
    Integrator,
    Steps,
    Stiff,
)
from loopdyn.interchange import load, read_mjcf, read_sdf, read_urdf, write_mjcf, write_urdf
from loopdyn.io import load_run
from loopdyn.joints import (
    Cylindrical,
    Frame,
    Free,
    Helical,
    Planar,
    Prismatic,
    Revolute,
    Rotation,
    Spherical,
    Translational,
    Universal,
    Weld,
)
from loopdyn.loops.reactions import Reactions
from loopdyn.model.inertia import Inertia
from loopdyn.model.mechanism import Body, Mechanism
from loopdyn.output.report import report
from loopdyn.quantities import profiles
from loopdyn.quantities.units import Units
from loopdyn.quantities.wording import NOT_OFFERED
from loopdyn.results.bearings import Bearings
from loopdyn.results.run import Run, RunError, compare_runs
from loopdyn.run.events import At, Crossing, Event, Limits
from loopdyn.run.locking import Lock, Release
from loopdyn.run.simulate import simulate
from loopdyn.studies.variants import Variant, Variants, variants
from loopdyn.system.system import State, System
from loopdyn.system.topology import Topology
from loopdyn.testing.checking import check_formulation
from loopdyn.tree import terms

if TYPE_CHECKING:
    from loopdyn.formulations.absolute.formulation import Absolute


def __getattr__(name: str) -> Any:
    if name == "Absolute":  # needs much of SciPy, which takes longer to import than the rest
        from loopdyn.formulations.absolute.formulation import Absolute

        check_class(Absolute)
        return Absolute
    hint = NOT_OFFERED.get(name.lower(), "")
    raise AttributeError(f"module 'loopdyn' has no attribute '{name}'{hint and '. '}{hint}")


NOTICE.listen()

try:
    __version__ = version("loopdyn")
except PackageNotFoundError:  # run from a source tree that was not installed
    __version__ = "unknown"

__all__ = [
    "ABM",
    "DOP853",
    "DP5",
    "RK4",
    "Absolute",
    "Actuator",
    "AppliedForce",
    "AssemblyError",
    "At",
    "Auto",
    "Baumgarte",
    "Bearings",
    "Body",
    "Branches",
    "Bushing",
    "Change",
    "Closure",
    "ConvergenceError",
    "Coordinates",
    "Coupler",
    "Crossing",
    "Cylindrical",
    "Distance",
    "Drive",
    "DriveEvent",
    "Driver",
    "Equations",
    "Equilibria",
    "Equilibrium",
    "Event",
    "ExpressionError",
    "Extrapolation",
    "Formulation",
    "Frame",
    "Free",
    "GeneralizedAlpha",
    "Graph",
    "Helical",
    "Inertia",
    "Integrator",
    "InverseDynamics",
    "JointFriction",
    "JointSpring",
    "Limits",
    "Lock",
    "LoopdynError",
    "LoopdynWarning",
    "Mechanism",
    "Mobility",
    "ModelError",
    "Momentum",
    "Motor",
    "Oracle",
    "Partition",
    "Planar",
    "PointMotion",
    "PointOnCurve",
    "PointOnLine",
    "PointOnPlane",
    "Preload",
    "Prismatic",
    "Problem",
    "Rcr",
    "Reactions",
    "Relation",
    "Relative",
    "Release",
    "Revolute",
    "Rolling",
    "Rotation",
    "Run",
    "RunError",
    "SingularityError",
    "Slot",
    "Solution",
    "Spherical",
    "SpringDamper",
    "State",
    "Steps",
    "Stiff",
    "System",
    "Table",
    "Topology",
    "Translational",
    "Units",
    "Universal",
    "UserConstraint",
    "UserForce",
    "Variant",
    "Variants",
    "VelocityRelation",
    "Weld",
    "accelerations",
    "assemble",
    "branches",
    "check_formulation",
    "compare_runs",
    "coordinates",
    "drive",
    "equations",
    "equilibrium",
    "inverse_dynamics",
    "library",
    "load",
    "load_run",
    "mobility",
    "preload",
    "prepare",
    "profiles",
    "reactions",
    "read_mjcf",
    "read_sdf",
    "read_urdf",
    "reconnect",
    "report",
    "simulate",
    "singular_poses",
    "terms",
    "tree",
    "variants",
    "write_mjcf",
    "write_urdf",
    "zero_force",
]

check_public(globals(), __all__)
for _module in (library, tree):
    check_public(vars(_module), _module.__all__)
