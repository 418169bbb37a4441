// The attributes of a device. cudaDeviceProp says the same in another form, and is filled in from them.
#include <cstring>

#include "tests/vgpu/runtime/model.h"

namespace vgpu {
namespace {

struct ConstantAttribute {
    cudaDeviceAttr attribute;
    int value;
};

// Alike on all models.
constexpr ConstantAttribute CONSTANT_ATTRIBUTES[] = {
    {cudaDevAttrMaxThreadsPerBlock, MAX_BLOCK_THREADS},
    {cudaDevAttrMaxBlockDimX, MAX_BLOCK_DIM[0]},
    {cudaDevAttrMaxBlockDimY, MAX_BLOCK_DIM[1]},
    {cudaDevAttrMaxBlockDimZ, MAX_BLOCK_DIM[2]},
    {cudaDevAttrMaxGridDimX, MAX_GRID_DIM[0]},
    {cudaDevAttrMaxGridDimY, MAX_GRID_DIM[1]},
    {cudaDevAttrMaxGridDimZ, MAX_GRID_DIM[2]},
    {cudaDevAttrMaxSharedMemoryPerBlock, SHARED_PER_BLOCK_BYTES},
    {cudaDevAttrTotalConstantMemory, CONSTANT_BYTES},
    {cudaDevAttrWarpSize, WARP_THREADS},
    {cudaDevAttrMaxPitch, 0x7fffffff},
    {cudaDevAttrMaxRegistersPerBlock, 65536},
    {cudaDevAttrTextureAlignment, 512},
    {cudaDevAttrGpuOverlap, 1},
    {cudaDevAttrKernelExecTimeout, 0},
    {cudaDevAttrIntegrated, 0},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrComputeMode, cudaComputeModeDefault},
    {cudaDevAttrMaxTexture1DWidth, 131072},
    {cudaDevAttrMaxTexture2DWidth, 131072},
    {cudaDevAttrMaxTexture2DHeight, 65536},
    {cudaDevAttrMaxTexture3DWidth, 16384},
    {cudaDevAttrMaxTexture3DHeight, 16384},
    {cudaDevAttrMaxTexture3DDepth, 16384},
    {cudaDevAttrMaxTexture2DLayeredWidth, 32768},
    {cudaDevAttrMaxTexture2DLayeredHeight, 32768},
    {cudaDevAttrMaxTexture2DLayeredLayers, 2048},
    {cudaDevAttrSurfaceAlignment, 512},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrTccDriver, 0},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrMaxTexture1DLayeredWidth, 32768},
    {cudaDevAttrMaxTexture1DLayeredLayers, 2048},
    {cudaDevAttrMaxTexture2DGatherWidth, 32768},
    {cudaDevAttrMaxTexture2DGatherHeight, 32768},
    {cudaDevAttrMaxTexture3DWidthAlt, 8192},
    {cudaDevAttrMaxTexture3DHeightAlt, 8192},
    {cudaDevAttrMaxTexture3DDepthAlt, 32768},
    {cudaDevAttrPciDeviceId, 0},
    {cudaDevAttrPciDomainId, 0},
    {cudaDevAttrTexturePitchAlignment, 32},
    {cudaDevAttrMaxTextureCubemapWidth, 32768},
    {cudaDevAttrMaxTextureCubemapLayeredWidth, 32768},
    {cudaDevAttrMaxTextureCubemapLayeredLayers, 2046},
    {cudaDevAttrMaxSurface1DWidth, 32768},
    {cudaDevAttrMaxSurface2DWidth, 131072},
    {cudaDevAttrMaxSurface2DHeight, 65536},
    {cudaDevAttrMaxSurface3DWidth, 16384},
    {cudaDevAttrMaxSurface3DHeight, 16384},
    {cudaDevAttrMaxSurface3DDepth, 16384},
    {cudaDevAttrMaxSurface1DLayeredWidth, 32768},
    {cudaDevAttrMaxSurface1DLayeredLayers, 2048},
    {cudaDevAttrMaxSurface2DLayeredWidth, 32768},
    {cudaDevAttrMaxSurface2DLayeredHeight, 32768},
    {cudaDevAttrMaxSurface2DLayeredLayers, 2048},
    {cudaDevAttrMaxSurfaceCubemapWidth, 32768},
    {cudaDevAttrMaxSurfaceCubemapLayeredWidth, 32768},
    {cudaDevAttrMaxSurfaceCubemapLayeredLayers, 2046},
    {cudaDevAttrMaxTexture1DLinearWidth, 268435456},
    {cudaDevAttrMaxTexture2DLinearWidth, 131072},
    {cudaDevAttrMaxTexture2DLinearHeight, 65000},
    {cudaDevAttrMaxTexture2DLinearPitch, 2097120},
    {cudaDevAttrMaxTexture2DMipmappedWidth, 32768},
    {cudaDevAttrMaxTexture2DMipmappedHeight, 32768},
    {cudaDevAttrMaxTexture1DMipmappedWidth, 32768},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrGlobalL1CacheSupported, 1},
    {cudaDevAttrLocalL1CacheSupported, 1},
    {cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrIsMultiGpuBoard, 0},
    {cudaDevAttrHostNativeAtomicSupported, 0},
    {cudaDevAttrPageableMemoryAccess, 0},
    {cudaDevAttrConcurrentManagedAccess, 1},
    {cudaDevAttrComputePreemptionSupported, 1},
    {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
    {cudaDevAttrCooperativeLaunch, 1},
    {cudaDevAttrCanFlushRemoteWrites, 0},
    {cudaDevAttrHostRegisterSupported, 1},
    {cudaDevAttrPageableMemoryAccessUsesHostPageTables, 0},
    {cudaDevAttrDirectManagedMemAccessFromHost, 0},
    {cudaDevAttrSparseCudaArraySupported, 0},
    {cudaDevAttrHostRegisterReadOnlySupported, 1},
    {cudaDevAttrTimelineSemaphoreInteropSupported, 0},
    {cudaDevAttrMemoryPoolsSupported, 1},
    {cudaDevAttrGPUDirectRDMASupported, 0},
    {cudaDevAttrGPUDirectRDMAFlushWritesOptions, 0},
    {cudaDevAttrGPUDirectRDMAWritesOrdering, 0},
    {cudaDevAttrMemoryPoolSupportedHandleTypes, 0},
    // What the virtual GPU cannot do is said not to be there: clusters of blocks, interprocess events.
    {cudaDevAttrClusterLaunch, 0},
    {cudaDevAttrDeferredMappingCudaArraySupported, 0},
    {cudaDevAttrIpcEventSupport, 0},
    {cudaDevAttrNumaConfig, 0},
    {cudaDevAttrNumaId, -1},
    {cudaDevAttrMpsEnabled, 0},
    {cudaDevAttrHostNumaId, -1},
    {cudaDevAttrD3D12CigSupported, 0},
    {cudaDevAttrVulkanCigSupported, 0},
    {cudaDevAttrGpuPciSubsystemId, 0},
    {cudaDevAttrHostNumaMemoryPoolsSupported, 0},
    {cudaDevAttrHostNumaMultinodeIpcSupported, 0},
    {cudaDevAttrHostMemoryPoolsSupported, 0},
    {cudaDevAttrOnlyPartialHostNativeAtomicSupported, 0},
};

// The model's own.
bool varying_attribute(cudaDeviceAttr attribute, int device, uint64_t *value) {
    const Model &card = model();
    auto give = [value](auto figure) {
        *value = static_cast<uint64_t>(figure);
        return true;
    };
    switch (attribute) {
    case cudaDevAttrClockRate:
        return give(card.clock_khz);
    case cudaDevAttrMultiProcessorCount:
        return give(card.processors);
    case cudaDevAttrEccEnabled:
        return give(card.has_ecc);
    case cudaDevAttrPciBusId:
        return give(device_physical_index(device) + 1);
    case cudaDevAttrMemoryClockRate:
        return give(card.memory_clock_khz);
    case cudaDevAttrGlobalMemoryBusWidth:
        return give(card.bus_bits);
    case cudaDevAttrL2CacheSize:
        return give(card.l2_bytes);
    case cudaDevAttrMaxThreadsPerMultiProcessor:
        return give(card.threads_per_processor);
    case cudaDevAttrAsyncEngineCount:
        return give(card.copy_engines);
    case cudaDevAttrComputeCapabilityMajor:
        return give(card.major);
    case cudaDevAttrComputeCapabilityMinor:
        return give(card.minor);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
        return give(card.shared_per_processor_bytes);
    case cudaDevAttrMultiGpuBoardGroupID:
        return give(device);
    case cudaDevAttrSingleToDoublePrecisionPerfRatio:
        return give(card.single_to_double_ratio);
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        return give(card.shared_per_block_bytes);
    case cudaDevAttrMaxBlocksPerMultiprocessor:
        return give(card.blocks_per_processor);
    case cudaDevAttrMaxPersistingL2CacheSize:
        return give(card.persisting_l2_bytes);
    case cudaDevAttrMaxAccessPolicyWindowSize:
        return give(card.major >= 8 ? 134213632 : 0);
    case cudaDevAttrReservedSharedMemoryPerBlock:
        return give(card.reserved_shared_bytes);
    case cudaDevAttrMemSyncDomainCount:
        return give(card.major >= 9 ? 4 : 1);
    case cudaDevAttrGpuPciDeviceId:
        return give(card.pci_device_id);
    default:
        return false;
    }
}

} // namespace

bool model_attribute(cudaDeviceAttr attribute, int device, int *value) {
    for (const ConstantAttribute &constant : CONSTANT_ATTRIBUTES) {
        if (constant.attribute == attribute) {
            *value = constant.value;
            return true;
        }
    }
    uint64_t figure = 0;
    if (!varying_attribute(attribute, device, &figure)) return false;
    *value = static_cast<int>(figure);
    return true;
}

// Every int of the properties that an attribute has, and the sizes among them.
#define PROPERTY_ATTRIBUTES(P)                                                        \
    P(sharedMemPerBlock, MaxSharedMemoryPerBlock)                                     \
    P(regsPerBlock, MaxRegistersPerBlock)                                             \
    P(warpSize, WarpSize)                                                             \
    P(memPitch, MaxPitch)                                                             \
    P(maxThreadsPerBlock, MaxThreadsPerBlock)                                         \
    P(maxThreadsDim[0], MaxBlockDimX)                                                 \
    P(maxThreadsDim[1], MaxBlockDimY)                                                 \
    P(maxThreadsDim[2], MaxBlockDimZ)                                                 \
    P(maxGridSize[0], MaxGridDimX)                                                    \
    P(maxGridSize[1], MaxGridDimY)                                                    \
    P(maxGridSize[2], MaxGridDimZ)                                                    \
    P(totalConstMem, TotalConstantMemory)                                             \
    P(major, ComputeCapabilityMajor)                                                  \
    P(minor, ComputeCapabilityMinor)                                                  \
    P(textureAlignment, TextureAlignment)                                             \
    P(texturePitchAlignment, TexturePitchAlignment)                                   \
    P(multiProcessorCount, MultiProcessorCount)                                       \
    P(integrated, Integrated)                                                         \
    P(canMapHostMemory, CanMapHostMemory)                                             \
    P(maxTexture1D, MaxTexture1DWidth)                                                \
    P(maxTexture1DMipmap, MaxTexture1DMipmappedWidth)                                 \
    P(maxTexture2D[0], MaxTexture2DWidth)                                             \
    P(maxTexture2D[1], MaxTexture2DHeight)                                            \
    P(maxTexture2DMipmap[0], MaxTexture2DMipmappedWidth)                              \
    P(maxTexture2DMipmap[1], MaxTexture2DMipmappedHeight)                             \
    P(maxTexture2DLinear[0], MaxTexture2DLinearWidth)                                 \
    P(maxTexture2DLinear[1], MaxTexture2DLinearHeight)                                \
    P(maxTexture2DLinear[2], MaxTexture2DLinearPitch)                                 \
    P(maxTexture2DGather[0], MaxTexture2DGatherWidth)                                 \
    P(maxTexture2DGather[1], MaxTexture2DGatherHeight)                                \
    P(maxTexture3D[0], MaxTexture3DWidth)                                             \
    P(maxTexture3D[1], MaxTexture3DHeight)                                            \
    P(maxTexture3D[2], MaxTexture3DDepth)                                             \
    P(maxTexture3DAlt[0], MaxTexture3DWidthAlt)                                       \
    P(maxTexture3DAlt[1], MaxTexture3DHeightAlt)                                      \
    P(maxTexture3DAlt[2], MaxTexture3DDepthAlt)                                       \
    P(maxTextureCubemap, MaxTextureCubemapWidth)                                      \
    P(maxTexture1DLayered[0], MaxTexture1DLayeredWidth)                               \
    P(maxTexture1DLayered[1], MaxTexture1DLayeredLayers)                              \
    P(maxTexture2DLayered[0], MaxTexture2DLayeredWidth)                               \
    P(maxTexture2DLayered[1], MaxTexture2DLayeredHeight)                              \
    P(maxTexture2DLayered[2], MaxTexture2DLayeredLayers)                              \
    P(maxTextureCubemapLayered[0], MaxTextureCubemapLayeredWidth)                     \
    P(maxTextureCubemapLayered[1], MaxTextureCubemapLayeredLayers)                    \
    P(maxSurface1D, MaxSurface1DWidth)                                                \
    P(maxSurface2D[0], MaxSurface2DWidth)                                             \
    P(maxSurface2D[1], MaxSurface2DHeight)                                            \
    P(maxSurface3D[0], MaxSurface3DWidth)                                             \
    P(maxSurface3D[1], MaxSurface3DHeight)                                            \
    P(maxSurface3D[2], MaxSurface3DDepth)                                             \
    P(maxSurface1DLayered[0], MaxSurface1DLayeredWidth)                               \
    P(maxSurface1DLayered[1], MaxSurface1DLayeredLayers)                              \
    P(maxSurface2DLayered[0], MaxSurface2DLayeredWidth)                               \
    P(maxSurface2DLayered[1], MaxSurface2DLayeredHeight)                              \
    P(maxSurface2DLayered[2], MaxSurface2DLayeredLayers)                              \
    P(maxSurfaceCubemap, MaxSurfaceCubemapWidth)                                      \
    P(maxSurfaceCubemapLayered[0], MaxSurfaceCubemapLayeredWidth)                     \
    P(maxSurfaceCubemapLayered[1], MaxSurfaceCubemapLayeredLayers)                    \
    P(surfaceAlignment, SurfaceAlignment)                                             \
    P(concurrentKernels, ConcurrentKernels)                                           \
    P(ECCEnabled, EccEnabled)                                                         \
    P(pciBusID, PciBusId)                                                             \
    P(pciDeviceID, PciDeviceId)                                                       \
    P(pciDomainID, PciDomainId)                                                       \
    P(tccDriver, TccDriver)                                                           \
    P(asyncEngineCount, AsyncEngineCount)                                             \
    P(unifiedAddressing, UnifiedAddressing)                                           \
    P(memoryBusWidth, GlobalMemoryBusWidth)                                           \
    P(l2CacheSize, L2CacheSize)                                                       \
    P(persistingL2CacheMaxSize, MaxPersistingL2CacheSize)                             \
    P(maxThreadsPerMultiProcessor, MaxThreadsPerMultiProcessor)                       \
    P(streamPrioritiesSupported, StreamPrioritiesSupported)                           \
    P(globalL1CacheSupported, GlobalL1CacheSupported)                                 \
    P(localL1CacheSupported, LocalL1CacheSupported)                                   \
    P(sharedMemPerMultiprocessor, MaxSharedMemoryPerMultiprocessor)                   \
    P(regsPerMultiprocessor, MaxRegistersPerMultiprocessor)                           \
    P(managedMemory, ManagedMemory)                                                   \
    P(isMultiGpuBoard, IsMultiGpuBoard)                                               \
    P(multiGpuBoardGroupID, MultiGpuBoardGroupID)                                     \
    P(hostNativeAtomicSupported, HostNativeAtomicSupported)                           \
    P(pageableMemoryAccess, PageableMemoryAccess)                                     \
    P(concurrentManagedAccess, ConcurrentManagedAccess)                               \
    P(computePreemptionSupported, ComputePreemptionSupported)                         \
    P(canUseHostPointerForRegisteredMem, CanUseHostPointerForRegisteredMem)           \
    P(cooperativeLaunch, CooperativeLaunch)                                           \
    P(sharedMemPerBlockOptin, MaxSharedMemoryPerBlockOptin)                           \
    P(pageableMemoryAccessUsesHostPageTables, PageableMemoryAccessUsesHostPageTables) \
    P(directManagedMemAccessFromHost, DirectManagedMemAccessFromHost)                 \
    P(maxBlocksPerMultiProcessor, MaxBlocksPerMultiprocessor)                         \
    P(accessPolicyMaxWindowSize, MaxAccessPolicyWindowSize)                           \
    P(reservedSharedMemPerBlock, ReservedSharedMemoryPerBlock)                        \
    P(hostRegisterSupported, HostRegisterSupported)                                   \
    P(hostRegisterReadOnlySupported, HostRegisterReadOnlySupported)                   \
    P(memoryPoolsSupported, MemoryPoolsSupported)                                     \
    P(clusterLaunch, ClusterLaunch)                                                   \
    P(deviceNumaId, NumaId)                                                           \
    P(hostNumaId, HostNumaId)                                                         \
    P(gpuPciDeviceID, GpuPciDeviceId)                                                 \
    P(gpuPciSubsystemID, GpuPciSubsystemId)

void model_properties(int device, cudaDeviceProp *properties) {
    *properties = {};
    strncpy(properties->name, model().name, sizeof properties->name - 1);
    physical_uuid(device_physical_index(device), properties->uuid.bytes);
    properties->totalGlobalMem = model().memory_bytes;
    int value = 0;
#define P(field, attribute)                                                      \
    if (model_attribute(cudaDevAttr##attribute, device, &value)) {               \
        properties->field = static_cast<decltype(properties->field + 0)>(value); \
    }
    PROPERTY_ATTRIBUTES(P)
#undef P
}

} // namespace vgpu
