"""How good mixed queries are: ``python -m jobs.quality CONFIG.yaml [--dry-run]``."""

from __future__ import annotations

from jobs._dry_run import job_with_dry_run
from tasks.quality.config import QualityConfig
from tasks.quality.estimate import estimate_quality
from tasks.quality.run import run_quality

if __name__ == "__main__":
    job_with_dry_run(QualityConfig, run_quality, estimate_quality)
