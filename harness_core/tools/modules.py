"""Loads a module that a setting names, by its name or from a file."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

from harness_core.errors import ConfigError
from harness_core.tools.clip import said

PACKAGE: Final = Path(__file__).parents[1]


def load_module(spec: str, what: str) -> ModuleType:
    """spec: a module that can be imported (`package.module`), or the path of a .py file. what: what people seek in it,
    for the error ("tools"). **Its code runs here and now, in this process and with all its rights**: name only code
    that you would run yourself. Raises ConfigError if it cannot be loaded.
    """
    return _from_file(spec, what) if spec.endswith(".py") or "/" in spec else _from_name(spec, what)


def _from_name(name: str, what: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise ConfigError(f"{name!r} is neither a module (package.module) nor the path of a .py file.")
    try:
        with _current_folder():
            return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # a foreign module may raise anything while it is imported
        raise ConfigError(f"The {what} of {name} could not be loaded: {_told(error)}") from error


@contextmanager
def _current_folder() -> Iterator[None]:
    """The folder that the program was started in is looked in last, as `python -m` looks in it: a script does not."""
    added = [folder for folder in (os.getcwd(),) if folder not in sys.path]
    sys.path.extend(added)
    try:
        yield
    finally:
        for folder in added:
            sys.path.remove(folder)


def _from_file(path: str, what: str) -> ModuleType:
    file = Path(path).expanduser().resolve()
    if not file.is_file():
        raise ConfigError(f"The {what} of {path} could not be loaded: there is no such file.")
    # A name of its own, so that it hides no module, and the same file is the same module.
    name = f"harness_tools_{hashlib.sha256(str(file).encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"The {what} of {path} could not be loaded: it is no .py file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # type hints are looked up there while the module runs
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ConfigError(f"The {what} of {path} could not be loaded: {_told(error)}") from error
    return module


def _told(error: BaseException) -> str:
    """The error, and the line of the foreign code where it arose: `@tool` raises in our code, for a line of theirs."""
    ours = (f"{PACKAGE}{os.sep}", importlib.__file__)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(ours)]
    foreign = [frame for frame in frames if not frame.filename.startswith("<")]  # <frozen importlib…>
    where = f" (line {foreign[-1].lineno} of {foreign[-1].filename})" if foreign else ""
    return said(error) + where
