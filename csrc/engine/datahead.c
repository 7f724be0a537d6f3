/* SPDX-License-Identifier: MIT */
#include "datahead.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC "\x17\x08\x44tracing"

/* The flag of a section that is compressed. */
#define SECTION_COMPRESSED 1

/* A version 7 file while its parts are put together. */
struct builder {
	struct strbuf *out;
	const struct data_meta *meta;
	struct compressor *compressor;
	struct strbuf options; /* of the options section */
	struct strbuf strings; /* names of the sections */
	bool failed;
};

void data_put_int(struct strbuf *out, uint64_t value, unsigned int size, bool big_endian)
{
	char bytes[8];

	for (unsigned int i = 0; i < size; i++)
		bytes[big_endian ? size - 1 - i : i] = (char)(value >> (8 * i));
	strbuf_add(out, bytes, size);
}

static void put_text(struct strbuf *out, const char *text)
{
	strbuf_add(out, text, strlen(text) + 1);
}

/* A size of @size bytes and what it is the size of. */
static void put_sized(struct strbuf *out, const struct strbuf *text, unsigned int size, bool big)
{
	data_put_int(out, text->length, size, big);
	if (text->length)
		strbuf_add(out, text->text, text->length);
}

static void patch_int(struct strbuf *out, size_t at, uint64_t value, unsigned int size, bool big)
{
	struct strbuf bytes = { 0 };

	data_put_int(&bytes, value, size, big);
	if (!out->failed && !bytes.failed)
		memcpy(out->text + at, bytes.text, size);
	strbuf_free(&bytes);
}

static void put_header_info(struct strbuf *out, const struct data_meta *meta)
{
	put_text(out, "header_page");
	put_sized(out, &meta->header_page, 8, meta->big_endian);
	put_text(out, "header_event");
	put_sized(out, &meta->header_event, 8, meta->big_endian);
}

static bool is_ftrace(const struct data_format *format)
{
	return strcmp(format->system, "ftrace") == 0;
}

static void put_ftrace_formats(struct strbuf *out, const struct data_meta *meta)
{
	uint64_t count = 0;

	for (size_t i = 0; i < meta->format_count; i++)
		count += is_ftrace(&meta->formats[i]);
	data_put_int(out, count, 4, meta->big_endian);
	for (size_t i = 0; i < meta->format_count; i++) {
		if (is_ftrace(&meta->formats[i]))
			put_sized(out, &meta->formats[i].text, 8, meta->big_endian);
	}
}

/* The formats of one system stand together: how many from @first on are of its system. */
static size_t system_length(const struct data_meta *meta, size_t first)
{
	size_t end = first + 1;

	while (end < meta->format_count &&
	       strcmp(meta->formats[end].system, meta->formats[first].system) == 0)
		end++;
	return end - first;
}

static void put_formats(struct strbuf *out, const struct data_meta *meta)
{
	uint64_t systems = 0;
	size_t length;

	for (size_t i = 0; i < meta->format_count; i += system_length(meta, i))
		systems += !is_ftrace(&meta->formats[i]);
	data_put_int(out, systems, 4, meta->big_endian);
	for (size_t i = 0; i < meta->format_count; i += length) {
		length = system_length(meta, i);
		if (is_ftrace(&meta->formats[i]))
			continue;
		put_text(out, meta->formats[i].system);
		data_put_int(out, length, 4, meta->big_endian);
		for (size_t k = i; k < i + length; k++)
			put_sized(out, &meta->formats[k].text, 8, meta->big_endian);
	}
}

static void put_start(struct strbuf *out, const struct data_meta *meta, unsigned int version)
{
	strbuf_add(out, MAGIC, sizeof(MAGIC) - 1);
	put_text(out, version == 6 ? "6" : "7");
	data_put_int(out, meta->big_endian, 1, false);
	data_put_int(out, meta->long_size, 1, false);
	data_put_int(out, meta->page_size, 4, meta->big_endian);
}

void data_head_table(struct strbuf *out, const struct data_meta *meta, unsigned int version,
		     const struct data_cpu *cpus, unsigned int cpu_count)
{
	for (unsigned int i = 0; i < cpu_count; i++) {
		if (version != 6)
			data_put_int(out, cpus[i].cpu, 4, meta->big_endian);
		data_put_int(out, cpus[i].offset, 8, meta->big_endian);
		data_put_int(out, cpus[i].size, 8, meta->big_endian);
	}
}

/* ------------------------------------------------------------------------- */
/* Version 6                                                                  */
/* ------------------------------------------------------------------------- */

static void put_kind(struct strbuf *out, const struct data_meta *meta,
		     const struct data_buffer *buffer)
{
	strbuf_add(out, "flyrecord", 10);
	data_head_table(out, meta, 6, buffer->cpus, buffer->cpu_count);
}

/* Instances stand in the options, with the places of their tables; those follow the top one's. */
static void put_options_6(struct strbuf *out, const struct data_meta *meta,
			  const struct data_buffer *buffers, unsigned int count)
{
	size_t table = 10 + 16 * (size_t)buffers->cpu_count;
	uint64_t place = out->length + 10 + meta->options.length + 2 + table + 8 +
			 strlen(buffers->clock) + 2;

	for (unsigned int i = 1; i < count; i++)
		place += 2 + 4 + 8 + strlen(buffers[i].name) + 1;
	strbuf_add(out, "options  ", 10);
	if (meta->options.length)
		strbuf_add(out, meta->options.text, meta->options.length);
	for (unsigned int i = 1; i < count; i++) {
		data_put_int(out, DATA_OPTION_BUFFER, 2, meta->big_endian);
		data_put_int(out, 8 + strlen(buffers[i].name) + 1, 4, meta->big_endian);
		data_put_int(out, place, 8, meta->big_endian);
		put_text(out, buffers[i].name);
		place += table;
	}
	data_put_int(out, DATA_OPTION_DONE, 2, meta->big_endian);
}

static void build_6(struct data_head *head, const struct data_meta *meta,
		    const struct data_buffer *buffers, unsigned int count)
{
	struct strbuf *out = &head->bytes;
	bool big = meta->big_endian;

	put_start(out, meta, 6);
	put_header_info(out, meta);
	put_ftrace_formats(out, meta);
	put_formats(out, meta);
	put_sized(out, &meta->kallsyms, 4, big);
	put_sized(out, &meta->printk, 4, big);
	put_sized(out, &meta->cmdlines, 8, big);
	data_put_int(out, buffers->cpu_count, 4, big);
	put_options_6(out, meta, buffers, count);
	head->table_at = out->length + 10;
	put_kind(out, meta, buffers);
	data_put_int(out, strlen(buffers->clock) + 2, 8, big);
	strbuf_addf(out, "[%s]", buffers->clock);
	for (unsigned int i = 1; i < count; i++)
		put_kind(out, meta, &buffers[i]);
	head->data_start = out->length;
}

/* ------------------------------------------------------------------------- */
/* Version 7                                                                  */
/* ------------------------------------------------------------------------- */

static void put_option(struct builder *builder, enum data_option id, uint64_t value,
		       unsigned int size)
{
	data_put_int(&builder->options, id, 2, builder->meta->big_endian);
	data_put_int(&builder->options, size, 4, builder->meta->big_endian);
	data_put_int(&builder->options, value, size, builder->meta->big_endian);
}

/* Sections are named by where their names begin in the strings. */
static uint64_t add_name(struct builder *builder, const char *name)
{
	uint64_t place = builder->strings.length;

	put_text(&builder->strings, name);
	return place;
}

/* The head of a section; its size stands in the last 8 bytes. */
static void add_section_head(struct strbuf *out, bool big, enum data_option id, unsigned int flags,
			     uint64_t name, uint64_t size)
{
	data_put_int(out, id, 2, big);
	data_put_int(out, flags, 2, big);
	data_put_int(out, name, 4, big);
	data_put_int(out, size, 8, big);
}

static void put_section_head(struct builder *builder, enum data_option id, unsigned int flags,
			     uint64_t name, uint64_t size)
{
	add_section_head(builder->out, builder->meta->big_endian, id, flags, name, size);
}

void data_head_section(struct strbuf *out, const struct data_head *head,
		       const struct data_meta *meta, bool is_compressed, uint64_t size)
{
	add_section_head(out, meta->big_endian, DATA_OPTION_BUFFER,
			 is_compressed ? SECTION_COMPRESSED : 0, head->section_name, size);
}

static void put_compressed(struct builder *builder, enum data_option id, uint64_t name,
			   const struct strbuf *content)
{
	size_t room = compressor_bound(content->length);
	char *packed = malloc(room);
	size_t size = 0;
	bool big = builder->meta->big_endian;

	if (packed)
		size = compressor_run(builder->compressor, packed, room, content->text,
				      content->length);
	if (size) {
		put_section_head(builder, id, SECTION_COMPRESSED, name, size + 8);
		data_put_int(builder->out, size, 4, big);
		data_put_int(builder->out, content->length, 4, big);
		strbuf_add(builder->out, packed, size);
	} else {
		builder->failed = true;
	}
	free(packed);
}

/* A section with its option; @content is given up. */
static void put_section(struct builder *builder, enum data_option id, const char *name,
			struct strbuf *content)
{
	uint64_t offset = builder->out->length;

	builder->failed |= content->failed;
	if (!content->failed && content->length) {
		uint64_t name_at = add_name(builder, name);

		if (builder->compressor) {
			put_compressed(builder, id, name_at, content);
		} else {
			put_section_head(builder, id, 0, name_at, content->length);
			strbuf_add(builder->out, content->text, content->length);
		}
		put_option(builder, id, offset, 8);
	}
	strbuf_free(content);
}

static void put_sections(struct builder *builder)
{
	const struct data_meta *meta = builder->meta;
	struct strbuf content = { 0 };

	put_header_info(&content, meta);
	put_section(builder, DATA_OPTION_HEADER_INFO, "headers", &content);
	put_ftrace_formats(&content, meta);
	put_section(builder, DATA_OPTION_FTRACE_EVENTS, "ftrace events", &content);
	put_formats(&content, meta);
	put_section(builder, DATA_OPTION_EVENT_FORMATS, "events format", &content);
	put_sized(&content, &meta->kallsyms, 4, meta->big_endian);
	put_section(builder, DATA_OPTION_KALLSYMS, "kallsyms", &content);
	put_sized(&content, &meta->printk, 4, meta->big_endian);
	put_section(builder, DATA_OPTION_PRINTK, "printk", &content);
	put_sized(&content, &meta->cmdlines, 8, meta->big_endian);
	put_section(builder, DATA_OPTION_CMDLINES, "command lines", &content);
}

/* The names of all sections are one of their own, which nothing points to. */
static void put_strings(struct builder *builder)
{
	uint64_t name = add_name(builder, "strings");

	put_section_head(builder, DATA_OPTION_STRINGS, 0, name, builder->strings.length);
	if (!builder->strings.failed)
		strbuf_add(builder->out, builder->strings.text, builder->strings.length);
}

static size_t buffer_option_size(const struct data_buffer *buffer)
{
	return 8 + strlen(buffer->name) + 1 + strlen(buffer->clock) + 1 + 4 + 4 +
	       20 * (size_t)buffer->cpu_count;
}

static void put_buffer_option(struct builder *builder, const struct data_buffer *buffer,
			      uint64_t place)
{
	struct strbuf *options = &builder->options;
	bool big = builder->meta->big_endian;

	data_put_int(options, DATA_OPTION_BUFFER, 2, big);
	data_put_int(options, buffer_option_size(buffer), 4, big);
	data_put_int(options, place, 8, big);
	put_text(options, buffer->name);
	put_text(options, buffer->clock);
	data_put_int(options, buffer->page_size, 4, big);
	data_put_int(options, buffer->cpu_count, 4, big);
	data_head_table(options, builder->meta, 7, buffer->cpus, buffer->cpu_count);
}

/*
 * The options section with the tables in it. Where the section of the pages follows right
 * behind, its place is known before anything of it is.
 */
static void put_options(struct builder *builder, struct data_head *head, size_t place_at,
			const struct data_buffer *buffers, unsigned int count)
{
	const struct data_meta *meta = builder->meta;
	struct strbuf *options = &builder->options;
	uint64_t options_name = add_name(builder, "options");
	bool big = meta->big_endian;
	uint64_t start, behind;

	head->section_name = (uint32_t)add_name(builder, "buffer flyrecord");
	put_strings(builder);
	start = builder->out->length;
	patch_int(builder->out, place_at, start, 8, big);
	put_option(builder, DATA_OPTION_CPUCOUNT, meta->cpu_count, 4);
	if (meta->options.length)
		strbuf_add(options, meta->options.text, meta->options.length);
	behind = start + DATA_SECTION_HEAD + options->length + 6 + 8;
	for (unsigned int i = 0; i < count; i++)
		behind += 6 + buffer_option_size(&buffers[i]);
	for (unsigned int i = 0; i < count; i++) {
		put_buffer_option(builder, &buffers[i],
				  buffers[i].section ? buffers[i].section : behind);
		if (i == 0)
			head->table_at = start + DATA_SECTION_HEAD + options->length -
					 20 * (size_t)buffers->cpu_count;
	}
	put_option(builder, DATA_OPTION_DONE, 0, 8);

	put_section_head(builder, DATA_OPTION_DONE, 0, options_name, options->length);
	if (!options->failed)
		strbuf_add(builder->out, options->text, options->length);
	if (count && !buffers->section) {
		head->section_size_at = builder->out->length + DATA_SECTION_HEAD - 8;
		data_head_section(builder->out, head, meta, builder->compressor != NULL, 0);
	}
	head->data_start = builder->out->length;
}

static void build_7(struct data_head *head, const struct data_meta *meta,
		    struct compressor *compressor, const struct data_buffer *buffers,
		    unsigned int count)
{
	struct builder builder = {
		.out = &head->bytes,
		.meta = meta,
		.compressor = compressor,
	};
	size_t options_at;

	put_start(builder.out, meta, 7);
	put_text(builder.out, compressor ? "zstd" : "none");
	put_text(builder.out, compressor ? "1" : "");
	options_at = builder.out->length;
	data_put_int(builder.out, 0, 8, meta->big_endian);
	put_sections(&builder);
	put_options(&builder, head, options_at, buffers, count);
	if (builder.failed || builder.options.failed || builder.strings.failed)
		builder.out->failed = true;
	strbuf_free(&builder.options);
	strbuf_free(&builder.strings);
}

int data_head_build(struct data_head *head, const struct data_meta *meta, unsigned int version,
		    struct compressor *compressor, const struct data_buffer *buffers,
		    unsigned int buffer_count)
{
	if (version == 6)
		build_6(head, meta, buffers, buffer_count);
	else
		build_7(head, meta, compressor, buffers, buffer_count);
	return head->bytes.failed ? -1 : 0;
}

void data_head_free(struct data_head *head)
{
	strbuf_free(&head->bytes);
	memset(head, 0, sizeof(*head));
}
