"""What compiles and keeps kernels: the only code that knows Numba's internals."""

from loopdyn.engine.compile_notice import NOTICE

NOTICE.listen()
