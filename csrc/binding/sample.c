/* SPDX-License-Identifier: MIT */
#include "stream.h"

#include "binding.h"

/*
 * sample(id, scale, by_kernel [, event, field, shift]): only some of an event's records from now
 * on. With a field those whose value chooses them, without one each so many.
 */
int stream_method_sample(lua_State *L)
{
	struct lua_stream *self = check_stream(L, 1);
	int id = (int)luaL_checkinteger(L, 2);
	lua_Integer scale = luaL_checkinteger(L, 3);
	lua_Integer shift = luaL_optinteger(L, 7, 0);
	struct sample sample = { .by_kernel = lua_toboolean(L, 4) };

	luaL_argcheck(L, scale >= 1 && scale <= UINT32_MAX, 3, "1 to 4294967295");
	luaL_argcheck(L, shift >= 0 && shift <= 63, 7, "0 to 63");
	sample.scale = (uint32_t)scale;
	sample.shift = (uint8_t)shift;
	if (!lua_isnoneornil(L, 5)) {
		const struct event_format *format = check_event(L, 5);
		int index = format_field_index(format, luaL_checkstring(L, 6));

		luaL_argcheck(L, index >= 0 && format->fields[index].kind == FIELD_INT, 6,
			      "no field with a number");
		/* the stream keeps the description from now on */
		stream_describe(L, self, 1, id, 5);
		sample.format = format;
		sample.field = &format->fields[index];
	}
	if (stream_sample(self->stream, id, &sample) < 0)
		return luaL_error(L, "not an event id, or not enough memory");
	return 0;
}

/* sampled(id): how many records of the event there were, and how many have been handed out */
int stream_method_sampled(lua_State *L)
{
	struct lua_stream *self = check_stream(L, 1);
	const struct sample *sample =
		sampler_find(&self->stream->sampler, (int)luaL_checkinteger(L, 2));

	if (!sample)
		return 0;
	lua_pushinteger(L, (lua_Integer)sample->seen);
	lua_pushinteger(L, (lua_Integer)sample->taken);
	return 2;
}
