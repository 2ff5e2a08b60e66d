// Pre- and post-processing, as in python/processing.py.
#pragma once

#include <cmath>
#include <string>

#include "tensor.h"

// An input of the network. A height or width of 0 is open.
struct Input {
    const char* name;
    bool image;
    std::int64_t channels, height, width;
    float scale, shift;
    std::int64_t multiple;
};

inline std::int64_t round_up(std::int64_t size, std::int64_t multiple) { return (size + multiple - 1) / multiple * multiple; }

// Gray for 1 channel, RGB for 3, RGB with an opacity of 1 for 4.
inline Tensor with_channels(const Tensor& image, const Input& input) {
    const std::int64_t present = image.shape[1], count = image.shape[2] * image.shape[3];
    if (present == input.channels) return image;
    if (input.channels != 1 && input.channels != 3 && input.channels != 4)
        throw std::runtime_error(std::string("the input '") + input.name + "' is not an image; give an .npy file");
    Tensor found{{1, input.channels, image.shape[2], image.shape[3]}, std::vector<float>(input.channels * count, 1.0f)};
    for (std::int64_t pixel = 0; pixel < count; ++pixel) {
        const float* value = image.values.data() + pixel;
        if (input.channels == 1)
            found.values[pixel] = 0.299f * value[0] + 0.587f * value[count] + 0.114f * value[2 * count];
        else
            for (std::int64_t c = 0; c < 3; ++c) found.values[c * count + pixel] = value[present == 1 ? 0 : c * count];
    }
    return found;
}

// The tensor that the model reads. Images are scaled and shifted; then the last row and column are repeated.
inline Tensor prepare(Tensor tensor, const Input& input, bool is_image) {
    if (!input.image) return tensor;
    if (is_image) {
        tensor = with_channels(tensor, input);
        for (float& value : tensor.values) value = value * input.scale + input.shift;
    }
    if (tensor.shape.size() != 4 || tensor.shape[1] != input.channels)
        throw std::runtime_error(std::string("the input '") + input.name + "' needs N x " + std::to_string(input.channels) + " x H x W");
    const std::int64_t height = tensor.shape[2], width = tensor.shape[3];
    Tensor padded{{tensor.shape[0], input.channels, round_up(height, input.multiple), round_up(width, input.multiple)}, {}};
    const std::int64_t rows = padded.shape[2], columns = padded.shape[3];
    if ((input.height && rows != input.height) || (input.width && columns != input.width))
        throw std::runtime_error(std::string("the input '") + input.name + "' needs " + std::to_string(input.width) + " x " +
                                 std::to_string(input.height) + " pixels; resize the image");
    padded.values.resize(elements(padded.shape));
    for (std::int64_t plane = 0; plane < tensor.shape[0] * input.channels; ++plane)
        for (std::int64_t y = 0; y < rows; ++y)
            for (std::int64_t x = 0; x < columns; ++x)
                padded.values[(plane * rows + y) * columns + x] =
                    tensor.values[(plane * height + std::min(y, height - 1)) * width + std::min(x, width - 1)];
    return padded;
}

inline std::int64_t in_proportion(std::int64_t size, std::int64_t part, std::int64_t whole) {
    return std::max<std::int64_t>(1, std::llrint(static_cast<double>(size * part) / static_cast<double>(whole)));
}

// The part of an output that belongs to an image of `height` x `width` pixels that was padded to `rows` x `columns`.
inline Tensor crop(const Tensor& output, std::int64_t height, std::int64_t width, std::int64_t rows, std::int64_t columns) {
    if (output.shape.size() != 4) return output;
    const std::int64_t down = output.shape[2], across = output.shape[3];
    const std::int64_t kept_rows = in_proportion(down, height, rows), kept_columns = in_proportion(across, width, columns);
    Tensor cropped{{output.shape[0], output.shape[1], kept_rows, kept_columns}, {}};
    cropped.values.reserve(elements(cropped.shape));
    for (std::int64_t plane = 0; plane < output.shape[0] * output.shape[1]; ++plane)
        for (std::int64_t y = 0; y < kept_rows; ++y) {
            const auto row = output.values.begin() + (plane * down + y) * across;
            cropped.values.insert(cropped.values.end(), row, row + kept_columns);
        }
    return cropped;
}
