"""Joint types, one file each; `dispatch.py` lists them and chooses among them by code."""

from loopdyn.joints.base import Frame, Joint, Rebound, Rotation
from loopdyn.joints.cylindrical import Cylindrical
from loopdyn.joints.free import Free
from loopdyn.joints.helical import Helical
from loopdyn.joints.planar import Planar
from loopdyn.joints.prismatic import Prismatic
from loopdyn.joints.revolute import Revolute
from loopdyn.joints.spherical import Spherical
from loopdyn.joints.translational import Translational
from loopdyn.joints.universal import Universal
from loopdyn.joints.weld import Weld

__all__ = [
    "Cylindrical",
    "Frame",
    "Free",
    "Helical",
    "Joint",
    "Planar",
    "Prismatic",
    "Rebound",
    "Revolute",
    "Rotation",
    "Spherical",
    "Translational",
    "Universal",
    "Weld",
]
