// The programs that faults_test.cc runs: one planted fault each, or a correct neighbour of one.
#ifndef SHOAL_TESTS_VGPU_PROGRAMS_FAULTS_H
#define SHOAL_TESTS_VGPU_PROGRAMS_FAULTS_H

#include <cuda_runtime.h>

#include <vector>

namespace faults {

struct Program {
    const char *name;
    cudaError_t (*run)(); // what the program sees after its kernel
};

std::vector<Program> memory_programs();
std::vector<Program> sync_programs();
std::vector<Program> order_programs();

} // namespace faults

#endif
