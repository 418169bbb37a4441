// vgpu_faults NAME: runs one program and prints "error N", what the runtime said after its kernel.
#include <cstdio>
#include <cstring>

#include "tests/vgpu/programs/faults.h"

int main(int argc, char **argv) {
    std::vector<faults::Program> programs = faults::memory_programs();
    for (const auto &more : {faults::sync_programs(), faults::order_programs()})
        programs.insert(programs.end(), more.begin(), more.end());
    for (const faults::Program &program : programs) {
        if (argc != 2 || strcmp(argv[1], program.name) != 0) continue;
        printf("error %d\n", static_cast<int>(program.run()));
        return 0;
    }
    fprintf(stderr, "usage: vgpu_faults NAME, one of\n");
    for (const faults::Program &program : programs)
        fprintf(stderr, "  %s\n", program.name);
    return 2;
}
