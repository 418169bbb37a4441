// How the ranks of a communicator find together: the process that makes an id listens for them until all have come, and
// gives each the channels, or says why there are none.
#ifndef SHOAL_TESTS_VGPU_NCCL_BOOTSTRAP_H
#define SHOAL_TESTS_VGPU_NCCL_BOOTSTRAP_H

#include <atomic>
#include <string>

#include "tests/vgpu/nccl/nccl_api.h"

namespace vgpu {

// An id that nobody has had before, and a thread that waits for its ranks.
ncclResult_t bootstrap_make(ncclUniqueId *id);

struct Place {
    int ranks = 0, rank = 0;
    char device[64] = {}; // its machine and address on the bus
};

// Waits until all have come. On success `file` is that of the channels; else `why` says what is wrong.
ncclResult_t bootstrap_join(const ncclUniqueId &id, const Place &place, const std::atomic<bool> &is_aborted, int *file,
                            std::string *why);

} // namespace vgpu

#endif
