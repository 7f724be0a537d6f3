/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_USERSYM_H
#define LUATRACE_USERSYM_H

#include <stdbool.h>
#include <stdint.h>

#include "strbuf.h"

/*
 * Addresses in processes that run as names, by /proc/PID/maps and the symbols of the files
 * mapped there. Both are kept, within bounds; what a process has mapped is read again when that
 * is older than a fraction of a second, and stays known for a while after its end.
 */
struct usersym_table;

struct usersym_table *usersym_create(void);
void usersym_free(struct usersym_table *table);

/*
 * Adds the function at @address of process @tgid: its name as the file has it; "[libc.so.6]"
 * when the file does not say, "[unknown]" when nobody knows what is there.
 */
void usersym_add(struct usersym_table *table, struct strbuf *out, int tgid, uint64_t address);

#endif
