"""Code of kernels and helpers in LLVM: intermediate code of helpers, machine code of kernels, new or from the cache.

A kernel links every helper that it reaches once, and calls kernels by their symbols (`engine.compiler`).
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import llvmlite.binding
from numba.core.codegen import JITCodeLibrary
from numba.core.environment import lookup_environment

from loopdyn.interrupts import held

COUNTING = "NRT_"  # begin of the names of functions that count owners: LLVM drops pairs of calls that it knows by name
ENVIRONMENT = "_ZN08NumbaEnv"  # begin of the names of the objects that compiled functions refer to

# kernel or helper, and the types, that a library was compiled for
ORIGINS: weakref.WeakKeyDictionary[Any, tuple[Any, Any]] = weakref.WeakKeyDictionary()


def origin(library: Any) -> tuple[Any, Any] | None:
    """The kernel or helper, and the types, that a library was compiled for; None for functions of others."""
    return ORIGINS.get(library)


class _Unset:
    """Stands for the code generator where the environment of a helper would be set: its kernels do that."""

    def __init__(self, codegen: Any):
        self._codegen = codegen

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing to set: there is no machine code."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)


class HelperLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Intermediate code of one helper, without that of the functions it calls."""

    @property
    def codegen(self) -> Any:
        """The code generator."""
        return _Unset(self._codegen)

    def finalize(self) -> None:
        """Leave the code as it is."""
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """No address: there is no machine code."""
        return 0

    def own_module(self) -> Any:
        """Code of this helper alone, to be linked into a kernel."""
        return super()._get_module_for_linking()

    @property
    def of_others(self) -> list[Any]:
        """Libraries of Numba and of users that it calls."""
        return [library for library in dict.fromkeys(self._linking_libraries) if origin(library) is None]

    def with_others(self) -> Any:
        """Code of this helper with that of functions of others, which nobody else sees, to be kept on disk."""
        whole = self.own_module().clone()
        own = {function.name for function in whole.functions if not function.is_declaration}
        for library in self.of_others:
            whole.link_in(library._get_module_for_linking(), preserve=True)
        for function in whole.functions:
            shared = function.name in own or function.name.startswith(COUNTING)
            if not function.is_declaration and not shared:
                function.linkage = "internal"
        return whole

    def _get_module_for_linking(self) -> Any:
        """Give this helper with all that it calls, for compiled functions of others."""
        self._ensure_finalized()
        whole = self.own_module().clone()
        for part in linked(self._linking_libraries).parts:
            whole.link_in(part._get_module_for_linking(), preserve=True)
        return whole


class LoadedHelper(HelperLibrary):
    """Intermediate code of a helper from the cache."""

    def __init__(self, codegen: Any, name: str, bitcode: bytes, called: list[Any], reload: list[Any]):
        super().__init__(codegen, name)
        self._final_module = llvmlite.binding.parse_bitcode(bitcode)
        self._linking_libraries.extend(called)
        self._reload_init.update(reload)
        self.finalize()


class _Own:
    """A helper among the libraries that are linked, without what it calls."""

    def __init__(self, library: HelperLibrary):
        self._reload_init = library._reload_init
        self._get_module_for_linking = library.own_module


class Linked(NamedTuple):
    """Symbols that the code in some libraries needs."""

    parts: list[Any]  # libraries to link in, each once
    kernels: list[tuple[Any, Any]]  # kernels, with types, to call by their symbols


def linked(libraries: list[Any]) -> Linked:
    """All that is reached from these libraries."""
    seen: dict[int, Any] = {}
    found = Linked([], [])

    def visit(library: Any) -> None:
        if id(library) in seen:
            return
        seen[id(library)] = library
        if isinstance(library, HelperLibrary):
            found.parts.append(_Own(library))
            for called in library._linking_libraries:
                visit(called)
        elif (kernel := origin(library)) is not None:
            found.kernels.append(kernel)
        else:
            found.parts.append(library)

    for library in libraries:
        visit(library)
    return found


class MachineCode(JITCodeLibrary):  # type: ignore[misc]
    """Code that is loaded to be executed.

    LLVM asks Python for machine code from the cache meanwhile. A Ctrl-C that were raised there would be lost, and the
    code would be missing.
    """

    def _finalize_specific(self) -> None:
        with held():
            super()._finalize_specific()


class KernelLibrary(MachineCode):
    """Code of one kernel, with every helper that it reaches."""

    def finalize(self) -> None:
        """Link, optimise, emit machine code."""
        needed = linked(list(self._linking_libraries))
        self.kernels = needed.kernels
        self._linking_libraries[:] = needed.parts
        super().finalize()
        variables = [one.name for one in self._final_module.global_variables if not one.is_declaration]
        for environment in environments_of(variables):
            self._codegen.set_env(environment.env_name, environment)


def environments_of(symbols: list[str]) -> list[Any]:
    """Objects that compiled functions refer to, among the symbols of a module."""
    found = [lookup_environment(name) for name in symbols if name.startswith(ENVIRONMENT)]
    return [one for one in found if one is not None]


class LoadedLibrary(MachineCode):
    """Machine code of a kernel from the cache."""

    def __init__(self, codegen: Any, name: str, machine_code: bytes, bitcode: bytes, symbols: list[str]):
        super().__init__(codegen, name)
        self._shared_module: Any = None
        self._bitcode = bitcode
        self.enable_object_caching()
        self._set_compiled_object(machine_code)
        self._finalize_final_module()
        codegen._engine._defined_symbols.update(symbols)

    def _get_module_for_linking(self) -> Any:
        """Give the intermediate code, for compiled functions of others that call the kernel."""
        if self._shared_module is None:
            self._shared_module = llvmlite.binding.parse_bitcode(self._bitcode)
        return self._shared_module
