"""Stage 4: what a search needs beside the chunks, made in bounded memory."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyray.files import atomic_path, read_json, write_json
from polyray.indexes.manifest import write_manifest
from polyray.indexes.plaid.files import IDS, WORK, chunk_files, load_tensor, save_tensor
from polyray.indexes.plaid.inverted import inverted_lists

if TYPE_CHECKING:
    import numpy as np

__all__ = ["KIND", "close_index", "write_ids", "write_lists"]

KIND = "plaid"
PACKAGES = ("colbert-ai", "faiss-cpu", "numpy", "sentence-transformers", "torch", "transformers")


def write_ids(path: Path, parts: Sequence[Path], before: Path | None = None) -> None:
    """``ids.parquet``: one row a passage, in order of passage numbers.

    ``parts`` are the passage files of the shards; ``before`` is an older file that they come
    after. Columns: ``doc_id``, ``index``, ``start``, ``end``, ``tokens``, ``deleted``.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ("doc_id", "index", "start", "end", "tokens")
    types = (pa.string(), *[pa.int32()] * 4)
    schema = pa.schema([*zip(names, types, strict=True), ("deleted", pa.bool_())])
    with atomic_path(path) as temporary, pq.ParquetWriter(temporary, schema) as writer:
        if before is not None:
            for batch in pq.ParquetFile(before).iter_batches():
                writer.write_batch(batch)
        for part in parts:
            table = pq.read_table(part, columns=list(names))
            if table.num_rows:
                present = pa.array([False] * table.num_rows, pa.bool_())
                writer.write_table(table.append_column("deleted", present).cast(schema))


def write_lists(
    folder: Path, chunks: int, centroids: int, *, dropped: np.ndarray | None = None
) -> None:
    """``ivf.pid.pt`` from the chunks that lie in the folder."""

    def read() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        import numpy as np

        for chunk in range(chunks):
            files = chunk_files(folder, chunk)
            codes = load_tensor(files["codes"], mmap=True).numpy()
            yield codes, np.asarray(read_json(files["doclens"]), np.int64)

    lists = inverted_lists(read, centroids, dropped=dropped)
    save_tensor(folder / "ivf.pid.pt", lists)


def close_index(
    folder: Path,
    chunks: Sequence[dict[str, Any]],
    colbert: dict[str, Any],
    described: dict[str, Any],
    facts: dict[str, Any],
) -> None:
    """Metadata as colbert-ai has it, and at last the manifest.

    ``chunks`` are the facts of stage 3 in order, ``colbert`` the settings that colbert-ai's
    Searcher is to find.
    """
    passages = embeddings = 0
    for chunk in chunks:
        write_json(
            folder / f"{chunk['chunk']}.metadata.json",
            {
                "passage_offset": passages,
                "num_passages": chunk["passages"],
                "num_embeddings": chunk["embeddings"],
                "embedding_offset": embeddings,
            },
        )
        passages += chunk["passages"]
        embeddings += chunk["embeddings"]
    counts = {"num_chunks": len(chunks), "num_partitions": facts["centroids"]}
    average = embeddings / passages if passages else 0.0
    plan = {"num_embeddings_est": float(embeddings), "avg_doclen_est": average}
    write_json(folder / "plan.json", {"config": colbert, **counts, **plan})
    write_json(
        folder / "metadata.json",
        {"config": colbert, **counts, "num_embeddings": embeddings, "avg_doclen": average},
    )
    known = {name: sha256 for chunk in chunks for name, sha256 in chunk["files"].items()}
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    write_manifest(
        folder,
        KIND,
        described,
        known=known,
        without=WORK,
        chunks=[{k: c[k] for k in ("chunk", "passages", "embeddings", "files")} for c in chunks],
        colbert=colbert,
        passages=passages,
        embeddings=embeddings,
        versions=versions,
        ids=IDS,
        **facts,
    )
