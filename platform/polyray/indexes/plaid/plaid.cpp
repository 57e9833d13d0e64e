// The inner loops of a PLAID index: inverted lists, candidates of a query, MaxSim of passages.
//
// Lists: passages come in ascending order, so that the last one put into a centroid's list tells
// whether a passage is in it already, and every list is ascending without being sorted.
//
// Candidates: the passages of a query's cells, filtered twice by centroid scores. A passage's score
// is the sum, over query tokens, of the largest score among the centroids of its tokens. The
// largest is the same however often a centroid occurs in the passage, so that no set of those met
// is kept; the inner loop runs over the query's tokens, which lie side by side.
//
// MaxSim: a passage's rows are decompressed into memory that the processor keeps near, and compared
// with the query's tokens there; nothing of the size of all passages is ever written.

#include <ATen/Parallel.h>
#include <torch/extension.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

// Compiled for processors with AVX2 and for all others; the one that fits is chosen when loaded.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define EACH_PROCESSOR __attribute__((target_clones("arch=haswell", "default")))
#else
#define EACH_PROCESSOR
#endif

namespace polyray {

constexpr float NOTHING = -9999;  // a query token's score where nothing counts, as colbert-ai's

// row [dim]: the unit row of centroid + residual; `table` has the values that each byte packs.
EACH_PROCESSOR
void decompress(const float* __restrict__ centroid, const uint8_t* __restrict__ packed,
                int64_t dim, int64_t per_byte, const float* __restrict__ table,
                float* __restrict__ row) {
    if (per_byte == 4) {  // two bits a dimension, the usual
        for (int64_t at = 0; at < dim / 4; at++) {
            const float* values = table + packed[at] * 4;
            for (int64_t k = 0; k < 4; k++) row[at * 4 + k] = centroid[at * 4 + k] + values[k];
        }
    } else {
        for (int64_t at = 0; at < dim; at++) {
            row[at] = centroid[at] + table[packed[at / per_byte] * per_byte + at % per_byte];
        }
    }
    constexpr int64_t LANES = 8;  // sums side by side
    float parts[LANES] = {}, squares = 0;
    const int64_t whole = dim / LANES * LANES;
    for (int64_t at = 0; at < whole; at += LANES) {
        for (int64_t k = 0; k < LANES; k++) parts[k] += row[at + k] * row[at + k];
    }
    for (int64_t at = whole; at < dim; at++) squares += row[at] * row[at];
    for (int64_t k = 0; k < LANES; k++) squares += parts[k];
    const float norm = std::max(std::sqrt(squares), 1e-12f);
    for (int64_t at = 0; at < dim; at++) row[at] /= norm;
}

// Whether any of row [size] is above its limit, and whether any reaches the threshold.
EACH_PROCESSOR
std::pair<bool, bool> compare(const float* __restrict__ row, const float* __restrict__ limits,
                              int64_t size, float threshold) {
    int32_t above = 0, high = 0;
    for (int64_t k = 0; k < size; k++) {
        above |= row[k] > limits[k];
        high |= row[k] >= threshold;
    }
    return {above != 0, high != 0};
}

// The sum, over the columns of scores [centroids, size], of the largest score of any of the codes;
// where `high` is given, of those that it names.
EACH_PROCESSOR
float summed(const int32_t* codes, int64_t count, const float* __restrict__ scores, int64_t size,
             const uint8_t* high, float* __restrict__ best) {
    for (int64_t k = 0; k < size; k++) best[k] = NOTHING;
    for (int64_t token = 0; token < count; token++) {
        if (high != nullptr && !high[codes[token]]) continue;
        const float* row = scores + codes[token] * size;
        for (int64_t k = 0; k < size; k++) best[k] = best[k] < row[k] ? row[k] : best[k];
    }
    float sum = 0;
    for (int64_t k = 0; k < size; k++) sum += best[k];
    return sum;
}

// best [size]: the largest of each column of similarities [count, size]; without any, NOTHING.
EACH_PROCESSOR
void largest(const float* __restrict__ similarities, int64_t count, int64_t size,
             float* __restrict__ best) {
    for (int64_t k = 0; k < size; k++) best[k] = NOTHING;
    for (int64_t token = 0; token < count; token++) {
        const float* row = similarities + token * size;
        for (int64_t k = 0; k < size; k++) best[k] = best[k] < row[k] ? row[k] : best[k];
    }
}

}  // namespace polyray

namespace {

constexpr int64_t GRAIN = 64;  // passages a thread takes at least
constexpr int64_t NEAR = 512;  // rows decompressed at once, so that they stay near the processor

using Scored = std::vector<std::pair<float, int32_t>>;

struct Index {
    const float* scores;  // [centroids, tokens]
    int64_t centroids, tokens;
    const int32_t* codes;
    const int64_t* offsets;  // [passages + 1] first token of each passage
};

// The `count` nearest centroids of each query token, each once; `high` names the centroids that
// reach the threshold for some token. Equal scores go to the lower centroid.
std::vector<int64_t> nearest(const Index& index, int64_t count, float threshold,
                             std::vector<uint8_t>& high) {
    const int64_t size = index.tokens;
    std::vector<std::vector<std::pair<float, int64_t>>> best(size);  // descending
    std::vector<float> limits(size, -std::numeric_limits<float>::infinity());
    for (int64_t centroid = 0; centroid < index.centroids; centroid++) {
        const float* row = index.scores + centroid * size;
        const auto [above, reaches] = polyray::compare(row, limits.data(), size, threshold);
        high[centroid] = reaches;
        if (!above) continue;
        for (int64_t k = 0; k < size; k++) {
            if (!(row[k] > limits[k])) continue;
            auto at = best[k].begin();
            while (at != best[k].end() && at->first >= row[k]) ++at;
            best[k].emplace(at, row[k], centroid);
            if (int64_t(best[k].size()) > count) best[k].pop_back();
            if (int64_t(best[k].size()) == count) limits[k] = best[k].back().first;
        }
    }
    std::vector<int64_t> cells;
    for (const auto& token : best) {
        for (const auto& entry : token) cells.push_back(entry.second);
    }
    std::sort(cells.begin(), cells.end());
    cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
    return cells;
}

// Fill in the score of each passage; where `high` is given, from the centroids it names alone.
void score(const Index& index, const uint8_t* high, Scored& passages) {
    at::parallel_for(0, passages.size(), GRAIN, [&](int64_t first, int64_t last) {
        std::vector<float> best(index.tokens);
        for (int64_t at = first; at < last; at++) {
            const int64_t* offset = index.offsets + passages[at].second;
            passages[at].first = polyray::summed(index.codes + offset[0], offset[1] - offset[0],
                                                 index.scores, index.tokens, high, best.data());
        }
    });
}

void keep_best(Scored& passages, size_t count) {
    if (count >= passages.size()) return;
    std::nth_element(passages.begin(), passages.begin() + count, passages.end(),
                     std::greater<std::pair<float, int32_t>>());
    passages.resize(count);
}

// Passages in the lists of the cells, each once, ascending.
Scored of_cells(const std::vector<int64_t>& cells, const int32_t* lists, const int64_t* starts,
                int64_t passages) {
    std::vector<uint64_t> met(passages / 64 + 1, 0);
    for (const int64_t cell : cells) {
        for (int64_t place = starts[cell]; place < starts[cell + 1]; place++) {
            met[lists[place] / 64] |= uint64_t(1) << (lists[place] % 64);
        }
    }
    Scored found;
    for (size_t word = 0; word < met.size(); word++) {
        for (uint64_t bits = met[word]; bits != 0; bits &= bits - 1) {
            found.emplace_back(0, int32_t(word * 64 + __builtin_ctzll(bits)));
        }
    }
    return found;
}

}  // namespace

// int32 passage numbers, ascending; `scores` [centroids, tokens] are those of a query.
torch::Tensor candidates(const torch::Tensor& scores, int64_t cells, double threshold,
                         int64_t ndocs, const torch::Tensor& lists, const torch::Tensor& starts,
                         const torch::Tensor& codes, const torch::Tensor& offsets) {
    TORCH_CHECK(scores.is_contiguous() && lists.is_contiguous() && starts.is_contiguous() &&
                codes.is_contiguous() && offsets.is_contiguous(),
                "tensors have to be contiguous");
    const Index index{scores.data_ptr<float>(), scores.size(0), scores.size(1),
                      codes.data_ptr<int32_t>(), offsets.data_ptr<int64_t>()};
    std::vector<uint8_t> high(index.centroids);
    const std::vector<int64_t> near = nearest(index, cells, threshold, high);
    Scored found = of_cells(near, lists.data_ptr<int32_t>(), starts.data_ptr<int64_t>(),
                            offsets.size(0) - 1);
    score(index, high.data(), found);
    keep_best(found, ndocs);
    score(index, nullptr, found);
    keep_best(found, ndocs / 4);
    std::vector<int32_t> numbers;
    for (const auto& passage : found) numbers.push_back(passage.second);
    std::sort(numbers.begin(), numbers.end());
    return torch::tensor(numbers, torch::kInt32);
}

// float32 [passages, queries]: MaxSim of passages, each the sum over a query's tokens.
//
// `tokens` [all queries' tokens, dim] and `starts` [queries + 1] are the queries; `numbers` are the
// passages, `table` [256, values of a byte] the bucket weights that a packed byte stands for.
torch::Tensor max_sim(const torch::Tensor& tokens, const torch::Tensor& starts,
                      const torch::Tensor& numbers, const torch::Tensor& offsets,
                      const torch::Tensor& codes, const torch::Tensor& residuals,
                      const torch::Tensor& centroids, const torch::Tensor& table) {
    TORCH_CHECK(tokens.is_contiguous() && starts.is_contiguous() && numbers.is_contiguous() &&
                offsets.is_contiguous() && codes.is_contiguous() && residuals.is_contiguous() &&
                centroids.is_contiguous() && table.is_contiguous(),
                "tensors have to be contiguous");
    const int64_t dim = centroids.size(1), per_byte = table.size(1), width = residuals.size(1);
    TORCH_CHECK(tokens.size(1) == dim && width * per_byte == dim, "dimensions do not fit");
    const int64_t size = tokens.size(0), queries = starts.size(0) - 1;
    const int64_t passages = numbers.size(0);
    const auto columns = tokens.t();
    const auto scores = torch::empty({passages, queries});
    const int32_t* number = numbers.data_ptr<int32_t>();
    const int64_t* offset = offsets.data_ptr<int64_t>();
    const int64_t* start = starts.data_ptr<int64_t>();
    const int32_t* code = codes.data_ptr<int32_t>();
    const uint8_t* packed = residuals.data_ptr<uint8_t>();
    const float* centroid = centroids.data_ptr<float>();
    const float* values = table.data_ptr<float>();
    float* out = scores.data_ptr<float>();
    const auto length = [&](int64_t at) { return offset[number[at] + 1] - offset[number[at]]; };
    at::parallel_for(0, passages, 4, [&](int64_t first, int64_t last) {
        const c10::InferenceMode guard;
        std::vector<float> best(size);
        while (first < last) {
            int64_t behind = first, count = 0;
            do count += length(behind++);
            while (behind < last && count + length(behind) <= NEAR);
            const auto rows = torch::empty({count, dim});
            float* row = rows.data_ptr<float>();
            for (int64_t at = first; at < behind; at++) {
                const int64_t begin = offset[number[at]];
                for (int64_t token = begin; token < begin + length(at); token++, row += dim) {
                    polyray::decompress(centroid + code[token] * dim, packed + token * width, dim,
                                        per_byte, values, row);
                }
            }
            const auto similarities = rows.mm(columns);
            const float* similar = similarities.data_ptr<float>();
            for (; first < behind; first++) {
                polyray::largest(similar, length(first), size, best.data());
                similar += length(first) * size;
                for (int64_t query = 0; query < queries; query++) {
                    float sum = 0;
                    for (int64_t k = start[query]; k < start[query + 1]; k++) sum += best[k];
                    out[first * queries + query] = sum;
                }
            }
        }
    });
    return scores;
}

// Put a chunk's passages, numbered from `number`, into the lists of their centroids.
//
// `ends` [centroids] is where each list's next passage goes, and is moved on; `latest` [centroids]
// is the passage that came last. An empty `lists` only counts. Passages that `dropped`, if it is
// not empty, names are left out.
void add_passages(const torch::Tensor& codes, const torch::Tensor& lengths, int64_t number,
                  const torch::Tensor& dropped, torch::Tensor latest, torch::Tensor ends,
                  torch::Tensor lists) {
    TORCH_CHECK(codes.is_contiguous() && lengths.is_contiguous() && dropped.is_contiguous() &&
                latest.is_contiguous() && ends.is_contiguous() && lists.is_contiguous(),
                "tensors have to be contiguous");
    TORCH_CHECK(lengths.sum().item<int64_t>() == codes.size(0), "lengths do not fit the codes");
    const int64_t centroids = ends.size(0);
    const int32_t* code = codes.data_ptr<int32_t>();
    const int64_t* length = lengths.data_ptr<int64_t>();
    const bool* out = dropped.size(0) ? dropped.data_ptr<bool>() : nullptr;
    int32_t* last = latest.data_ptr<int32_t>();
    int64_t* end = ends.data_ptr<int64_t>();
    int32_t* place = lists.size(0) ? lists.data_ptr<int32_t>() : nullptr;
    for (int64_t at = 0; at < lengths.size(0); at++, number++) {
        const int32_t* behind = code + length[at];
        if (out != nullptr && out[number]) code = behind;
        for (; code < behind; code++) {
            TORCH_CHECK(*code >= 0 && *code < centroids, "no centroid ", *code);
            if (last[*code] == number) continue;
            last[*code] = int32_t(number);
            if (place != nullptr) place[end[*code]] = int32_t(number);
            end[*code]++;
        }
    }
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
    module.def("add_passages", &add_passages,
               pybind11::call_guard<pybind11::gil_scoped_release>());
    module.def("max_sim", &max_sim, pybind11::call_guard<pybind11::gil_scoped_release>());
    module.def("candidates", &candidates, pybind11::call_guard<pybind11::gil_scoped_release>());
}
