"""Contact types: the list. compile() rejects a type that is not listed here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, get_args

from loopdyn.contacts.backlash import Backlash
from loopdyn.contacts.base import OneSided, Side
from loopdyn.contacts.contact import Contact
from loopdyn.contacts.sphere_on_plane import SphereOnPlane
from loopdyn.contacts.stop import Stop
from loopdyn.forces.base import Force, Places
from loopdyn.quantities.units import OneOf, Resolver

# The public names of `loopdyn.contacts`.
__all__ = ["Backlash", "Contact", "OneSided", "Side", "SphereOnPlane", "Stop"]

AnyContact = Annotated[Stop | Backlash | Contact | SphereOnPlane, OneOf("type")]
TYPES: tuple[type[OneSided], ...] = get_args(get_args(AnyContact)[0])


def compliant_forces(
    contacts: Mapping[str, OneSided], taken: Collection[str], r: Resolver, places: Places
) -> dict[str, Force]:
    """Check all contacts; forces of the compliant ones by name, which must not be `taken`."""
    found = {}
    for name, contact in contacts.items():
        element, path, before = f"contact '{name}'", ("contacts", name), len(r.problems)
        if type(contact) not in TYPES:
            hint = "List it in loopdyn/contacts/dispatch.py."
            r.problem(element, f"its type '{contact.type}' is not known to the kernels", hint, path)
            continue
        contact.check(r, places, element, path)
        force = contact.force(r, places, element, path) if len(r.problems) == before else None
        if force is None:
            continue
        if name in taken:
            r.problem(element, "there is a force of this name", "Choose another name: it acts as a force.", path)
        found[name] = force
    return found
