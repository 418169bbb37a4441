// Prints the instruction table: a line for each row, its name, modifiers and operands separated by tabs.
#include <cstdio>

#include "tests/vgpu/exec/match.h"

int main() {
    for (const vgpu::RowPattern &pattern : vgpu::all_rows()) {
        printf("%s\t%s\t%s\n", pattern.row->name, pattern.row->modifiers, pattern.row->operands);
    }
    return 0;
}
