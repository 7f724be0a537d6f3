/* SPDX-License-Identifier: MIT */
#include "format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "bytes.h"
#include "comm.h"
#include "enums.h"
#include "field_type.h"
#include "format_text.h"
#include "ksym.h"
#include "printk.h"
#include "printtree.h"
#include "stacknames.h"

#define NSEC_PER_SEC 1000000000L

struct catalog {
	bool big_endian;
	bool swaps;
	unsigned int long_size;
	struct event_format **by_id;
	unsigned int id_count;
	struct event_format **all; /* with those whose id has been taken over */
	size_t all_count;
	size_t all_capacity;
	struct event_field type_field; /* common_type and common_pid of every record */
	struct event_field pid_field;
	struct comm_table *comms;
	struct ksym_table *ksyms;
	struct printk_table *printks;
	struct enum_table *enums;
	struct stack_names *stack_names;
	unsigned int hz;
	unsigned int major, minor; /* of the kernel's release; 0.0 when nobody has said */
	bool is_live;
};

struct catalog *catalog_create(bool big_endian, unsigned int long_size)
{
	struct catalog *catalog = calloc(1, sizeof(*catalog));

	if (!catalog)
		return NULL;
	catalog->big_endian = big_endian;
	catalog->swaps = big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	catalog->long_size = long_size;
	/* What every kernel has; the first format says it again. */
	catalog->type_field = (struct event_field){
		.size = 2,
		.end = 2,
		.element_size = 2,
	};
	catalog->pid_field = (struct event_field){
		.offset = 4,
		.size = 4,
		.end = 8,
		.load_offset = 4,
		.element_size = 4,
		.is_signed = true,
	};
	catalog->comms = comm_create();
	catalog->ksyms = ksym_create();
	catalog->printks = printk_create();
	catalog->enums = enum_create();
	catalog->stack_names = stack_names_create();
	if (!catalog->comms || !catalog->ksyms || !catalog->printks || !catalog->enums ||
	    !catalog->stack_names) {
		catalog_free(catalog);
		return NULL;
	}
	return catalog;
}

static void format_free(struct event_format *format)
{
	if (!format)
		return;
	for (unsigned int i = 0; i < format->field_count; i++) {
		free((char *)format->fields[i].name);
		free((char *)format->fields[i].type);
	}
	free(format->fields);
	print_tree_free(format->print);
	free(format->no_text);
	free(format->attached);
	free(format->system);
	free(format->name);
	free(format->label);
	free(format->print_fmt);
	free(format);
}

void catalog_free(struct catalog *catalog)
{
	if (!catalog)
		return;
	for (size_t i = 0; i < catalog->all_count; i++)
		format_free(catalog->all[i]);
	free(catalog->all);
	free(catalog->by_id);
	comm_free(catalog->comms);
	ksym_free(catalog->ksyms);
	printk_free(catalog->printks);
	enum_free(catalog->enums);
	stack_names_free(catalog->stack_names);
	free(catalog);
}

struct comm_table *catalog_comms(struct catalog *catalog)
{
	return catalog->comms;
}

struct ksym_table *catalog_ksyms(struct catalog *catalog)
{
	return catalog->ksyms;
}

struct printk_table *catalog_printks(struct catalog *catalog)
{
	return catalog->printks;
}

struct enum_table *catalog_enums(struct catalog *catalog)
{
	return catalog->enums;
}

struct stack_names *catalog_stack_names(struct catalog *catalog)
{
	return catalog->stack_names;
}

int catalog_set_live(struct catalog *catalog, const char *tracing_dir, struct trace_error *error)
{
	struct timespec tick;
	struct utsname name;

	if (comm_set_live(catalog->comms, tracing_dir) ||
	    printk_set_live(catalog->printks, tracing_dir))
		return error_set(error, ENOMEM, "out of memory");
	ksym_set_live(catalog->ksyms);
	enum_set_live(catalog->enums);
	stack_names_set_live(catalog->stack_names);
	catalog->is_live = true;
	/* The coarse clocks advance once a tick, and say so. */
	if (!clock_getres(CLOCK_MONOTONIC_COARSE, &tick) && tick.tv_nsec)
		catalog->hz = (unsigned int)((NSEC_PER_SEC + tick.tv_nsec / 2) / tick.tv_nsec);
	if (!uname(&name))
		catalog_set_release(catalog, name.release);
	return 0;
}

void catalog_set_release(struct catalog *catalog, const char *release)
{
	unsigned int major, minor;

	if (sscanf(release, "%3u.%5u", &major, &minor) != 2)
		return;
	catalog->major = major;
	catalog->minor = minor;
}

bool catalog_is_before(const struct catalog *catalog, unsigned int major, unsigned int minor)
{
	return catalog->major &&
	       (catalog->major < major || (catalog->major == major && catalog->minor < minor));
}

unsigned int catalog_hz(const struct catalog *catalog)
{
	return catalog->hz;
}

void catalog_set_hz(struct catalog *catalog, unsigned int hz)
{
	catalog->hz = hz;
}

bool catalog_jiffies(const struct catalog *catalog, uint64_t *jiffies)
{
	struct timespec now;

	if (!catalog->is_live || !catalog->hz || clock_gettime(CLOCK_MONOTONIC_COARSE, &now))
		return false;
	/* The counter starts five minutes before its 32 bits wrap. */
	*jiffies = (uint32_t) - (300 * (int64_t)catalog->hz) + (uint64_t)now.tv_sec * catalog->hz +
		   (uint64_t)now.tv_nsec * catalog->hz / NSEC_PER_SEC;
	return true;
}

/* @name is the argument of one of the macros that take a set of bits. */
static bool printed_as_bitmask(const char *print_fmt, const char *name)
{
	static const char *const macros[] = {
		"__get_bitmask(",
		"__get_rel_bitmask(",
		"__get_cpumask(",
		"__get_rel_cpumask(",
	};
	size_t length = strlen(name);

	for (size_t i = 0; i < sizeof(macros) / sizeof(macros[0]); i++) {
		const char *at = print_fmt;

		while ((at = strstr(at, macros[i]))) {
			at += strlen(macros[i]);
			at += strspn(at, " ");
			if (!strncmp(at, name, length) && strchr(" )", at[length]) && at[length])
				return true;
		}
	}
	return false;
}

static bool is_number_size(uint32_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

/* Numbers: how wide they are and whether they have a sign. */
static void field_compile_int(struct event_field *field, const struct field_type *type,
			      bool big_endian)
{
	field->kind = FIELD_INT;
	field->is_pointer = type->is_pointer;
	field->element_size = (uint8_t)field->size;
	field->load_offset = field->offset;
	if (!type->size || type->size > field->size)
		return;
	if (type->size < field->size && big_endian)
		field->load_offset += field->size - type->size;
	field->element_size = type->size;
	if (type->sign_known)
		field->is_signed = type->is_signed;
}

/* Arrays: what an element is, from the type's name, else from the count in brackets. */
static void field_compile_array(struct event_field *field, const struct field_type *type,
				unsigned int long_size)
{
	const char *bracket = strchr(field->type, '[');
	unsigned long count = bracket ? strtoul(bracket + 1, NULL, 10) : 0;
	uint32_t element = type->size;

	if (!element && count && field->size % count == 0)
		element = (uint32_t)(field->size / count);
	field->is_pointer = type->is_pointer;
	field->is_signed = type->sign_known ? type->is_signed : field->is_signed;
	if (type->is_mask) {
		field->kind = FIELD_BITMASK;
		field->element_size = (uint8_t)long_size;
	} else if (type->is_char) {
		field->kind = FIELD_STRING;
		field->element_size = 1;
	} else if (type->is_byte || type->is_compound || !is_number_size(element)) {
		field->kind = FIELD_BYTES;
		field->element_size = 1;
	} else {
		field->kind = FIELD_ARRAY;
		field->element_size = (uint8_t)element;
	}
}

/* Decides what a field is by its type's spelling, its offset and its size. */
static int field_compile(const struct event_format *format, struct event_field *field,
			 struct trace_error *error)
{
	/* Every value of a synthetic event has 8 bytes, of which this needs the first 4. */
	bool has_slot = field->size == 8 && !strcmp(format->system, "synthetic");
	struct field_type type;

	field_type_parse(field->type, format->long_size, &type);
	field->end = field->offset + field->size;
	field->count_field = -1;
	if (type.is_data_loc || type.is_rel_loc) {
		field->place = type.is_rel_loc ? FIELD_REL_LOC : FIELD_DATA_LOC;
		/* An array of one has no more bytes than what is no array. */
		if (!has_slot && type.is_char && field->size && field->size % 4 == 0 &&
		    (field->size > 4 || strstr(field->type, "[]["))) {
			field->place = FIELD_FIXED;
			field->kind = FIELD_STRINGS;
			field->element_size = 4;
			return 0;
		}
		if (field->size != 4 && !has_slot)
			return error_set(error, EINVAL,
					 "field %s: size %u, but what says where data are has 4",
					 field->name, field->size);
		field_compile_array(field, &type, format->long_size);
		field->counts_itself = has_slot && field->kind == FIELD_ARRAY;
	} else if (!field->size && (type.is_array || type.is_char)) {
		field->place = FIELD_TAIL;
		field_compile_array(field, &type, format->long_size);
	} else {
		field->place = FIELD_FIXED;
		if (!type.is_array && !type.is_mask && !type.is_compound &&
		    is_number_size(field->size))
			field_compile_int(field, &type, format->big_endian);
		else
			field_compile_array(field, &type, format->long_size);
		/* A structure, or a number of a size that no number has. */
		if (!type.is_array && field->kind == FIELD_ARRAY)
			field->kind = FIELD_BYTES;
		if (field->kind == FIELD_BYTES)
			field->element_size = 1;
	}
	if (field->kind == FIELD_ARRAY && printed_as_bitmask(format->print_fmt, field->name)) {
		field->kind = FIELD_BITMASK;
		field->element_size = format->long_size;
	}
	return 0;
}

/* What the format files of the tracer's own events do not say. */
static void format_compile_ftrace(struct event_format *format)
{
	int field, count;

	if (!strcmp(format->name, "kernel_stack")) {
		/* Declared with 8 callers; the record has as many as `size` says. */
		field = format_field_index(format, "caller");
		count = format_field_index(format, "size");
		if (field < 0 || count < 0 || format->fields[field].kind != FIELD_ARRAY ||
		    format->fields[count].kind != FIELD_INT)
			return;
		format->fields[field].place = FIELD_TAIL;
		format->fields[field].count_field = (int16_t)count;
	} else if (!strcmp(format->name, "bprint")) {
		/* Kernels before 4.x declare the packed arguments as one number of no size. */
		field = format_field_index(format, "buf");
		if (field >= 0 && !format->fields[field].size &&
		    format->fields[field].place == FIELD_FIXED) {
			format->fields[field].place = FIELD_TAIL;
			format->fields[field].kind = FIELD_ARRAY;
			format->fields[field].element_size = 4;
		}
	} else if (!strcmp(format->name, "raw_data")) {
		/* Declared as char, but it is whatever a program has written. */
		field = format_field_index(format, "buf");
		if (field >= 0 && format->fields[field].kind == FIELD_STRING)
			format->fields[field].kind = FIELD_BYTES;
	}
}

/* Takes the lines' names and types over. */
static int format_add_fields(struct event_format *format, struct format_text *parts, bool is_common,
			     struct trace_error *error)
{
	for (unsigned int i = 0; i < parts->count; i++) {
		struct format_line *line = &parts->lines[i];
		struct event_field *field = &format->fields[format->field_count];

		if (line->is_common != is_common)
			continue;
		*field = (struct event_field){
			.name = line->name,
			.type = line->type,
			.offset = line->offset,
			.size = line->size,
			.is_signed = line->is_signed,
			.is_common = is_common,
		};
		line->name = NULL;
		line->type = NULL;
		format->field_count++;
		if (field_compile(format, field, error))
			return -1;
	}
	return 0;
}

static int format_fill(struct event_format *format, const char *system, struct format_text *parts,
		       struct trace_error *error)
{
	size_t label_size = strlen(system) + strlen(parts->name) + 2;

	format->id = parts->id;
	format->system = strdup(system);
	format->name = parts->name;
	format->print_fmt = parts->print_fmt;
	parts->name = NULL;
	parts->print_fmt = NULL;
	format->label = malloc(label_size);
	format->fields = calloc(parts->count + 1, sizeof(*format->fields));
	if (!format->system || !format->label || !format->fields)
		return error_set(error, ENOMEM, "out of memory");
	stpcpy(stpcpy(stpcpy(format->label, system), ":"), format->name);
	if (format_add_fields(format, parts, true, error))
		return -1;
	format->common_count = format->field_count;
	if (format_add_fields(format, parts, false, error))
		return -1;
	if (!strcmp(system, "ftrace"))
		format_compile_ftrace(format);
	for (unsigned int i = 0; i < format->field_count; i++) {
		const struct event_field *field = &format->fields[i];

		if (field->place != FIELD_TAIL && field->end > format->fixed_size)
			format->fixed_size = field->end;
	}
	return 0;
}

/* The print format is not needed for the fields: when it is no good they still work. */
static int format_fill_print(struct event_format *format, struct trace_error *error)
{
	struct trace_error reason;

	format->print = print_tree_parse(format, &reason);
	if (!format->print) {
		format->no_text = strdup(reason.message);
		if (!format->no_text)
			return error_set(error, ENOMEM, "out of memory");
	}
	return 0;
}

static struct event_format *format_create(struct catalog *catalog, const char *system,
					  struct format_text *parts, struct trace_error *error)
{
	struct event_format *format = calloc(1, sizeof(*format));

	if (!format) {
		error_set(error, ENOMEM, "out of memory");
		return NULL;
	}
	format->catalog = catalog;
	format->swaps = catalog->swaps;
	format->big_endian = catalog->big_endian;
	format->long_size = (uint8_t)catalog->long_size;
	if (format_fill(format, system, parts, error) || format_fill_print(format, error)) {
		format_free(format);
		return NULL;
	}
	return format;
}

static bool format_equal(const struct event_format *a, const struct event_format *b)
{
	if (strcmp(a->label, b->label) || strcmp(a->print_fmt, b->print_fmt) ||
	    a->field_count != b->field_count || a->common_count != b->common_count)
		return false;
	for (unsigned int i = 0; i < a->field_count; i++) {
		const struct event_field *x = &a->fields[i], *y = &b->fields[i];

		if (strcmp(x->name, y->name) || strcmp(x->type, y->type) ||
		    x->offset != y->offset || x->size != y->size || x->is_signed != y->is_signed)
			return false;
	}
	return true;
}

/* Makes room for the format in both lists; afterwards taking it in cannot fail. */
static bool catalog_reserve(struct catalog *catalog, int id)
{
	if (catalog->all_count == catalog->all_capacity) {
		size_t capacity = catalog->all_capacity ? catalog->all_capacity * 2 : 64;
		struct event_format **all;

		all = reallocarray(catalog->all, capacity, sizeof(catalog->all[0]));
		if (!all)
			return false;
		catalog->all = all;
		catalog->all_capacity = capacity;
	}
	if ((unsigned int)id >= catalog->id_count) {
		unsigned int count = catalog->id_count ? catalog->id_count : 512;
		struct event_format **by_id;

		while (count <= (unsigned int)id)
			count *= 2;
		by_id = reallocarray(catalog->by_id, count, sizeof(catalog->by_id[0]));
		if (!by_id)
			return false;
		memset(by_id + catalog->id_count, 0,
		       (count - catalog->id_count) * sizeof(by_id[0]));
		catalog->by_id = by_id;
		catalog->id_count = count;
	}
	return true;
}

/* The first format tells where every record of this machine has its type and pid. */
static void catalog_learn_common(struct catalog *catalog, const struct event_format *format)
{
	int type = format_field_index(format, "common_type");
	int pid = format_field_index(format, "common_pid");

	if (type >= 0 && format->fields[type].kind == FIELD_INT)
		catalog->type_field = format->fields[type];
	if (pid >= 0 && format->fields[pid].kind == FIELD_INT)
		catalog->pid_field = format->fields[pid];
}

/* System names are directory names; they are shown and compared, never opened. */
static bool system_ok(const char *system)
{
	if (!*system || strlen(system) > 256)
		return false;
	for (; *system; system++)
		if (*system <= ' ' || *system == 0x7f || *system == '/' || *system == ':')
			return false;
	return true;
}

struct event_format *catalog_add(struct catalog *catalog, const char *system, const char *text,
				 size_t length, struct trace_error *error)
{
	struct event_format *format = NULL, *known;
	struct format_text parts;
	struct trace_error why;

	if (!system_ok(system)) {
		error_set(error, EINVAL, "\"%.200s\" is not the name of an event system", system);
		return NULL;
	}
	if (!format_text_parse(&parts, text, length, &why))
		format = format_create(catalog, system, &parts, &why);
	if (!format) {
		error_set(error, why.code, "cannot parse the format of %s:%s: %s", system,
			  parts.name ? parts.name : "?", why.message);
		format_text_free(&parts);
		return NULL;
	}
	format_text_free(&parts);
	known = catalog_by_id(catalog, format->id);
	if (known && format_equal(known, format)) {
		format_free(format);
		return known;
	}
	if (!catalog_reserve(catalog, format->id)) {
		format_free(format);
		error_set(error, ENOMEM, "out of memory");
		return NULL;
	}
	if (!catalog->all_count)
		catalog_learn_common(catalog, format);
	catalog->all[catalog->all_count++] = format;
	catalog->by_id[format->id] = format;
	return format;
}

struct event_format *catalog_by_id(const struct catalog *catalog, int id)
{
	if (id < 0 || (unsigned int)id >= catalog->id_count)
		return NULL;
	return catalog->by_id[id];
}

int format_field_index(const struct event_format *format, const char *name)
{
	for (unsigned int i = 0; i < format->field_count; i++)
		if (!strcmp(format->fields[i].name, name))
			return (int)i;
	return -1;
}

int catalog_record_type(const struct catalog *catalog, const uint8_t *data, uint32_t size)
{
	const struct event_field *field = &catalog->type_field;

	if (field->end > size)
		return -1;
	return (int)load_int(data + field->load_offset, field->element_size, false, catalog->swaps);
}

int catalog_record_pid(const struct catalog *catalog, const uint8_t *data, uint32_t size)
{
	const struct event_field *field = &catalog->pid_field;

	if (field->end > size)
		return 0;
	return (int)load_int(data + field->load_offset, field->element_size, true, catalog->swaps);
}

int format_attach(struct event_format *format, const char *event)
{
	char *copy = strdup(event);

	if (!copy)
		return -1;
	free(format->attached);
	format->attached = copy;
	return 0;
}
