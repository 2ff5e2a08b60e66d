// A float32 tensor, and its files: PPM and PGM images with 8 bits, .npy files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

struct Tensor {
    std::vector<std::int64_t> shape;
    std::vector<float> values;
};

inline std::int64_t elements(const std::vector<std::int64_t>& shape) {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

inline bool ends_with(const std::string& text, const std::string& end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// A number in the header of a PPM file, where comments are lines that begin with '#'.
inline int header_number(std::istream& stream) {
    std::string word;
    while (stream >> word && word[0] == '#') stream.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    return std::stoi(word);
}

// A binary PPM (color) or PGM (gray) image as 1 x C x H x W with values 0..1.
inline Tensor read_image(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    std::string kind;
    stream >> kind;
    if (!stream || (kind != "P5" && kind != "P6")) throw std::runtime_error(path + " is not a binary PPM or PGM image");
    const std::int64_t channels = kind == "P6" ? 3 : 1;
    const std::int64_t width = header_number(stream), height = header_number(stream);
    if (header_number(stream) != 255 || width < 1 || height < 1) throw std::runtime_error(path + " needs 8 bits per channel");
    stream.get();
    std::vector<unsigned char> bytes(channels * height * width);
    stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!stream) throw std::runtime_error(path + " is cut off");
    Tensor image{{1, channels, height, width}, std::vector<float>(bytes.size())};
    for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t pixel = 0; pixel < height * width; ++pixel)
            image.values[c * height * width + pixel] = bytes[pixel * channels + c] / 255.0f;
    return image;
}

// The first image of N x C x H x W with 1 or 3 channels, clipped to 0..1.
inline void write_image(const std::string& path, const Tensor& tensor) {
    const std::int64_t channels = tensor.shape[1], height = tensor.shape[2], width = tensor.shape[3];
    std::vector<unsigned char> bytes(channels * height * width);
    for (std::int64_t c = 0; c < channels; ++c)
        for (std::int64_t pixel = 0; pixel < height * width; ++pixel) {
            const float value = tensor.values[c * height * width + pixel];
            bytes[pixel * channels + c] = static_cast<unsigned char>(std::clamp(value == value ? value : 0.0f, 0.0f, 1.0f) * 255 + 0.5f);
        }
    std::ofstream stream(path, std::ios::binary);
    stream << (channels == 3 ? "P6\n" : "P5\n") << width << ' ' << height << "\n255\n";
    stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!stream.flush()) throw std::runtime_error(path + " cannot be written");
}

// A float32 .npy file (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html) in C order.
inline Tensor read_npy(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    char magic[10] = {};
    stream.read(magic, sizeof magic);
    if (!stream || std::memcmp(magic, "\x93NUMPY\x01", 7) != 0) throw std::runtime_error(path + " is not an .npy file of version 1");
    std::string header(static_cast<unsigned char>(magic[8]) + 256 * static_cast<unsigned char>(magic[9]), ' ');
    stream.read(header.data(), static_cast<std::streamsize>(header.size()));
    const auto begin = header.find("'shape': ("), end = header.find(')', begin);
    if (header.find("'<f4'") == std::string::npos || header.find("'fortran_order': False") == std::string::npos || end == std::string::npos)
        throw std::runtime_error(path + " must have float32 values in C order");
    Tensor tensor;
    std::istringstream sizes(header.substr(begin + 10, end - begin - 10));
    for (std::string size; std::getline(sizes, size, ',');)
        if (size.find_first_of("0123456789") != std::string::npos) tensor.shape.push_back(std::stoll(size));
    tensor.values.resize(elements(tensor.shape));
    stream.read(reinterpret_cast<char*>(tensor.values.data()), static_cast<std::streamsize>(tensor.values.size() * sizeof(float)));
    if (!stream) throw std::runtime_error(path + " is cut off");
    return tensor;
}

inline void write_npy(const std::string& path, const Tensor& tensor) {
    std::string shape;
    for (const auto size : tensor.shape) shape += std::to_string(size) + ",";
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
    header.append(63 - (10 + header.size()) % 64, ' ').push_back('\n');
    const char length[2] = {static_cast<char>(header.size() % 256), static_cast<char>(header.size() / 256)};
    std::ofstream stream(path, std::ios::binary);
    stream.write("\x93NUMPY\x01\x00", 8).write(length, 2) << header;
    stream.write(reinterpret_cast<const char*>(tensor.values.data()), static_cast<std::streamsize>(tensor.values.size() * sizeof(float)));
    if (!stream.flush()) throw std::runtime_error(path + " cannot be written");
}
