// Reads the recordings in tests/data, which record_gymnasium.py describes: one line of JSON, then the arrays it names.
// Throws std::runtime_error for a file that is missing or not as the recorder writes it.
#ifndef SHOAL_TESTS_SIM_PARITY_DATA_H
#define SHOAL_TESTS_SIM_PARITY_DATA_H

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#ifndef SHOAL_TEST_DATA
#error "define SHOAL_TEST_DATA as the path of tests/data"
#endif

struct ParityArray {
    std::string dtype; // NumPy's name
    std::vector<size_t> shape;
    std::vector<char> bytes; // C order, little-endian
};

class ParityData {
  public:
    // file: its name in tests/data, such as "cartpole.parity" or "cartpole_next_step.vec"
    explicit ParityData(const std::string &file) : path_(std::string(SHOAL_TEST_DATA) + "/" + file) {
        std::ifstream in(path_, std::ios::binary);
        if (!in || !std::getline(in, header_)) fail("cannot be read");
        size_t at = header_.find("\"arrays\":");
        if (at == std::string::npos) fail("names no arrays");
        while ((at = header_.find("{\"name\":\"", at)) != std::string::npos)
            at = read_array(in, at);
        if (in.peek() != std::ifstream::traits_type::eof()) fail("is longer than its header says");
    }

    // A number of the header, such as "envs".
    int number(const std::string &key) const {
        size_t at = header_.find("\"" + key + "\":");
        if (at == std::string::npos) fail("has no " + key);
        return std::atoi(header_.c_str() + at + key.size() + 3);
    }

    // The values of an array; T has to match its dtype.
    template <typename T> const T *values(const std::string &name) const {
        const ParityArray &found = array(name);
        if (found.dtype != dtype_name<T>()) fail(name + " is " + found.dtype);
        return reinterpret_cast<const T *>(found.bytes.data());
    }

    // The size of an array along one axis; 1 beyond its last.
    size_t extent(const std::string &name, size_t axis) const {
        const ParityArray &found = array(name);
        return axis < found.shape.size() ? found.shape[axis] : 1;
    }

    const std::string &header() const { return header_; }

  private:
    template <typename T> static const char *dtype_name() {
        if (std::is_same<T, float>::value) return "float32";
        if (std::is_same<T, double>::value) return "float64";
        if (std::is_same<T, int32_t>::value) return "int32";
        return std::is_same<T, uint8_t>::value ? "uint8" : "unknown";
    }

    const ParityArray &array(const std::string &name) const {
        auto found = arrays_.find(name);
        if (found == arrays_.end()) fail("has no array " + name);
        return found->second;
    }

    // The string after `key` from position `at` on, up to its closing quote.
    std::string text_after(const std::string &key, size_t at) const {
        size_t begin = header_.find(key, at) + key.size();
        return header_.substr(begin, header_.find('"', begin) - begin);
    }

    size_t read_array(std::ifstream &in, size_t at) {
        ParityArray result;
        std::string name = text_after("{\"name\":\"", at);
        result.dtype = text_after("\"dtype\":\"", at);
        size_t size = result.dtype == "float64" ? 8 : result.dtype == "uint8" ? 1 : 4;
        const char *cursor = header_.c_str() + header_.find("\"shape\":[", at) + 9;
        while (*cursor != ']' && *cursor != '\0') {
            char *end = nullptr;
            result.shape.push_back(std::strtoul(cursor, &end, 10));
            if (end == cursor) fail("has a broken shape");
            size *= result.shape.back();
            cursor = *end == ',' ? end + 1 : end;
        }
        result.bytes.resize(size);
        in.read(result.bytes.data(), static_cast<std::streamsize>(size));
        if (!in) fail("ends within " + name);
        arrays_[name] = result;
        return at + 1;
    }

    [[noreturn]] void fail(const std::string &what) const { throw std::runtime_error(path_ + " " + what); }

    std::string path_;
    std::string header_;
    std::map<std::string, ParityArray> arrays_;
};

#endif
