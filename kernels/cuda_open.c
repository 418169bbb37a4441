#include "kernels/kern.h"

Status kern_cuda_open(int device, KernBackend **backend) {
    (void)device;
    (void)backend;
    return host_fail(STATUS_DEVICE, "no CUDA yet");
}
