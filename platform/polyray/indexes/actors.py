"""The Ray Data stage that all encoding shares: rows go through stateful workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

from polyray.errors import PolyrayError

__all__ = ["map_on_actors", "user_error"]

_FAULTS = 3
"""How often a row of :func:`_on_a_node` is given to another worker after one has died."""


def map_on_actors(
    rows: Sequence[dict[str, Any]],
    actor: type,
    settings: Any,
    *,
    gpu: bool,
    actors: int | None = None,
    cpus: int | None = None,
    whole_node: bool = False,
    tasks: bool = False,
) -> Iterator[dict[str, Any]]:
    """Yield what ``actor(settings, threads)`` answers to each row, in any order.

    Every row is a block of its own, so that scheduling cannot change what a worker sees. Needs a
    running Ray unless there are no rows. With ``whole_node`` the rows are done one after another,
    each by a worker that has all processors of the largest node. With ``tasks``, for rows that
    need no model, processes do them that Ray keeps ready, where a pool would start its own. A
    :class:`~polyray.errors.PolyrayError` that a worker raises comes out as itself.
    """
    if not rows:
        return
    import ray
    from ray.exceptions import RayError

    from polyray.cluster import actors_and_cpus

    if whole_node:
        yield from _on_a_node(rows, actor, settings, gpu=gpu)
        return
    count, width, gpus = actors_and_cpus(actors, cpus, gpu=gpu)
    data = ray.data.from_items(list(rows), override_num_blocks=len(rows))
    size, threads = min(count, len(rows)), max(1, int(width))
    if tasks:
        mapped = data.map(
            partial(_by_task, actor, settings, threads),
            compute=ray.data.TaskPoolStrategy(size=size),
            num_cpus=width,
        )
    else:
        mapped = data.map(
            actor,
            fn_constructor_args=(settings, threads),
            compute=ray.data.ActorPoolStrategy(size=size),
            num_cpus=width,
            num_gpus=gpus,
        )
    try:
        yield from mapped.iter_rows()
    except RayError as error:
        raise user_error(error) from None


def _by_task(actor: type, settings: Any, threads: int, row: dict[str, Any]) -> dict[str, Any]:
    """A row in a process that does others, too; the worker is made once in each."""
    answer: dict[str, Any] = _kept(actor, settings, threads)(row)
    return answer


@lru_cache(maxsize=1)
def _kept(actor: type, settings: Any, threads: int) -> Any:
    return actor(settings, threads)


def _on_a_node(
    rows: Sequence[dict[str, Any]], actor: type, settings: Any, *, gpu: bool
) -> Iterator[dict[str, Any]]:
    """A task a row: Ray keeps worker processes ready for tasks; an actor needs one of its own."""
    import ray
    from ray.exceptions import RayError

    from polyray.cluster import actors_and_cpus, largest_node

    _, width, gpus = actors_and_cpus(1, largest_node(), gpu=gpu)

    task = ray.remote(num_cpus=width, num_gpus=gpus, max_retries=_FAULTS)(_by_task)
    for row in rows:
        try:
            yield ray.get(task.remote(actor, settings, max(1, int(width)), row))
        except RayError as error:
            raise user_error(error) from None


def user_error(error: Exception) -> Exception:
    """The user's own error inside Ray's wrapping, or Ray's where there is none."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, PolyrayError):
            return seen
        cause = getattr(seen, "cause", None)
        seen = cause if isinstance(cause, BaseException) else seen.__cause__
    return error
