"""Both studies on the packaged sample: ``python -m jobs.quickstart``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from jobs._common import run, show
from polyray.config import load_config
from tasks.clsd.config import ClsdConfig
from tasks.clsd.run import run_clsd
from tasks.mqir.config import MqirConfig
from tasks.mqir.run import run_mqir

CONFIGS = Path(__file__).resolve().parents[1] / "configs"


def quickstart(output: str = "runs") -> None:
    """Run the mixed-query study and the CLSD study, and say where to look further."""
    from polyray.cluster import started

    overrides = [f"output={output}"]
    with started():
        mqir = run_mqir(load_config(CONFIGS / "quickstart.yaml", overrides, MqirConfig))
        clsd = run_clsd(load_config(CONFIGS / "clsd" / "sample.yaml", overrides, ClsdConfig))
    show(mqir)
    show(clsd)
    plots = " ".join(f"{_short(result.folder)}/plots/*.html" for result in (mqir, clsd))
    command = Path(sys.executable).parent / "mlflow"
    sys.stdout.write(
        "\nTo look further:\n"
        f"  {_short(command)} ui --backend-store-uri sqlite:///mlflow.db\n"
        f"  ls {plots}\n"
    )


def _short(path: Path) -> str:
    """The path as typed from here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=quickstart.__doc__)
    parser.add_argument("--output", default="runs", help="folder for results (default: runs)")
    given = parser.parse_args()
    run(lambda: quickstart(given.output))
