# Code that is compiled once per instruction set (WB_ISAS).

if(NOT DEFINED WB_ISAS)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(WB_ISAS avx512 avx2 baseline)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64|ARM64")
    set(WB_ISAS neon baseline)
  else()
    set(WB_ISAS baseline)
  endif()
endif()
set(WB_ISAS "${WB_ISAS}" CACHE STRING "Instruction sets to compile kernels for, best first")

set(WB_ISA_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx2 -mfma -mf16c -mbmi -mbmi2
                        -mprefer-vector-width=512)
set(WB_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c -mbmi -mbmi2)
set(WB_ISA_FLAGS_neon -march=armv8.2-a+dotprod+fp16)
set(WB_ISA_FLAGS_baseline)

set(WB_ISA_LIST "")
foreach(isa IN LISTS WB_ISAS)
  string(APPEND WB_ISA_LIST "WB_FOR_ISA(${isa}) ")
endforeach()

# WB_ISA_OPTIMIZATION_<isa> replaces -O3, where building fast counts more.

# Adds the sources to the target once per instruction set, with WB_ISA set to its name: one relocatable object each, in
# which only `<symbol>_<isa>` stays visible. Code that the variants share by name (inline functions of headers) can't be
# taken from the wrong one.
function(wb_per_isa target symbol)
  foreach(isa IN LISTS WB_ISAS)
    set(variant "${target}_${isa}")
    add_library(${variant} OBJECT ${ARGN})
    target_link_libraries(${variant} PRIVATE wb_flags)
    target_compile_definitions(${variant} PRIVATE WB_ISA=${isa} WB_ISA_${isa}=1)
    set(optimization -O3)
    if(DEFINED WB_ISA_OPTIMIZATION_${isa})
      set(optimization ${WB_ISA_OPTIMIZATION_${isa}})
    endif()
    # Static variables of inline functions must not be "unique" symbols, which objcopy can't make local.
    target_compile_options(${variant} PRIVATE ${optimization} -fno-math-errno -fno-trapping-math -ffp-contract=off
                                              $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique> ${WB_ISA_FLAGS_${isa}})
    set(object "${CMAKE_CURRENT_BINARY_DIR}/${variant}.o")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND ${CMAKE_CXX_COMPILER} -nostdlib -r -Wl,--force-group-allocation -o "${object}.all"
              $<TARGET_OBJECTS:${variant}>
      COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=${symbol}_${isa} "${object}.all" "${object}"
      DEPENDS ${variant} $<TARGET_OBJECTS:${variant}>
      COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    target_sources(${target} PRIVATE "${object}")
  endforeach()
  target_compile_definitions(${target} PRIVATE "WB_ISA_LIST=${WB_ISA_LIST}")
endfunction()
