#include "kernels/kern_device.h"
#include "host/plural.h"

#include <stdio.h>
#include <string.h>

static Status open_cpu(const KernDeviceOptions *options, KernDevice *device) {
    int allowed = host_cpu_allowed(); // before the pool binds this thread to one of them
    TRY(host_pool_create(options->threads, options->bind, &device->pool));
    if (host_pool_is_oversubscribed(device->pool)) {
        fprintf(stderr, "%s: warning: %d threads, but this process may use %d core%s: fewer would be faster\n",
                options->tool, host_pool_threads(device->pool), allowed, host_plural(allowed));
    }
    KernCpuOptions cpu = {device->pool, options->isa, options->lanes};
    return kern_cpu_open(&cpu, &device->backend);
}

Status kern_device_open(const KernDeviceOptions *options, KernDevice *device) {
    memset(device, 0, sizeof *device);
    char reason[512] = "";
    if (options->not_cuda != NULL && options->kind == KERN_DEVICE_CUDA)
        return host_fail(STATUS_USAGE, "--device cuda: %s", options->not_cuda);
    if (options->not_cuda != NULL && options->kind == KERN_DEVICE_AUTO) {
        snprintf(reason, sizeof reason, "%s", options->not_cuda);
    } else if (options->kind != KERN_DEVICE_CPU) {
        Status status = kern_cuda_open(options->gpu, &device->backend);
        if (status != STATUS_OK && options->kind == KERN_DEVICE_CUDA) return status;
        if (status != STATUS_OK) snprintf(reason, sizeof reason, "%.*s", (int)sizeof reason - 1, host_message());
    }
    if (device->backend == NULL) TRY(open_cpu(options, device));
    if (reason[0] != '\0' && !options->quiet) fprintf(stderr, "%s: on the CPU: %s\n", options->tool, reason);
    device->backend->ops->describe(device->backend, device->text, sizeof device->text);
    return STATUS_OK;
}

void kern_device_close(KernDevice *device) {
    if (device->backend != NULL) device->backend->ops->close(device->backend);
    host_pool_free(device->pool);
    memset(device, 0, sizeof *device);
}
