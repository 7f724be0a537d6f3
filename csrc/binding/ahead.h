/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_BINDING_AHEAD_H
#define LUATRACE_BINDING_AHEAD_H

#include "../engine/stream.h"
#include "route.h"

/*
 * A look at the records that come next on a CPU, for pairs with very many open starts: memory that
 * their keys lead to is in no cache, and is fetched while the records before them are handled.
 * Nothing depends on what is seen: it may be looked at twice, or not at all.
 */
struct ahead;

/* For a stream of so many CPUs. NULL when memory is short. */
struct ahead *ahead_create(unsigned int cpus);
void ahead_free(struct ahead *ahead);

/* @event has just been handed out. */
void ahead_look(struct ahead *ahead, const struct merge *merge, const struct catalog *catalog,
		const struct routes *routes, const struct event *event);

#endif
