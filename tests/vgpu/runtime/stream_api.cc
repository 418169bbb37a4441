// The API of streams.
#include "tests/vgpu/runtime/capture.h"
#include "tests/vgpu/runtime/device.h"
#include "tests/vgpu/runtime/errors.h"
#include "tests/vgpu/runtime/events.h"
#include "tests/vgpu/runtime/resources.h"
#include "tests/vgpu/runtime/streams.h"
#include "tests/vgpu/runtime/work.h"

#include <algorithm>

using namespace vgpu;

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority) {
    return api([&] {
        require(stream != nullptr && (flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) == 0);
        StreamPtr made = stream_create(current_device().index, flags, std::clamp(priority, GREATEST_PRIORITY, 0));
        made->handle = stream_handles().add(made);
        tell_stream(Resource::stream_created, *made);
        *stream = made->handle;
    });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    return api([&] {
        tell_stream(Resource::stream_destroyed, *stream_handles().find(stream));
        StreamPtr removed = stream_handles().remove(stream);
        capture_forget(*removed);
        stream_release(removed);
    });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    return api([&] {
        StreamPtr found = stream_find(stream);
        forbid_on_capturing(*found);
        stream_synchronize(*found);
    });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
    bool is_done = false;
    cudaError_t error = api([&] {
        StreamPtr found = stream_find(stream);
        forbid_on_capturing(*found);
        is_done = stream_query(*found);
    });
    if (error == cudaSuccess && !is_done) return cudaErrorNotReady; // which is no error and is not kept as one
    return error;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
    return api([&] {
        require(priority != nullptr);
        *priority = stream_find(stream)->priority;
    });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) {
    return api([&] {
        require(flags != nullptr);
        *flags = stream_find(stream)->flags;
    });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id) {
    return api([&] {
        require(id != nullptr);
        *id = stream_find(stream)->id;
    });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device) {
    return api([&] {
        require(device != nullptr);
        *device = stream_find(stream)->device;
    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
    return api([&] {
        require(flags == cudaEventWaitDefault);
        StreamPtr waiting = stream_find(stream);
        EventPtr awaited = event_handles().find(event);
        if (capture_wait(*waiting, event_captured(*awaited))) return;
        OperationPtr record = event_operation(*awaited);
        if (record != nullptr) stream_submit(*waiting, std::function<cudaError_t()>(), {record});
    });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
    return api([&] {
        require(function != nullptr);
        submit(*stream_find(stream), HostCall{function, data});
    });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data, unsigned flags) {
    return api([&] {
        require(callback != nullptr && flags == 0);
        StreamPtr found = stream_find(stream);
        forbid_on_capturing(*found);
        auto operation = std::make_shared<Operation>();
        operation->is_host_function = operation->runs_after_fault = true;
        operation->run = [stream, callback, data, device = found->device] {
            HostFunctionScope scope;
            callback(stream, device_at(device).fault, data);
            if (TimedOperation *timed = TimedOperation::current()) timed->host_function_ended();
            return cudaSuccess;
        };
        stream_submit(*found, std::move(operation));
    });
}

// Attributes of streams are hints of scheduling and caching; the priority is the one that is kept.
cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   cudaLaunchAttributeValue *value) {
    return api([&] {
        require(value != nullptr && attribute == cudaLaunchAttributePriority);
        *value = {};
        value->priority = stream_find(stream)->priority;
    });
}

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   const cudaLaunchAttributeValue *value) {
    return api([&] {
        StreamPtr found = stream_find(stream);
        require(value != nullptr);
        switch (attribute) {
        case cudaLaunchAttributePriority:
            found->priority = std::clamp(value->priority, GREATEST_PRIORITY, 0);
            break;
        case cudaLaunchAttributeAccessPolicyWindow:
        case cudaLaunchAttributeSynchronizationPolicy:
        case cudaLaunchAttributeMemSyncDomain:
        case cudaLaunchAttributeMemSyncDomainMap:
            break;
        default:
            fail(cudaErrorInvalidValue);
        }
    });
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
    return api([&] { stream_find(to)->priority = stream_find(from)->priority.load(); });
}

// Managed memory is coherent here at all times.
cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *, size_t, unsigned flags) {
    return api([&] {
        require(flags == cudaMemAttachGlobal || flags == cudaMemAttachHost || flags == cudaMemAttachSingle);
        submit(*stream_find(stream), Empty{});
    });
}
