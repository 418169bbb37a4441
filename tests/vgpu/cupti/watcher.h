// The stand-in as an observer of the runtime.
//
//   VGPU_COST_CALL_BEFORE=0     ns that a traced call costs before its recorded interval
//   VGPU_COST_CALL_INSIDE=0     ns that it costs inside of it
//   VGPU_COST_RECORD=0          ns that it costs more inside of it where there are records of what it did
//   VGPU_COST_TRACED_KERNEL=0   ns that a kernel takes longer on the device while kernels are recorded
#ifndef SHOAL_TESTS_VGPU_CUPTI_WATCHER_H
#define SHOAL_TESTS_VGPU_CUPTI_WATCHER_H

namespace vgpu {

// From now on, if not yet.
void watch();

} // namespace vgpu

#endif
