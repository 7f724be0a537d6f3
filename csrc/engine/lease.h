/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_LEASE_H
#define LUATRACE_LEASE_H

#include <stddef.h>

#include "error.h"
#include "strbuf.h"

/*
 * Something that only one process at a time may use, such as a setting of the tracer that no
 * instance has of its own: a locked file. The lock ends with the process, however it ends; what
 * is written in the file stays, and tells the next one what there is to be undone.
 */
struct lease;

/*
 * NULL and an error of code EWOULDBLOCK while another one has it. In a file that is not a plain
 * one of this user nothing is believed or written.
 */
struct lease *lease_take(const char *path, struct trace_error *error);

/* What the file holds, behind what @out has. 0 or -1. */
int lease_read(struct lease *lease, struct strbuf *out, struct trace_error *error);

/* Replaces it. A process that is killed meanwhile leaves the old text, or all of the new one and
 * then the rest of a longer old one. */
int lease_write(struct lease *lease, const char *text, size_t length, struct trace_error *error);

/* Lets go; the file stays. */
void lease_free(struct lease *lease);

#endif
