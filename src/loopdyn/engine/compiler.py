"""Compilation of kernels: helpers once and as intermediate code only, kernels that call kernels by their symbols.

Numba optimises every function that it compiles, emits machine code for it, and links the whole of it into every caller,
where it is optimised again. Here

* a **helper** (`inline`) is typed and lowered once for its types and kept as intermediate code (IR), on disk as well:
  nobody calls it by itself. A kernel links each helper that it reaches, directly or not, once.
* a **kernel** called by a kernel is a symbol that is resolved when the caller is loaded.
* **symbols** are made of keys of the cache, so they are the same in every process; an entry lists what must be loaded
  before it.
* an argument that is a literal is typed by its class: one compilation serves ``f(x, 1)`` and ``f(x, 2)``.

Numba's configuration and the functions that users compile are left alone: all of this is the pipeline, dispatcher and
library classes of our own functions. This module, `engine.libraries` and `engine.windows` are all that relies on
Numba's internals; `tests/unit/test_compiler.py` tests each.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numba
from numba.core.caching import _Cache
from numba.core.compiler import Compiler, CompileResult, DefaultPassBuilder, Flags, _EarlyPipelineCompletion
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.errors import NumbaError, NumbaWarning, WarningsFixer  # type: ignore[attr-defined]
from numba.core.ir_utils import get_definition, guard
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.runtime.context import NRTContext
from numba.core.sigutils import normalize_signature
from numba.core.typeinfer import CallConstraint, TypeInferer
from numba.core.types.misc import unliteral

from loopdyn.engine import cache, packs
from loopdyn.engine.fingerprint import Described, fingerprint, reached
from loopdyn.engine.jit import OPTIONS
from loopdyn.engine.libraries import (
    ORIGINS,
    HelperLibrary,
    KernelLibrary,
    LoadedHelper,
    LoadedLibrary,
    environments_of,
    origin,
)

KNOWN = ("0.68",)  # versions of Numba whose internals this module has been tested with; pyproject.toml asks for these

_DESCRIBED: dict[int, Described] = {}  # code of kernels does not change within a process
_KERNELS: weakref.WeakValueDictionary[int, KernelDispatcher] = weakref.WeakValueDictionary()  # by id of the function
_KEYS: list[str] = []  # of the functions that are being compiled, the innermost last
_IN_PACK: dict[str, tuple[Path, str]] = {}  # path and key of entries in the installed pack, by the key here
_FINGERPRINTS: weakref.WeakKeyDictionary[KernelDispatcher, str] = weakref.WeakKeyDictionary()


@functools.cache
def numba_is_known() -> bool:
    """Whether this version of Numba is one of those we know; else kernels are left to Numba alone, which is said."""
    known = numba.__version__.rpartition(".")[0] in KNOWN
    if not known:
        cache.say_once(
            "version",
            f"Numba {numba.__version__} is not among the versions that loopdyn knows ({', '.join(KNOWN)}): kernels are "
            "compiled in every process, which takes minutes. "
            f"Install one that it knows: pip install 'numba=={KNOWN[-1]}.*'",
        )
    return known


def _engine_digest() -> str:
    """Digest of the sources that decide how kernels are compiled, which no kernel refers to."""
    digest = hashlib.sha256()
    for name in ("compiler.py", "libraries.py", "jit.py", "windows.py"):
        digest.update((Path(__file__).parent / name).read_bytes())
    return digest.hexdigest()


ENGINE = _engine_digest()


def pack() -> packs.Pack | None:
    """The installed pack of kernels, if it can be used."""
    return packs.search(ENGINE, _target()[0]).pack


def _target() -> tuple[str, str, str]:
    """Platform, processor and features that Numba compiles for."""
    return tuple(cpu_target.target_context.codegen().magic_tuple())


def _target_here() -> tuple[str, ...]:
    """Target of functions that are compiled here, and the pack whose kernels they may call."""
    used = pack()
    return _target() if used is None else (*_target(), used.identity)


def classes_of(kind: Any) -> list[str]:
    """Places of the classes of named tuples in a type, which its name leaves out: an entry refers to them."""
    found = [f"{c.__module__}.{c.__qualname__}" for c in [getattr(kind, "instance_class", None)] if c is not None]
    return found + [name for part in getattr(kind, "types", ()) for name in classes_of(part)]


def kernel_key(dispatcher: Any, kinds: tuple[Any, ...], target: tuple[str, ...]) -> str:
    """Digest of all that a compiled function depends on; `kinds` are the types of its arguments."""
    code = _FINGERPRINTS.get(dispatcher)
    if code is None:
        code = _FINGERPRINTS[dispatcher] = fingerprint(dispatcher, _DESCRIBED)
    names = [(str(kind), classes_of(kind)) for kind in kinds]  # their repr may be that of a base class
    parts = (cache.FORMAT, cache.versions(), sys.implementation.cache_tag, target, ENGINE, code, names)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


# ---------------------------------------------------------------------------------------------- pipelines


class KernelFlags(Flags):  # type: ignore[misc]
    """Flags of the compilation of a function: compared often, so values are looked up once; no part of symbols.

    Numba makes symbols of them in an order that differs between processes. Ours hold a key, which covers them.
    """

    def __init__(self, copy_from: Any = None):
        super().__init__(copy_from)
        self._known: Any = None

    def __hash__(self) -> int:
        return int(super().__hash__())

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, KernelFlags):
            return bool(super().__eq__(other))
        return bool(self._once() == other._once())

    def _once(self) -> Any:
        if self._known is None:
            self._known = self.values()
        return self._known

    def get_mangle_string(self) -> str:
        """Part of the symbol."""
        return "loopdyn"


class OwnerCounts(NRTContext):  # type: ignore[misc]
    """Counts owners of memory where there is any: Numba takes every tuple apart in search of it, at every use.

    These were four of ten instructions that were written for LLVM, which removed them.
    """

    _counted: ClassVar[dict[Any, bool]] = {}  # whether memory is counted in values of a type

    def get_meminfos(self, builder: Any, kind: Any, value: Any) -> list[Any]:
        """Pairs of type and memory inside a value."""
        if not self._is_counted(kind):
            return []
        model = self._context.data_model_manager[kind]
        own = [(kind, model.get_nrt_meminfo(builder, value))] if model.has_nrt_meminfo() else []
        parts = [(part, get) for part, get in model.traverse(builder) if self._is_counted(part)]
        return own + [found for part, get in parts for found in self.get_meminfos(builder, part, get(value))]

    def _is_counted(self, kind: Any) -> bool:
        known = self._counted.get(kind)
        if known is None:
            known = self._counted[kind] = self._context.data_model_manager[kind].contains_nrt_meminfo()
        return known


def is_of_kernels(kind: Any) -> bool:
    """Whether values of a type exist in compiled code only, such as those with a window inside."""
    return bool(getattr(kind, "of_kernels", False)) or any(is_of_kernels(part) for part in getattr(kind, "types", ()))


class KernelPipeline(Compiler):  # type: ignore[misc]
    """Compiles a kernel with the vectoriser of LLVM, as Numba does unless it is told otherwise.

    Without code that converts Python's objects where no call from Python is possible: a tenth of the instructions.
    """

    vectorise: ClassVar[int] = numba.config.LOOP_VECTORIZE
    library_class: ClassVar[type] = KernelLibrary

    def __init__(self, typing: Any, target: Any, library: Any, args: Any, returned: Any, flags: Any, variables: Any):
        own = KernelFlags(flags)
        if any(is_of_kernels(kind) for kind in args):
            own.no_cpython_wrapper = own.no_cfunc_wrapper = True
        super().__init__(typing, target, library, args, returned, own, variables)
        self.state.targetctx.nrt = OwnerCounts(self.state.targetctx, self.state.targetctx.enable_nrt)

    def compile_extra(self, function: Any) -> Any:
        """Compile one function; those that it calls, and that are compiled meanwhile, have settings of their own."""
        self.state.library = self.library_class(self.state.targetctx.codegen(), function.__qualname__)
        self.state.library.enable_object_caching()
        before = numba.config.LOOP_VECTORIZE
        numba.config.LOOP_VECTORIZE = self.vectorise
        try:
            return super().compile_extra(function)
        finally:
            numba.config.LOOP_VECTORIZE = before

    def _compile_bytecode(self) -> Any:
        """Compile with symbols that are the same in every process."""
        self.state.func_id.unique_id = _KEYS[-1][:24]
        return super()._compile_bytecode()


class ShortLoopPipeline(KernelPipeline):
    """Compiles loops as they are written: in those over the rows of a joint vectors are made ready and never used."""

    vectorise: ClassVar[int] = 0


class HelperPipeline(KernelPipeline):
    """Lowers a helper to intermediate code; its loops are left to the kernels that it becomes part of."""

    vectorise: ClassVar[int] = 0

    library_class: ClassVar[type] = HelperLibrary


@register_pass(mutates_CFG=False, analysis_only=True)
class CompileCalled(FunctionPass):  # type: ignore[misc]
    """Types a function, for the sake of the kernels and helpers that it calls: typing compiles them.

    The process that compiles the function meets its calls from the first to the last; here they are met from the last.
    """

    _name = "loopdyn_compile_called"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Type what can be typed; what fails, fails in the process that compiles the function."""
        notes = WarningsFixer(NumbaWarning)
        infer = TypeInferer(state.typingctx, state.func_ir, notes)
        entered = state.typingctx.callstack.register(state.targetctx.target, infer, state.func_ir.func_id, state.args)
        with entered:
            for index, (name, kind) in enumerate(zip(state.func_ir.arg_names, state.args, strict=True)):
                infer.seed_argument(name, index, kind)
            infer.build_constraint()
            network = infer.constraints
            ours = [one for one in network.constraints if self._is_ours(state, one)]
            network.constraints = [one for one in network.constraints if one not in ours]
            known: Any = None
            while known != infer.get_state_token() and not state.pipeline.is_ready():
                known = infer.get_state_token()
                infer.propagate(raise_errors=False)
                for call in reversed(ours):
                    with contextlib.suppress(NumbaError):
                        call(infer)
        raise _EarlyPipelineCompletion(True)

    @staticmethod
    def _is_ours(state: Any, constraint: Any) -> bool:
        """Whether this is the call of a kernel or helper."""
        if not isinstance(constraint, CallConstraint):
            return False
        called = guard(get_definition, state.func_ir, constraint.func)
        return id(getattr(getattr(called, "value", None), "py_func", None)) in _KERNELS


class CalledPipeline(KernelPipeline):
    """Compiles the kernels and helpers that a function calls, not the function."""

    is_ready: Callable[[], bool]  # whether the function has been compiled meanwhile

    def define_pipelines(self) -> list[Any]:
        """Passes up to the types."""
        manager = DefaultPassBuilder.define_untyped_pipeline(self.state)
        manager.add_pass(CompileCalled, "compiling what is called")
        manager.finalize()
        return [manager]


# ---------------------------------------------------------------------------------------------- dispatchers

# Objects made, and collections of the young and of the middle-aged, before Python searches unused cycles. The compiler
# makes objects by the million and keeps most: with Python's 700, 10, 10 a tenth of the time is spent looking.
COLLECT_AFTER = (100_000, 50, 50)


@contextlib.contextmanager
def _collecting_rarely() -> Iterator[None]:
    """Have unused objects looked for rarely."""
    before = gc.get_threshold()
    gc.set_threshold(*COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class KernelDispatcher(CPUDispatcher):  # type: ignore[misc]
    """Compiles a kernel or helper, or finds it in the cache if it comes from a file."""

    def __init__(self, function: Any, **options: Any):
        super().__init__(function, **options)
        _KERNELS[id(function)] = self
        if Path(function.__code__.co_filename).is_file():
            self._cache = KernelCache(self)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Signatures for a call from compiled code: literals are typed by their class."""
        by_name = {name: unliteral(kind) for name, kind in kws.items()}
        return super().get_call_template([unliteral(kind) for kind in args], by_name)

    def compile(self, signature: Any) -> Any:
        """Make this function ready for the given types."""
        kinds, _ = normalize_signature(signature)
        known = self.overloads.get(tuple(kinds))
        if known is not None:
            return known.entry_point
        with global_compiler_lock:
            key = kernel_key(self, kinds, _target_here())
            self._find_in_pack(key, kinds)
            _KEYS.append(key)
            try:
                with _collecting_rarely(), self._waiting_for_others(key, kinds):
                    entry_point = super().compile(signature)
            finally:
                _KEYS.pop()
            ORIGINS.setdefault(self.overloads[tuple(kinds)].library, (self, tuple(kinds)))
        return entry_point

    def _find_in_pack(self, key: str, kinds: tuple[Any, ...]) -> None:
        """Note where the installed pack has this function, compiled for these types."""
        used = pack()
        if used is not None and isinstance(self._cache, KernelCache):
            there = kernel_key(self, kinds, used.target)
            path = used.path(self._cache.name, there)
            if path.is_file():
                _IN_PACK[key] = path, there

    def _waiting_for_others(self, key: str, kinds: tuple[Any, ...]) -> contextlib.AbstractContextManager[None]:
        """Wait while another process compiles this function, which is then found in the cache."""
        if not isinstance(self._cache, KernelCache):
            return contextlib.nullcontext()
        path = self._cache.path(key)
        if key in _IN_PACK or path.is_file():
            return contextlib.nullcontext()
        return cache.by_one_process(path, meanwhile=lambda: self._compile_called(kinds, path.is_file))

    def _compile_called(self, kinds: tuple[Any, ...], is_ready: Callable[[], bool]) -> None:
        """Compile functions that this one calls, for another process that compiles this one."""
        flags = Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        pipeline = CalledPipeline(self.typingctx, self.targetctx, None, kinds, None, flags, self.locals)
        pipeline.is_ready = is_ready
        with contextlib.suppress(NumbaError):  # the process that compiles this function meets it, too
            pipeline.compile_extra(self.py_func)


def dispatcher(function: Callable[..., Any], asked: dict[str, bool]) -> Any:
    """Dispatcher of a kernel or helper; `asked` has what :func:`jit.kernel` or :func:`jit.inline` was asked for."""
    if "always" in asked:  # a helper
        options = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": asked["always"]}
        pipeline: type[KernelPipeline] = HelperPipeline
    else:
        options = {**OPTIONS, "nogil": True}
        pipeline = ShortLoopPipeline if asked["short_loops"] else KernelPipeline
    if not numba_is_known():
        return numba.njit(**options)(function)
    return KernelDispatcher(function, targetoptions=options, pipeline_class=pipeline)


class Entry(NamedTuple):
    """Entry of the cache for a kernel or helper."""

    calls: list[tuple[int, Any, str]]  # what must be loaded first: place among the functions it reaches, types, symbol
    name: str
    machine_code: bytes  # nothing for a helper
    bitcode: bytes
    symbols: list[str]  # that the machine code defines
    description: Any
    environment: Any
    signature: Any
    reload: list[Any]  # what must be run before
    environments: list[Any]  # of helpers and functions of others inside


class KernelCache(_Cache):  # type: ignore[misc]
    """The entries of one kernel, in the form in which a dispatcher of Numba asks for them."""

    def __init__(self, dispatcher: KernelDispatcher):
        self._dispatcher = weakref.proxy(dispatcher)
        self._enabled = True

    @property
    def cache_path(self) -> str:
        """Folder of the entries."""
        return str(self.path("").parent)

    def enable(self) -> None:
        """Use the disk."""
        self._enabled = True

    def disable(self) -> None:
        """Leave the disk alone."""
        self._enabled = False

    def flush(self) -> None:
        """Remove all entries of kernels of this name."""
        cache.remove_entries(self.path("").parent)

    @property
    def name(self) -> str:
        """Name of the entries."""
        function = self._dispatcher.py_func
        return f"{function.__module__}.{function.__name__}"

    def path(self, key: str) -> Path:
        """Place of an entry."""
        return cache.entry_path(self.name, key)

    def load_overload(self, signature: Any, target_context: Any) -> CompileResult | None:
        """The kernel compiled for these types; None if there is no sound entry."""
        if not self._enabled:
            return None
        target_context.refresh()
        for entry in self._sound_entries(_KEYS[-1]):
            called = self._called(entry)
            if called is not None:
                return self._rebuilt(entry, called, target_context)
        return None

    def _sound_entries(self, key: str) -> Iterator[Entry]:
        """Entries of the installed pack and of the cache, whichever there are."""
        if key in _IN_PACK and (kept := packs.read_entry(*_IN_PACK[key])) is not None:
            yield Entry(*kept)
        if (kept := cache.read_entry(self.path(key), key)) is not None:
            yield Entry(*kept)

    def _called(self, entry: Entry) -> list[Any] | None:
        """Libraries of the functions that this one calls; None if one of them is not what it was."""
        functions = reached(self._dispatcher, _DESCRIBED) if entry.calls else []
        libraries = []
        for place, kinds, symbol in entry.calls:
            called = _KERNELS.get(id(functions[place]))
            if called is None:
                return None
            called.compile(kinds)
            compiled = called.overloads[kinds]
            if compiled.fndesc.mangled_name != symbol:
                return None
            libraries.append(compiled.library)
        return libraries

    def _rebuilt(self, entry: Entry, called: list[Any], target_context: Any) -> CompileResult:
        for prepare in entry.reload:
            prepare()
        codegen = target_context.codegen()
        library: Any
        if entry.machine_code:
            library = LoadedLibrary(codegen, entry.name, entry.machine_code, entry.bitcode, entry.symbols)
        else:
            library = LoadedHelper(codegen, entry.name, entry.bitcode, called, entry.reload)
        library.environments = entry.environments  # kept alive: compiled code has their addresses
        function = target_context.get_executable(library, entry.description, entry.environment)
        for environment in entry.environments:
            library.codegen.set_env(environment.env_name, environment)
        return CompileResult(
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=library,
            environment=entry.environment,
            entry_point=function,
            fndesc=entry.description,
            type_annotation="",
            signature=entry.signature,
            objectmode=False,
            lifted=(),
            typing_error=None,
            call_helper=None,
            metadata=None,
            reload_init=entry.reload,
            referenced_envs=entry.environments,
        )

    def save_overload(self, signature: Any, compiled: CompileResult) -> None:
        """Keep what was compiled for these types."""
        library = compiled.library
        is_helper = isinstance(library, HelperLibrary)
        others = library.of_others if is_helper else []
        if not self._enabled or compiled.lifted or any(one.has_dynamic_globals for one in (library, *others)):
            return
        needed = [origin(one) for one in dict.fromkeys(library._linking_libraries)] if is_helper else library.kernels
        places = {id(function): place for place, function in enumerate(reached(self._dispatcher, _DESCRIBED))}
        calls = [
            (places[id(called.py_func)], kinds, called.overloads[kinds].fndesc.mangled_name)
            for called, kinds in filter(None, needed)
        ]
        module = library.with_others() if is_helper else library._final_module
        shared = module if is_helper else library._get_module_for_linking()
        symbols = [one.name for one in (*module.functions, *module.global_variables) if not one.is_declaration]
        compiled.fndesc.typemap = compiled.fndesc.calltypes = None  # large, and for the compiler only
        key = _KEYS[-1]
        entry = Entry(
            calls=calls,
            name=library.name,
            machine_code=b"" if is_helper else library._get_compiled_object(),
            bitcode=shared.as_bitcode(),
            symbols=[] if is_helper else symbols,
            description=compiled.fndesc,
            environment=compiled.environment,
            signature=compiled.signature,
            reload=list(dict.fromkeys([*compiled.reload_init, *(f for one in others for f in one._reload_init)])),
            environments=[one for one in environments_of(symbols) if one.can_cache()],
        )
        cache.write_entry(self.path(key), key, tuple(entry))
