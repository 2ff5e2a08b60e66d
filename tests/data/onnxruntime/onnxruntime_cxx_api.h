// For machines without the headers of ONNX Runtime: the part of its C++ API that the exported C++ sample uses, on top of the C
// functions of the shared library in its Python wheel. The C API is a table of functions whose order never changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

struct OrtStatus;
struct OrtApiBase {
    void* const* (*GetApi)(std::uint32_t version);
    const char* (*GetVersionString)();
};
extern "C" const OrtApiBase* OrtGetApiBase();

enum OrtLoggingLevel { ORT_LOGGING_LEVEL_WARNING = 2 };
enum OrtAllocatorType { OrtArenaAllocator = 1 };
enum OrtMemType { OrtMemTypeDefault = 0 };

namespace Ort {

constexpr std::uint32_t kVersion = 12;  // of the table: the sample uses nothing newer
constexpr int kFloat = 1;               // ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT

enum Function {
    kGetErrorMessage = 2,
    kCreateEnv = 3,
    kDisableTelemetryEvents = 6,
    kCreateSession = 7,
    kRun = 9,
    kCreateSessionOptions = 10,
    kCreateTensorWithDataAsOrtValue = 49,
    kGetTensorMutableData = 51,
    kGetDimensionsCount = 61,
    kGetDimensions = 62,
    kGetTensorTypeAndShape = 65,
    kCreateCpuMemoryInfo = 69,
    kReleaseEnv = 92,
    kReleaseStatus = 93,
    kReleaseMemoryInfo = 94,
    kReleaseSession = 95,
    kReleaseValue = 96,
    kReleaseTensorTypeAndShapeInfo = 99,
    kReleaseSessionOptions = 100,
    kAddSessionConfigEntry = 130,
};

template <typename Result, typename... Arguments>
Result call(Function function, Arguments... arguments) {
    static void* const* const table = OrtGetApiBase()->GetApi(kVersion);
    return reinterpret_cast<Result (*)(Arguments...)>(table[function])(arguments...);
}

template <typename... Arguments>
void checked(Function function, Arguments... arguments) {
    OrtStatus* status = call<OrtStatus*>(function, arguments...);
    if (status == nullptr) return;
    const std::string message = call<const char*, const OrtStatus*>(kGetErrorMessage, status);
    call<void>(kReleaseStatus, status);
    throw std::runtime_error(message);
}

// Owns an object of the C API.
template <Function release>
class Handle {
public:
    Handle() = default;
    explicit Handle(std::nullptr_t) {}
    Handle(Handle&& other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
    Handle& operator=(Handle&& other) noexcept {
        std::swap(handle, other.handle);
        return *this;
    }
    ~Handle() {
        if (handle != nullptr) call<void>(release, handle);
    }
    void* handle = nullptr;
};

struct Env : Handle<kReleaseEnv> {
    Env(OrtLoggingLevel level, const char* name) { checked(kCreateEnv, level, name, &handle); }
    void DisableTelemetryEvents() const { checked(kDisableTelemetryEvents, static_cast<const void*>(handle)); }
};

struct SessionOptions : Handle<kReleaseSessionOptions> {
    SessionOptions() { checked(kCreateSessionOptions, &handle); }
    SessionOptions& AddConfigEntry(const char* key, const char* value) {
        checked(kAddSessionConfigEntry, handle, key, value);
        return *this;
    }
};

struct RunOptions {
    explicit RunOptions(std::nullptr_t) {}
};

struct MemoryInfo : Handle<kReleaseMemoryInfo> {
    static MemoryInfo CreateCpu(OrtAllocatorType allocator, OrtMemType kind) {
        MemoryInfo info;
        checked(kCreateCpuMemoryInfo, allocator, kind, &info.handle);
        return info;
    }
};

struct TensorTypeAndShapeInfo : Handle<kReleaseTensorTypeAndShapeInfo> {
    std::vector<std::int64_t> GetShape() const {
        std::size_t rank = 0;
        checked(kGetDimensionsCount, static_cast<const void*>(handle), &rank);
        std::vector<std::int64_t> shape(rank);
        checked(kGetDimensions, static_cast<const void*>(handle), shape.data(), rank);
        return shape;
    }
};

struct Value : Handle<kReleaseValue> {
    using Handle::Handle;
    template <typename T>
    static Value CreateTensor(const MemoryInfo& memory, T* data, std::size_t count, const std::int64_t* shape, std::size_t rank) {
        Value value{nullptr};
        checked(kCreateTensorWithDataAsOrtValue, static_cast<const void*>(memory.handle), static_cast<void*>(data), count * sizeof(T),
                shape, rank, kFloat, &value.handle);
        return value;
    }
    TensorTypeAndShapeInfo GetTensorTypeAndShapeInfo() const {
        TensorTypeAndShapeInfo info;
        checked(kGetTensorTypeAndShape, static_cast<const void*>(handle), &info.handle);
        return info;
    }
    template <typename T>
    const T* GetTensorData() const {
        void* data = nullptr;
        checked(kGetTensorMutableData, handle, &data);
        return static_cast<const T*>(data);
    }
};

struct Session : Handle<kReleaseSession> {
    Session(const Env& env, const char* path, const SessionOptions& options) {
        checked(kCreateSession, static_cast<const void*>(env.handle), path, static_cast<const void*>(options.handle), &handle);
    }
    std::vector<Value> Run(const RunOptions&, const char* const* input_names, const Value* inputs, std::size_t input_count,
                           const char* const* output_names, std::size_t output_count) {
        std::vector<void*> given(input_count), made(output_count);
        for (std::size_t n = 0; n < input_count; ++n) given[n] = inputs[n].handle;
        checked(kRun, handle, static_cast<const void*>(nullptr), input_names, given.data(), input_count, output_names, output_count,
                made.data());
        std::vector<Value> outputs(output_count);
        for (std::size_t n = 0; n < output_count; ++n) outputs[n].handle = made[n];
        return outputs;
    }
};

}  // namespace Ort
