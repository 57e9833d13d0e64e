"""The collections and systems of a config: opened, or made where they are not there.

The job and the live endpoint both go through here, so that they search the same indexes.
"""

from __future__ import annotations

from pathlib import Path

from polyray.collections.documents import read_documents
from polyray.collections.query_sources import place
from polyray.collections.store import DocumentStore, fingerprint
from polyray.errors import ConfigError
from polyray.experiment import Experiment
from polyray.files import sha256_text
from polyray.retrieve import Retriever
from polyray.retrieve.build import Built, open_store
from polyray.retrieve.builder import Builder, Report
from polyray.retrieve.kinds import FusionRetriever
from polyray.retrieve.settings import Bm25System, DenseSystem, FusionSystem, LateSystem
from tasks.mqir.config import MqirConfig
from tasks.mqir.data import QuerySets, native_documents

__all__ = ["Systems", "document_languages"]


def document_languages(config: MqirConfig) -> list[str]:
    """The languages of the collections that a config searches, English first."""
    english = ["en"] if "english" in config.targets else []
    native = native_documents(config) if "native" in config.targets else []
    return english + native


class Systems:
    """Stores and indexes of one config, and the experiment that they belong to."""

    def __init__(self, config: MqirConfig, queries: QuerySets) -> None:
        """Fingerprint the inputs; ``queries`` are those of the config.

        Raises :class:`~polyray.errors.InputError` for documents or judgments that are not there.
        """
        self.config = config
        self.codes = document_languages(config)
        self._documents = {code: place(config.documents.path, code) for code in self.codes}
        self._identities = {code: fingerprint(path) for code, path in self._documents.items()}
        self.experiment = Experiment(
            config.name, config, self._inputs(queries), Path(config.output).absolute()
        )
        self._builder = Builder(self.experiment, config.workers)

    def _inputs(self, sets: QuerySets) -> dict[str, str]:
        """Fingerprints of documents and judgments, and of the queries as they are asked."""
        inputs = {f"documents.{code}": value for code, value in self._identities.items()}
        for code in self.codes:
            inputs[f"qrels.{code}"] = fingerprint(place(self.config.qrels.path, code))
        for (code, variant), queries in sets.queries.items():
            text = "\n".join(f"{query.query_id}\t{query.text}" for query in queries)
            inputs[f"queries.{code}.{variant}"] = sha256_text(text)
        return inputs

    def store(self, code: str) -> DocumentStore:
        """The documents in the language ``code``."""
        return open_store(
            self.experiment.indexes,
            read_documents(self._documents[code], format=self.config.documents.format),
            self._identities[code],
            self.config.workers,
        )

    def build(
        self,
        system: Bm25System | DenseSystem | LateSystem,
        store: DocumentStore,
        code: str,
        report: Report,
    ) -> Built:
        """One system over the documents in the language ``code``."""
        return self._builder.build(system, store, code, self._identities[code], report)

    def check(self, code: str) -> None:
        """Raise :class:`~polyray.errors.ConfigError` unless there are documents in ``code``."""
        if code not in self.codes:
            allowed = ", ".join(self.codes)
            raise ConfigError(f"no documents in {code!r} in this config; allowed: {allowed}")

    def retrievers(self, code: str, store: DocumentStore, report: Report) -> dict[str, Retriever]:
        """Every system over the documents in ``code``, in the config's order.

        A fusion takes ``hits`` results of each part, as the job does, however few are asked for.
        """
        self.check(code)
        found: dict[str, Retriever] = {}
        for system in self.config.systems:
            if isinstance(system, FusionSystem):
                parts = {name: found[name] for name in system.of}
                found[system.name] = FusionRetriever(parts, k=system.k, depth=self.config.hits)
            else:
                found[system.name] = self.build(system, store, code, report).retriever
        return found
