/* SPDX-License-Identifier: MIT */
#include "instance.h"

#include <stdlib.h>
#include <string.h>

#include "../engine/stale.h"
#include "../engine/tracedir.h"
#include "binding.h"

#define INSTANCE "tracefs.instance"
#define MEMORY "tracefs.memory"

/* ------------------------------------------------------------------------- */
/* malloc'd memory that an error in Lua must not lose                         */
/* ------------------------------------------------------------------------- */

void **new_memory(lua_State *L)
{
	void **memory = lua_newuserdatauv(L, sizeof(*memory), 0);

	*memory = NULL;
	luaL_setmetatable(L, MEMORY);
	return memory;
}

static int memory__gc(lua_State *L)
{
	void **memory = luaL_checkudata(L, 1, MEMORY);

	free(*memory);
	*memory = NULL;
	return 0;
}

/* ------------------------------------------------------------------------- */
/* Arguments and results                                                     */
/* ------------------------------------------------------------------------- */

static struct instance_class *to_instance(lua_State *L)
{
	return luaL_checkudata(L, 1, INSTANCE);
}

struct instance_class *check_instance_class(lua_State *L)
{
	struct instance_class *self = to_instance(L);

	if (!self->is_open)
		luaL_error(L, "the instance is closed");
	return self;
}

struct instance *check_instance(lua_State *L, int arg)
{
	struct instance_class *self = luaL_checkudata(L, arg, INSTANCE);

	luaL_argcheck(L, self->is_open, arg, "the instance is closed");
	return self->instance;
}

/* Text for the kernel and for file names, which end at a zero byte. */
const char *check_text(lua_State *L, int arg)
{
	size_t length;
	const char *text = luaL_checklstring(L, arg, &length);

	luaL_argcheck(L, strlen(text) == length, arg, "text without zero bytes expected");
	return text;
}

int push_done(lua_State *L, int result, const struct trace_error *error)
{
	if (result < 0)
		return push_error(L, error);
	lua_pushboolean(L, 1);
	return 1;
}

struct strbuf *instance_clean_text(struct instance_class *self)
{
	/* A whole trace may have been read: that much memory is not kept for later. */
	if (self->text.capacity > 1 << 16)
		strbuf_free(&self->text);
	else
		strbuf_reset(&self->text);
	return &self->text;
}

int instance_push_text(lua_State *L, struct instance_class *self)
{
	lua_pushlstring(L, self->text.length ? self->text.text : "", self->text.length);
	instance_clean_text(self);
	return 1;
}

int instance_push_list(lua_State *L, struct instance_class *self, const char *separators)
{
	const char *word = self->text.length ? self->text.text : "";
	lua_Integer count = 0;
	size_t length;

	lua_newtable(L); /* list */
	while (*(word += strspn(word, separators))) {
		length = strcspn(word, separators);
		lua_pushlstring(L, word, length);
		lua_rawseti(L, -2, ++count);
		word += length;
	}
	instance_clean_text(self);
	return 1;
}

/* ------------------------------------------------------------------------- */
/* Life                                                                       */
/* ------------------------------------------------------------------------- */

static struct instance_class *new_instance(lua_State *L)
{
	struct instance_class *self = lua_newuserdatauv(L, sizeof(*self), 0);

	memset(self, 0, sizeof(*self));
	luaL_setmetatable(L, INSTANCE);
	return self;
}

/* instance_create(tracing_dir, name or nil) */
static int core_instance_create(lua_State *L)
{
	const char *tracing_dir = check_text(L, 1);
	const char *name = lua_isnoneornil(L, 2) ? NULL : check_text(L, 2);
	struct instance_class *self = new_instance(L);
	struct trace_error error;

	self->instance = instance_create(tracing_dir, name, &error);
	if (!self->instance)
		return push_error(L, &error);
	self->is_open = true;
	return 1;
}

/* instance_open(tracing_dir, name) */
static int core_instance_open(lua_State *L)
{
	const char *tracing_dir = check_text(L, 1);
	const char *name = check_text(L, 2);
	struct instance_class *self = new_instance(L);
	struct trace_error error;

	self->instance = instance_open(tracing_dir, name, &error);
	if (!self->instance)
		return push_error(L, &error);
	self->is_open = true;
	return 1;
}

/* destroy() = close(): closed it is in any case; called again after an error it tries again. */
static int instance_method_destroy(lua_State *L)
{
	struct instance_class *self = to_instance(L);
	struct trace_error error;
	int result = 0;

	self->is_open = false;
	strbuf_free(&self->text);
	if (self->instance)
		result = instance_destroy(self->instance, &error);
	return push_done(L, result, &error);
}

static int instance__close(lua_State *L)
{
	instance_method_destroy(L);
	return 0;
}

static int instance__gc(lua_State *L)
{
	struct instance_class *self = to_instance(L);

	self->is_open = false;
	strbuf_free(&self->text);
	instance_free(self->instance);
	self->instance = NULL;
	return 0;
}

static int instance__tostring(lua_State *L)
{
	struct instance_class *self = to_instance(L);

	if (self->is_open)
		lua_pushfstring(L, INSTANCE " (%s)", instance_name(self->instance));
	else
		lua_pushliteral(L, INSTANCE " (closed)");
	return 1;
}

/* adopt(): close() removes it, whoever made it */
static int instance_method_adopt(lua_State *L)
{
	instance_set_ours(check_instance_class(L)->instance, true);
	return 0;
}

/* keep(): close() leaves it; one that was created is marked: true, or nil and why it is not */
static int instance_method_keep(lua_State *L)
{
	struct instance *instance = check_instance_class(L)->instance;
	bool was_ours = instance_is_ours(instance);
	struct trace_error error;

	instance_set_ours(instance, false);
	if (was_ours && instance_set_kept(instance, &error) < 0)
		return push_error(L, &error);
	lua_pushboolean(L, true);
	return 1;
}

/* is_kept(): was it created here or elsewhere by a process that has left it with keep()? */
static int instance_method_is_kept(lua_State *L)
{
	lua_pushboolean(L, instance_is_kept(check_instance_class(L)->instance));
	return 1;
}

static int instance_method_name(lua_State *L)
{
	lua_pushstring(L, instance_name(check_instance_class(L)->instance));
	return 1;
}

static int instance_method_dir(lua_State *L)
{
	lua_pushstring(L, instance_dir(check_instance_class(L)->instance));
	return 1;
}

/* ------------------------------------------------------------------------- */
/* Files                                                                      */
/* ------------------------------------------------------------------------- */

static int read_file(lua_State *L, struct instance_class *self, const char *file)
{
	struct trace_error error;

	if (instance_read(self->instance, file, instance_clean_text(self), &error) < 0)
		return push_error(L, &error);
	return instance_push_text(L, self);
}

/* read(file) */
static int instance_method_read(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);

	return read_file(L, self, check_text(L, 2));
}

static int instance_method_error_log(lua_State *L)
{
	return read_file(L, check_instance_class(L), "error_log");
}

/* write(file, text) */
static int instance_method_write(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	const char *file = check_text(L, 2);
	size_t length;
	const char *text = luaL_checklstring(L, 3, &length);
	struct trace_error error;

	return push_done(L, instance_write(self->instance, file, text, length, &error), &error);
}

/* append(file, text) */
static int instance_method_append(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	const char *file = check_text(L, 2);
	size_t length;
	const char *text = luaL_checklstring(L, 3, &length);
	struct trace_error error;

	return push_done(L, instance_append(self->instance, file, text, length, &error), &error);
}

/* has(file) */
static int instance_method_has(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);

	lua_pushboolean(L, instance_has(self->instance, check_text(L, 2)));
	return 1;
}

/* ------------------------------------------------------------------------- */
/* Functions of the core                                                      */
/* ------------------------------------------------------------------------- */

/* tracing_dir([path]) */
static int core_tracing_dir(lua_State *L)
{
	const char *override = lua_isnoneornil(L, 1) ? NULL : check_text(L, 1);
	void **memory = new_memory(L);
	struct trace_error error;

	*memory = tracing_dir_find(override, &error);
	if (!*memory)
		return push_error(L, &error);
	lua_pushstring(L, *memory);
	return 1;
}

/* remove_stale(tracing_dir): the number removed */
static int core_remove_stale(lua_State *L)
{
	lua_pushinteger(L, instance_remove_stale(check_text(L, 1)));
	return 1;
}

/* instances(tracing_dir): sorted list of names */
static int core_instances(lua_State *L)
{
	const char *tracing_dir = check_text(L, 1);
	void **memory = new_memory(L);
	struct trace_error error;
	char **names;

	if (instance_list(tracing_dir, &names, &error) < 0)
		return push_error(L, &error);
	*memory = names;
	lua_newtable(L); /* memory, list */
	for (lua_Integer i = 0; names[i]; i++) {
		lua_pushstring(L, names[i]);
		lua_rawseti(L, -2, i + 1);
	}
	return 1;
}

static const luaL_Reg instance_methods[] = {
	{ "append", instance_method_append },
	{ "close", instance_method_destroy },
	{ "destroy", instance_method_destroy },
	{ "dir", instance_method_dir },
	{ "error_log", instance_method_error_log },
	{ "has", instance_method_has },
	{ "adopt", instance_method_adopt },
	{ "is_kept", instance_method_is_kept },
	{ "keep", instance_method_keep },
	{ "name", instance_method_name },
	{ "read", instance_method_read },
	{ "write", instance_method_write },
	{ NULL, NULL },
};

static const luaL_Reg instance_meta[] = {
	{ "__close", instance__close },
	{ "__gc", instance__gc },
	{ "__tostring", instance__tostring },
	{ NULL, NULL },
};

static const luaL_Reg memory_methods[] = {
	{ NULL, NULL },
};

static const luaL_Reg memory_meta[] = {
	{ "__gc", memory__gc },
	{ NULL, NULL },
};

static const luaL_Reg core_functions[] = {
	{ "instance_create", core_instance_create },
	{ "instance_open", core_instance_open },
	{ "instances", core_instances },
	{ "remove_stale", core_remove_stale },
	{ "tracing_dir", core_tracing_dir },
	{ NULL, NULL },
};

void open_instance(lua_State *L)
{
	new_class(L, MEMORY, memory_methods, memory_meta);
	new_class(L, INSTANCE, instance_methods, instance_meta);
	luaL_getmetatable(L, INSTANCE); /* module, class */
	lua_getfield(L, -1, "__index"); /* module, class, methods */
	luaL_setfuncs(L, instance_events, 0);
	luaL_setfuncs(L, instance_settings, 0);
	lua_pop(L, 2); /* module */
	luaL_setfuncs(L, core_functions, 0);
}
