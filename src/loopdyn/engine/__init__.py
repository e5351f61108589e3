"""What compiles and keeps kernels: the only code that knows Numba's internals."""

from loopdyn.engine.notice import NOTICE

NOTICE.listen()
