/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "datafile_state.h"

/* trace-cmd makes chunks of ten pages; more than this at once is not believed. */
#define CHUNK_MAX (UINT32_C(64) << 20)

struct datapages {
	struct datafile *file;
	uint32_t page_size;
	unsigned int cpu;
	bool is_compressed;
	bool is_started;
	uint64_t start;
	uint64_t at; /* in the file: what is read next */
	uint64_t end;
	uint32_t chunks_left;
	uint64_t block_at; /* of the block: in the file */
	uint8_t *block;
	size_t block_room;
	size_t block_length;
	size_t block_next; /* the sub-buffer that is given next */
	uint8_t *packed;
	size_t packed_room;
};

struct datapages *datapages_open(struct datafile *file, const struct datafile_buffer *buffer,
				 unsigned int cpu_index, size_t block)
{
	const struct datafile_cpu *cpu = &buffer->cpus[cpu_index];
	struct datapages *pages = calloc(1, sizeof(*pages));

	if (!pages)
		return NULL;
	pages->file = file;
	pages->page_size = buffer->page_size;
	pages->cpu = cpu->cpu;
	pages->is_compressed = buffer->is_compressed;
	pages->start = pages->at = cpu->offset;
	pages->end = cpu->offset + cpu->size;
	/* trace-cmd does not count the sizes between the chunks: their number tells the end */
	if (pages->is_compressed && cpu->size)
		pages->end = file->size;
	/* whole sub-buffers, at least one; of compressed ones what a chunk has */
	if (!pages->is_compressed)
		pages->block_room = block < pages->page_size ? pages->page_size :
							       block - block % pages->page_size;
	return pages;
}

void datapages_close(struct datapages *pages)
{
	if (!pages)
		return;
	free(pages->block);
	free(pages->packed);
	free(pages);
}

uint64_t datapages_position(const struct datapages *pages)
{
	return pages->at - pages->start;
}

/* Nothing more is read of this CPU. */
static bool give_up(struct datapages *pages, uint64_t offset, const char *what)
{
	datafile_note_damage(pages->file, offset, "%s of CPU %u", what, pages->cpu);
	pages->at = pages->end;
	pages->chunks_left = 0;
	return false;
}

static bool grow(uint8_t **memory, size_t *room, size_t needed)
{
	uint8_t *larger;

	if (*memory && *room >= needed)
		return true;
	if (needed < *room)
		needed = *room;
	larger = realloc(*memory, needed);
	if (!larger)
		return false;
	*memory = larger;
	*room = needed;
	return true;
}

static bool load_plain(struct datapages *pages)
{
	uint64_t left = pages->end - pages->at;
	size_t wanted = left < pages->block_room ? (size_t)left : pages->block_room;
	long got;

	if (!wanted)
		return false;
	/* the first block is the largest one: a CPU with few records needs little */
	if (!pages->block)
		pages->block = malloc(wanted);
	if (!pages->block)
		return give_up(pages, pages->at, "no memory for records");
	got = cursor_pread(pages->file->fd, pages->block, wanted, pages->at);
	if (got <= 0)
		return give_up(pages, pages->at, "cannot read records");
	pages->block_at = pages->at;
	pages->block_length = (size_t)got;
	pages->at += (uint64_t)got;
	if ((size_t)got < wanted)
		give_up(pages, pages->at, "the file has become shorter within records");
	return true;
}

static uint32_t number_at(struct datapages *pages, uint64_t at, bool *is_there)
{
	uint8_t bytes[4];

	*is_there = at + 4 <= pages->end &&
		    cursor_pread(pages->file->fd, bytes, sizeof(bytes), at) == sizeof(bytes);
	return *is_there ? load_u32(bytes, pages->file->swap) : 0;
}

/* Decompresses the next chunk. */
static bool load_chunk(struct datapages *pages)
{
	uint64_t at = pages->at;
	uint32_t packed, length;
	bool is_there, has_length;
	long got;

	packed = number_at(pages, at, &is_there);
	length = number_at(pages, at + 4, &has_length);
	if (!is_there || !has_length || packed > pages->end - at - 8)
		return give_up(pages, at, "compressed records are cut");
	if (length > CHUNK_MAX)
		return give_up(pages, at, "a chunk of records has an impossible size");
	if (!grow(&pages->packed, &pages->packed_room, packed ? packed : 1) ||
	    !grow(&pages->block, &pages->block_room, length ? length : 1))
		return give_up(pages, at, "no memory for records");
	got = cursor_pread(pages->file->fd, pages->packed, packed, at + 8);
	if (got == (long)packed)
		got = decoder_run(pages->file->decoder, pages->packed, packed, pages->block,
				  length);
	else
		got = -1;
	if (got < 0)
		return give_up(pages, at, "a compressed chunk of records is damaged");
	pages->block_at = at;
	pages->block_length = (size_t)got;
	pages->at = at + 8 + packed;
	return true;
}

static bool load(struct datapages *pages)
{
	pages->block_next = 0;
	pages->block_length = 0;
	if (!pages->is_compressed)
		return load_plain(pages);
	if (!pages->is_started) {
		bool is_there;

		pages->is_started = true;
		if (pages->at == pages->end)
			return false;
		pages->chunks_left = number_at(pages, pages->at, &is_there);
		if (!is_there)
			return give_up(pages, pages->at, "compressed records are cut");
		pages->at += 4;
	}
	while (pages->chunks_left) {
		pages->chunks_left--;
		if (!load_chunk(pages))
			return false;
		if (pages->block_length)
			return true;
	}
	return false;
}

size_t datapages_next(struct datapages *pages, uint8_t *bytes, size_t room, uint64_t *offset)
{
	size_t length;

	if (pages->block_next >= pages->block_length && !load(pages))
		return 0;
	length = pages->block_length - pages->block_next;
	if (length > pages->page_size)
		length = pages->page_size;
	if (length > room)
		length = room;
	memcpy(bytes, pages->block + pages->block_next, length);
	*offset = pages->is_compressed ? pages->block_at : pages->block_at + pages->block_next;
	pages->block_next += length;
	return length;
}

/* The text of a latency tracer: up to the end of the file, or chunks like those of records. */
int datafile_read_text(struct datafile *file, const struct datafile_buffer *buffer,
		       struct strbuf *out, struct trace_error *error)
{
	struct datafile_cpu all = { .offset = buffer->text_offset, .size = buffer->text_size };
	struct datafile_buffer source = *buffer;
	struct datapages *pages;
	uint8_t part[4096];
	uint64_t offset;
	size_t length;

	source.cpus = &all;
	source.page_size = sizeof(part);
	pages = datapages_open(file, &source, 0, sizeof(part) * 16);
	while (pages && (length = datapages_next(pages, part, sizeof(part), &offset)))
		strbuf_add(out, (const char *)part, length);
	datapages_close(pages);
	if (!pages || out->failed)
		return error_set(error, ENOMEM, "out of memory");
	return 0;
}
