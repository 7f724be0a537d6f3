/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "datawrite_state.h"
#include "descriptor.h"

/* Bytes of pages that are compressed as one, and dealt with by one step. */
#define CHUNK_BYTES (UINT64_C(256) << 10)
#define STEP_BYTES (UINT64_C(16) << 20)

static size_t chunk_size(const struct datawrite *writer)
{
	size_t page = writer->layout.size;

	return page >= CHUNK_BYTES ? page : CHUNK_BYTES - CHUNK_BYTES % page;
}

void datawrite_drop_output(struct datawrite *writer)
{
	close(writer->out_fd);
	writer->out_fd = -1;
	if (writer->owner == getpid())
		unlink(writer->out_path);
}

/* Errors of the new file: the old one is what there is. */
static int give_up(struct datawrite *writer, struct trace_error *error)
{
	char why[512];

	snprintf(why, sizeof(why), "%.400s", error->message);
	if (writer->out_fd >= 0)
		datawrite_drop_output(writer);
	return error_set(error, error->code,
			 "%s. Everything that was recorded is in %s, not compressed and with holes "
			 "(copy it with cp --sparse=always)",
			 why, writer->path);
}

static int open_output(struct datawrite *writer, struct trace_error *error)
{
	int fd;

	if (asprintf(&writer->out_path, "%s.luatrace-%d", writer->path, (int)getpid()) < 0) {
		writer->out_path = NULL;
		return error_set(error, ENOMEM, "no memory to write %s", writer->path);
	}
	fd = descriptor_create(writer->out_path, 0600);
	if (fd < 0)
		return error_set(error, -fd, "cannot create %s: %s", writer->out_path,
				 strerror(-fd));
	writer->out_fd = fd;
	return 0;
}

static int list_cpus(struct datawrite *writer, struct trace_error *error)
{
	writer->out_cpus = calloc(writer->cpu_count, sizeof(*writer->out_cpus));
	if (!writer->out_cpus)
		return error_set(error, ENOMEM, "no memory to write %s", writer->path);
	for (unsigned int i = 0; i < writer->cpu_count; i++) {
		/* version 6 knows a CPU by its place; later ones name those that have something */
		if (writer->version == 6 || writer->lanes[i].size)
			writer->out_cpus[writer->out_count++].cpu = i;
	}
	return 0;
}

static int allocate_chunks(struct datawrite *writer, struct trace_error *error)
{
	writer->chunk = malloc(chunk_size(writer));
	if (page_build_init(&writer->rebuilt, &writer->layout) < 0)
		return error_set(error, ENOMEM, "no memory to write %s", writer->path);
	if (writer->compress) {
		writer->compressor = compressor_create();
		writer->packed = malloc(compressor_bound(chunk_size(writer)) + 8);
	}
	if (!writer->chunk || (writer->compress && (!writer->compressor || !writer->packed)))
		return error_set(error, ENOMEM, "no memory to compress %s", writer->path);
	return 0;
}

static uint64_t align(uint64_t offset, uint64_t page)
{
	return (offset + page - 1) / page * page;
}

int datawrite_finish(struct datawrite *writer, const struct data_meta *meta,
		     struct trace_error *error)
{
	struct data_buffer top;

	if (datawrite_checkpoint(writer, error) < 0)
		return -1;
	if (open_output(writer, error) < 0 || list_cpus(writer, error) < 0 ||
	    allocate_chunks(writer, error) < 0)
		return give_up(writer, error);
	top = (struct data_buffer){
		.name = "",
		.clock = meta->clock,
		.page_size = meta->page_size,
		.cpus = writer->out_cpus,
		.cpu_count = writer->out_count,
	};
	if (data_head_build(&writer->out_head, meta, writer->version, writer->compressor, &top, 1) <
	    0) {
		error_set(error, ENOMEM, "no memory for the head of %s", writer->path);
		return give_up(writer, error);
	}
	if (datawrite_write_at(writer, writer->out_fd, writer->out_head.bytes.text,
			       writer->out_head.data_start, 0, error) < 0)
		return give_up(writer, error);
	strbuf_free(&writer->out_head.bytes);
	writer->out_offset = writer->out_head.data_start;
	return 0;
}

/* The words in front of compressed bytes are in the file's order, as every number in it. */
static void store_u32(const struct datawrite *writer, uint8_t *at, uint64_t value)
{
	for (unsigned int i = 0; i < 4; i++)
		at[writer->big_endian ? 3 - i : i] = (uint8_t)(value >> (8 * i));
}

static int write_output(struct datawrite *writer, const void *bytes, size_t length,
			struct trace_error *error)
{
	if (datawrite_write_at(writer, writer->out_fd, bytes, length, writer->out_offset, error) <
	    0)
		return -1;
	writer->out_offset += length;
	return 0;
}

static int read_chunk(struct datawrite *writer, uint64_t offset, size_t length,
		      struct trace_error *error)
{
	size_t done = 0;

	while (done < length) {
		ssize_t got = pread(writer->fd, writer->chunk + done, length - done,
				    (off_t)(offset + done));
		int err = errno;

		if (got < 0 && err == EINTR)
			continue;
		if (got <= 0)
			return error_set(error, got < 0 ? err : EIO, "cannot read %s: %s",
					 writer->path, got < 0 ? strerror(err) : "it was cut");
		done += (size_t)got;
	}
	return 0;
}

static bool has_own(const struct datawrite *writer, const uint8_t *page)
{
	struct page_record record;
	struct page_walk walk;

	page_walk_start(&walk, &writer->layout, page, writer->layout.size);
	while (page_walk_next(&walk, &record)) {
		if (own_is(&writer->own, record.data, record.size))
			return true;
	}
	return false;
}

/*
 * The same page without the tracer's own records. It cannot become longer: a record that goes
 * away makes room for the word that may have to bridge its time.
 */
static void leave_out_own(struct datawrite *writer, uint8_t *page)
{
	struct page_record record;
	struct page_walk walk;
	uint64_t count = 0;

	page_walk_start(&walk, &writer->layout, page, writer->layout.size);
	page_build_start(&writer->rebuilt, walk.ts, walk.lost);
	while (page_walk_next(&walk, &record)) {
		if (own_is(&writer->own, record.data, record.size))
			count++;
		else if (!page_build_record(&writer->rebuilt, record.ts, record.data, record.size))
			return;
	}
	/* what is damaged stays as it is, for the reader to tell */
	if (walk.damage)
		return;
	memcpy(page, page_build_bytes(&writer->rebuilt), writer->layout.size);
	writer->left_out += count;
}

static int copy_chunk(struct datawrite *writer, uint64_t offset, size_t length,
		      struct trace_error *error)
{
	size_t packed;

	if (read_chunk(writer, offset, length, error) < 0)
		return -1;
	for (size_t at = 0; writer->own.pid > 0 && at < length; at += writer->layout.size) {
		if (has_own(writer, writer->chunk + at))
			leave_out_own(writer, writer->chunk + at);
	}
	if (!writer->compressor)
		return write_output(writer, writer->chunk, length, error);
	packed = compressor_run(writer->compressor, writer->packed + 8,
				compressor_bound(chunk_size(writer)), writer->chunk, length);
	if (!packed)
		return error_set(error, EIO, "cannot compress the pages of %s", writer->path);
	store_u32(writer, writer->packed, packed);
	store_u32(writer, writer->packed + 4, length);
	return write_output(writer, writer->packed, packed + 8, error);
}

/* The pages of a CPU begin at a multiple of their size, and compressed ones with their count. */
static int begin_cpu(struct datawrite *writer, struct data_cpu *cpu, uint64_t size,
		     struct trace_error *error)
{
	uint8_t count[4];

	writer->out_offset = align(writer->out_offset, writer->layout.size);
	cpu->offset = writer->out_offset;
	if (!writer->compressor)
		return 0;
	store_u32(writer, count, (size + chunk_size(writer) - 1) / chunk_size(writer));
	return write_output(writer, count, sizeof(count), error);
}

/* Fills in what the head could not know, and puts the new file in the place of the old. */
static int complete(struct datawrite *writer, struct trace_error *error)
{
	struct data_meta order = { .big_endian = writer->big_endian };
	struct strbuf text = { 0 };
	uint64_t section = writer->out_offset - writer->out_head.data_start;
	int result = 0, err;

	data_head_table(&text, &order, writer->version, writer->out_cpus, writer->out_count);
	if (text.length)
		result = datawrite_write_at(writer, writer->out_fd, text.text, text.length,
					    writer->out_head.table_at, error);
	strbuf_reset(&text);
	data_put_int(&text, section, 8, writer->big_endian);
	if (text.failed)
		result = error_set(error, ENOMEM, "no memory to write %s", writer->path);
	else if (result == 0 && writer->out_head.section_size_at)
		result = datawrite_write_at(writer, writer->out_fd, text.text, text.length,
					    writer->out_head.section_size_at, error);
	strbuf_free(&text);
	if (result < 0)
		return give_up(writer, error);
	/* After a crash of the machine the name must not stand for an empty file. */
	if (fdatasync(writer->out_fd) < 0 || rename(writer->out_path, writer->path) < 0) {
		err = errno;
		error_set(error, err, "cannot complete %s: %s", writer->out_path, strerror(err));
		return give_up(writer, error);
	}
	close(writer->out_fd);
	writer->out_fd = -1;
	writer->finished = true;
	return 0;
}

int datawrite_step(struct datawrite *writer, struct trace_error *error)
{
	uint64_t goal = writer->done + STEP_BYTES;

	while (writer->out_index < writer->out_count) {
		struct data_cpu *cpu = &writer->out_cpus[writer->out_index];
		const struct write_lane *lane = &writer->lanes[cpu->cpu];
		uint64_t left = lane->size - writer->in_offset;
		size_t length = left < chunk_size(writer) ? (size_t)left : chunk_size(writer);

		if (writer->in_offset == 0 && lane->size &&
		    begin_cpu(writer, cpu, lane->size, error) < 0)
			return give_up(writer, error);
		if (left == 0) {
			if (lane->size)
				cpu->size = writer->out_offset - cpu->offset;
			writer->out_index++;
			writer->in_offset = 0;
			continue;
		}
		if (copy_chunk(writer, lane->start + writer->in_offset, length, error) < 0)
			return give_up(writer, error);
		writer->in_offset += length;
		writer->done += length;
		if (writer->done >= goal)
			return 1;
	}
	return complete(writer, error);
}
