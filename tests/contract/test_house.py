"""The layout's rules: what must not exist, which way imports point, how heavy an import is."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {
    "torch",
    "ray",
    "mlflow",
    "transformers",
    "sentence_transformers",
    "jnius",
    "pandas",
    "colbert",
}


def _modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def test_platform_is_a_plain_source_root() -> None:
    """A package named platform would shadow Python's own module everywhere."""
    assert not (ROOT / "platform" / "__init__.py").exists()
    import platform

    assert platform.system()


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        ("platform", {"tasks", "jobs", "serve"}),
        ("tasks", {"jobs", "serve"}),
        ("jobs", {"serve"}),
        ("serve", {"jobs"}),
    ],
)
def test_imports_point_one_way(folder: str, forbidden: set[str]) -> None:
    wrong = []
    for path in _modules(folder):
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            wrong += [f"{path}: {name}" for name in names if name.split(".")[0] in forbidden]
    assert not wrong


def test_importing_any_polyray_module_loads_nothing_heavy() -> None:
    """One process imports all of polyray; the heavy packages must not have come along."""
    names = [
        ".".join(path.relative_to(ROOT / "platform").with_suffix("").parts).removesuffix(
            ".__init__"
        )
        for path in _modules("platform")
    ]
    code = (
        "import sys, importlib\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"print(sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_packages_have_docstrings_and_no_print_or_assert() -> None:
    wrong = []
    for path in _modules("platform", "tasks"):
        tree = ast.parse(path.read_text())
        if not ast.get_docstring(tree):
            wrong.append(f"{path}: no docstring")
        for node in ast.walk(tree):
            if isinstance(node, ast.Assert):
                wrong.append(f"{path}:{node.lineno}: assert")
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
                wrong.append(f"{path}:{node.lineno}: print")
    assert not wrong


@pytest.mark.parametrize(("first", "mode"), [("", "token"), ("import ray", "None")])
def test_ray_s_authentication_is_not_changed_once_ray_has_read_it(first: str, mode: str) -> None:
    code = f"{first}\nimport os\nfrom polyray.cluster import quiet_environment\n"
    code += "quiet_environment()\nprint(os.environ.get('RAY_AUTH_MODE'))"
    environment = {k: v for k, v in os.environ.items() if k != "RAY_AUTH_MODE"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == mode
