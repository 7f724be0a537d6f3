/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_OWN_H
#define LUATRACE_OWN_H

#include <stdbool.h>
#include <stdint.h>

#define OWN_MAX_KEPT 8

/*
 * Which records of this machine's kernel are the tracer's own work: those of its thread, in
 * task context. What an interrupt does on top of it is other people's and stays, as do the
 * events that are kept whoever caused them.
 */
struct own_filter {
	int pid; /* as the kernel's records have it; -1 when that cannot be known: nothing is own */
	uint16_t kept[OWN_MAX_KEPT];
	unsigned int kept_count;
};

/* For the calling thread, with nothing kept. */
struct own_filter own_filter_here(void);

/* -1: too many, or not an id. */
int own_keep(struct own_filter *filter, unsigned int id);

bool own_is(const struct own_filter *filter, const uint8_t *data, uint32_t size);

#endif
