// Opening the CUDA backend where something is missing: the message says what.
#include <gtest/gtest.h>

#include <string>

#include "kernels/kern.h"

namespace {

TEST(CudaOpen, OpensOrSaysWhatIsMissing) {
    KernBackend *backend = nullptr;
    Status status = kern_cuda_open(0, &backend);
    std::string message = host_message();
    if (status == STATUS_OK) {
        char text[300];
        backend->ops->describe(backend, text, sizeof text);
        EXPECT_EQ(std::string(text).rfind("cuda: ", 0), 0u) << text;
        backend->ops->close(backend);
        return;
    }
    EXPECT_EQ(status, STATUS_DEVICE);
    EXPECT_EQ(backend, nullptr);
    EXPECT_EQ(message.rfind("device cuda: ", 0), 0u) << message;
#ifdef HAS_CUDA_LIBRARY
    // The library is there, so it is the runtime, the driver or the GPU.
    EXPECT_EQ(message.find("cannot open"), std::string::npos) << message;
#else
    EXPECT_NE(message.find("cannot open libshoal_cuda.so"), std::string::npos) << message;
#endif
}

TEST(CudaOpen, NamesTheGpuThatIsNotThere) {
    KernBackend *backend = nullptr;
    for (int device : {-1, 4096}) {
        EXPECT_EQ(kern_cuda_open(device, &backend), STATUS_DEVICE);
        std::string message = host_message();
        EXPECT_EQ(message.rfind("device cuda: ", 0), 0u) << message;
        if (message.find("there is no GPU") != std::string::npos) {
            EXPECT_NE(message.find(std::to_string(device)), std::string::npos) << message;
        }
    }
}

} // namespace
