"""The public names of `ld.formulations`, and where they are found when they are first asked for."""

from ..testing.checking import CheckFinding as CheckFinding
from ..testing.checking import CheckReport as CheckReport
from ..testing.checking import check_formulation as check_formulation
from .absolute.formulation import Absolute as Absolute
from .auto.formulation import Auto as Auto
from .base import Formulation as Formulation
from .base import Solution as Solution
from .base import Solver as Solver
from .closure.formulation import Closure as Closure
from .closure.plan import ClosedFormGroup as ClosedFormGroup
from .closure.plan import ClosurePlan as ClosurePlan
from .closure.plan import IteratedBlock as IteratedBlock
from .graph import Graph as Graph
from .momentum.formulation import Momentum as Momentum
from .oracle import Oracle as Oracle
from .partition.formulation import Partition as Partition
from .rcr.formulation import Rcr as Rcr
from .relative import Relative as Relative

__all__: list[str]
