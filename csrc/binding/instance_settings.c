/* SPDX-License-Identifier: MIT */
#include "instance.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "../engine/settings.h"
#include "binding.h"

static bool check_boolean(lua_State *L, int arg)
{
	luaL_checktype(L, arg, LUA_TBOOLEAN);
	return lua_toboolean(L, arg);
}

int push_switch(lua_State *L, int result, const struct trace_error *error)
{
	if (result < 0)
		return push_error(L, error);
	lua_pushboolean(L, result);
	return 1;
}

int push_size(lua_State *L, int64_t size, const struct trace_error *error)
{
	if (size < 0)
		return push_error(L, error);
	lua_pushinteger(L, size);
	return 1;
}

/* ------------------------------------------------------------------------- */
/* Settings                                                                   */
/* ------------------------------------------------------------------------- */

/* set_clock(name) */
static int instance_method_set_clock(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	const char *name = check_text(L, 2);
	struct trace_error error;

	return push_done(L, instance_set_clock(self->instance, name, &error), &error);
}

static int instance_method_get_clock(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	struct strbuf names = { 0 };
	struct trace_error error;
	int result;

	result = instance_clocks(self->instance, &names, instance_clean_text(self), &error);
	strbuf_free(&names);
	return result < 0 ? push_error(L, &error) : instance_push_text(L, self);
}

static int instance_method_clocks(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	struct trace_error error;

	if (instance_clocks(self->instance, instance_clean_text(self), NULL, &error) < 0)
		return push_error(L, &error);
	return instance_push_list(L, self, " ");
}

/* A CPU's number, or -1 for all of them. */
static int optional_cpu(lua_State *L, int arg)
{
	lua_Integer cpu;

	if (lua_isnoneornil(L, arg))
		return -1;
	cpu = luaL_checkinteger(L, arg);
	luaL_argcheck(L, cpu >= 0 && cpu <= INT_MAX, arg, "a CPU's number expected");
	return (int)cpu;
}

static int64_t buffer_kb(struct instance *instance, int cpu, struct trace_error *error)
{
	if (cpu < 0)
		return instance_get_buffer_kb(instance, error);
	return instance_get_cpu_buffer_kb(instance, (unsigned int)cpu, error);
}

/* set_buffer_kb(n [, cpu]): the size that it has become */
static int instance_method_set_buffer_kb(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	lua_Integer kb = luaL_checkinteger(L, 2);
	int cpu = optional_cpu(L, 3), result;
	struct trace_error error;

	luaL_argcheck(L, kb >= 1, 2, "KiB for each CPU expected, 1 or more");
	if (cpu < 0)
		result = instance_set_buffer_kb(self->instance, (uint64_t)kb, &error);
	else
		result = instance_set_cpu_buffer_kb(self->instance, (unsigned int)cpu, (uint64_t)kb,
						    &error);
	if (result < 0)
		return push_error(L, &error);
	return push_size(L, buffer_kb(self->instance, cpu, &error), &error);
}

/* get_buffer_kb([cpu]) */
static int instance_method_get_buffer_kb(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	int cpu = optional_cpu(L, 2);
	struct trace_error error;

	return push_size(L, buffer_kb(self->instance, cpu, &error), &error);
}

static int instance_method_get_buffer_total_kb(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	struct trace_error error;

	return push_size(L, instance_get_buffer_total_kb(self->instance, &error), &error);
}

/* set_subbuf_kb(n): the size that it has become */
static int instance_method_set_subbuf_kb(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	lua_Integer kb = luaL_checkinteger(L, 2);
	struct trace_error error;

	luaL_argcheck(L, kb >= 1, 2, "KiB expected, 1 or more");
	if (instance_set_subbuf_kb(self->instance, (uint64_t)kb, &error) < 0)
		return push_error(L, &error);
	return push_size(L, instance_get_subbuf_kb(self->instance, &error), &error);
}

static int instance_method_get_subbuf_kb(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	struct trace_error error;

	return push_size(L, instance_get_subbuf_kb(self->instance, &error), &error);
}

static int instance_method_trace_on(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	struct trace_error error;

	return push_done(L, instance_set_tracing(self->instance, true, &error), &error);
}

static int instance_method_trace_off(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	struct trace_error error;

	return push_done(L, instance_set_tracing(self->instance, false, &error), &error);
}

static int instance_method_trace_is_on(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	struct trace_error error;

	return push_switch(L, instance_is_tracing(self->instance, &error), &error);
}

/* set_option(name, boolean) */
static int instance_method_set_option(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	const char *name = check_text(L, 2);
	bool on = check_boolean(L, 3);
	struct trace_error error;

	return push_done(L, instance_set_option(self->instance, name, on, &error), &error);
}

/* get_option(name) */
static int instance_method_get_option(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	const char *name = check_text(L, 2);
	struct trace_error error;

	return push_switch(L, instance_get_option(self->instance, name, &error), &error);
}

/* options(): what each is set to, by name */
static int instance_method_options(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	struct trace_error error;
	const char *name;
	int count, on;

	if (instance_options(self->instance, instance_clean_text(self), &error) < 0)
		return push_error(L, &error);
	instance_push_list(L, self, " "); /* names */
	count = (int)lua_rawlen(L, -1);
	lua_createtable(L, 0, count); /* names, values */
	for (int i = 1; i <= count; i++) {
		lua_rawgeti(L, -2, i);
		name = lua_tostring(L, -1);
		on = instance_get_option(self->instance, name, &error);
		if (on < 0)
			return push_error(L, &error);
		lua_pushboolean(L, on); /* names, values, name, value */
		lua_rawset(L, -3);
	}
	return 1;
}

/* ------------------------------------------------------------------------- */
/* Whose events, and where                                                    */
/* ------------------------------------------------------------------------- */

/* The list at @arg as an array in a userdata, which it leaves on the stack. */
static unsigned int *check_numbers(lua_State *L, int arg, const char *what, lua_Integer least,
				   size_t *count)
{
	lua_Integer length, number;
	unsigned int *numbers;
	int is_integer;

	luaL_checktype(L, arg, LUA_TTABLE);
	length = luaL_len(L, arg);
	luaL_argcheck(L, length >= 0 && length <= INT_MAX, arg, "a list of numbers expected");
	numbers = lua_newuserdatauv(L, (size_t)length * sizeof(*numbers), 0);
	for (lua_Integer i = 0; i < length; i++) {
		lua_geti(L, arg, i + 1);
		number = lua_tointegerx(L, -1, &is_integer);
		if (!is_integer || number < least || number > INT_MAX)
			luaL_error(L, "bad %s at %I of the list: an integer from %I on expected",
				   what, (LUAI_UACINT)(i + 1), (LUAI_UACINT)least);
		numbers[i] = (unsigned int)number;
		lua_pop(L, 1);
	}
	*count = (size_t)length;
	return numbers;
}

/* The words of the instance's text as a list of integers. */
static int push_numbers(lua_State *L, struct instance_class *self)
{
	const char *at = self->text.length ? self->text.text : "";
	lua_Integer count = 0;
	char *end;

	lua_newtable(L); /* list */
	for (; *at; at = *end ? end + 1 : end) {
		lua_pushinteger(L, strtoll(at, &end, 10));
		lua_rawseti(L, -2, ++count);
	}
	instance_clean_text(self);
	return 1;
}

/* set_..._pids(list of pids [, children]) */
static int set_tasks(lua_State *L, enum task_list list)
{
	struct instance_class *self = check_instance_class(L);
	bool follows = !lua_isnoneornil(L, 3) && check_boolean(L, 3);
	bool is_told = !lua_isnoneornil(L, 3);
	struct trace_error error;
	unsigned int *pids;
	size_t count;

	pids = check_numbers(L, 2, "pid", 1, &count);
	if (is_told && instance_follow_children(self->instance, list, follows, &error) < 0)
		return push_error(L, &error);
	return push_done(L, instance_set_tasks(self->instance, list, (pid_t *)pids, count, &error),
			 &error);
}

static int get_tasks(lua_State *L, enum task_list list)
{
	struct instance_class *self = check_instance_class(L);
	struct trace_error error;

	if (instance_get_tasks(self->instance, list, instance_clean_text(self), &error) < 0)
		return push_error(L, &error);
	return push_numbers(L, self);
}

static int instance_method_set_event_pids(lua_State *L)
{
	return set_tasks(L, TASKS_EVENT);
}

static int instance_method_get_event_pids(lua_State *L)
{
	return get_tasks(L, TASKS_EVENT);
}

static int instance_method_set_event_notrace_pids(lua_State *L)
{
	return set_tasks(L, TASKS_EVENT_NOT);
}

static int instance_method_get_event_notrace_pids(lua_State *L)
{
	return get_tasks(L, TASKS_EVENT_NOT);
}

static int instance_method_set_function_pids(lua_State *L)
{
	return set_tasks(L, TASKS_FUNCTION);
}

static int instance_method_get_function_pids(lua_State *L)
{
	return get_tasks(L, TASKS_FUNCTION);
}

static int instance_method_set_function_notrace_pids(lua_State *L)
{
	return set_tasks(L, TASKS_FUNCTION_NOT);
}

static int instance_method_get_function_notrace_pids(lua_State *L)
{
	return get_tasks(L, TASKS_FUNCTION_NOT);
}

/* set_cpus([list of CPUs]) */
static int instance_method_set_cpus(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	struct trace_error error;
	unsigned int *cpus = NULL;
	size_t count = 0;

	if (!lua_isnoneornil(L, 2)) {
		cpus = check_numbers(L, 2, "CPU", 0, &count);
		luaL_argcheck(L, count > 0, 2, "one CPU at least expected; none would record");
	}
	return push_done(L, instance_set_cpus(self->instance, cpus, count, &error), &error);
}

static int instance_method_get_cpus(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	struct trace_error error;

	if (instance_get_cpus(self->instance, instance_clean_text(self), &error) < 0)
		return push_error(L, &error);
	return push_numbers(L, self);
}

/* ------------------------------------------------------------------------- */
/* Tracers                                                                    */
/* ------------------------------------------------------------------------- */

/* set_tracer(name) */
static int instance_method_set_tracer(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	const char *name = check_text(L, 2);
	struct trace_error error;

	return push_done(L, instance_set_tracer(self->instance, name, &error), &error);
}

static int instance_method_get_tracer(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	struct trace_error error;

	if (instance_get_tracer(self->instance, instance_clean_text(self), &error) < 0)
		return push_error(L, &error);
	return instance_push_text(L, self);
}

static int instance_method_tracers(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	struct trace_error error;

	if (instance_tracers(self->instance, instance_clean_text(self), &error) < 0)
		return push_error(L, &error);
	return instance_push_list(L, self, " ");
}

/* ------------------------------------------------------------------------- */
/* Snapshot                                                                   */
/* ------------------------------------------------------------------------- */

/* snapshot_take([cpu]) */
static int instance_method_snapshot_take(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	int cpu = optional_cpu(L, 2);
	struct trace_error error;

	return push_done(L, instance_snapshot_take(self->instance, cpu, &error), &error);
}

/* snapshot_clear([cpu]) */
static int instance_method_snapshot_clear(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	int cpu = optional_cpu(L, 2);
	struct trace_error error;

	return push_done(L, instance_snapshot_clear(self->instance, cpu, &error), &error);
}

static int instance_method_snapshot_free(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	struct trace_error error;

	return push_done(L, instance_snapshot_free(self->instance, &error), &error);
}

static int instance_method_has_snapshot(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	struct trace_error error;

	return push_switch(L, instance_has_snapshot(self->instance, &error), &error);
}

/* ------------------------------------------------------------------------- */
/* The buffer                                                                 */
/* ------------------------------------------------------------------------- */

static int instance_method_clear(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	struct trace_error error;

	return push_done(L, instance_clear(self->instance, &error), &error);
}

/* marker(text): the bytes that the kernel took */
static int instance_method_marker(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	size_t length;
	const char *text = luaL_checklstring(L, 2, &length);
	struct trace_error error;

	return push_size(L, instance_marker(self->instance, text, length, &error), &error);
}

/* marker_raw(bytes): the bytes that the kernel took */
static int instance_method_marker_raw(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	size_t length;
	const char *bytes = luaL_checklstring(L, 2, &length);
	struct trace_error error;

	return push_size(L, instance_marker_raw(self->instance, bytes, length, &error), &error);
}

static void push_stats(lua_State *L, const struct buffer_stats *stats)
{
	lua_createtable(L, 0, 6);
	set_integer(L, "entries", stats->entries);
	set_integer(L, "overrun", stats->overrun);
	set_integer(L, "commit_overrun", stats->commit_overrun);
	set_integer(L, "bytes", stats->bytes);
	set_integer(L, "dropped", stats->dropped);
	set_integer(L, "read", stats->read);
}

static int instance_method_stats(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	void **memory = new_memory(L);
	struct buffer_stats stats;
	struct trace_error error;
	unsigned int *cpus;
	int count;

	count = instance_cpus(self->instance, &cpus, &error);
	if (count < 0)
		return push_error(L, &error);
	*memory = cpus;
	lua_newtable(L); /* memory, result */
	for (int i = 0; i < count; i++) {
		if (instance_stats(self->instance, cpus[i], &stats, &error) < 0)
			return push_error(L, &error);
		push_stats(L, &stats); /* memory, result, stats */
		lua_rawseti(L, -2, cpus[i]);
	}
	return 1;
}

const luaL_Reg instance_settings[] = {
	{ "clear", instance_method_clear },
	{ "clocks", instance_method_clocks },
	{ "get_buffer_kb", instance_method_get_buffer_kb },
	{ "get_buffer_total_kb", instance_method_get_buffer_total_kb },
	{ "get_clock", instance_method_get_clock },
	{ "get_cpus", instance_method_get_cpus },
	{ "get_event_notrace_pids", instance_method_get_event_notrace_pids },
	{ "get_event_pids", instance_method_get_event_pids },
	{ "get_function_notrace_pids", instance_method_get_function_notrace_pids },
	{ "get_function_pids", instance_method_get_function_pids },
	{ "get_option", instance_method_get_option },
	{ "get_subbuf_kb", instance_method_get_subbuf_kb },
	{ "get_tracer", instance_method_get_tracer },
	{ "has_snapshot", instance_method_has_snapshot },
	{ "marker", instance_method_marker },
	{ "marker_raw", instance_method_marker_raw },
	{ "options", instance_method_options },
	{ "set_buffer_kb", instance_method_set_buffer_kb },
	{ "set_clock", instance_method_set_clock },
	{ "set_cpus", instance_method_set_cpus },
	{ "set_event_notrace_pids", instance_method_set_event_notrace_pids },
	{ "set_event_pids", instance_method_set_event_pids },
	{ "set_function_notrace_pids", instance_method_set_function_notrace_pids },
	{ "set_function_pids", instance_method_set_function_pids },
	{ "set_option", instance_method_set_option },
	{ "set_subbuf_kb", instance_method_set_subbuf_kb },
	{ "set_tracer", instance_method_set_tracer },
	{ "snapshot_clear", instance_method_snapshot_clear },
	{ "snapshot_free", instance_method_snapshot_free },
	{ "snapshot_take", instance_method_snapshot_take },
	{ "stats", instance_method_stats },
	{ "trace_is_on", instance_method_trace_is_on },
	{ "trace_off", instance_method_trace_off },
	{ "trace_on", instance_method_trace_on },
	{ "tracers", instance_method_tracers },
	{ NULL, NULL },
};
