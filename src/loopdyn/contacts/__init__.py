"""Types of one-sided contact, one file each; :mod:`loopdyn.contacts.dispatch` lists them."""

from loopdyn.contacts.dispatch import *  # noqa: F403
from loopdyn.contacts.dispatch import __all__ as __all__  # the list of the public names
