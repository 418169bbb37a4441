// What the tests of host/ share: a folder of their own, whole files, the text of a stream, status assertions.
#ifndef SHOAL_TESTS_HOST_TEST_H
#define SHOAL_TESTS_HOST_TEST_H

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "host/status.h"

#define ASSERT_OK(expr) ASSERT_EQ(STATUS_OK, (expr)) << host_message()
#define EXPECT_OK(expr) EXPECT_EQ(STATUS_OK, (expr)) << host_message()

// A failure with this status, whose message holds this text.
#define EXPECT_FAILS(wanted, text, expr)                                                        \
    do {                                                                                        \
        EXPECT_EQ(wanted, (expr)) << host_message();                                            \
        EXPECT_NE(std::string::npos, std::string(host_message()).find(text)) << host_message(); \
    } while (0)

class TempFolder {
  public:
    TempFolder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "shoal-test-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr) abort();
        path_ = pattern;
    }
    ~TempFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempFolder(const TempFolder &) = delete;
    TempFolder &operator=(const TempFolder &) = delete;
    std::string operator/(const std::string &name) const { return path_ + "/" + name; }
    const std::string &path() const { return path_; }

  private:
    std::string path_;
};

inline std::string read_file(const std::string &path) {
    std::ifstream stream(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
}

inline void write_file(const std::string &path, const std::string &text) {
    std::ofstream(path, std::ios::binary) << text;
}

inline int count_entries(const std::string &folder) {
    auto entries = std::filesystem::directory_iterator(folder);
    return static_cast<int>(std::distance(begin(entries), end(entries)));
}

// What `print` writes to the stream it is given.
inline std::string printed(const std::function<void(FILE *)> &print) {
    char *text = nullptr;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    print(stream);
    fclose(stream);
    std::string result(text, size);
    free(text);
    return result;
}

#endif
