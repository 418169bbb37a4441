// Replays a fuzz target's corpus without libFuzzer: every regular file of the folders and files named on the command
// line goes once through LLVMFuzzerTestOneInput. Exit status: 0 all were read, 1 a file could not be read or there was
// none; a finding ends the process by itself.
#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

static int replay_file(const char *path, size_t size_bytes) {
    FILE *file = fopen(path, "rb");
    // Exactly as large as the input, so that a sanitizer sees the first byte past its end.
    uint8_t *data = malloc(size_bytes > 0 ? size_bytes : 1);
    int ok = file && data && fread(data, 1, size_bytes, file) == size_bytes;
    if (ok) {
        LLVMFuzzerTestOneInput(data, size_bytes);
    } else {
        fprintf(stderr, "cannot read %s: %s\n", path, strerror(errno));
    }
    free(data);
    if (file) fclose(file);
    return ok;
}

// The number of inputs replayed below `path`; -1 after a failure.
static long replay_path(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0) {
        fprintf(stderr, "cannot stat %s: %s\n", path, strerror(errno));
        return -1;
    }
    if (S_ISREG(info.st_mode)) return replay_file(path, (size_t)info.st_size) ? 1 : -1;

    DIR *folder = opendir(path);
    if (!folder) {
        fprintf(stderr, "cannot open %s: %s\n", path, strerror(errno));
        return -1;
    }
    long total = 0;
    for (struct dirent *entry; total >= 0 && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        char below[4096];
        int length = snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        long count = length < (int)sizeof below ? replay_path(below) : -1;
        total = count < 0 ? -1 : total + count;
    }
    closedir(folder);
    return total;
}

int main(int argc, char **argv) {
    long total = 0;
    for (int i = 1; i < argc; i++) {
        long count = replay_path(argv[i]);
        if (count < 0) return 1;
        total += count;
    }
    printf("%ld inputs replayed\n", total);
    return total > 0 ? 0 : 1;
}
