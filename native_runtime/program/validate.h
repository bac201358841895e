// What a flatbuffer verifier can't know: that indices, sizes, offsets, tags and permutations in a program make sense.
#pragma once

#include <cstddef>

#include "core/error.h"
#include "program/header.h"

namespace wb {

class Program;

// Checks the version, the segments and everything that refers to them.
Error validate_data(const Program& program, const ExtendedHeader& header, Diagnostic& diagnostic);

// Checks one method: values, plan, instructions, operators, delegates.
Error validate_method(const Program& program, std::size_t index, Diagnostic& diagnostic);

}  // namespace wb
