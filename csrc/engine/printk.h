/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_PRINTK_H
#define LUATRACE_PRINTK_H

#include <stddef.h>
#include <stdint.h>

#include "lazy.h"

/*
 * Strings that records refer to by their address inside of the kernel: formats of
 * trace_printk() and names that events pass on. The kernel lists them in
 * printk_formats. Live tables read it when the first one is asked for.
 */
struct printk_table;

struct printk_table *printk_create(void);
void printk_free(struct printk_table *table);
int printk_set_live(struct printk_table *table, const char *tracing_dir);

/* For a file's strings: fetched when the first one is asked for. The table drops @source. */
void printk_set_lazy(struct printk_table *table, struct lazy_text source);

/* Parses text in the layout of printk_formats; bad lines are skipped. */
int printk_add(struct printk_table *table, const char *text, size_t length);

/* NULL when no string is known to be there. */
const char *printk_lookup(struct printk_table *table, uint64_t address);

#endif
