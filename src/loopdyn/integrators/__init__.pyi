"""The public names of `ld.integrators`, and where they are found when they are first asked for."""

from .adams import ABM as ABM
from .auto import AutoIntegrator as AutoIntegrator
from .base import Integrator as Integrator
from .drift import Baumgarte as Baumgarte
from .extrapolation import Extrapolation as Extrapolation
from .extrapolation import Steps as Steps
from .generalized_alpha import GeneralizedAlpha as GeneralizedAlpha
from .moreau import Moreau as Moreau
from .runge_kutta import DOP853 as DOP853
from .runge_kutta import DP5 as DP5
from .runge_kutta import RK4 as RK4
from .stiff import Stiff as Stiff

__all__: list[str]
