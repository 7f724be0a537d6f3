# The names of the machine's system calls by number, out of the C library's headers.

# luatrace_syscall_names(FILE): writes FILE, a C source. Where the headers say nothing that is
# understood, there are no names.
function(luatrace_syscall_names file)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/syscall_headers.c")
  file(WRITE "${source}" "#include <asm/unistd.h>\n")
  separate_arguments(flags UNIX_COMMAND "${CMAKE_C_FLAGS}")
  execute_process(COMMAND ${CMAKE_C_COMPILER} ${flags} -E -dM "${source}"
    OUTPUT_VARIABLE macros ERROR_QUIET)
  # On some machines a name stands for a macro that has the number.
  string(REGEX MATCHALL "#define __NR[0-9a-z_]+ (__NR3264_[a-z0-9_]+|[0-9]+)" lines "${macros}")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "#define (__NR[0-9a-z_]+) (.*)" _ "${line}")
    set(macro_${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
  endforeach()
  set(rows "")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "#define __NR_([a-z0-9_]+) (.*)" _ "${line}")
    set(name "${CMAKE_MATCH_1}")
    set(number "${CMAKE_MATCH_2}")
    if(DEFINED macro_${number})
      set(number "${macro_${number}}")
    endif()
    # The last two say how many there are, and where a machine's own begin.
    if(line MATCHES "^#define __NR_" AND number MATCHES "^[0-9]+$"
        AND NOT name MATCHES "^(syscalls|arch_specific_syscall)$")
      string(APPEND rows "\t{ ${number}, \"${name}\" },\n")
    endif()
  endforeach()
  file(CONFIGURE OUTPUT "${file}" @ONLY CONTENT
    "/* Made by csrc/syscalls.cmake. */
#include \"syscall.h\"

const struct syscall_number syscall_numbers[] = {
@rows@	{ 0, 0 },
};
")
endfunction()
