/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_DATAHEAD_H
#define LUATRACE_DATAHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "compress.h"
#include "datameta.h"
#include "strbuf.h"

/* Appends an integer of @size bytes in a byte order. */
void data_put_int(struct strbuf *out, uint64_t value, unsigned int size, bool big_endian);

/* Where the pages of one CPU are in a file. */
struct data_cpu {
	uint32_t cpu;
	uint64_t offset;
	uint64_t size;
};

/* One ring buffer of a file. */
struct data_buffer {
	const char *name; /* "" for the top one, which stands first */
	const char *clock;
	uint32_t page_size;
	uint64_t section; /* version 7: where its section begins; 0: right behind the head */
	const struct data_cpu *cpus;
	unsigned int cpu_count;
};

/*
 * Everything of a trace.dat that stands before its pages. Starts as all zeroes;
 * data_head_free(). Where the pages are stands in a table, whose size does not depend on
 * what it says, so that it can be written again when more is known.
 */
struct data_head {
	struct strbuf bytes;
	size_t table_at;	/* in @bytes: that of the top buffer */
	size_t section_size_at; /* of the size of the section behind it; 0 when there is none */
	size_t data_start;	/* @bytes.length, where the section's content begins */
	uint32_t section_name;	/* for the sections of the buffers */
};

/*
 * @version 6 or 7. @compressor NULL: nothing is compressed. In version 6 the CPUs of all buffers
 * must be as many, from 0 on, and the buffers have one clock. With a single buffer whose place is
 * left open the head ends with the header of its section. 0 or -1 when memory is short.
 */
int data_head_build(struct data_head *head, const struct data_meta *meta, unsigned int version,
		    struct compressor *compressor, const struct data_buffer *buffers,
		    unsigned int buffer_count);
void data_head_free(struct data_head *head);

/* The bytes of the table alone. */
void data_head_table(struct strbuf *out, const struct data_meta *meta, unsigned int version,
		     const struct data_cpu *cpus, unsigned int cpu_count);

/* The header of the section that a buffer's pages are in; @size of what follows it. */
void data_head_section(struct strbuf *out, const struct data_head *head,
		       const struct data_meta *meta, bool is_compressed, uint64_t size);

#define DATA_SECTION_HEAD 16

#endif
