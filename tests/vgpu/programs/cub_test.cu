// CUB's device-wide algorithms and Thrust against the plain algorithms of the C++ library. They are the hardest users
// of a GPU's memory model that are at hand: tiles that look back at the sums of earlier ones through flags, warps that
// match and vote, shared memory used for one thing after the other.
//
// The only file that includes these headers: they take nvcc minutes where the rest takes seconds, so the types and
// operators are few, and algorithms share them.
#include <cub/device/device_adjacent_difference.cuh>
#include <cub/device/device_for.cuh>
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_memcpy.cuh>
#include <cub/device/device_merge.cuh>
#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cub/device/device_segmented_sort.cuh>
#include <cub/device/device_select.cuh>
#include <cub/device/device_transform.cuh>
#include <thrust/binary_search.h>
#include <thrust/device_vector.h>
#include <thrust/inner_product.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/random.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/set_operations.h>
#include <thrust/shuffle.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/vgpu/programs/cub_inputs.cuh"
#include "tests/vgpu/programs/program_test.cuh"

namespace {

using namespace program;

class CubReduce : public program::ProgramTest {};
class CubScan : public program::ProgramTest {};
class CubSort : public program::ProgramTest {};
class CubSelect : public program::ProgramTest {};
class CubOther : public program::ProgramTest {};
class Thrust : public program::ProgramTest {};

// Nothing, one thread's, almost a warp's, one tile's and several tiles' worth of elements.
constexpr int SIZES[] = {0, 1, 31, 1000, 20011};
constexpr unsigned SEEDS[] = {1, 2};

// Runs `check(size, random)` for every size and seed, up to the first failure.
template <class Check> void for_all_inputs(Check check) {
    for (int size : SIZES) {
        for (unsigned seed : SEEDS) {
            SCOPED_TRACE("size " + std::to_string(size) + ", seed " + std::to_string(seed));
            std::mt19937 random(seed);
            check(size, random);
            if (::testing::Test::HasFailure()) return;
        }
    }
}

// CUB's protocol of two calls: the first says how much scratch memory the second needs.
template <class Algorithm> void run_cub(Algorithm algorithm) {
    size_t bytes = 0;
    CUDA_OK(algorithm(nullptr, bytes));
    DeviceArray<char> scratch(std::max<size_t>(bytes, 1));
    CUDA_OK(algorithm(static_cast<void *>(scratch.data()), bytes));
    LAUNCH_OK();
}
#define RUN_CUB(algorithm, ...) \
    run_cub([&](void *scratch, size_t &bytes) { return algorithm(scratch, bytes, __VA_ARGS__); })

// ---- reductions ----------------------------------------------------------------------------------------------------

TEST_F(CubReduce, Sum) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> in = random_integers(random, size, -100000, 100000);
        DeviceArray<int> input(in), sum(1);
        RUN_CUB(cub::DeviceReduce::Sum, input.data(), sum.data(), size);
        EXPECT_EQ(sum.values()[0], std::accumulate(in.begin(), in.end(), 0));
    });
}

TEST_F(CubReduce, SumOfFloatsIsCloseAndRepeatable) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<float> in = random_floats(random, size, -1.0f, 3.0f);
        DeviceArray<float> input(in), sums(2);
        for (int i = 0; i < 2; i++) {
            RUN_CUB(cub::DeviceReduce::Sum, input.data(), sums.data() + i, size);
        }
        double expected = std::accumulate(in.begin(), in.end(), 0.0);
        EXPECT_NEAR(static_cast<double>(sums.values()[0]), expected, 1e-6 * size);
        EXPECT_EQ(sums.values()[0], sums.values()[1]);
    });
}

TEST_F(CubReduce, MinAndMax) {
    for_all_inputs([](int size, std::mt19937 &random) {
        if (size == 0) return; // CUB's result is its own initial value
        std::vector<float> in = random_floats(random, size, -1e6f, 1e6f);
        DeviceArray<float> input(in), result(2);
        RUN_CUB(cub::DeviceReduce::Min, input.data(), result.data(), size);
        RUN_CUB(cub::DeviceReduce::Max, input.data(), result.data() + 1, size);
        auto [lowest, highest] = std::minmax_element(in.begin(), in.end());
        expect_same(result.values(), {*lowest, *highest}, "minimum and maximum");
    });
}

TEST_F(CubReduce, ArgMinIsTheFirstOfEquals) {
    for_all_inputs([](int size, std::mt19937 &random) {
        if (size == 0) return;
        std::vector<int> in = random_integers(random, size, 0, 50);
        DeviceArray<int> input(in), lowest(1);
        DeviceArray<long long> index(1);
        RUN_CUB(cub::DeviceReduce::ArgMin, input.data(), lowest.data(), index.data(), size);
        auto expected = std::min_element(in.begin(), in.end());
        EXPECT_EQ(lowest.values()[0], *expected);
        EXPECT_EQ(index.values()[0], expected - in.begin());
    });
}

TEST_F(CubReduce, CustomOperator) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<float> in = random_floats(random, size, -1000.0f, 1000.0f);
        DeviceArray<float> input(in), result(1);
        RUN_CUB(cub::DeviceReduce::Reduce, input.data(), result.data(), size, LargerMagnitude{}, 0.5f);
        EXPECT_EQ(result.values()[0], std::accumulate(in.begin(), in.end(), 0.5f, LargerMagnitude{}));
    });
}

TEST_F(CubReduce, TransformReduce) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> in = random_integers(random, size, -1000000, 1000000);
        DeviceArray<int> input(in);
        DeviceArray<long long> result(1);
        RUN_CUB(cub::DeviceReduce::TransformReduce, input.data(), result.data(), size, Plus{}, Square{}, 7LL);
        EXPECT_EQ(result.values()[0], std::transform_reduce(in.begin(), in.end(), 7LL, Plus{}, Square{}));
    });
}

TEST_F(CubReduce, ReduceByKey) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> keys = random_runs(random, size), values = random_integers(random, size, -1000, 1000);
        DeviceArray<int> device_keys(keys), device_values(values), unique(size), sums(size), count(1);
        RUN_CUB(cub::DeviceReduce::ReduceByKey, device_keys.data(), unique.data(), device_values.data(), sums.data(),
                count.data(), Plus{}, size);
        Runs runs = runs_of(keys);
        std::vector<int> expected;
        for (size_t i = 0; i < runs.keys.size(); i++) {
            auto first = values.begin() + runs.starts[i];
            expected.push_back(std::accumulate(first, first + runs.lengths[i], 0));
        }
        ASSERT_EQ(count.values()[0], static_cast<int>(runs.keys.size()));
        expect_same(unique.values(runs.keys.size()), runs.keys, "keys");
        expect_same(sums.values(runs.keys.size()), expected, "sums");
    });
}

TEST_F(CubReduce, SegmentedSum) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> in = random_integers(random, size, -1000, 1000), offsets = random_segments(random, size);
        int segments = static_cast<int>(offsets.size()) - 1;
        DeviceArray<int> input(in), device_offsets(offsets), sums(segments);
        RUN_CUB(cub::DeviceSegmentedReduce::Sum, input.data(), sums.data(), segments, device_offsets.data(),
                device_offsets.data() + 1);
        std::vector<int> expected;
        for (int i = 0; i < segments; i++) {
            expected.push_back(std::accumulate(in.begin() + offsets[i], in.begin() + offsets[i + 1], 0));
        }
        expect_same(sums.values(), expected, "sums");
    });
}

// ---- scans ---------------------------------------------------------------------------------------------------------

TEST_F(CubScan, InclusiveAndExclusiveSum) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> in = random_integers(random, size, -100000, 100000), expected(in.size());
        DeviceArray<int> input(in), inclusive(size), exclusive(size);
        RUN_CUB(cub::DeviceScan::InclusiveSum, input.data(), inclusive.data(), size);
        std::inclusive_scan(in.begin(), in.end(), expected.begin());
        expect_same(inclusive.values(), expected, "inclusive");
        RUN_CUB(cub::DeviceScan::ExclusiveSum, input.data(), exclusive.data(), size);
        std::exclusive_scan(in.begin(), in.end(), expected.begin(), 0);
        expect_same(exclusive.values(), expected, "exclusive");
    });
}

TEST_F(CubScan, ExclusiveMaximumInPlace) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> in = random_integers(random, size, 0, 1000000), expected(in.size());
        DeviceArray<int> data(in);
        RUN_CUB(cub::DeviceScan::ExclusiveScan, data.data(), Maximum{}, 17, size);
        std::exclusive_scan(in.begin(), in.end(), expected.begin(), 17, Maximum{});
        expect_same(data.values(), expected, "scan");
    });
}

TEST_F(CubScan, InclusiveSumByKey) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> keys = random_runs(random, size), in = random_integers(random, size, -1000, 1000);
        DeviceArray<int> device_keys(keys), input(in), output(size);
        RUN_CUB(cub::DeviceScan::InclusiveSumByKey, device_keys.data(), input.data(), output.data(), size);
        std::vector<int> expected = in;
        for (size_t i = 1; i < in.size(); i++) {
            if (keys[i] == keys[i - 1]) expected[i] += expected[i - 1];
        }
        expect_same(output.values(), expected, "sums");
    });
}

// ---- sorts ---------------------------------------------------------------------------------------------------------

TEST_F(CubSort, RadixKeys) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> keys = random_integers(random, size, INT32_MIN, INT32_MAX);
        DeviceArray<int> input(keys), output(size);
        RUN_CUB(cub::DeviceRadixSort::SortKeys, input.data(), output.data(), size);
        std::sort(keys.begin(), keys.end());
        expect_same(output.values(), keys, "keys");
    });
}

TEST_F(CubSort, RadixKeysOf64BitsDescending) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int64_t> keys = random_integers<int64_t>(random, size, INT64_MIN, INT64_MAX);
        DeviceArray<int64_t> input(keys), output(size);
        RUN_CUB(cub::DeviceRadixSort::SortKeysDescending, input.data(), output.data(), size);
        std::sort(keys.begin(), keys.end(), std::greater<int64_t>());
        expect_same(output.values(), keys, "keys");
    });
}

// Floats with many ties, infinities and both zeros, which are equal: the order of their values shows stability.
TEST_F(CubSort, RadixPairsOfFloats) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<float> keys = random_floats(random, size, -20.0f, 20.0f);
        for (float &key : keys)
            key = random() % 2 == 0 ? std::trunc(key) : key;
        for (size_t i = 7; i < keys.size(); i += 97)
            keys[i] = std::numeric_limits<float>::infinity() * (i % 2 ? 1 : -1);
        std::vector<int> order = iota(size);
        DeviceArray<float> keys_in(keys), keys_out(size);
        DeviceArray<int> values_in(order), values_out(size);
        RUN_CUB(cub::DeviceRadixSort::SortPairs, keys_in.data(), keys_out.data(), values_in.data(), values_out.data(),
                size);
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
        expect_same(values_out.values(), order, "values");
        std::vector<float> sorted;
        for (int i : order)
            sorted.push_back(keys[i]);
        expect_same(keys_out.values(), sorted, "keys");
    });
}

TEST_F(CubSort, RadixPairsBySomeBits) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> keys = random_integers(random, size, 0, INT32_MAX), order = iota(size);
        DeviceArray<int> keys_in(keys), keys_out(size), values_in(order), values_out(size);
        RUN_CUB(cub::DeviceRadixSort::SortPairs, keys_in.data(), keys_out.data(), values_in.data(), values_out.data(),
                size, 5, 16);
        auto bits = [&](int i) { return (keys[i] >> 5) & 0x7ff; };
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return bits(a) < bits(b); });
        expect_same(values_out.values(), order, "values");
    });
}

TEST_F(CubSort, StableMergeSortOfPairs) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> keys = random_integers(random, size, 0, 10000), order = iota(size);
        DeviceArray<int> device_keys(keys), device_values(order);
        RUN_CUB(cub::DeviceMergeSort::StableSortPairs, device_keys.data(), device_values.data(), size, ByLastDigit{});
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return ByLastDigit{}(keys[a], keys[b]); });
        expect_same(device_values.values(), order, "values");
    });
}

// Both ways of sorting segments: a block for each, and by the segment's length.
TEST_F(CubSort, Segments) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> keys = random_integers(random, size, INT32_MIN, INT32_MAX);
        std::vector<int> offsets = random_segments(random, size);
        int segments = static_cast<int>(offsets.size()) - 1;
        DeviceArray<int> input(keys), radix(size), by_length(size), device_offsets(offsets);
        RUN_CUB(cub::DeviceSegmentedRadixSort::SortKeys, input.data(), radix.data(), size, segments,
                device_offsets.data(), device_offsets.data() + 1);
        RUN_CUB(cub::DeviceSegmentedSort::SortKeys, input.data(), by_length.data(), size, segments,
                device_offsets.data(), device_offsets.data() + 1);
        for (int i = 0; i < segments; i++)
            std::sort(keys.begin() + offsets[i], keys.begin() + offsets[i + 1]);
        expect_same(radix.values(), keys, "radix sort");
        expect_same(by_length.values(), keys, "sort by length");
    });
}

// ---- selections ----------------------------------------------------------------------------------------------------

TEST_F(CubSelect, Flagged) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> in = random_integers(random, size, -1000, 1000), expected;
        std::vector<char> flags(in.size());
        for (size_t i = 0; i < in.size(); i++) {
            flags[i] = random() % 3 == 0;
            if (flags[i]) expected.push_back(in[i]);
        }
        DeviceArray<int> input(in), output(size), count(1);
        DeviceArray<char> device_flags(flags);
        RUN_CUB(cub::DeviceSelect::Flagged, input.data(), device_flags.data(), output.data(), count.data(), size);
        ASSERT_EQ(count.values()[0], static_cast<int>(expected.size()));
        expect_same(output.values(expected.size()), expected, "selected");
    });
}

TEST_F(CubSelect, If) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> in = random_integers(random, size, -1000, 1000), expected;
        DeviceArray<int> input(in), output(size), count(1);
        RUN_CUB(cub::DeviceSelect::If, input.data(), output.data(), count.data(), size, IsOdd{});
        std::copy_if(in.begin(), in.end(), std::back_inserter(expected), IsOdd{});
        ASSERT_EQ(count.values()[0], static_cast<int>(expected.size()));
        expect_same(output.values(expected.size()), expected, "selected");
    });
}

TEST_F(CubSelect, Unique) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> in = random_runs(random, size);
        DeviceArray<int> input(in), output(size), count(1);
        RUN_CUB(cub::DeviceSelect::Unique, input.data(), output.data(), count.data(), size);
        in.erase(std::unique(in.begin(), in.end()), in.end());
        ASSERT_EQ(count.values()[0], static_cast<int>(in.size()));
        expect_same(output.values(in.size()), in, "unique");
    });
}

// The selected ones in their order, then the others in reverse.
TEST_F(CubSelect, Partition) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> in = random_integers(random, size, -1000, 1000), expected;
        DeviceArray<int> input(in), output(size), count(1);
        RUN_CUB(cub::DevicePartition::If, input.data(), output.data(), count.data(), size, IsOdd{});
        std::copy_if(in.begin(), in.end(), std::back_inserter(expected), IsOdd{});
        ASSERT_EQ(count.values()[0], static_cast<int>(expected.size()));
        std::copy_if(in.rbegin(), in.rend(), std::back_inserter(expected), [](int value) { return !IsOdd{}(value); });
        expect_same(output.values(), expected, "partition");
    });
}

// ---- the others ----------------------------------------------------------------------------------------------------

TEST_F(CubOther, RunLengthEncode) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> in = random_runs(random, size);
        DeviceArray<int> input(in), unique(size), lengths(size), count(1);
        RUN_CUB(cub::DeviceRunLengthEncode::Encode, input.data(), unique.data(), lengths.data(), count.data(), size);
        Runs runs = runs_of(in);
        ASSERT_EQ(count.values()[0], static_cast<int>(runs.keys.size()));
        expect_same(unique.values(runs.keys.size()), runs.keys, "keys");
        expect_same(lengths.values(runs.keys.size()), runs.lengths, "lengths");
    });
}

TEST_F(CubOther, NonTrivialRuns) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> in = random_runs(random, size), expected_starts, expected_lengths;
        DeviceArray<int> input(in), starts(size), lengths(size), count(1);
        RUN_CUB(cub::DeviceRunLengthEncode::NonTrivialRuns, input.data(), starts.data(), lengths.data(), count.data(),
                size);
        Runs runs = runs_of(in);
        for (size_t i = 0; i < runs.keys.size(); i++) {
            if (runs.lengths[i] == 1) continue;
            expected_starts.push_back(runs.starts[i]);
            expected_lengths.push_back(runs.lengths[i]);
        }
        ASSERT_EQ(count.values()[0], static_cast<int>(expected_starts.size()));
        expect_same(starts.values(expected_starts.size()), expected_starts, "starts");
        expect_same(lengths.values(expected_starts.size()), expected_lengths, "lengths");
    });
}

// Samples outside of the levels count nowhere.
TEST_F(CubOther, Histogram) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> in = random_integers(random, size, -50, 400), levels = {-10, 0, 3, 4, 200, 300};
        DeviceArray<int> input(in), even(30, 0), ranges(5, 0), device_levels(levels);
        RUN_CUB(cub::DeviceHistogram::HistogramEven, input.data(), even.data(), 31, 0, 300, size);
        RUN_CUB(cub::DeviceHistogram::HistogramRange, input.data(), ranges.data(), 6, device_levels.data(), size);
        std::vector<int> expected_even(30, 0), expected_ranges(5, 0);
        for (int sample : in) {
            if (sample >= 0 && sample < 300) expected_even[sample / 10]++;
            auto upper = std::upper_bound(levels.begin(), levels.end(), sample);
            if (upper != levels.begin() && upper != levels.end()) expected_ranges[upper - levels.begin() - 1]++;
        }
        expect_same(even.values(), expected_even, "even");
        expect_same(ranges.values(), expected_ranges, "ranges");
    });
}

TEST_F(CubOther, AdjacentDifference) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> in = random_integers(random, size, -100000, 100000), expected(in.size());
        DeviceArray<int> input(in), output(size);
        RUN_CUB(cub::DeviceAdjacentDifference::SubtractLeftCopy, input.data(), output.data(), size, Minus{});
        std::adjacent_difference(in.begin(), in.end(), expected.begin());
        expect_same(output.values(), expected, "differences");
    });
}

TEST_F(CubOther, MergeKeys) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> a = random_integers(random, size, 0, 100000), expected;
        std::vector<int> b = random_integers(random, size / 3, 0, 100000);
        std::sort(a.begin(), a.end());
        std::sort(b.begin(), b.end());
        DeviceArray<int> device_a(a), device_b(b), output(a.size() + b.size());
        RUN_CUB(cub::DeviceMerge::MergeKeys, device_a.data(), size, device_b.data(), size / 3, output.data(), Less{});
        std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(expected));
        expect_same(output.values(), expected, "merged");
    });
}

// Two inputs, which an architecture with bulk copies brings into shared memory by them.
TEST_F(CubOther, Transform) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> a = random_integers(random, size, -1000, 1000), b = random_integers(random, size, -1000, 1000);
        DeviceArray<int> device_a(a), device_b(b), output(size);
        CUDA_OK(cub::DeviceTransform::Transform(cuda::std::make_tuple(device_a.data(), device_b.data()), output.data(),
                                                size, Maximum{}));
        LAUNCH_OK();
        std::transform(a.begin(), a.end(), b.begin(), b.begin(), Maximum{});
        expect_same(output.values(), b, "maxima");
    });
}

TEST_F(CubOther, ForEach) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> in = random_integers(random, size, -1000, 1000);
        DeviceArray<int> data(in);
        CUDA_OK(cub::DeviceFor::ForEachN(data.data(), size, Increment{}));
        LAUNCH_OK();
        std::for_each(in.begin(), in.end(), Increment{});
        expect_same(data.values(), in, "values");
    });
}

// Copies segments of bytes, from empty ones to some that several blocks share, to where they lie in reverse order.
TEST_F(CubOther, MemcpyBatched) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> offsets = random_segments(random, size);
        size_t count = offsets.size() - 1;
        std::vector<int> in = random_integers(random, size, 0, 255), sizes;
        std::vector<unsigned char> source(in.begin(), in.end()), expected(source.size());
        DeviceArray<unsigned char> input(source), output(source.size());
        std::vector<const void *> from;
        std::vector<void *> to;
        for (size_t i = 0; i < count; i++) {
            int length = offsets[i + 1] - offsets[i], target = size - offsets[i + 1];
            from.push_back(input.data() + offsets[i]);
            to.push_back(output.data() + target);
            sizes.push_back(length);
            std::copy_n(source.begin() + offsets[i], length, expected.begin() + target);
        }
        DeviceArray<const void *> device_from(from);
        DeviceArray<void *> device_to(to);
        DeviceArray<int> device_sizes(sizes);
        RUN_CUB(cub::DeviceMemcpy::Batched, device_from.data(), device_to.data(), device_sizes.data(), count);
        expect_same(output.values(), expected, "bytes");
    });
}

// ---- Thrust --------------------------------------------------------------------------------------------------------

template <class T> std::vector<T> values_of(const thrust::device_vector<T> &device) {
    std::vector<T> values(device.size());
    thrust::copy(device.begin(), device.end(), values.begin());
    return values;
}

TEST_F(Thrust, Sorts) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> keys = random_integers(random, size, 0, 1000), order = iota(size);
        thrust::device_vector<int> sorted(keys), device_keys(keys), values(order);
        thrust::sort(sorted.begin(), sorted.end());
        thrust::stable_sort_by_key(device_keys.begin(), device_keys.end(), values.begin(), ByLastDigit{});
        std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return ByLastDigit{}(keys[a], keys[b]); });
        std::sort(keys.begin(), keys.end());
        expect_same(values_of(sorted), keys, "sort");
        expect_same(values_of(values), order, "stable_sort_by_key");
    });
}

TEST_F(Thrust, TransformsAndReductions) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> a = random_integers(random, size, -100, 100), b = random_integers(random, size, -100, 100);
        std::vector<int> maxima(a.size()), sums(a.size());
        thrust::device_vector<int> device_a(a), device_b(b), device_maxima(size), device_sums(size);
        thrust::transform(device_a.begin(), device_a.end(), device_b.begin(), device_maxima.begin(), Maximum{});
        thrust::exclusive_scan(device_a.begin(), device_a.end(), device_sums.begin(), 5);
        std::transform(a.begin(), a.end(), b.begin(), maxima.begin(), Maximum{});
        std::exclusive_scan(a.begin(), a.end(), sums.begin(), 5);
        expect_same(values_of(device_maxima), maxima, "transform");
        expect_same(values_of(device_sums), sums, "exclusive_scan");
        EXPECT_EQ(thrust::inner_product(device_a.begin(), device_a.end(), device_b.begin(), 3),
                  std::inner_product(a.begin(), a.end(), b.begin(), 3));
    });
}

TEST_F(Thrust, ReduceByKeyAndUnique) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> keys = random_runs(random, size);
        thrust::device_vector<int> device_keys(keys), unique(size), sums(size), ones(size, 1);
        auto end =
            thrust::reduce_by_key(device_keys.begin(), device_keys.end(), ones.begin(), unique.begin(), sums.begin());
        unique.resize(end.first - unique.begin());
        sums.resize(end.second - sums.begin());
        device_keys.erase(thrust::unique(device_keys.begin(), device_keys.end()), device_keys.end());
        Runs runs = runs_of(keys);
        expect_same(values_of(unique), runs.keys, "reduce_by_key's keys");
        expect_same(values_of(sums), runs.lengths, "reduce_by_key's sums");
        expect_same(values_of(device_keys), runs.keys, "unique");
    });
}

TEST_F(Thrust, SortedSequences) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> a = random_integers(random, size, 0, 2 * size);
        std::vector<int> b = random_integers(random, size / 2, 0, 2 * size), merged, joined;
        std::vector<int> probes = random_integers(random, size, -5, 2 * size + 5), positions;
        std::sort(a.begin(), a.end());
        std::sort(b.begin(), b.end());
        thrust::device_vector<int> device_a(a), device_b(b), device_probes(probes), device_positions(size);
        thrust::device_vector<int> device_merged(a.size() + b.size()), device_joined(a.size() + b.size());
        thrust::merge(device_a.begin(), device_a.end(), device_b.begin(), device_b.end(), device_merged.begin());
        auto end = thrust::set_union(device_a.begin(), device_a.end(), device_b.begin(), device_b.end(),
                                     device_joined.begin());
        device_joined.resize(end - device_joined.begin());
        thrust::lower_bound(device_a.begin(), device_a.end(), device_probes.begin(), device_probes.end(),
                            device_positions.begin());
        std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(merged));
        std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(joined));
        for (int probe : probes) {
            positions.push_back(static_cast<int>(std::lower_bound(a.begin(), a.end(), probe) - a.begin()));
        }
        expect_same(values_of(device_merged), merged, "merge");
        expect_same(values_of(device_joined), joined, "set_union");
        expect_same(values_of(device_positions), positions, "lower_bound");
    });
}

TEST_F(Thrust, PartitionAndShuffle) {
    for_all_inputs([](int size, std::mt19937 &random) {
        std::vector<int> in = random_integers(random, size, -1000, 1000);
        thrust::device_vector<int> data(in);
        auto middle = thrust::partition(data.begin(), data.end(), IsOdd{}) - data.begin();
        std::vector<int> out = values_of(data);
        EXPECT_EQ(middle, std::count_if(in.begin(), in.end(), IsOdd{}));
        EXPECT_TRUE(std::is_partitioned(out.begin(), out.end(), IsOdd{}));

        thrust::shuffle(data.begin(), data.end(), thrust::default_random_engine(static_cast<unsigned>(random())));
        std::vector<int> shuffled = values_of(data);
        if (size > 100) EXPECT_NE(shuffled, out);
        std::sort(in.begin(), in.end());
        std::sort(out.begin(), out.end());
        std::sort(shuffled.begin(), shuffled.end());
        expect_same(out, in, "partition's values");
        expect_same(shuffled, in, "shuffle's values");
    });
}

} // namespace
