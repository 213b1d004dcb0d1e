"""The program ``graphd`` that a wheel of this package carries.

It stands beside ``graphd`` and imports nothing of it, so that the command ``graphd`` starts without gRPC.
"""

from graphd_bin.find import MissingProgramError, find_program

__all__ = ["MissingProgramError", "find_program"]
