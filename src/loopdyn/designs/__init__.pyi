"""The public names of `ld.designs`, and where they are found when they are first asked for."""

from ..model.tolerances import Tolerance as Tolerance
from ..studies.designs import Designs as Designs
from ..studies.designs import array as array
from ..studies.designs import grid as grid
from ..studies.designs import samples as samples
from ..studies.designs import table as table

__all__: list[str]
