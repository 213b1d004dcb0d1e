"""The names of modules, however a program was started."""

from __future__ import annotations

import sys
from pathlib import Path


def find_module_name(module: str) -> str:
    """The name under which a module is imported; of ``__main__``, the one that its file would have.

    A program that is started with ``python program.py`` or ``python -m program`` then
    has the same names as where another program imports it. "" stands for a
    ``__main__`` without a file, as in a console.
    """
    if module != "__main__":
        return module
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    file = getattr(main, "__file__", None)
    if not file:
        return ""
    path = Path(file)
    parts = [path.stem]
    for folder in path.absolute().parents:
        if not (folder / "__init__.py").exists():
            break
        parts.append(folder.name)
    return ".".join(reversed(parts))
