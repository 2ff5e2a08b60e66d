// Runs the network with ONNX Runtime:
//
//     infer MODEL.onnx INPUT... PREFIX
//
// INPUT is a binary PPM or PGM image, or an .npy file, one for each input of the network. Writes PREFIX_1.npy, PREFIX_2.npy, ...
// with the outputs, and PREFIX_1.ppm, ... of those that are images.

#include <chrono>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <onnxruntime_cxx_api.h>

#include "network.h"
#include "processing.h"

namespace {

Tensor read(const std::string& path) { return ends_with(path, ".npy") ? read_npy(path) : read_image(path); }

std::vector<Tensor> run(Ort::Session& session, std::vector<Tensor>& inputs) {
    const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    std::vector<const char*> names;
    std::vector<Ort::Value> values;
    for (std::size_t n = 0; n < inputs.size(); ++n) {
        names.push_back(network::inputs[n].name);
        values.push_back(Ort::Value::CreateTensor<float>(memory, inputs[n].values.data(), inputs[n].values.size(), inputs[n].shape.data(),
                                                         inputs[n].shape.size()));
    }
    const auto results = session.Run(Ort::RunOptions{nullptr}, names.data(), values.data(), values.size(), network::outputs.data(),
                                     network::outputs.size());
    std::vector<Tensor> outputs;
    for (const auto& result : results) {
        const auto shape = result.GetTensorTypeAndShapeInfo().GetShape();
        const float* data = result.GetTensorData<float>();
        outputs.push_back({shape, std::vector<float>(data, data + elements(shape))});
    }
    return outputs;
}

void infer(const std::vector<std::string>& arguments) {
    if (arguments.size() != network::inputs.size() + 2)
        throw std::runtime_error("usage: infer MODEL.onnx INPUT... PREFIX, with " + std::to_string(network::inputs.size()) + " inputs");
    Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "infer");
    env.DisableTelemetryEvents();
    Ort::SessionOptions options;
    options.AddConfigEntry("session.x64quantprecision", "1");  // INT8 must not saturate without VNNI
    Ort::Session session(env, std::filesystem::path(arguments.front()).c_str(), options);

    std::vector<Tensor> inputs;
    std::int64_t height = 1, width = 1, rows = 1, columns = 1;  // of the first image, before and after padding
    for (std::size_t n = network::inputs.size(); n-- > 0;) {
        const Input& input = network::inputs[n];
        const std::string& path = arguments[n + 1];
        Tensor tensor = read(path);
        const auto shape = tensor.shape;
        tensor = prepare(std::move(tensor), input, !ends_with(path, ".npy"));
        if (input.image) height = shape[2], width = shape[3], rows = tensor.shape[2], columns = tensor.shape[3];
        inputs.insert(inputs.begin(), std::move(tensor));
    }

    const auto began = std::chrono::steady_clock::now();
    const auto outputs = run(session, inputs);
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - began;
    for (std::size_t n = 0; n < outputs.size(); ++n) {
        const Tensor output = crop(outputs[n], height, width, rows, columns);
        const std::string path = arguments.back() + "_" + std::to_string(n + 1);
        write_npy(path + ".npy", output);
        if (output.shape.size() == 4 && (output.shape[1] == 1 || output.shape[1] == 3)) write_image(path + ".ppm", output);
        std::cout << network::outputs[n] << " -> " << path << ".npy\n";
    }
    std::cout << elapsed.count() << " ms\n";
}

}  // namespace

int main(int count, char** texts) {
    try {
        infer(std::vector<std::string>(texts + 1, texts + count));
    } catch (const std::exception& error) {
        std::cerr << "error: " << error.what() << '\n';
        return 1;
    }
    return 0;
}
