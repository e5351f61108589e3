"""The public names of `ld.results`, and where they are found when they are first asked for."""

from ..analysis.branches import Branch as Branch
from ..analysis.branches import Branches as Branches
from ..analysis.branches import SingularPose as SingularPose
from ..analysis.coordinates import Coordinates as Coordinates
from ..analysis.coordinates import Cut as Cut
from ..analysis.coordinates import Sweep as Sweep
from ..analysis.equations import Equations as Equations
from ..analysis.mobility import Mobility as Mobility
from ..analysis.reconnect import Change as Change
from ..interchange.mjcf.imported import ImportedMJCF as ImportedMJCF
from ..interchange.mjcf.imported import JointMap as JointMap
from ..interchange.report import Imported as Imported
from ..interchange.report import Report as Report
from ..loops.reactions import Reactions as Reactions
from ..output.plot.runs import RunPlots as RunPlots
from ..run.locking import Phase as Phase
from ..run.singular_passage import Passage as Passage
from ..studies.variants import Variant as Variant
from ..studies.variants import Variants as Variants
from ..system.graph import Edge as Edge
from ..system.graph import Loop as Loop
from ..system.labels import Label as Label
from ..system.labels import Labels as Labels
from ..system.system import Tolerated as Tolerated
from ..system.topology import Incidence as Incidence
from ..system.topology import Topology as Topology
from ..tree.functions import Energy as Energy
from ..tree.functions import Motion as Motion
from ..tree.functions import Terms as Terms
from .balancing import Counterweight as Counterweight
from .bearings import Bearings as Bearings
from .comparison import compare_runs as compare_runs
from .drive import Drive as Drive
from .drive import DriveEvent as DriveEvent
from .equilibrium import Equilibria as Equilibria
from .equilibrium import Equilibrium as Equilibrium
from .equilibrium import Preload as Preload
from .inverse_dynamics import InverseDynamics as InverseDynamics
from .run import Diagnostics as Diagnostics
from .run import Run as Run
from .run import Statistics as Statistics
from .run import Trajectory as Trajectory

__all__: list[str]
