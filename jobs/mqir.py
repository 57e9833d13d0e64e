"""The mixed-query study: ``python -m jobs.mqir configs/mqir/ntrex.yaml``."""

from __future__ import annotations

from jobs._common import job_main
from tasks.mqir.config import MqirConfig
from tasks.mqir.run import run_mqir

if __name__ == "__main__":
    job_main(MqirConfig, run_mqir)
