# luatrace inside one program: the Lua layer as C data, the library liblua-tracefs.a, and the target
# luatrace_static, which `make static` builds.

# embedded(SYMBOL FILES NAME=FILE...): SYMBOL.c in the build folder, see embed.lua.
function(luatrace_embed symbol)
  set(files ${ARGN})
  list(TRANSFORM files REPLACE "^[^=]*=" "")
  add_custom_command(
    OUTPUT ${CMAKE_BINARY_DIR}/embedded/${symbol}.c
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/embedded
    COMMAND ${LUA_INTERPRETER} ${CMAKE_CURRENT_SOURCE_DIR}/csrc/host/embed.lua
      ${CMAKE_BINARY_DIR}/embedded/${symbol}.c ${symbol} ${ARGN}
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/csrc/host/embed.lua ${files}
    VERBATIM)
endfunction()

# What is installed is what is embedded: lua/tracefs but for the stubs.
file(GLOB_RECURSE layer RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/lua CONFIGURE_DEPENDS
  ${CMAKE_CURRENT_SOURCE_DIR}/lua/tracefs/*.lua)
list(FILTER layer EXCLUDE REGEX "^tracefs/meta/")
set(modules)
foreach(file ${layer})
  string(REGEX REPLACE "(/init)?\\.lua$" "" name "${file}")
  string(REPLACE "/" "." name "${name}")
  list(APPEND modules "${name}=${CMAKE_CURRENT_SOURCE_DIR}/lua/${file}")
endforeach()
luatrace_embed(embedded_tracefs ${modules})

# The compiled objects, for the library and for the executable.
add_library(tracefs_host OBJECT EXCLUDE_FROM_ALL
  ${HOST_SOURCES} ${CMAKE_BINARY_DIR}/embedded/embedded_tracefs.c)
target_include_directories(tracefs_host PRIVATE csrc/host)
target_include_directories(tracefs_host SYSTEM PRIVATE ${LUA_HEADER})

# ---------------------------------------------------------------------------
# liblua-tracefs.a. One object in which the linker has joined all of them: the engine's names are
# local to it then, and cannot meet the host's.
# ---------------------------------------------------------------------------

if(LUATRACE_LIBRARY AND NOT LUATRACE_ROCK)
  set(joined ${CMAKE_BINARY_DIR}/lua-tracefs.o)
  set(library ${CMAKE_BINARY_DIR}/liblua-tracefs.a)
  find_program(OBJCOPY NAMES objcopy llvm-objcopy REQUIRED)
  mark_as_advanced(OBJCOPY)
  add_library(tracefs_parts STATIC
    $<TARGET_OBJECTS:tracefs_host> $<TARGET_OBJECTS:tracefs_binding>)
  add_custom_command(
    OUTPUT ${library}
    COMMAND ${CMAKE_C_COMPILER} -nostdlib -r -o ${joined} -Wl,--whole-archive
      $<TARGET_FILE:tracefs_parts> $<TARGET_FILE:tracefs_engine>
    COMMAND ${OBJCOPY} --localize-hidden ${joined}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${library}
    COMMAND ${CMAKE_AR} rcs ${library} ${joined}
    DEPENDS tracefs_parts tracefs_engine
    VERBATIM)
  add_custom_target(lua-tracefs ALL DEPENDS ${library})

  get_property(pc_libraries GLOBAL PROPERTY luatrace_libraries)
  file(RELATIVE_PATH pc_prefix "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
  configure_file(csrc/host/lua-tracefs.pc.in lua-tracefs.pc @ONLY)
  install(FILES ${library} DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${CMAKE_BINARY_DIR}/lua-tracefs.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  install(FILES csrc/host/lua-tracefs.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()

# ---------------------------------------------------------------------------
# luatrace_static: build/static/luatrace
# ---------------------------------------------------------------------------

set(others)
set(lacks)
foreach(name argparse dkjson)
  execute_process(
    COMMAND ${LUA_INTERPRETER} -e "io.write(package.searchpath('${name}', package.path) or '')"
    OUTPUT_VARIABLE path)
  if(path)
    list(APPEND others "${name}=${path}")
  else()
    list(APPEND lacks "the Lua module ${name} (lua-${name})")
  endif()
endforeach()

find_library(LUA_STATIC_LIBRARY NAMES
  liblua${lua_version}.a liblua${lua_version_digits}.a liblua-${lua_version}.a liblua.a
  HINTS ${LUA_LIBRARY_DIRS} ${LUA_LIBDIR})
mark_as_advanced(LUA_STATIC_LIBRARY)
if(NOT LUA_STATIC_LIBRARY)
  list(APPEND lacks "the static Lua library (liblua${lua_version}-dev, lua-static, lua${lua_version}-dev)")
endif()
find_library(ZSTD_STATIC_LIBRARY libzstd.a)
mark_as_advanced(ZSTD_STATIC_LIBRARY)
if(LUATRACE_ZSTD AND ZSTD_HEADER AND ZSTD_LIBRARY AND NOT ZSTD_STATIC_LIBRARY)
  list(APPEND lacks "the static libzstd (libzstd-dev, libzstd-static), or -DLUATRACE_ZSTD=OFF")
endif()
if(LUATRACE_SANITIZE)
  list(APPEND lacks "a build without sanitizers")
endif()

if(lacks)
  list(JOIN lacks ", " lacks)
  add_custom_target(luatrace_static
    COMMAND ${CMAKE_COMMAND} -E echo "luatrace as one static file needs ${lacks}"
    COMMAND ${CMAKE_COMMAND} -E false
    VERBATIM)
else()
  luatrace_embed(embedded_others ${others})
  add_executable(luatrace_static EXCLUDE_FROM_ALL
    ${STATIC_SOURCES} ${CMAKE_BINARY_DIR}/embedded/embedded_others.c
    $<TARGET_OBJECTS:tracefs_host> $<TARGET_OBJECTS:tracefs_binding>)
  target_include_directories(luatrace_static PRIVATE csrc/host)
  target_include_directories(luatrace_static SYSTEM PRIVATE ${LUA_HEADER})
  target_link_libraries(luatrace_static PRIVATE tracefs_engine ${LUA_STATIC_LIBRARY} m)
  # Sections that nobody refers to stay out, and so do the symbols.
  target_link_options(luatrace_static PRIVATE -static -s -Wl,--gc-sections
    -Wl,--wrap=dlopen,--wrap=dlsym,--wrap=dlclose,--wrap=dlerror)
  set_target_properties(luatrace_static PROPERTIES
    OUTPUT_NAME luatrace
    LUATRACE_ARCHIVES ON
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/static)
  # Debian 13's libelf.a calls functions (eu_tsearch, ...) that no archive of its elfutils has.
  if(LIBELF_HEADER AND LIBELF_LIBRARY AND NOT LUATRACE_LIBELF STREQUAL OFF)
    include(CheckCSourceCompiles)
    set(CMAKE_REQUIRED_INCLUDES ${LIBELF_HEADER})
    set(CMAKE_REQUIRED_LINK_OPTIONS -static)
    set(CMAKE_REQUIRED_LIBRARIES elf z)
    check_c_source_compiles("#include <gelf.h>
      int main(void) { return elf_end(elf_begin(0, ELF_C_READ, 0)); }" LIBELF_IS_ARCHIVE)
    unset(CMAKE_REQUIRED_INCLUDES)
    unset(CMAKE_REQUIRED_LINK_OPTIONS)
    unset(CMAKE_REQUIRED_LIBRARIES)
    if(NOT LIBELF_IS_ARCHIVE)
      message(STATUS "no static program can have this libelf: "
        "in luatrace as one static file uprobes are by offset only, not by a function's name")
      # Compiled without HAVE_LIBELF, and in the place of the engine's.
      target_sources(luatrace_static PRIVATE csrc/engine/elfsym.c)
    endif()
  endif()
endif()
