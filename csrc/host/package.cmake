# cpack: a Debian package of what `make install` installs. `make deb` configures for /usr first, so
# that the C module comes to lie where Debian's Lua looks for it.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME lua-tracefs)
set(CPACK_PACKAGE_VERSION "${luatrace_version}")
set(CPACK_PACKAGE_CONTACT "luatrace <https://github.com/luatrace/lua-tracefs>")
set(CPACK_PACKAGE_HOMEPAGE_URL "https://github.com/luatrace/lua-tracefs")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "scripting for the Linux kernel tracer in Lua")
set(CPACK_PACKAGE_DESCRIPTION
  "Turns kernel trace events on, filters them in the kernel, and hands every record to Lua
in time order, with every loss counted. The Lua module is tracefs; the command luatrace
runs scripts.")
set(CPACK_DEBIAN_PACKAGE_SECTION interpreters)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "lua${lua_version}, lua-argparse, lua-dkjson")
set(CPACK_STRIP_FILES ON)
# The launcher names the folders that it was installed to: the real ones, not those of cpack.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX /usr)
# It adds the C library in the version that core.so needs.
find_program(DPKG_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(DPKG_SHLIBDEPS)
if(DPKG_SHLIBDEPS)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()
include(CPack)
