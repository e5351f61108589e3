"""Contact types: the list. compile() rejects a type that is not listed here."""

from __future__ import annotations

from typing import Annotated, get_args

from loopdyn.contacts.backlash import Backlash
from loopdyn.contacts.base import OneSided, Side
from loopdyn.contacts.contact import Contact
from loopdyn.contacts.sphere_on_plane import SphereOnPlane
from loopdyn.contacts.stop import Stop
from loopdyn.quantities.units import OneOf

# The public names of `loopdyn.contacts`.
__all__ = ["Backlash", "Contact", "OneSided", "Side", "SphereOnPlane", "Stop"]

AnyContact = Annotated[Stop | Backlash | Contact | SphereOnPlane, OneOf("type")]
TYPES: tuple[type[OneSided], ...] = get_args(get_args(AnyContact)[0])
