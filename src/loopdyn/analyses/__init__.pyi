"""The public names of `ld.analyses`, and where they are found when they are first asked for."""

from ..analysis.branches import branches as branches
from ..analysis.branches import singular_poses as singular_poses
from ..analysis.coordinates import coordinates as coordinates
from ..analysis.equations import equations as equations
from ..analysis.equilibrium import preload as preload
from ..analysis.equilibrium import zero_force as zero_force
from ..analysis.measures import measures as measures
from ..analysis.reconnect import reconnect as reconnect
from ..studies.variants import variants as variants

__all__: list[str]
