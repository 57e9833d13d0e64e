"""MLflow: one parent run a job, one child run a system, and names that MLflow accepts.

Everything goes through an explicit client: no global active run, no ``./mlruns`` folder.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from polyray.environment import environment
from polyray.errors import PolyrayError
from polyray.files import sha256_text

if TYPE_CHECKING:
    from mlflow import MlflowClient

__all__ = [
    "CONFIG_HASH",
    "Tracker",
    "environment",
    "folder_of_run",
    "metric_name",
    "metric_names",
]

CONFIG_HASH = "polyray.config_hash"
"""The tag that ties a run to the configuration it ran."""

LONG_PARAMETER = 500
"""A parameter value longer than this, in characters, becomes an artifact and a hash."""

_ACCEPTED = re.compile(r"[\w.\- /]+")
_LONGEST_NAME = 250
_PARENT = "mlflow.parentRunId"


def metric_name(name: str) -> str:
    """The name under which MLflow keeps a metric or parameter.

    A name that MLflow accepts stays as it is. Otherwise ``@`` becomes ``_at_``, ``%`` becomes
    ``percent``, and runs of other refused characters and spaces one ``_``; slashes group.

    >>> metric_name("AP@100"), metric_name("f1 (macro)"), metric_name("loss%")
    ('AP_at_100', 'f1_macro', 'loss_percent')

    Raises :class:`~polyray.errors.PolyrayError` where nothing is left of the name.
    """
    if len(name) <= _LONGEST_NAME and _ACCEPTED.fullmatch(name) and _is_plain_path(name):
        return name
    parts = []
    for part in name.split("/"):
        spelled = part.replace("@", "_at_").replace("%", "_percent_")
        spelled = re.sub(r"_+", "_", re.sub(r"[^\w.\-]+", "_", spelled)).strip("_").lstrip(".")
        if spelled:
            parts.append(spelled)
    mapped = "/".join(parts)
    if not mapped:
        raise PolyrayError(f"metric name {name!r} has no letter or digit that MLflow accepts")
    if len(mapped) > _LONGEST_NAME:
        mapped = f"{mapped[: _LONGEST_NAME - 9].rstrip('/')}_{sha256_text(name)[:8]}"
    return mapped


def _is_plain_path(name: str) -> bool:
    """Whether the name stays the same when read as a file path below a folder."""
    return not name.startswith("..") and all(
        part and part not in (".", "..") for part in name.split("/")
    )


def metric_names(names: Iterable[str]) -> dict[str, str]:
    """Each name with its :func:`metric_name`.

    Raises :class:`~polyray.errors.PolyrayError` naming all that would fall onto one name.
    """
    mapped = {name: metric_name(name) for name in names}
    groups: dict[str, list[str]] = {}
    for name, target in mapped.items():
        groups.setdefault(target, []).append(name)
    clashes = [
        f"metrics {' and '.join(map(repr, group))} would both be kept as {target!r}; rename one"
        for target, group in groups.items()
        if len(group) > 1
    ]
    if clashes:
        raise PolyrayError("\n".join(clashes))
    return mapped


class Tracker:
    """A job's parent run in MLflow; use it as a context manager.

    ``MLFLOW_TRACKING_URI`` decides where runs go; without it ``tracking_uri``, and without that
    ``mlflow.db`` in the working folder, artifacts in ``mlartifacts`` beside it. The run ends
    FINISHED, FAILED after an error, KILLED when interrupted. Runs that an earlier, killed job
    with the same ``polyray.config_hash`` tag left RUNNING are ended as KILLED first.

    Raises :class:`~polyray.errors.PolyrayError` where the store cannot be used.
    """

    def __init__(
        self,
        experiment: str,
        run_name: str,
        tags: Mapping[str, str] | None = None,
        tracking_uri: str | None = None,
    ) -> None:
        self.experiment = experiment
        self.run_name = run_name
        self.tags = {key: str(value) for key, value in (tags or {}).items()}
        if not re.fullmatch(r"[\w.\-]*", self.tags.get(CONFIG_HASH, "")):
            raise PolyrayError(f"{CONFIG_HASH} {self.tags[CONFIG_HASH]!r} is not a hash")
        self.uri = os.environ.get("MLFLOW_TRACKING_URI") or tracking_uri or _local_store()
        self.run_id = ""
        self.experiment_id = ""
        self._client: MlflowClient | None = None
        self._metrics: dict[str, float] = {}

    @property
    def client(self) -> MlflowClient:
        """The MLflow client of the open run."""
        if self._client is None:
            raise PolyrayError("the tracker is not open; use it in a with statement")
        return self._client

    def __enter__(self) -> Self:
        _quiet()
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException

        try:
            self._client = MlflowClient(tracking_uri=self.uri)
            self.experiment_id = _experiment(self._client, self.experiment, self.uri)
            self._end_stale()
            self.run_id = self._start(self.run_name, self.tags)
        except MlflowException as error:
            shown = re.sub(r"//[^/@]*@", "//***@", self.uri)
            raise PolyrayError(f"MLflow at {shown}: {error.message}") from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        status = "FINISHED"
        if kind is not None:
            status = "FAILED" if issubclass(kind, Exception) else "KILLED"
        try:
            if self._metrics:
                self._keep_names(self.run_id, self._metrics)
        finally:
            self.client.set_terminated(self.run_id, status)

    def child(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        metrics: Mapping[str, float] | None = None,
        tags: Mapping[str, str] | None = None,
        curves: Sequence[Mapping[str, float]] = (),
    ) -> str:
        """Log one finished child run in one batch and return its id.

        ``curves`` are lines of metrics, each with its ``step``.
        """
        names = metric_names(metrics or {})
        inherited = {k: v for k, v in self.tags.items() if k == CONFIG_HASH}
        run_id = self._start(name, {**inherited, **(tags or {}), _PARENT: self.run_id})
        status = "FAILED"
        try:
            self._log(run_id, params or {}, metrics or {}, names)
            self._log_curves(run_id, curves)
            if metrics:
                self._keep_names(run_id, metrics)
            status = "FINISHED"
        finally:
            self.client.set_terminated(run_id, status)
        return run_id

    def _log_curves(self, run_id: str, curves: Sequence[Mapping[str, float]]) -> None:
        from mlflow.entities import Metric

        names = metric_names({name for line in curves for name in line} - {"step"})
        now = int(time.time() * 1000)
        points = [
            Metric(names[name], float(value), now, int(line["step"]))
            for line in curves
            for name, value in line.items()
            if name != "step" and math.isfinite(value)
        ]
        for batch in _batches(points, [], []):
            self.client.log_batch(run_id, **batch)

    def log_params(self, params: Mapping[str, Any]) -> None:
        """Log parameters of the parent run; a long value becomes an artifact and its hash."""
        self._log(self.run_id, params, {}, {})

    def log_metrics(self, metrics: Mapping[str, float]) -> None:
        """Log metrics of the parent run; NaN and infinities become tags."""
        names = metric_names({**self._metrics, **metrics})
        self._log(self.run_id, {}, metrics, names)
        self._metrics.update(metrics)

    def log_artifacts(self, folder: str | Path) -> None:
        """Copy everything in ``folder`` to the parent run's artifacts."""
        self.client.log_artifacts(self.run_id, str(folder))

    def log_dataset(self, name: str, source: str, digest: str) -> None:
        """Note a data set that the job read; ``digest`` is its SHA-256 (MLflow shows the first 36
        characters, its profile holds all)."""
        from mlflow.entities import Dataset, DatasetInput, InputTag

        profile = json.dumps({"digest": digest})
        source_json = json.dumps({"uri": source})
        data = Dataset(name[:500], digest[:36], "local", source_json, profile=profile)
        tag = InputTag("mlflow.data.context", "evaluation")
        self.client.log_inputs(self.run_id, datasets=[DatasetInput(data, [tag])])

    def _start(self, name: str, tags: Mapping[str, str]) -> str:
        everything = {"mlflow.user": _user(), "mlflow.source.name": "polyray", **tags}
        run = self.client.create_run(self.experiment_id, tags=everything, run_name=name)
        return str(run.info.run_id)

    def _log(
        self,
        run_id: str,
        params: Mapping[str, Any],
        metrics: Mapping[str, float],
        names: Mapping[str, str],
    ) -> None:
        from mlflow.entities import Metric, Param, RunTag

        now = int(time.time() * 1000)
        kept, marks, short = [], [], []
        for name, raw in metrics.items():
            value = float(raw)
            if math.isfinite(value):
                kept.append(Metric(names[name], value, now, 0))
            else:
                marks.append(RunTag(f"metric_not_finite.{names[name]}"[:_LONGEST_NAME], str(value)))
        for name, key in metric_names(params).items():
            text = str(params[name])
            if len(text) > LONG_PARAMETER:
                self.client.log_text(run_id, text, f"long_params/{key}.txt")
                key, text = f"{key}.sha256"[-_LONGEST_NAME:], sha256_text(text)
            short.append(Param(key, text))
        for batch in _batches(kept, short, marks):
            self.client.log_batch(run_id, **batch)

    def _keep_names(self, run_id: str, metrics: Mapping[str, float]) -> None:
        """Keep the metrics under their own names, non-finite ones as text."""
        values = {k: float(v) if math.isfinite(v) else str(float(v)) for k, v in metrics.items()}
        text = json.dumps(values, ensure_ascii=False, indent=1, allow_nan=False)
        self.client.log_text(run_id, text, "metrics.json")

    def _end_stale(self) -> None:
        config = self.tags.get(CONFIG_HASH)
        if not config:
            return
        for run_id in self._running(CONFIG_HASH, config):
            for child in self._running(_PARENT, run_id):
                self.client.set_terminated(child, "KILLED")
            self.client.set_terminated(run_id, "KILLED")

    def _running(self, tag: str, value: str) -> list[str]:
        condition = f"attributes.status = 'RUNNING' and tags.`{tag}` = '{value}'"
        found: list[str] = []
        token = None
        while True:
            page = self.client.search_runs([self.experiment_id], condition, page_token=token)
            found += [run.info.run_id for run in page]
            token = page.token
            if not token:
                return found


def folder_of_run(run_id: str) -> Path:
    """The folder that a run of MLflow is tagged with (``polyray.folder``), as training tags it.

    Looks in ``MLFLOW_TRACKING_URI``, else in ``mlflow.db`` in the working folder. Raises
    :class:`~polyray.errors.PolyrayError` where there is no such run or folder.
    """
    _quiet()
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    uri = os.environ.get("MLFLOW_TRACKING_URI") or _local_store()
    try:
        tags = MlflowClient(tracking_uri=uri).get_run(run_id).data.tags
    except MlflowException as error:
        raise PolyrayError(f"run {run_id!r} is not in MLflow at hand: {error.message}") from error
    if "polyray.folder" not in tags:
        raise PolyrayError(f"run {run_id!r} left no checkpoint")
    return Path(tags["polyray.folder"])


def _local_store() -> str:
    return f"sqlite:///{Path('mlflow.db').absolute()}"


def _experiment(client: MlflowClient, name: str, uri: str) -> str:
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(name)
    if found is None:
        place = None
        if uri.startswith("sqlite:///"):
            # MLflow's own default would be ./mlruns, wherever the job happens to run.
            database = Path(uri.removeprefix("sqlite:///").partition("?")[0]).absolute()
            place = (database.parent / "mlartifacts").as_uri()
            database.parent.mkdir(parents=True, exist_ok=True)
        try:
            # The page then opens on runs and metrics, not on chat traces.
            kind = {"mlflow.experimentKind": "custom_model_development"}
            return str(client.create_experiment(name, artifact_location=place, tags=kind))
        except MlflowException:
            # Another job may have made it in the meantime.
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    if found.lifecycle_stage == "deleted":
        client.restore_experiment(found.experiment_id)
    return str(found.experiment_id)


def _batches(metrics: list[Any], params: list[Any], tags: list[Any]) -> Iterator[dict[str, Any]]:
    """One batch wherever MLflow's limits (1000 metrics, 100 params, 100 tags) allow it."""
    while metrics or params or tags:
        yield {"metrics": metrics[:800], "params": params[:100], "tags": tags[:100]}
        metrics, params, tags = metrics[800:], params[100:], tags[100:]


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"


def _quiet() -> None:
    """No telemetry, no migration log of a fresh database, no hint about the git executable."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    for name in ("alembic", "mlflow.store.db.utils"):
        logging.getLogger(name).setLevel(logging.WARNING)
