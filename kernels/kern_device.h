// The device that one program computes on, opened as its command line asks: a GPU, or CPU threads.
//
// Ownership: kern_device_open()/kern_device_close(). Errors: STATUS_DEVICE, STATUS_USAGE, STATUS_SYSTEM; after a
// failure the device is to be closed all the same. Thread safety: none.
#ifndef SHOAL_KERNELS_KERN_DEVICE_H
#define SHOAL_KERNELS_KERN_DEVICE_H

#include "kernels/kern.h"

#ifdef __cplusplus
extern "C" {
#endif

// In the order of --device's choices.
typedef enum KernDeviceKind { KERN_DEVICE_AUTO, KERN_DEVICE_CPU, KERN_DEVICE_CUDA } KernDeviceKind;

typedef struct KernDeviceOptions {
    const char *tool; // "esrun", for warnings
    KernDeviceKind kind;
    int gpu;
    int threads; // 0: as many as allowed
    HostBind bind;
    const char *isa;
    int lanes;
    bool quiet;           // do not say why it is the CPU
    const char *not_cuda; // why it cannot be a GPU; NULL: it can
} KernDeviceOptions;

typedef struct KernDevice {
    HostPool *pool; // NULL on a GPU
    KernBackend *backend;
    char text[128]; // "cpu: 2 threads, ..."
} KernDevice;

// AUTO takes a GPU if there is one, else the CPU, and says on stderr why. Warns of more threads than allowed cores.
Status kern_device_open(const KernDeviceOptions *options, KernDevice *device) HOST_MUST_CHECK;
void kern_device_close(KernDevice *device);

#ifdef __cplusplus
}
#endif

#endif
