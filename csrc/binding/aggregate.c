/* SPDX-License-Identifier: MIT */
#include "aggregate.h"

#include <lauxlib.h>
#include <string.h>

#include "binding.h"
#include "key.h"

/* Adding is called for each value: the class is told by an address, not by a look-up. */
struct lua_aggregate {
	const void *magic; /* &aggregate_magic */
	struct aggregate aggregate;
};

static const char aggregate_magic;

/* User values of an aggregate. */
enum {
	VALUE_OPTIONS = 1,
	VALUE_COUNT = VALUE_OPTIONS,
};

struct aggregate *check_aggregate(lua_State *L, int arg)
{
	struct lua_aggregate *self = lua_touserdata(L, arg);

	if (!self || lua_rawlen(L, arg) != sizeof(*self) || self->magic != &aggregate_magic)
		luaL_typeerror(L, arg, AGGREGATE_CLASS);
	return &self->aggregate;
}

static lua_Integer integer_option(lua_State *L, const char *name, lua_Integer least,
				  lua_Integer most)
{
	lua_Integer value;
	int is_integer;

	lua_getfield(L, 1, name);
	value = lua_tointegerx(L, -1, &is_integer);
	if (!is_integer || value < least || value > most)
		luaL_error(L, "%s: a whole number from %I to %I is needed, not %s", name,
			   (LUAI_UACINT)least, (LUAI_UACINT)most, luaL_tolstring(L, -1, NULL));
	lua_pop(L, 1);
	return value;
}

static bool boolean_option(lua_State *L, const char *name)
{
	bool value;

	lua_getfield(L, 1, name);
	value = lua_toboolean(L, -1);
	lua_pop(L, 1);
	return value;
}

static void read_shape(lua_State *L, struct histogram_shape *shape)
{
	static const char *const scales[] = { "none", "log", "linear", NULL };
	static const enum histogram_scale values[] = {
		HISTOGRAM_NONE,
		HISTOGRAM_LOG,
		HISTOGRAM_LINEAR,
	};

	*shape = (struct histogram_shape){ 0 };
	lua_getfield(L, 1, "scale");
	shape->scale = values[luaL_checkoption(L, -1, "none", scales)];
	lua_pop(L, 1);
	shape->is_unsigned = boolean_option(L, "unsigned");
	shape->variance = boolean_option(L, "variance");
	if (shape->scale == HISTOGRAM_LOG)
		shape->bits = (unsigned int)integer_option(L, "bits", 0, HISTOGRAM_MAX_BITS);
	if (shape->scale != HISTOGRAM_LINEAR)
		return;
	shape->from = integer_option(L, "from", INT64_MIN, INT64_MAX);
	shape->count = (uint32_t)integer_option(L, "count", 1, HISTOGRAM_MAX_LINEAR);
	shape->width = (uint64_t)integer_option(L, "width", 1, INT64_MAX);
	if (shape->width > (uint64_t)INT64_MAX / shape->count ||
	    (shape->from > 0 &&
	     shape->width * shape->count > (uint64_t)INT64_MAX - (uint64_t)shape->from))
		luaL_error(L, "the buckets reach beyond 2^63");
	luaL_argcheck(L, !shape->is_unsigned || shape->from >= 0, 1, "from: below 0 and unsigned");
}

/* aggregate(options): everything in them must be there, see lua/tracefs/aggregate.lua */
static int core_aggregate(lua_State *L)
{
	struct histogram_shape shape;
	struct lua_aggregate *self;
	unsigned int parts;
	uint32_t max;

	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	read_shape(L, &shape);
	parts = (unsigned int)integer_option(L, "parts", 0, KEYMAP_MAX_PARTS);
	max = (uint32_t)integer_option(L, "max", 1, 100000000);
	self = lua_newuserdatauv(L, sizeof(*self), VALUE_COUNT);
	memset(self, 0, sizeof(*self));
	self->magic = &aggregate_magic;
	luaL_setmetatable(L, AGGREGATE_CLASS);
	lua_pushvalue(L, 1);
	lua_setiuservalue(L, -2, VALUE_OPTIONS);
	if (aggregate_init(&self->aggregate, &shape, parts, max) < 0)
		return luaL_error(L, "not enough memory");
	return 1;
}

static int aggregate__gc(lua_State *L)
{
	aggregate_free(check_aggregate(L, 1));
	return 0;
}

static int aggregate__len(lua_State *L)
{
	const struct aggregate *self = check_aggregate(L, 1);

	lua_pushinteger(L, self->map ? self->map->count : self->single.count > 0);
	return 1;
}

/* options(): the table that it was made with */
static int aggregate_method_options(lua_State *L)
{
	check_aggregate(L, 1);
	lua_getiuservalue(L, 1, VALUE_OPTIONS);
	return 1;
}

/* A float is cut to the integer below it; false when there is none that fits. */
static bool float_value(const struct aggregate *self, lua_Number number, int64_t *value)
{
	if (number >= 0x1p63 && number < 0x1p64 && self->shape.is_unsigned) {
		*value = (int64_t)(uint64_t)number;
		return true;
	}
	if (!(number >= (self->shape.is_unsigned ? 0 : -0x1p63) && number < 0x1p63))
		return false;
	*value = (int64_t)number;
	*value -= (lua_Number)*value > number;
	return true;
}

static void add_checked(lua_State *L, struct aggregate *self, struct key *key, int64_t value)
{
	if (!aggregate_add(self, key, value))
		luaL_error(L, "not enough memory");
}

/* The key that begins at @first and ends at the last argument. */
static struct key *key_arguments(lua_State *L, const struct aggregate *self, int first,
				 struct key *key)
{
	int count = lua_gettop(L) - first + 1;

	if (count != (int)self->parts)
		luaL_error(L, "%d keys were given; this aggregate has %d", count, (int)self->parts);
	check_key(L, first, self->parts, key);
	return key;
}

/* add(value, key...): false when the value does not count */
static int aggregate_method_add(lua_State *L)
{
	struct aggregate *self = check_aggregate(L, 1);
	struct key key;
	int64_t value;
	bool counts;

	if (lua_isinteger(L, 2)) {
		value = lua_tointeger(L, 2);
		counts = true;
	} else {
		counts = float_value(self, luaL_checknumber(L, 2), &value);
	}
	key_arguments(L, self, 3, &key);
	if (counts)
		add_checked(L, self, &key, value);
	else
		self->refused++;
	lua_pushboolean(L, counts);
	return 1;
}

/* count(key...): adds 1 */
static int aggregate_method_count(lua_State *L)
{
	struct aggregate *self = check_aggregate(L, 1);
	struct key key;

	add_checked(L, self, key_arguments(L, self, 2, &key), 1);
	return 0;
}

/* The fields of this name of two tables at the top: one value, or lists of the same. */
static bool is_same_option(lua_State *L, const char *name)
{
	bool is_same;

	lua_getfield(L, -2, name);
	lua_getfield(L, -2, name); /* a, b, a's, b's */
	is_same = lua_rawequal(L, -1, -2);
	if (!is_same && lua_istable(L, -1) && lua_istable(L, -2)) {
		lua_Unsigned count = lua_rawlen(L, -1);

		is_same = lua_rawlen(L, -2) == count;
		for (lua_Unsigned i = 1; is_same && i <= count; i++) {
			lua_rawgeti(L, -2, (lua_Integer)i);
			lua_rawgeti(L, -2, (lua_Integer)i);
			is_same = lua_rawequal(L, -1, -2);
			lua_pop(L, 2);
		}
	}
	lua_pop(L, 2);
	return is_same;
}

/* merge(other) */
static int aggregate_method_merge(lua_State *L)
{
	struct aggregate *self = check_aggregate(L, 1);
	const struct aggregate *other = check_aggregate(L, 2);
	const struct histogram_shape *a = &self->shape;
	const struct histogram_shape *b = &other->shape;

	luaL_argcheck(L,
		      self->parts == other->parts && a->scale == b->scale && a->bits == b->bits &&
			      a->from == b->from && a->width == b->width && a->count == b->count &&
			      a->is_unsigned == b->is_unsigned && a->variance == b->variance,
		      2, "it has other keys, columns or buckets");
	lua_getiuservalue(L, 1, VALUE_OPTIONS);
	lua_getiuservalue(L, 2, VALUE_OPTIONS);
	luaL_argcheck(L, is_same_option(L, "by"), 2, "its keys have other names");
	luaL_argcheck(L, is_same_option(L, "unit"), 2, "it has another unit");
	if (!aggregate_merge(self, other))
		return luaL_error(L, "not enough memory");
	return 0;
}

static int aggregate_method_reset(lua_State *L)
{
	if (aggregate_reset(check_aggregate(L, 1)) < 0)
		return luaL_error(L, "not enough memory");
	return 0;
}

/* refused(): values that were no whole numbers in range */
static int aggregate_method_refused(lua_State *L)
{
	lua_pushinteger(L, (lua_Integer)check_aggregate(L, 1)->refused);
	return 1;
}

static void set_number(lua_State *L, const char *name, lua_Number value)
{
	lua_pushnumber(L, value);
	lua_setfield(L, -2, name);
}

/* Sets the fields that say what is known of a histogram's values, in the table on top. */
static void set_summary(lua_State *L, const struct histogram *cell,
			const struct histogram_shape *shape)
{
	bool is_exact;
	int64_t exact;
	double sum = histogram_sum(cell, shape->is_unsigned, &exact, &is_exact);

	set_integer(L, "count", cell->count);
	if (is_exact)
		set_integer(L, "sum", (uint64_t)exact);
	else
		set_number(L, "sum", sum);
	if (!cell->count)
		return;
	set_integer(L, "minimum", (uint64_t)cell->min);
	set_integer(L, "maximum", (uint64_t)cell->max);
	set_number(L, "average", sum / (double)cell->count);
	if (shape->variance)
		set_number(L, "variance", cell->squares / (double)cell->count);
}

static lua_Number check_percent(lua_State *L, const struct aggregate *self, int arg)
{
	lua_Number percent = luaL_checknumber(L, arg);

	luaL_argcheck(L, percent >= 0 && percent <= 100, arg, "from 0 to 100 percent");
	if (self->shape.scale == HISTOGRAM_NONE)
		luaL_error(L, "this aggregate keeps no histogram: percentiles are not known");
	return percent;
}

/* Pushes a table of what is known of a cell; the percents are a list at @percents, or 0. */
static void push_cell(lua_State *L, const struct aggregate *self, const struct histogram *cell,
		      int percents)
{
	lua_newtable(L); /* cell */
	set_summary(L, cell, &self->shape);
	if (!percents || !cell->count)
		return;
	for (int i = 1; lua_rawgeti(L, percents, i) != LUA_TNIL; i++) { /* cell, percent */
		lua_Number percent = check_percent(L, self, -1);

		lua_pushinteger(L, histogram_percentile(cell, &self->shape, percent));
		lua_rawset(L, -3); /* cell */
	}
	lua_pop(L, 1);
}

/* get(key...): what is known of its values, or nil */
static int look_up(lua_State *L)
{
	const struct aggregate *self = check_aggregate(L, 1);
	const struct histogram *cell;
	struct key key;

	cell = aggregate_find(self, key_arguments(L, self, 2, &key));
	if (!cell || !cell->count)
		lua_pushnil(L);
	else
		push_cell(L, self, cell, 0);
	return 1;
}

static int aggregate_method_get(lua_State *L)
{
	return without_finalizers(L, look_up);
}

/* percentile(percent, key...): nil when there is no value */
static int aggregate_method_percentile(lua_State *L)
{
	const struct aggregate *self = check_aggregate(L, 1);
	lua_Number percent = check_percent(L, self, 2);
	const struct histogram *cell;
	struct key key;

	cell = aggregate_find(self, key_arguments(L, self, 3, &key));
	if (!cell || !cell->count)
		lua_pushnil(L);
	else
		lua_pushinteger(L, histogram_percentile(cell, &self->shape, percent));
	return 1;
}

/*
 * cells([percents]): a list of a table for each key, in the order in which they came; its field
 * keys is the list of the key's parts. Then a table for those behind "max", which has none.
 */
static int list_cells(lua_State *L)
{
	const struct aggregate *self = check_aggregate(L, 1);
	const struct keymap *map = self->map;
	lua_Integer count = 0;
	int percents = 0;
	struct key key;

	lua_settop(L, 2);
	if (!lua_isnil(L, 2)) {
		luaL_checktype(L, 2, LUA_TTABLE);
		percents = 2;
	}
	lua_newtable(L); /* cells */
	if (!map) {
		push_cell(L, self, &self->single, percents);
		lua_newtable(L);
		lua_setfield(L, -2, "keys");
		lua_rawseti(L, -2, 1);
		return 1;
	}
	for (uint32_t i = map->first; i != KEYMAP_NONE; i = keymap_entry(map, i)->next) {
		push_cell(L, self, keymap_data(map, i), percents);
		keymap_key(map, i, &key);
		lua_createtable(L, (int)key.count, 0); /* cells, cell, keys */
		for (unsigned int k = 0; k < key.count; k++) {
			push_key_part(L, &key.parts[k]);
			lua_rawseti(L, -2, (lua_Integer)k + 1);
		}
		lua_setfield(L, -2, "keys");
		lua_rawseti(L, -2, ++count);
	}
	if (self->other.count) {
		push_cell(L, self, &self->other, percents);
		lua_rawseti(L, -2, ++count);
	}
	return 1;
}

static int aggregate_method_cells(lua_State *L)
{
	return without_finalizers(L, list_cells);
}

static void push_bucket(void *context, const struct histogram_bucket *bucket)
{
	lua_State *L = context;

	lua_createtable(L, 0, 3);
	set_integer(L, "from", (uint64_t)bucket->from);
	set_integer(L, "to", (uint64_t)bucket->to);
	set_integer(L, "count", bucket->count);
	lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

typedef void visit_function(const struct histogram *histogram, const struct histogram_shape *shape,
			    void (*visit)(void *context, const struct histogram_bucket *bucket),
			    void *context);

static int list_visited(lua_State *L, visit_function *visit_all)
{
	const struct aggregate *self = check_aggregate(L, 1);
	const struct histogram *cell;
	struct key key;

	if (self->shape.scale == HISTOGRAM_NONE)
		return luaL_error(L, "this aggregate keeps no histogram");
	cell = aggregate_find(self, key_arguments(L, self, 2, &key));
	lua_newtable(L);
	if (cell)
		visit_all(cell, &self->shape, push_bucket, L);
	return 1;
}

static int list_buckets(lua_State *L)
{
	return list_visited(L, histogram_visit);
}

static int list_steps(lua_State *L)
{
	return list_visited(L, histogram_visit_steps);
}

/* buckets(key...): those that are not empty, in the order of values */

static int aggregate_method_buckets(lua_State *L)
{
	return without_finalizers(L, list_buckets);
}

/* steps(key...): the same, as fine as they are counted */
static int aggregate_method_steps(lua_State *L)
{
	return without_finalizers(L, list_steps);
}

static const luaL_Reg methods[] = {
	{ "add", aggregate_method_add },	 { "buckets", aggregate_method_buckets },
	{ "cells", aggregate_method_cells },	 { "count", aggregate_method_count },
	{ "get", aggregate_method_get },	 { "merge", aggregate_method_merge },
	{ "options", aggregate_method_options }, { "percentile", aggregate_method_percentile },
	{ "refused", aggregate_method_refused }, { "reset", aggregate_method_reset },
	{ "steps", aggregate_method_steps },	 { NULL, NULL },
};

static const luaL_Reg meta[] = {
	{ "__gc", aggregate__gc },
	{ "__len", aggregate__len },
	{ NULL, NULL },
};

static const luaL_Reg functions[] = {
	{ "aggregate", core_aggregate },
	{ NULL, NULL },
};

void open_aggregate(lua_State *L)
{
	new_class(L, AGGREGATE_CLASS, methods, meta);
	luaL_setfuncs(L, functions, 0);
}
