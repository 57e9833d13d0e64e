"""Measure encoders on sentence pairs with distractors: ``python -m jobs.clsd CONFIG.yaml``."""

from __future__ import annotations

from jobs._common import job_main
from tasks.clsd.config import ClsdConfig
from tasks.clsd.run import run_clsd

if __name__ == "__main__":
    job_main(ClsdConfig, run_clsd)
