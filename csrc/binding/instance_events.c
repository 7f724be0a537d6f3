/* SPDX-License-Identifier: MIT */
#include "../engine/event_control.h"
#include "../engine/trigger.h"
#include "binding.h"
#include "instance.h"

static int enable_event(lua_State *L, bool on)
{
	struct instance_class *self = check_instance_class(L);
	const char *system = check_text(L, 2), *name = check_text(L, 3);
	struct trace_error error;

	return push_done(L, instance_enable_event(self->instance, system, name, on, &error),
			 &error);
}

/* enable(system, name) */
static int instance_method_enable(lua_State *L)
{
	return enable_event(L, true);
}

/* disable(system, name) */
static int instance_method_disable(lua_State *L)
{
	return enable_event(L, false);
}

/* is_enabled(system, name) */
static int instance_method_is_enabled(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	const char *system = check_text(L, 2), *name = check_text(L, 3);
	struct trace_error error;

	return push_switch(L, instance_event_is_enabled(self->instance, system, name, &error),
			   &error);
}

/* set_filter(system, name, filter) */
static int instance_method_set_filter(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	const char *system = check_text(L, 2), *name = check_text(L, 3);
	const char *filter = check_text(L, 4);
	struct trace_error error;

	return push_done(L, instance_set_filter(self->instance, system, name, filter, &error),
			 &error);
}

/* get_filter(system, name) */
static int instance_method_get_filter(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	const char *system = check_text(L, 2), *name = check_text(L, 3);
	struct trace_error error;
	int result;

	result = instance_get_filter(self->instance, system, name, instance_clean_text(self),
				     &error);
	if (result < 0)
		return push_error(L, &error);
	if (result)
		return instance_push_text(L, self);
	lua_pushnil(L);
	return 1;
}

/* append_filter(system, name, filter [, "or"]) */
static int instance_method_append_filter(lua_State *L)
{
	static const char *const joints[] = { "and", "or", NULL };
	struct instance_class *self = check_instance_class(L);
	const char *system = check_text(L, 2), *name = check_text(L, 3);
	const char *filter = check_text(L, 4);
	bool either = luaL_checkoption(L, 5, "and", joints) == 1;
	struct trace_error error;

	return push_done(
		L, instance_append_filter(self->instance, system, name, filter, either, &error),
		&error);
}

/* clear_filter(system, name) */
static int instance_method_clear_filter(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	const char *system = check_text(L, 2), *name = check_text(L, 3);
	struct trace_error error;

	return push_done(L, instance_clear_filter(self->instance, system, name, &error), &error);
}

/* ------------------------------------------------------------------------- */
/* Triggers                                                                   */
/* ------------------------------------------------------------------------- */

/* set_trigger(system, name, text) */
static int instance_method_set_trigger(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	const char *system = check_text(L, 2), *name = check_text(L, 3);
	const char *text = check_text(L, 4);
	struct trace_error error;

	return push_done(L, instance_set_trigger(self->instance, system, name, text, &error),
			 &error);
}

/* remove_trigger(system, name, text) */
static int instance_method_remove_trigger(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	const char *system = check_text(L, 2), *name = check_text(L, 3);
	const char *text = check_text(L, 4);
	struct trace_error error;

	return push_done(L, instance_remove_trigger(self->instance, system, name, text, &error),
			 &error);
}

/* clear_triggers(system, name) */
static int instance_method_clear_triggers(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	const char *system = check_text(L, 2), *name = check_text(L, 3);
	struct trace_error error;

	return push_done(L, instance_clear_triggers(self->instance, system, name, &error), &error);
}

/* triggers(system, name): list of texts */
static int instance_method_triggers(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	const char *system = check_text(L, 2), *name = check_text(L, 3);
	struct trace_error error;

	if (instance_triggers(self->instance, system, name, instance_clean_text(self), &error) < 0)
		return push_error(L, &error);
	return instance_push_list(L, self, "\n");
}

/* trigger_commands(): list of words */
static int instance_method_trigger_commands(lua_State *L)
{
	struct instance_class *self = check_instance_class(L);
	struct trace_error error;

	if (instance_trigger_commands(self->instance, instance_clean_text(self), &error) < 0)
		return push_error(L, &error);
	return instance_push_list(L, self, " ");
}

const luaL_Reg instance_events[] = {
	{ "append_filter", instance_method_append_filter },
	{ "clear_filter", instance_method_clear_filter },
	{ "clear_triggers", instance_method_clear_triggers },
	{ "disable", instance_method_disable },
	{ "enable", instance_method_enable },
	{ "get_filter", instance_method_get_filter },
	{ "is_enabled", instance_method_is_enabled },
	{ "remove_trigger", instance_method_remove_trigger },
	{ "set_filter", instance_method_set_filter },
	{ "set_trigger", instance_method_set_trigger },
	{ "trigger_commands", instance_method_trigger_commands },
	{ "triggers", instance_method_triggers },
	{ NULL, NULL },
};
