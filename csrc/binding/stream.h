/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_BINDING_STREAM_H
#define LUATRACE_BINDING_STREAM_H

#include "../engine/stackjoin.h"
#include "../engine/stream.h"

#include <lauxlib.h>
#include <lua.h>

#include "record.h"
#include "route.h"

#define STREAM_CLASS "tracefs.stream"

/* How many fields a value handler may ask for. */
#define STREAM_MAX_FIELDS 64

/* User values of a stream. */
enum {
	VALUE_SOURCE = 1, /* the instance or the file */
	VALUE_CATALOG,
	VALUE_LIST,	 /* record metatables and handler functions, see route.h */
	VALUE_RESOLVE,	 /* function(id): the description of an id not met before */
	VALUE_PUMP,	 /* function(why, what): what the loop does between records */
	VALUE_RECORDING, /* what the sub-buffers are written to, or nil */
	VALUE_COUNT = VALUE_RECORDING,
};

struct lua_stream {
	struct stream *stream;	     /* NULL once closed */
	struct stack_joiner *joiner; /* NULL: no event has asked for its stack */
	struct catalog *catalog;
	struct routes routes;
	struct lua_pair **pairs; /* those that are to hear of losses */
	unsigned int pair_count;
	struct ahead *ahead; /* NULL until a pair has very many open starts */
	bool looks_ahead;
	struct text_style style;
	bool stopping;	   /* stop() was called and has not ended anything yet */
	bool busy;	   /* a handler is running: no closing, no second step */
	bool close_wanted; /* close() was called by a handler */
	bool looked;	   /* the kernel was asked since the last wait */
	uint64_t delivered;
	uint64_t turn;		   /* counts the items that were asked for */
	struct item item;	   /* the current one; an event while its handlers run */
	unsigned int next_handler; /* of the current event; 0: it is done with */
};

/* stream.c: the open stream at @arg, or an argument error. */
struct lua_stream *check_stream(lua_State *L, int arg);

/*
 * stream.c: pushes a stream without a source yet; the source's object and the catalog are at
 * these indices and stay with it.
 */
struct lua_stream *lua_stream_new(lua_State *L, int source, int catalog);

/* stream.c: lets go of everything but the userdata; may be called again. */
void lua_stream_close(struct lua_stream *self);

/*
 * stream.c: tells the route of @id what its records look like; the description is at
 * index @event, the stream at @stream.
 */
struct route *stream_describe(lua_State *L, struct lua_stream *self, int stream, int id, int event);

/* filestream.c: the open stream of a file at @arg, or an argument error. */
struct lua_stream *check_filestream(lua_State *L, int arg);

/* filestream.c: the methods that only the stream of a file has. */
int stream_method_first_ts(lua_State *L);
int stream_method_last_ts(lua_State *L);
int stream_method_progress(lua_State *L);
int stream_method_select(lua_State *L);
int stream_method_set_cpus(lua_State *L);
int stream_method_set_filter(lua_State *L);
int stream_method_set_range(lua_State *L);

/* stream.c: how to get the field @name, or an error that there is none. */
void compile_getter(lua_State *L, const struct event_format *format, const char *name,
		    struct getter *getter);

/* datacut.c: one more of them. */
int stream_method_cut(lua_State *L);

/* report.c: a method of the file. */
int datafile_method_report(lua_State *L);

/* delivery.c: the methods that hand out records. */
int stream_method_step(lua_State *L);
int stream_method_iterator(lua_State *L);
int stream_method_run_handlers(lua_State *L);
int stream_method_failed(lua_State *L);

/* recording.c */
int stream_method_record(lua_State *L);

/* sample.c */
int stream_method_sample(lua_State *L);
int stream_method_sampled(lua_State *L);

#endif
