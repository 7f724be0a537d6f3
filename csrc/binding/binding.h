/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_BINDING_H
#define LUATRACE_BINDING_H

#include <lauxlib.h>
#include <lua.h>

#include "../engine/datafile.h"
#include "../engine/error.h"
#include "../engine/event.h"
#include "../engine/format.h"
#include "../engine/instance.h"

/*
 * What the classes of tracefs.core share. Each opener is called with the module
 * table on top of the stack and adds its functions to it.
 */
void open_aggregate(lua_State *L);
void open_clock(lua_State *L);
void open_datacut(lua_State *L);
void open_datafile(lua_State *L);
void open_dynevent(lua_State *L);
void open_elfsym(lua_State *L);
void open_event(lua_State *L);
void open_instance(lua_State *L);
void open_lease(lua_State *L);
void open_pair(lua_State *L);
void open_poll(lua_State *L);
void open_process(lua_State *L);
void open_record(lua_State *L);
void open_recording(lua_State *L);
void open_replace(lua_State *L);
void open_report(lua_State *L);
void open_rights(lua_State *L);
void open_screen(lua_State *L);
void open_signals(lua_State *L);
void open_stream(lua_State *L);
void open_syscall(lua_State *L);

/* event.c: the event description at @arg, or an argument error. */
struct event_format *check_event(lua_State *L, int arg);

/* event.c: where the event's catalog stands; NULL stands there once that is collected. */
struct catalog *const *event_catalog(lua_State *L, int arg);

/* event.c: pushes the one description of @format, which is in the catalog at @catalog. */
void push_event(lua_State *L, int catalog, struct event_format *format);

/* event.c: pushes a catalog without formats; -1 when memory is short. */
int push_catalog(lua_State *L, bool big_endian, unsigned int long_size);

/* event.c: the open catalog at @arg, or an argument error. */
struct catalog *check_catalog(lua_State *L, int arg);

/* datafile.c: the open file at @arg, or an argument error. */
struct datafile *check_datafile(lua_State *L, int arg);

/* instance.c: the open instance at @arg, or an argument error. */
struct instance *check_instance(lua_State *L, int arg);

/*
 * record.c: pushes a userdata that an engine function can add text to, so that an error leaves
 * nothing behind; then the text itself, as the one result of a function.
 */
struct strbuf *new_strbuf(lua_State *L);
int push_strbuf(lua_State *L, struct strbuf *out);

/* Pushes nil, message, code and returns 3: what a refused call returns. */
int push_error(lua_State *L, const struct trace_error *error);

/* The same for a failed system call: nil, "what: why", @err. */
int push_errno(lua_State *L, int err, const char *what);

/* Sets a field of the table on top of the stack. */
void set_integer(lua_State *L, const char *name, uint64_t value);

/*
 * Calls @function with all that is on the stack, as a tail call, while no finalizer can run: one
 * that changes what is being listed would take it away.
 */
int without_finalizers(lua_State *L, lua_CFunction function);

/* Makes the metatable @name with @methods behind __index and the metamethods @meta. */
void new_class(lua_State *L, const char *name, const luaL_Reg *methods, const luaL_Reg *meta);

#endif
