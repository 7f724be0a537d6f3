/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_KSYM_H
#define LUATRACE_KSYM_H

#include <stdint.h>
#include <stddef.h>

#include "lazy.h"

/*
 * Kernel addresses as names. Live tables load /proc/kallsyms (with modules) once,
 * when the first address is asked for, and drop it with ksym_free().
 */
struct ksym_table;

struct ksym {
	const char *name;
	const char *module; /* NULL for the kernel itself */
	uint64_t offset;    /* of the address behind the symbol's start */
	uint64_t size;	    /* distance to the next symbol, 0 if there is none */
};

struct ksym_table *ksym_create(void);
void ksym_free(struct ksym_table *table);
void ksym_set_live(struct ksym_table *table);

/* For a file's symbols: fetched when the first address is asked for. The table drops @source. */
void ksym_set_lazy(struct ksym_table *table, struct lazy_text source);

/* Parses text in the layout of /proc/kallsyms; bad lines are skipped. */
int ksym_add_kallsyms(struct ksym_table *table, const char *text, size_t length);

/* 0 and the symbol, or -1 when the address belongs to none. */
int ksym_lookup(struct ksym_table *table, uint64_t address, struct ksym *symbol);

#endif
