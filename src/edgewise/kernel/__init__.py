"""A fragment of a plan as generated straight-line Python; both engines run it. Pure."""

from edgewise.kernel.compile import compile_kernel

__all__ = ["compile_kernel"]
