/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_BINDING_INSTANCE_H
#define LUATRACE_BINDING_INSTANCE_H

#include <stdbool.h>

#include <lauxlib.h>
#include <lua.h>

#include "../engine/instance.h"
#include "../engine/strbuf.h"

/*
 * The class tracefs.instance: its life and its files are in instance.c, what can be set
 * in it as a whole is in instance_settings.c, and for an event in instance_events.c.
 */
struct instance_class {
	struct instance *instance;
	bool is_open;
	/* What a method reads; it lies here so that an error in Lua does not lose it. */
	struct strbuf text;
};

/* The open instance at index 1; closed ones raise. */
struct instance_class *check_instance_class(lua_State *L);

/* Text for the kernel and for file names, which end at a zero byte. */
const char *check_text(lua_State *L, int arg);

/* A userdata for malloc'd memory that an error in Lua must not lose. */
void **new_memory(lua_State *L);

/* The instance's text, empty, and its content as the result of a method. */
struct strbuf *instance_clean_text(struct instance_class *self);
int instance_push_text(lua_State *L, struct instance_class *self);

/* true, or nil, message, code */
int push_done(lua_State *L, int result, const struct trace_error *error);

/* For calls that give 1, 0 or -1. */
int push_switch(lua_State *L, int result, const struct trace_error *error);

/* For calls that give a number or -1. */
int push_size(lua_State *L, int64_t size, const struct trace_error *error);

/* Lines or words in the instance's text as a list; @separators are what is between them. */
int instance_push_list(lua_State *L, struct instance_class *self, const char *separators);

extern const luaL_Reg instance_events[];
extern const luaL_Reg instance_settings[];

#endif
