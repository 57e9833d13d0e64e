// The candidates of one query: the passages of its cells, filtered twice by centroid scores.
//
// A passage's score is the sum, over query tokens, of the largest score among the centroids of its
// tokens. The largest is the same however often a centroid occurs in the passage, so that no set of
// those met is kept; the inner loop runs over the query's tokens, which lie side by side.

#include <ATen/Parallel.h>
#include <torch/extension.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace {

constexpr float NOTHING = -9999;  // a query token's score where no centroid counts, as colbert-ai's
constexpr int64_t GRAIN = 64;     // passages a thread takes at least

struct Index {
    const float* scores;  // [centroids, tokens]
    int64_t tokens;
    const int32_t* codes;
    const int64_t* offsets;  // [passages + 1] first token of each passage
};

using Scored = std::vector<std::pair<float, int32_t>>;

// Fill in the score of each passage; where `high` is given, from the centroids it names alone.
void score(const Index& index, const bool* high, Scored& passages) {
    const int64_t size = index.tokens;
    at::parallel_for(0, passages.size(), GRAIN, [&](int64_t first, int64_t last) {
        std::vector<float> best(size);
        float* largest = best.data();
        for (int64_t at = first; at < last; at++) {
            std::fill(best.begin(), best.end(), NOTHING);
            const int64_t end = index.offsets[passages[at].second + 1];
            for (int64_t token = index.offsets[passages[at].second]; token < end; token++) {
                const int32_t code = index.codes[token];
                if (high != nullptr && !high[code]) continue;
                const float* row = index.scores + code * size;
                for (int64_t k = 0; k < size; k++) {
                    largest[k] = largest[k] < row[k] ? row[k] : largest[k];
                }
            }
            float sum = 0;
            for (int64_t k = 0; k < size; k++) sum += largest[k];
            passages[at].first = sum;
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
Scored of_cells(const torch::Tensor& cells, const int32_t* lists, const int64_t* starts,
                int64_t passages) {
    std::vector<uint64_t> met(passages / 64 + 1, 0);
    const int64_t* cell = cells.data_ptr<int64_t>();
    for (int64_t at = 0; at < cells.size(0); at++) {
        for (int64_t place = starts[cell[at]]; place < starts[cell[at] + 1]; place++) {
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

torch::Tensor candidates(const torch::Tensor& cells, const torch::Tensor& lists,
                         const torch::Tensor& starts, const torch::Tensor& scores,
                         const torch::Tensor& high, const torch::Tensor& codes,
                         const torch::Tensor& offsets, int64_t ndocs) {
    TORCH_CHECK(cells.is_contiguous() && lists.is_contiguous() && starts.is_contiguous() &&
                scores.is_contiguous() && high.is_contiguous() && codes.is_contiguous() &&
                offsets.is_contiguous(), "tensors have to be contiguous");
    const Index index{scores.data_ptr<float>(), scores.size(1), codes.data_ptr<int32_t>(),
                      offsets.data_ptr<int64_t>()};
    Scored found = of_cells(cells, lists.data_ptr<int32_t>(), starts.data_ptr<int64_t>(),
                            offsets.size(0) - 1);
    score(index, high.data_ptr<bool>(), found);
    keep_best(found, ndocs);
    score(index, nullptr, found);
    keep_best(found, ndocs / 4);
    std::vector<int32_t> numbers;
    for (const auto& passage : found) numbers.push_back(passage.second);
    std::sort(numbers.begin(), numbers.end());
    return torch::tensor(numbers, torch::kInt32);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
    module.def("candidates", &candidates, pybind11::call_guard<pybind11::gil_scoped_release>());
}
