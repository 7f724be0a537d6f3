/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_FORMAT_H
#define LUATRACE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

struct catalog;
struct print_tree;

/* What a field's bytes are, whatever the format file's flags claim. */
enum field_kind {
	FIELD_INT,     /* a number of 1, 2, 4 or 8 bytes */
	FIELD_STRING,  /* characters, cut at the first NUL */
	FIELD_BYTES,   /* u8/s8 elements: addresses, UUIDs, raw data */
	FIELD_ARRAY,   /* numbers of @element_size bytes */
	FIELD_BITMASK, /* cpumasks and other sets of bits, in longs */
	FIELD_STRINGS, /* a probe's array of strings: where each of them is */
};

/* Where a field's bytes are. */
enum field_place {
	FIELD_FIXED,	/* @size bytes at @offset */
	FIELD_DATA_LOC, /* u32 at @offset: length << 16 | offset from record start */
	FIELD_REL_LOC,	/* the same, offset from the end of the u32 itself */
	FIELD_TAIL,	/* from @offset to the end of the record */
};

struct event_field {
	const char *name;
	const char *type; /* as the format file spells it, without the name */
	uint32_t offset;  /* as the format file has it */
	uint32_t size;
	uint32_t end;	      /* @offset + @size: the record must be this long */
	uint32_t load_offset; /* of FIELD_INT: where its @element_size bytes are */
	/*
	 * Of FIELD_INT: how wide the number really is. The kernel keeps every system call
	 * argument in a long whatever its type; what the type does not cover is not part
	 * of the value. Of FIELD_BITMASK: a long.
	 */
	uint8_t element_size;
	uint8_t kind;  /* enum field_kind */
	uint8_t place; /* enum field_place */
	bool is_signed;
	bool is_common;
	bool is_pointer;
	bool counts_itself; /* a synthetic event's stack: its first number may be how many follow */
	int16_t count_field; /* index of the field with the number of elements, or -1 */
};

/*
 * How one kind of event is laid out. Belongs to its catalog, never changes once
 * made, and lives as long as the catalog.
 */
struct event_format {
	struct catalog *catalog;
	char *system;
	char *name;
	char *label;		    /* "system:name" */
	char *print_fmt;	    /* the text behind "print fmt: " */
	struct event_field *fields; /* common ones first, each group in format order */
	unsigned int field_count;
	unsigned int common_count;
	int id;
	uint32_t fixed_size; /* the record must be this long for all FIXED fields */
	bool swaps;	     /* other endianness than this machine */
	bool big_endian;
	uint8_t long_size;
	struct print_tree *print; /* the print format; NULL if unusable */
	char *no_text;		  /* why not, for a person; NULL when @print is set */
	char *attached;		  /* of an event probe: "system.event", once it is known */
};

/*
 * Everything that turns the records of one machine into values and text: event
 * formats, byte order, command names, kernel symbols. Not shared between threads.
 */
struct catalog *catalog_create(bool big_endian, unsigned int long_size);
void catalog_free(struct catalog *catalog);

/*
 * Parses one format file. Hostile text gives NULL and an error. An event with an
 * id that is known already with the same text gives the one there is; with another
 * text (ids of dynamic events are reused) the new one takes the id and the old one
 * stays valid for the records that have it.
 */
struct event_format *catalog_add(struct catalog *catalog, const char *system, const char *text,
				 size_t length, struct trace_error *error);

/* NULL when the id is not known (yet). */
struct event_format *catalog_by_id(const struct catalog *catalog, int id);

/*
 * The event that an event probe is attached to stands in its text and not in its format
 * file: the one thing that is told later. -1 when memory is short.
 */
int format_attach(struct event_format *format, const char *event);

/* The field's index or -1. */
int format_field_index(const struct event_format *format, const char *name);

/* common_type of a record of this catalog, or -1 if it is too short for one. */
int catalog_record_type(const struct catalog *catalog, const uint8_t *data, uint32_t size);

/* common_pid of a record, or 0 if it is too short for one. */
int catalog_record_pid(const struct catalog *catalog, const uint8_t *data, uint32_t size);

/* Owned by the catalog, made with it, empty until asked; see the headers of these names. */
struct comm_table *catalog_comms(struct catalog *catalog);
struct ksym_table *catalog_ksyms(struct catalog *catalog);
struct printk_table *catalog_printks(struct catalog *catalog);
struct enum_table *catalog_enums(struct catalog *catalog);
struct stack_names *catalog_stack_names(struct catalog *catalog);

/* The records come from the kernel that runs here: all five tables ask it. */
int catalog_set_live(struct catalog *catalog, const char *tracing_dir, struct trace_error *error);

/*
 * The release of the kernel that wrote the records, such as "6.1.0-50-amd64": for what nothing
 * but its age tells. A live catalog knows it.
 */
void catalog_set_release(struct catalog *catalog, const char *release);

/* Is that kernel known to be older than @major.@minor? */
bool catalog_is_before(const struct catalog *catalog, unsigned int major, unsigned int minor);

/* Ticks of the kernel per second; 0 when nobody has said. */
unsigned int catalog_hz(const struct catalog *catalog);
void catalog_set_hz(struct catalog *catalog, unsigned int hz);

/* The kernel's tick counter right now; false unless the catalog is live. */
bool catalog_jiffies(const struct catalog *catalog, uint64_t *jiffies);

#endif
