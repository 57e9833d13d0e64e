"""PLAID indexes: built, searched, changed; equal to colbert-ai's and to exact MaxSim."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from polyray.collections.documents import read_documents
from polyray.collections.store import DocumentStore
from polyray.errors import ConfigError, IndexDamaged, InputError, PolyrayError
from polyray.files import sha256_of
from polyray.indexes.plaid.build import PlaidBuild, PlaidSettings, build_plaid, map_here
from polyray.indexes.plaid.engine import candidates, packed_max_sim, ranker
from polyray.indexes.plaid.search import PlaidIndex, PlaidSearch
from polyray.indexes.plaid.stages import CodecSettings
from polyray.indexes.plaid.update import update_plaid
from polyray.models.late import load_late
from polyray.models.maxsim import max_sim
from polyray.models.settings import LateSettings
from polyray.records import Document, Query
from polyray.retrieve.kinds import LateRetriever
from polyray.text.tokenizers import window_tokenizer
from polyray.text.windows import cut

HASHING = LateSettings(model="hashing:32", device="cpu", precision="float32")
SETTINGS = PlaidSettings(HASHING, "words", 20, 10, CodecSettings(bits=4))
ENCODER = load_late(HASHING)


def store_of(folder: Path, documents: Sequence[Document], small: int = 32) -> DocumentStore:
    return DocumentStore.build(folder, documents, "some documents", small=small)


def built(
    folder: Path,
    documents: Sequence[Document],
    settings: PlaidSettings = SETTINGS,
    small: int = 32,
    **more: Any,
) -> PlaidBuild:
    store = store_of(folder.with_name(f"{folder.name}-documents"), documents, small)
    described = {"documents": "some documents"}
    return build_plaid(folder, store, settings, described, spread=map_here, **more)


def search(
    folder: Path, texts: Sequence[str], k: int = 10, how: PlaidSearch | None = None
) -> list[list[str]]:
    index = PlaidIndex(folder)
    retriever = LateRetriever(index, ENCODER, how or PlaidSearch())
    run = retriever.retrieve([Query(str(n), text, "en", "t") for n, text in enumerate(texts)], k)
    return [[hit.doc_id for hit in run[str(n)]] for n in range(len(texts))]


def checksums(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): sha256_of(path) for path in files}


def words(count: int, seed: int = 1, longest: int = 60) -> list[Document]:
    """Documents of words drawn from 500, so that many share some."""
    draw = random.Random(seed)
    vocabulary = [f"word{number}" for number in range(500)]
    return [
        Document(f"d{n}", " ".join(draw.choices(vocabulary, k=draw.randint(1, longest))))
        for n in range(count)
    ]


@pytest.fixture(scope="module")
def collection() -> list[Document]:
    return words(400)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, collection: list[Document]) -> Path:
    folder = tmp_path_factory.mktemp("plaid") / "index"
    built(folder, collection)
    return folder


@pytest.mark.parametrize("bits", [1, 2, 4])
@pytest.mark.parametrize(("tokens", "dim"), [(1, 32), (300, 32), (5000, 128)])
def test_codes_and_residuals_are_colbert_ai_s(
    tmp_path: Path, bits: int, tokens: int, dim: int
) -> None:
    """Byte for byte, given the same vectors and codec."""

    from polyray.indexes.plaid.codec import compress, train
    from polyray.indexes.plaid.files import read_codec, write_codec
    from polyray.models.colbert_ai import prepare

    prepare()
    from colbert.indexing.codecs.residual import ResidualCodec
    from colbert.infra import ColBERTConfig

    vectors = np.random.default_rng(3).standard_normal((tokens, dim)).astype(np.float32)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)
    codec, _ = train(vectors, tokens, bits=bits, iterations=4, seed=42)
    write_codec(tmp_path, codec)
    config = ColBERTConfig(dim=dim, nbits=bits)
    (tmp_path / "metadata.json").write_text(json.dumps({"config": config.export()}))
    theirs = ResidualCodec.load(str(tmp_path)).compress(torch.from_numpy(vectors))
    codes, residuals = compress(torch.from_numpy(vectors), read_codec(tmp_path))
    assert torch.equal(codes, theirs.codes)
    assert torch.equal(residuals, theirs.residuals)


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_buckets_of_quantiles_are_colbert_ai_s(bits: int) -> None:
    """``CollectionIndexer._compute_avg_residual`` on the same vectors and centroids."""
    from polyray.indexes.plaid.codec import _nearest, buckets_of
    from polyray.models.colbert_ai import prepare, quiet

    prepare()
    from colbert.indexing.collection_indexer import CollectionIndexer
    from colbert.infra import ColBERTConfig

    random = np.random.default_rng(5)
    vectors = torch.from_numpy(random.standard_normal((2000, 32)).astype(np.float16))
    centroids = torch.from_numpy(random.standard_normal((64, 32)).astype(np.float32))
    indexer = CollectionIndexer.__new__(CollectionIndexer)
    indexer.config, indexer.use_gpu, indexer.verbose = ColBERTConfig(dim=32, nbits=bits), False, 0
    with quiet():
        cutoffs, weights, _ = indexer._compute_avg_residual(centroids, vectors)
    residuals = vectors.float() - centroids[_nearest(vectors.float(), centroids)]
    mine = buckets_of(residuals, bits, "quantiles")
    assert torch.equal(mine[0], cutoffs)
    assert torch.equal(mine[1], weights)


def test_inverted_lists_are_colbert_ai_s_file(tmp_path: Path, index: Path) -> None:
    """Byte for byte."""
    from polyray.indexes.plaid.files import chunk_files, load_tensor
    from polyray.indexes.plaid.finalize import write_lists
    from polyray.models.colbert_ai import prepare, quiet

    prepare()
    from colbert.indexing.utils import optimize_ivf

    copy = tmp_path / "index"
    shutil.copytree(index, copy)
    manifest = json.loads((index / "manifest.json").read_text())
    chunks, centroids = len(manifest["chunks"]), manifest["centroids"]
    codes = torch.cat([load_tensor(chunk_files(copy, n)["codes"]) for n in range(chunks)]).long()
    ordered = codes.sort()
    with quiet():
        optimize_ivf(
            ordered.indices, torch.bincount(ordered.values, minlength=centroids), str(copy)
        )
    theirs = sha256_of(copy / "ivf.pid.pt")
    write_lists(copy, chunks, centroids)
    assert sha256_of(copy / "ivf.pid.pt") == theirs == sha256_of(index / "ivf.pid.pt")


def test_inverted_lists_leave_out_what_is_dropped_and_refuse_what_does_not_fit() -> None:
    """By hand: two chunks, four passages, the second dropped; the longest list is padded for."""
    from polyray.indexes.plaid.inverted import inverted_lists

    def chunks(*codes: list[int]) -> Callable[[], Iterator[tuple[np.ndarray, np.ndarray]]]:
        lengths = np.array([3, 2])
        return lambda: iter([(np.array(part, np.int32), lengths) for part in codes])

    dropped = np.array([False, True, False, False])
    lists, counts = inverted_lists(chunks([2, 0, 2, 1, 1], [0, 2, 0, 3, 2]), 5, dropped=dropped)
    assert counts.tolist() == [2, 0, 3, 1, 0]
    assert lists.tolist() == [0, 2, 0, 2, 3, 3] + [0] * 3
    with pytest.raises(RuntimeError, match="no centroid 5"):
        inverted_lists(chunks([5, 0, 2, 1, 1]), 5)
    with pytest.raises(RuntimeError, match="lengths do not fit"):
        inverted_lists(chunks([0, 0, 2, 1]), 5)


def test_exhaustive_search_is_exact_maxsim_up_to_the_codec(
    index: Path, collection: list[Document]
) -> None:
    """4 bits a dimension: within 0.02 of scores of up to 20, and the first ten nearly the same."""
    passages = [p for group in cut(collection, window_tokenizer("words"), 20, 10) for p in group]
    matrices = ENCODER.encode_passages([passage.text for passage in passages])
    queries = ENCODER.encode_queries([document.text for document in collection[:40]])
    exact = max_sim(queries, matrices)
    found = PlaidIndex(index).passages(queries, 10, PlaidSearch(exhaustive=True))
    overlap = []
    for scores, (numbers, values) in zip(exact, found, strict=True):
        np.testing.assert_allclose(scores[numbers], values, atol=0.02)
        overlap.append(len(set(np.argsort(-scores)[:10]) & set(numbers)) / 10)
    assert np.mean(overlap) >= 0.95
    pruned = PlaidIndex(index).passages(queries, 10, PlaidSearch())
    same = [len({*a} & {*b}) / 10 for (a, _), (b, _) in zip(found, pruned, strict=True)]
    assert np.mean(same) >= 0.95


def test_negative_similarities_count(tmp_path: Path) -> None:
    """A query opposite to every token scores below zero; padding, or a start at zero, gives 0."""
    built(tmp_path / "index", [Document("once", "word"), Document("twice", "word word")])
    word = ENCODER.encode_queries(["word"])[0]
    opposite = np.concatenate([-word, -word])
    (_, scores) = PlaidIndex(tmp_path / "index").passages([opposite], 2, PlaidSearch())[0]
    assert scores == pytest.approx([-2.0, -2.0], abs=0.01)
    assert max_sim([opposite], [word])[0, 0] == pytest.approx(-2.0)


def test_searcher_of_colbert_ai_opens_it_and_finds_the_same(
    index: Path, collection: list[Document], tmp_path: Path
) -> None:
    """Its ranker, untouched, from a moved folder; scores within 1e-4, the same passages."""

    from polyray.models.colbert_ai import prepare, quiet

    prepare()
    from colbert.infra import ColBERTConfig
    from colbert.search.index_storage import IndexScorer

    moved = tmp_path / "moved"
    shutil.copytree(index, moved)
    with quiet():
        ranker = IndexScorer(str(moved), use_gpu=False)
    queries = ENCODER.encode_queries([document.text for document in collection[:30]])
    ours = PlaidIndex(index)
    for k, cells, threshold, docs in ((10, 1, 0.5, 256), (100, 2, 0.45, 1024)):
        config = ColBERTConfig(ncells=cells, centroid_score_threshold=threshold, ndocs=docs)
        for query, (numbers, scores) in zip(
            queries, ours.passages(queries, k, PlaidSearch()), strict=True
        ):
            pids, values = ranker.rank(config, torch.from_numpy(query).unsqueeze(0))
            np.testing.assert_allclose(scores, values[:k], atol=1e-4)
            assert set(numbers[:5]) == set(pids[:5])


def test_candidates_are_those_of_colbert_ai_s_filter(
    index: Path, collection: list[Document]
) -> None:
    """For every setting: what its C++ ``filter_pids`` keeps, equal scores and all.

    Of equally near centroids the lower ones are taken; torch's ``topk`` leaves that open.
    """
    engine = ranker(index, memory_map=False)
    queries = ENCODER.encode_queries([document.contents for document in collection[:12]])
    met = set()
    for cells, threshold, ndocs in ((1, 0.5, 16), (2, 0.45, 64), (4, -1.0, 8), (8, 0.9, 4000)):
        for vectors in queries:
            matrix = torch.from_numpy(vectors)
            scores = engine.get_cells(matrix, cells)[1]
            near = scores.sort(dim=0, descending=True, stable=True).indices[:cells].unique()
            numbers = torch.unique(engine.ivf.lookup(near)[0])
            kept = engine.filter_pids(
                numbers,
                scores,
                engine.embeddings.codes,
                engine.doclens,
                engine.offsets,
                scores.max(-1).values >= threshold,
                ndocs,
            )
            found = candidates(engine, matrix, cells, threshold, ndocs)
            assert found.tolist() == sorted(kept.tolist())
            met.add(len(found) < ndocs // 4)
    assert met == {True, False}, "with and without anything to leave out"


@pytest.mark.parametrize(("bits", "dim"), [(1, 32), (2, 20), (2, 128), (4, 24), (8, 32)])
def test_maxsim_of_packed_rows_is_that_of_colbert_ai_s_decompression(bits: int, dim: int) -> None:
    """Random codes; queries of unequal length; the second is opposite to the first: negative."""
    from polyray.models.colbert_ai import on_processor, prepare

    prepare()
    from colbert.indexing.codecs.residual import ResidualCodec
    from colbert.infra import ColBERTConfig

    random = torch.Generator().manual_seed(bits)
    centroids = torch.randn((16, dim), generator=random)
    weights = torch.randn(2**bits, generator=random).sort().values / 10
    with on_processor():
        codec = ResidualCodec(
            ColBERTConfig(dim=dim, nbits=bits), centroids, bucket_cutoffs=weights[1:],
            bucket_weights=weights, avg_residual=torch.tensor(0.1),
        )  # fmt: skip
    lengths = torch.tensor([3, 700, 1, 0, 40])
    offsets = torch.cat((torch.zeros(1, dtype=torch.long), lengths.cumsum(0)))
    size = (int(lengths.sum()), dim * bits // 8)
    residuals = torch.randint(0, 256, size, generator=random, dtype=torch.uint8)
    codes = torch.randint(0, 16, size[:1], generator=random, dtype=torch.int32)
    stored = ResidualCodec.Embeddings(codes, residuals)
    engine = SimpleNamespace(codec=codec, embeddings=stored, offsets=offsets)
    first = torch.nn.functional.normalize(torch.randn((35, dim), generator=random), dim=-1)
    numbers = torch.tensor([0, 1, 3, 4], dtype=torch.int32)
    found = packed_max_sim(engine, [first, -first[:3]], numbers)
    rows = torch.split(codec.decompress(stored).float(), lengths.tolist())
    assert found[2].tolist() == [-9999 * 35, -9999 * 3], "a passage without tokens"
    for place, number in ((0, 0), (1, 1), (3, 4)):
        for column, query in enumerate((first, -first[:3])):
            exact = (rows[number] @ query.T).max(0).values.sum()
            assert abs(float(found[place, column]) - float(exact)) < 1e-4


def test_settings_are_those_of_the_call_not_of_the_first(
    index: Path, collection: list[Document]
) -> None:
    texts = [document.text for document in collection[:5]]
    opened = PlaidIndex(index)
    vectors = ENCODER.encode_queries(texts)
    opened.passages(vectors, 10, PlaidSearch())
    many = opened.passages(vectors, 200, PlaidSearch())
    assert many == PlaidIndex(index).passages(vectors, 200, PlaidSearch())
    assert all(len(numbers) > 64 for numbers, _ in many)


def test_as_many_documents_as_asked_for_come_out(index: Path, collection: list[Document]) -> None:
    found = search(index, [collection[0].text], k=400)
    assert sorted(found[0]) == sorted(document.doc_id for document in collection)


def test_memory_mapped_parts_and_batches_find_the_same(
    tmp_path: Path, collection: list[Document], ray_session: None
) -> None:
    from dataclasses import replace

    from polyray.indexes.plaid.parts import PlaidParts, part_shards

    mapped = replace(SETTINGS, memory_map=True)
    built(tmp_path / "mapped", collection, mapped)
    texts = [document.text for document in collection[:20]]
    vectors, ids = ENCODER.encode_queries(texts), [str(n) for n in range(20)]
    whole = PlaidIndex(tmp_path / "mapped")
    everything = PlaidSearch(exhaustive=True)
    expected = whole.search(ids, vectors, 10, everything)
    on_disk = PlaidIndex(tmp_path / "mapped", memory_map=True)
    assert on_disk.search(ids, vectors, 10, everything) == expected
    one_by_one = [whole.search([i], [v], 10, everything) for i, v in zip(ids, vectors, strict=True)]
    for query, run in zip(ids, one_by_one, strict=True):
        assert [h.doc_id for h in run[query]] == [h.doc_id for h in expected[query]]

    store = store_of(tmp_path / "documents", collection)
    folders = []
    for number, shards in enumerate(part_shards(len(store), 3)):
        folders.append(tmp_path / f"part{number}")
        build_plaid(folders[-1], store, SETTINGS, {"part": number}, shards=shards, spread=map_here)
    parts = PlaidParts(folders)
    try:
        run = parts.search(ids, vectors, 10, everything)
    finally:
        parts.close()
    for query in ids:
        assert run[query][0].doc_id == expected[query][0].doc_id
        together = {h.doc_id for h in run[query]} & {h.doc_id for h in expected[query]}
        assert len(together) >= 8


def test_one_and_two_actors_and_no_ray_build_the_same_bytes(
    tmp_path: Path, collection: list[Document], index: Path, ray_session: None
) -> None:
    store = store_of(tmp_path / "documents", collection)
    described = {"documents": "some documents"}
    for actors in (1, 2):
        folder = tmp_path / f"actors{actors}"
        build_plaid(folder, store, SETTINGS, described, actors=actors, cpus=1)
        assert checksums(folder) == checksums(index)


def test_settings_with_tuples_are_known_again(tmp_path: Path, collection: list[Document]) -> None:
    """Prompts are a tuple in the settings and a list in the manifest."""
    store = store_of(tmp_path / "documents", collection[:5])
    described = {"encoder": {"prompts": ("query: ", "passage: ")}}
    for encoded in (True, False):
        done = build_plaid(tmp_path / "index", store, SETTINGS, described, spread=map_here)
        assert bool(done.encoded) == encoded
    with pytest.raises(IndexDamaged, match="made with other settings"):
        build_plaid(tmp_path / "index", store, SETTINGS, {"encoder": {}}, spread=map_here)


def test_each_passage_is_encoded_once(tmp_path: Path, collection: list[Document]) -> None:
    """Also where only some are in the sample: 16 * sqrt(120 * n) of n passages."""
    import polyray.indexes.plaid.codec as codec

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "sample_size", lambda passages: passages // 3)
        done = built(tmp_path / "some", collection)
    all_in = built(tmp_path / "all", collection)
    passages = done.manifest["passages"]
    assert done.encoded == all_in.encoded == passages
    stage = {line["stage"]: line for line in done.manifest["stages"]}
    assert stage["sample and codec"]["sampled_passages"] == passages // 3
    assert stage["encode"]["passages_encoded"] == passages - passages // 3
    assert not (tmp_path / "some" / "work").exists()
    assert built(tmp_path / "all", collection).encoded == 0
    texts = [document.text for document in collection[:20]]
    found = search(tmp_path / "some", texts)
    assert [ids[0] for ids in found] == [document.doc_id for document in collection[:20]]


def test_string_ids_stay_as_they_are(cases: Path, tmp_path: Path) -> None:
    folder = cases / "H06_string_docids"
    expected = json.loads((folder / "expected.json").read_text())
    documents = list(read_documents(str(folder / "collection.jsonl")))
    assert {d.doc_id for d in documents} == set(expected["pid_to_docid"].values())
    built(tmp_path / "index", documents)
    found = search(tmp_path / "index", [document.contents for document in documents])
    assert [ids[0] for ids in found] == [document.doc_id for document in documents]


def test_empty_documents_shift_no_neighbour(cases: Path, tmp_path: Path) -> None:
    folder = cases / "H07_empty_passages"
    expected = json.loads((folder / "expected.json").read_text())
    documents = list(read_documents(str(folder / "collection.jsonl")))
    built(tmp_path / "index", documents)
    store = DocumentStore.open(tmp_path / "index-documents")
    assert store.manifest["skipped_empty_ids"] == expected["skipped_empty"]
    lines = (folder / "queries.tsv").read_text().splitlines()
    queries = dict(line.split("\t") for line in lines)
    found = search(tmp_path / "index", list(queries.values()))
    assert dict(zip(queries, [ids[0] for ids in found], strict=True)) == expected["P@1_exact_match"]


@pytest.mark.parametrize("count", [1, 3, 100])
def test_tiny_collections_build_and_give_all_they_have(tmp_path: Path, count: int) -> None:
    documents = words(count, longest=5)
    done = built(tmp_path / "index", documents)
    assert done.manifest["centroids"] <= done.manifest["embeddings"]
    found = search(tmp_path / "index", [documents[-1].text], k=10)
    assert len(found[0]) == len(set(found[0])) == min(10, count)
    assert search(tmp_path / "index", [documents[-1].text], 10, PlaidSearch(exhaustive=True))


def test_many_duplicates(cases: Path, tmp_path: Path) -> None:
    """Sixty equal documents: empty clusters, ties in trec_eval's order."""
    documents = list(read_documents(str(cases / "H09_many_duplicates" / "collection.jsonl")))
    built(tmp_path / "index", documents)
    first, second, same = search(
        tmp_path / "index",
        [
            "Tickets for the museum are free on Sunday.",
            "Der Zug nach Norden hat Verspätung.",
            "Notice: the office is closed today.",
        ],
        k=70,
    )
    assert (first[0], second[0]) == ("u1", "u2")
    assert 60 <= len(same) == len(set(same)) <= 62
    duplicates = sorted((d.doc_id for d in documents if d.doc_id.startswith("dup")), reverse=True)
    assert same[:60] == duplicates


def test_the_best_passage_of_a_document_counts(tmp_path: Path) -> None:
    """A document of many passages is listed once, by its best one, and k documents come out."""
    filler = [f"filler{number}" for number in range(100)]
    long = Document("long", " ".join(["museum tickets", *filler]))
    others = [Document(f"o{n}", f"museum other{n}") for n in range(8)]
    built(tmp_path / "index", [long, *others])
    (found,) = search(tmp_path / "index", ["museum tickets"], k=9)
    assert found[0] == "long"
    assert sorted(found) == sorted(["long", *(d.doc_id for d in others)])


def test_add_delete_and_add_again(tmp_path: Path, collection: list[Document]) -> None:
    folder = tmp_path / "index"
    built(folder, collection[:100])
    texts = [document.text for document in collection[:110]]

    def there(*, how: PlaidSearch | None = None) -> list[bool]:
        found = search(folder, texts, 10, how)
        return [document.doc_id in ids for document, ids in zip(collection, found, strict=False)]

    def update(**change: Any) -> dict[str, Any]:
        return update_plaid(folder, SETTINGS, spread=map_here, **change)

    assert there() == [True] * 100 + [False] * 10
    update(add=collection[100:110])
    assert there() == [True] * 110
    update(delete=["d5", "d105"])
    gone = [number not in (5, 105) for number in range(110)]
    assert there() == gone
    assert there(how=PlaidSearch(exhaustive=True)) == gone
    update(add=[collection[5]])
    changed = Document("d7", "entirely other words here")
    manifest = update(delete=["d7"], add=[changed])
    assert search(folder, ["entirely other words here"])[0][0] == "d7"
    assert "d7" not in search(folder, [collection[7].text], 1)[0]
    assert "d5" in search(folder, [collection[5].text])[0]
    assert manifest["documents"] == 109
    assert [change["added"] for change in manifest["updates"]] == [10, 0, 1, 1]
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []

    kept = checksums(folder)
    with pytest.raises(InputError) as caught:
        update(delete=["nowhere", "d105"], add=[collection[3]])
    assert [p.what for p in caught.value.problems] == [
        "document nowhere cannot be deleted: it is not in the index",
        "document d105 cannot be deleted: it is not in the index",
        "document d3 is there already",
    ]
    assert checksums(folder) == kept
    with pytest.raises(IndexDamaged, match="other settings"):
        built(folder, collection[:100])


def test_deleted_ids_do_not_come_back_in_colbert_ai_either(
    tmp_path: Path, collection: list[Document]
) -> None:

    from polyray.models.colbert_ai import prepare, quiet

    prepare()
    from colbert.infra import ColBERTConfig
    from colbert.search.index_storage import IndexScorer

    folder = tmp_path / "index"
    built(folder, collection[:60])
    update_plaid(folder, SETTINGS, delete=["d3"], spread=map_here)
    deleted = set(np.flatnonzero(PlaidIndex(folder)._deleted).tolist())
    assert deleted
    with quiet():
        ranker = IndexScorer(str(folder), use_gpu=False)
    config = ColBERTConfig(ncells=4, centroid_score_threshold=0.0, ndocs=1000)
    query = torch.from_numpy(ENCODER.encode_queries([collection[3].text])[0]).unsqueeze(0)
    pids, _ = ranker.rank(config, query)
    assert pids
    assert not deleted & set(pids)


def test_damage_and_misuse_are_named(tmp_path: Path, collection: list[Document]) -> None:
    folder = tmp_path / "index"
    built(folder, collection[:20])
    with pytest.raises(ConfigError, match="32 dimensions"):
        PlaidIndex(folder).passages([np.zeros((2, 16), np.float32)], 10, PlaidSearch())
    with pytest.raises(ConfigError, match=r"does not say codec, encoder.* give the settings"):
        update_plaid(folder, delete=["d3"])
    with pytest.raises(IndexDamaged, match="other settings"):
        build_plaid(
            folder,
            DocumentStore.open(tmp_path / "index-documents"),
            SETTINGS,
            {"documents": "others"},
            spread=map_here,
        )
    (folder / "0.codes.pt").write_bytes((folder / "0.codes.pt").read_bytes()[:-7])
    with pytest.raises(IndexDamaged, match=r"0\.codes\.pt"):
        PlaidIndex(folder)
    with pytest.raises(PolyrayError, match="no document has a passage"):
        built(tmp_path / "none", [])
