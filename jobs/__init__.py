"""What is submitted: one short script a job."""
