/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "../engine/comm.h"
#include "../engine/enums.h"
#include "../engine/ksym.h"
#include "../engine/printk.h"
#include "binding.h"
#include "record.h"
#include "value.h"

#define CATALOG_CLASS "tracefs.catalog"
#define EVENT_CLASS "tracefs.event"

/* A catalog's user value: the descriptions that have been made, by format. */
#define CATALOG_EVENTS 1
/* A description's user value: its catalog. */
#define EVENT_CATALOG 1

struct catalog_object {
	struct catalog *catalog; /* NULL once collected */
};

struct event_object {
	struct event_format *format;
	const struct catalog_object *owner;
};

struct catalog *check_catalog(lua_State *L, int arg)
{
	struct catalog_object *object = luaL_checkudata(L, arg, CATALOG_CLASS);

	luaL_argcheck(L, object->catalog, arg, "the catalog is closed");
	return object->catalog;
}

struct event_format *check_event(lua_State *L, int arg)
{
	struct event_object *object = luaL_checkudata(L, arg, EVENT_CLASS);

	/* A finalizer may meet a description whose catalog is gone already. */
	luaL_argcheck(L, object->owner->catalog, arg, "the event's catalog is closed");
	return object->format;
}

struct catalog *const *event_catalog(lua_State *L, int arg)
{
	struct event_object *object = luaL_checkudata(L, arg, EVENT_CLASS);

	return &object->owner->catalog;
}

void push_event(lua_State *L, int catalog, struct event_format *format)
{
	struct event_object *object;

	catalog = lua_absindex(L, catalog);
	lua_getiuservalue(L, catalog, CATALOG_EVENTS); /* events */
	if (lua_rawgetp(L, -1, format) == LUA_TNIL) {  /* events, event? */
		lua_pop(L, 1);
		object = lua_newuserdatauv(L, sizeof(*object), 1);
		object->format = format;
		object->owner = lua_touserdata(L, catalog);
		lua_pushvalue(L, catalog);
		lua_setiuservalue(L, -2, EVENT_CATALOG);
		luaL_setmetatable(L, EVENT_CLASS);
		lua_pushvalue(L, -1);
		lua_rawsetp(L, -3, format); /* events, event */
	}
	lua_remove(L, -2); /* event */
}

int push_catalog(lua_State *L, bool big_endian, unsigned int long_size)
{
	struct catalog_object *object = lua_newuserdatauv(L, sizeof(*object), 1);

	object->catalog = NULL;
	lua_newtable(L);
	lua_setiuservalue(L, -2, CATALOG_EVENTS);
	luaL_setmetatable(L, CATALOG_CLASS);
	object->catalog = catalog_create(big_endian, long_size);
	return object->catalog ? 0 : -1;
}

/* catalog([big_endian, long_size]): of this machine unless told otherwise */
static int core_catalog(lua_State *L)
{
	bool big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	lua_Integer long_size = luaL_optinteger(L, 2, sizeof(long));

	if (!lua_isnoneornil(L, 1)) {
		luaL_checktype(L, 1, LUA_TBOOLEAN);
		big_endian = lua_toboolean(L, 1);
	}
	luaL_argcheck(L, long_size == 4 || long_size == 8, 2, "a long has 4 or 8 bytes");
	if (push_catalog(L, big_endian, (unsigned int)long_size) < 0)
		return luaL_error(L, "not enough memory for a catalog");
	return 1;
}

static int catalog__gc(lua_State *L)
{
	struct catalog_object *object = luaL_checkudata(L, 1, CATALOG_CLASS);

	catalog_free(object->catalog);
	object->catalog = NULL;
	return 0;
}

static int catalog_parse(lua_State *L)
{
	struct catalog *catalog = check_catalog(L, 1);
	const char *system = luaL_checkstring(L, 2);
	size_t length;
	const char *text = luaL_checklstring(L, 3, &length);
	struct trace_error error;
	struct event_format *format;

	format = catalog_add(catalog, system, text, length, &error);
	if (!format)
		return push_error(L, &error);
	push_event(L, 1, format);
	return 1;
}

static int catalog_by_id_method(lua_State *L)
{
	struct catalog *catalog = check_catalog(L, 1);
	lua_Integer id = luaL_checkinteger(L, 2);
	struct event_format *format = NULL;

	if (id >= 0 && id <= INT32_MAX)
		format = catalog_by_id(catalog, (int)id);
	if (format)
		push_event(L, 1, format);
	else
		lua_pushnil(L);
	return 1;
}

static int catalog_set_live_method(lua_State *L)
{
	struct catalog *catalog = check_catalog(L, 1);
	struct trace_error error;

	if (catalog_set_live(catalog, luaL_checkstring(L, 2), &error))
		return push_error(L, &error);
	lua_pushboolean(L, 1);
	return 1;
}

/* What the add_ and set_ methods return. */
static int push_status(lua_State *L, int status, int code, const char *what)
{
	struct trace_error error;

	if (status) {
		error_set(&error, code, "%s", what);
		return push_error(L, &error);
	}
	lua_pushboolean(L, 1);
	return 1;
}

/* set_comm(pid, name) */
static int catalog_set_comm(lua_State *L)
{
	struct catalog *catalog = check_catalog(L, 1);
	lua_Integer pid = luaL_checkinteger(L, 2);
	const char *name = luaL_checkstring(L, 3);

	luaL_argcheck(L, pid >= 0 && pid <= INT32_MAX, 2, "not a process id");
	return push_status(L, comm_set(catalog_comms(catalog), (int)pid, name), ENOMEM,
			   "not enough memory for a command name");
}

/* add_kallsyms(text) */
static int catalog_add_kallsyms(lua_State *L)
{
	struct catalog *catalog = check_catalog(L, 1);
	size_t length;
	const char *text = luaL_checklstring(L, 2, &length);

	return push_status(L, ksym_add_kallsyms(catalog_ksyms(catalog), text, length), ENOMEM,
			   "not enough memory for the kernel's symbols");
}

/* add_printk_formats(text) */
static int catalog_add_printk_formats(lua_State *L)
{
	struct catalog *catalog = check_catalog(L, 1);
	size_t length;
	const char *text = luaL_checklstring(L, 2, &length);

	return push_status(L, printk_add(catalog_printks(catalog), text, length), ENOMEM,
			   "not enough memory for the kernel's strings");
}

/* add_btf(bytes) */
static int catalog_add_btf(lua_State *L)
{
	struct catalog *catalog = check_catalog(L, 1);
	size_t length;
	const char *bytes = luaL_checklstring(L, 2, &length);

	return push_status(L, enum_add_btf(catalog_enums(catalog), (const uint8_t *)bytes, length),
			   EINVAL, "this is no BTF of a kernel, or it is damaged");
}

/* set_hz(ticks a second) */
static int catalog_set_hz_method(lua_State *L)
{
	struct catalog *catalog = check_catalog(L, 1);
	lua_Integer hz = luaL_checkinteger(L, 2);

	luaL_argcheck(L, hz > 0 && hz <= 1000000, 2, "from 1 to 1000000 ticks a second");
	catalog_set_hz(catalog, (unsigned int)hz);
	return push_status(L, 0, 0, NULL);
}

/* set_release("6.1.0") */
static int catalog_set_release_method(lua_State *L)
{
	struct catalog *catalog = check_catalog(L, 1);

	catalog_set_release(catalog, luaL_checkstring(L, 2));
	return push_status(L, 0, 0, NULL);
}

/* symbol(address): name, offset [, module] */
static int catalog_symbol(lua_State *L)
{
	struct catalog *catalog = check_catalog(L, 1);
	uint64_t address = (uint64_t)luaL_checkinteger(L, 2);
	struct ksym symbol;

	if (ksym_lookup(catalog_ksyms(catalog), address, &symbol)) {
		lua_pushnil(L);
		return 1;
	}
	lua_pushstring(L, symbol.name);
	lua_pushinteger(L, (lua_Integer)symbol.offset);
	lua_pushstring(L, symbol.module);
	return 3;
}

/* comm(pid) */
static int catalog_comm(lua_State *L)
{
	struct catalog *catalog = check_catalog(L, 1);
	lua_Integer pid = luaL_checkinteger(L, 2);

	luaL_argcheck(L, pid >= INT32_MIN && pid <= INT32_MAX, 2, "not a process id");
	lua_pushstring(L, comm_lookup(catalog_comms(catalog), (int)pid));
	return 1;
}

static int event_system(lua_State *L)
{
	lua_pushstring(L, check_event(L, 1)->system);
	return 1;
}

static int event_name(lua_State *L)
{
	lua_pushstring(L, check_event(L, 1)->name);
	return 1;
}

static int event_label(lua_State *L)
{
	lua_pushstring(L, check_event(L, 1)->label);
	return 1;
}

static int event_id(lua_State *L)
{
	lua_pushinteger(L, check_event(L, 1)->id);
	return 1;
}

static int event_print_fmt(lua_State *L)
{
	lua_pushstring(L, check_event(L, 1)->print_fmt);
	return 1;
}

static int event_no_text(lua_State *L)
{
	lua_pushstring(L, check_event(L, 1)->no_text);
	return 1;
}

static void push_field_description(lua_State *L, const struct event_field *field)
{
	static const char *const kinds[] = {
		[FIELD_INT] = "int",	 [FIELD_STRING] = "string",   [FIELD_BYTES] = "bytes",
		[FIELD_ARRAY] = "array", [FIELD_BITMASK] = "bitmask", [FIELD_STRINGS] = "strings",
	};
	static const char *const places[] = {
		[FIELD_FIXED] = "fixed",
		[FIELD_DATA_LOC] = "data_loc",
		[FIELD_REL_LOC] = "rel_loc",
		[FIELD_TAIL] = "tail",
	};

	lua_createtable(L, 0, 8);
	lua_pushstring(L, field->name);
	lua_setfield(L, -2, "name");
	lua_pushstring(L, field->type);
	lua_setfield(L, -2, "type");
	set_integer(L, "offset", field->offset);
	set_integer(L, "size", field->size);
	lua_pushstring(L, kinds[field->kind]);
	lua_setfield(L, -2, "kind");
	lua_pushstring(L, places[field->place]);
	lua_setfield(L, -2, "place");
	lua_pushboolean(L, field->is_signed);
	lua_setfield(L, -2, "signed");
	lua_pushboolean(L, field->is_common);
	lua_setfield(L, -2, "common");
}

static int event_fields(lua_State *L)
{
	const struct event_format *format = check_event(L, 1);

	lua_createtable(L, (int)format->field_count, 0);
	for (unsigned int i = 0; i < format->field_count; i++) {
		push_field_description(L, &format->fields[i]);
		lua_rawseti(L, -2, (lua_Integer)i + 1);
	}
	return 1;
}

static int event_has(lua_State *L)
{
	const struct event_format *format = check_event(L, 1);
	const char *name = luaL_checkstring(L, 2);
	bool has = format_field_index(format, name) >= 0;

	for (int i = 0; i < COMMON_COUNT; i++)
		has = has || strcmp(common_names[i], name) == 0;
	lua_pushboolean(L, has);
	return 1;
}

/* An integer of the table at @arg; other keys are not looked at. */
static lua_Integer opt_integer(lua_State *L, int arg, const char *name)
{
	lua_Integer number = 0;
	int is_integer = 1;

	if (lua_isnoneornil(L, arg))
		return 0;
	if (lua_getfield(L, arg, name) != LUA_TNIL)
		number = lua_tointegerx(L, -1, &is_integer);
	luaL_argcheck(L, is_integer, arg, lua_pushfstring(L, "%s must be an integer", name));
	lua_pop(L, 1);
	return number;
}

static bool is_record_option(const char *name)
{
	return strcmp(name, "common_timestamp") == 0 || strcmp(name, "common_cpu") == 0 ||
	       strcmp(name, "common_late") == 0 || strcmp(name, "common_scale") == 0;
}

/* event:record(bytes [, { common_timestamp =, common_cpu =, common_late =, common_scale = }]) */
static int event_record(lua_State *L)
{
	static const struct text_style style = { .in_ns = true, .has_migrate_column = true };
	const struct record_class *class;
	struct event event = { 0 };
	size_t length;

	check_event(L, 1);
	event.data = (const uint8_t *)luaL_checklstring(L, 2, &length);
	luaL_argcheck(L, length <= INT32_MAX, 2, "too many bytes for a record");
	event.size = (uint32_t)length;
	if (!lua_isnoneornil(L, 3)) {
		luaL_checktype(L, 3, LUA_TTABLE);
		lua_pushnil(L);
		while (lua_next(L, 3)) {
			if (lua_type(L, -2) != LUA_TSTRING ||
			    !is_record_option(lua_tostring(L, -2)))
				return luaL_argerror(L, 3,
						     "the options are common_timestamp, "
						     "common_cpu, common_late and "
						     "common_scale");
			lua_pop(L, 1);
		}
		lua_getfield(L, 3, "common_late");
		event.late = lua_toboolean(L, -1);
		lua_pop(L, 1);
	}
	event.ts = (uint64_t)opt_integer(L, 3, "common_timestamp");
	event.cpu = (uint32_t)opt_integer(L, 3, "common_cpu");
	event.scale = (uint32_t)opt_integer(L, 3, "common_scale");
	lua_settop(L, 3);
	class = push_record_class(L, 1, &style);
	record_fill(new_record(L, record_size(&event)), class, &event);
	lua_pushvalue(L, -2);
	lua_setmetatable(L, -2);
	return 1;
}

static int event__tostring(lua_State *L)
{
	struct event_object *object = luaL_checkudata(L, 1, EVENT_CLASS);

	if (object->owner->catalog)
		lua_pushfstring(L, "%s: %s", EVENT_CLASS, object->format->label);
	else
		lua_pushfstring(L, "%s (closed)", EVENT_CLASS);
	return 1;
}

static const luaL_Reg catalog_methods[] = {
	{ "add_btf", catalog_add_btf },
	{ "add_kallsyms", catalog_add_kallsyms },
	{ "add_printk_formats", catalog_add_printk_formats },
	{ "by_id", catalog_by_id_method },
	{ "comm", catalog_comm },
	{ "parse", catalog_parse },
	{ "set_comm", catalog_set_comm },
	{ "set_hz", catalog_set_hz_method },
	{ "set_live", catalog_set_live_method },
	{ "set_release", catalog_set_release_method },
	{ "symbol", catalog_symbol },
	{ NULL, NULL },
};

static const luaL_Reg catalog_meta[] = {
	{ "__gc", catalog__gc },
	{ NULL, NULL },
};

/* attach("system.event"): what an event probe is on, for its text */
static int event_attach(lua_State *L)
{
	struct event_format *format = check_event(L, 1);

	if (format_attach(format, luaL_checkstring(L, 2)) < 0)
		return luaL_error(L, "not enough memory");
	return 0;
}

static const luaL_Reg event_methods[] = {
	{ "attach", event_attach },
	{ "fields", event_fields },
	{ "has", event_has },
	{ "id", event_id },
	{ "label", event_label },
	{ "name", event_name },
	{ "no_text", event_no_text },
	{ "print_fmt", event_print_fmt },
	{ "record", event_record },
	{ "system", event_system },
	{ NULL, NULL },
};

static const luaL_Reg event_meta[] = {
	{ "__tostring", event__tostring },
	{ NULL, NULL },
};

static const luaL_Reg event_functions[] = {
	{ "catalog", core_catalog },
	{ NULL, NULL },
};

void open_event(lua_State *L)
{
	new_class(L, CATALOG_CLASS, catalog_methods, catalog_meta);
	new_class(L, EVENT_CLASS, event_methods, event_meta);
	luaL_setfuncs(L, event_functions, 0);
}
