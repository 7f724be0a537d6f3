/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_ENUMS_H
#define LUATRACE_ENUMS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Values of the kernel's enum constants. Print formats should hold numbers, but the
 * kernel resolves only those enums that an event was told to export; the others stand
 * there by name. BTF, the kernel's own type description, knows them.
 */
struct enum_table;

struct enum_table *enum_create(void);
void enum_free(struct enum_table *table);

/* Reads /sys/kernel/btf when the first name is asked for. */
void enum_set_live(struct enum_table *table);

/*
 * Takes the enums of BTF data that describe a whole kernel. Damaged data give -1 and
 * what could be read of them.
 */
int enum_add_btf(struct enum_table *table, const uint8_t *bytes, size_t length);

/* 0, or -1 when the name is not known or stands for different values. */
int enum_lookup(struct enum_table *table, const char *name, int64_t *value);

#endif
