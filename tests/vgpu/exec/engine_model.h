// What the devices are like.
#ifndef SHOAL_TESTS_VGPU_EXEC_ENGINE_MODEL_H
#define SHOAL_TESTS_VGPU_EXEC_ENGINE_MODEL_H

#include "tests/vgpu/engine.h"

namespace vgpu {

const EngineModel &engine_model();

} // namespace vgpu

#endif
