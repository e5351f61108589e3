"""What compiles and keeps kernels: the only code that knows Numba's internals."""
