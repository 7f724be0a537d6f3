/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_ELFSYM_H
#define LUATRACE_ELFSYM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "strbuf.h"

/*
 * Functions of programs and libraries, for uprobes. The kernel places these by offset in the
 * file, where symbols have addresses: the program headers say how one becomes the other. Needs
 * libelf; without it both calls fail and name it.
 */

/* Was this built with libelf? */
bool elfsym_is_there(void);

/*
 * The offset of function @symbol plus @delta in the ELF file @path: a program, position
 * independent or not, or a library. .symtab is looked at first, then .dynsym, which is left in
 * stripped files. 0, or -1: no ELF file, damaged, no such function (ENOENT), data, of another
 * library, several of that name, one that the loader picks at run time.
 */
int elfsym_find(const char *path, const char *symbol, uint64_t delta, uint64_t *offset,
		struct trace_error *error);

/* Adds the names of the functions that @path has, each ended by NUL. */
int elfsym_functions(const char *path, struct strbuf *names, struct trace_error *error);

/*
 * Shows each function of @path with its size and its offset in the file. @name is not ended by
 * NUL, and is borrowed; false ends it. 0, or -1 as for elfsym_find().
 */
typedef bool (*elfsym_visit)(void *context, const char *name, size_t length, uint64_t offset,
			     uint64_t size);
int elfsym_each(const char *path, elfsym_visit visit, void *context, struct trace_error *error);

#endif
