"""Distractors for parallel sentences: ``python -m jobs.distractors CONFIG.yaml [--dry-run]``."""

from __future__ import annotations

from jobs._dry_run import job_with_dry_run
from tasks.distractors.config import DistractorsConfig
from tasks.distractors.run import estimate_distractors, run_distractors

if __name__ == "__main__":
    job_with_dry_run(DistractorsConfig, run_distractors, estimate_distractors)
