/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "datacut_state.h"
#include "descriptor.h"

/* Bytes of pages that are compressed as one, and of the old file that one step reads. */
#define CHUNK_BYTES ((size_t)256 << 10)
#define STEP_BYTES (UINT64_C(16) << 20)

static int no_memory(const struct datacut *cut, struct trace_error *error)
{
	return error_set(error, ENOMEM, "no memory to write %s", cut->path);
}

static int write_at(struct datacut *cut, const void *bytes, size_t length, uint64_t offset,
		    struct trace_error *error)
{
	int err;

	if (cut->owner != getpid())
		return error_set(
			error, EPERM,
			"cannot write %s: this process is a child of the one that writes it",
			cut->path);
	/* the signal of this limit would end the process */
	if (offset + length > cut->limit)
		return error_set(error, EFBIG,
				 "cannot write %s: more than the limit for files (ulimit -f); "
				 "nothing is left of it",
				 cut->path);
	err = descriptor_write_at(cut->fd, bytes, length, offset);
	return err ? error_set(error, err, "cannot write %s: %s; nothing is left of it", cut->path,
			       strerror(err)) :
		     0;
}

static int write_next(struct datacut *cut, const void *bytes, size_t length,
		      struct trace_error *error)
{
	if (write_at(cut, bytes, length, cut->offset, error) < 0)
		return -1;
	cut->offset += length;
	return 0;
}

/* Numbers are in the file's order. */
static int write_u32(struct datacut *cut, uint64_t value, uint64_t offset,
		     struct trace_error *error)
{
	uint8_t bytes[4];

	for (unsigned int i = 0; i < sizeof(bytes); i++)
		bytes[cut->meta.big_endian ? 3 - i : i] = (uint8_t)(value >> (8 * i));
	return write_at(cut, bytes, sizeof(bytes), offset, error);
}

/* ------------------------------------------------------------------------- */
/* Buffers and the head                                                       */
/* ------------------------------------------------------------------------- */

/* Version 6 knows a CPU by its place in the table. */
static int place_cpus(struct datacut *cut, struct cut_buffer *buffer, struct trace_error *error)
{
	bool by_number = cut->options.version == 6;

	buffer->cpu_count = by_number ? cut->meta.cpu_count : buffer->lane_count;
	buffer->cpus = calloc((size_t)buffer->cpu_count + 1, sizeof(*buffer->cpus));
	if (!buffer->cpus)
		return no_memory(cut, error);
	for (unsigned int i = 0; i < buffer->cpu_count; i++)
		buffer->cpus[i].cpu = by_number ? i : buffer->source->cpus[i].cpu;
	for (unsigned int i = 1; by_number && i < buffer->lane_count; i++)
		if (buffer->source->cpus[i].cpu == buffer->source->cpus[i - 1].cpu)
			return error_set(error, EINVAL,
					 "cannot write %s: %s has CPU %u twice, which version 6 "
					 "cannot have",
					 cut->path, datafile_path(cut->file),
					 buffer->source->cpus[i].cpu);
	return 0;
}

/*
 * The top buffer always, as readers want one, and of the others those of the stream. The lanes
 * of one buffer stand together.
 */
static int list_buffers(struct datacut *cut, struct trace_error *error)
{
	static const struct datafile_buffer top = { .name = "", .clock = "" };
	const struct datafile_buffer *first = &top;
	unsigned int count = datafile_buffer_count(cut->file), lane = 0;

	cut->buffers = calloc((size_t)count + 1, sizeof(*cut->buffers));
	if (!cut->buffers)
		return no_memory(cut, error);
	for (unsigned int i = 0; i < count; i++)
		if (!*datafile_buffer(cut->file, i)->name &&
		    !datafile_buffer(cut->file, i)->is_text)
			first = datafile_buffer(cut->file, i);
	cut->buffers[cut->buffer_count++].source = first;
	while (lane < cut->stream->lane_count) {
		const struct datafile_buffer *source = cut->stream->lanes[lane].buffer;
		struct cut_buffer *buffer = &cut->buffers[0];

		if (source != first)
			buffer = &cut->buffers[cut->buffer_count++];
		buffer->source = source;
		buffer->first_lane = lane;
		while (lane < cut->stream->lane_count && cut->stream->lanes[lane].buffer == source)
			lane++;
		buffer->lane_count = lane - buffer->first_lane;
	}
	for (unsigned int i = 0; i < cut->buffer_count; i++) {
		struct cut_buffer *buffer = &cut->buffers[i];
		bool is_small = cut->options.version == 7 && buffer->source->page_size;

		buffer->page_size = is_small ? buffer->source->page_size : cut->meta.page_size;
		/* of the size only the place is known; any number takes as much room */
		buffer->section = 1;
		if (place_cpus(cut, buffer, error) < 0)
			return -1;
	}
	return 0;
}

static const char *clock_of(const struct datacut *cut, const struct cut_buffer *buffer)
{
	return datafile_clock(cut->file, buffer->source);
}

/* Said before anything is written, where it is known by then. */
static int check_damage(const struct datacut *cut, struct trace_error *error)
{
	const char *damage = datafile_damage(cut->file);

	return damage && !cut->options.partial ? error_set(error, EINVAL, "%s", damage) : 0;
}

static int check_clocks(const struct datacut *cut, struct trace_error *error)
{
	for (unsigned int i = 1; cut->options.version == 6 && i < cut->buffer_count; i++)
		if (strcmp(clock_of(cut, &cut->buffers[i]), clock_of(cut, &cut->buffers[0])) != 0)
			return error_set(
				error, EINVAL,
				"cannot write %s: the buffers of %s have different clocks, "
				"which version 6 cannot have",
				cut->path, datafile_path(cut->file));
	return 0;
}

/* Numbers of one width, so that the head is as long before they are known. */
static void add_stats(struct datacut *cut, const struct cut_buffer *buffer, bool is_final)
{
	struct strbuf text = { 0 };
	bool is_named = false;

	for (unsigned int i = 0; i < buffer->lane_count; i++) {
		unsigned int lane = buffer->first_lane + i;
		const struct datafile_stats *stats = &cut->stats[lane];

		if (is_final && !stats->is_known)
			continue;
		strbuf_reset(&text);
		if (*buffer->source->name && !is_named)
			strbuf_addf(&text, "\nBuffer: %s\n\n", buffer->source->name);
		is_named = true;
		strbuf_addf(&text,
			    "CPU: %u\noverrun: %-20" PRIu64 "\ncommit overrun: %-20" PRIu64
			    "\ndropped events: %-20" PRIu64 "\n",
			    buffer->source->cpus[i].cpu, stats->overrun, stats->commit_overrun,
			    stats->dropped);
		if (text.failed)
			cut->meta.options.failed = true;
		else
			data_meta_add_option(&cut->meta, DATA_OPTION_CPUSTAT, text.text,
					     text.length + 1);
	}
	strbuf_free(&text);
}

/* Has the CPU of a lane lost something that no page tells of? */
static bool has_lost(const struct datacut *cut, const struct cut_buffer *buffer, unsigned int index)
{
	const struct datafile_stats *stats = &cut->stats[buffer->first_lane + index];

	return stats->overrun || stats->commit_overrun || stats->dropped;
}

/* The CPUs of which there is something to say; in version 6 all. */
static unsigned int list_cpus(const struct datacut *cut, const struct cut_buffer *buffer,
			      bool is_final, struct data_cpu *cpus)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < buffer->cpu_count; i++)
		if (!is_final || cut->options.version == 6 || buffer->cpus[i].size ||
		    has_lost(cut, buffer, i))
			cpus[count++] = buffer->cpus[i];
	return count;
}

/* What is known later takes no more room than what stands for it now. */
static int build_head(struct datacut *cut, bool is_final, struct trace_error *error)
{
	struct data_buffer *list = calloc(cut->buffer_count, sizeof(*list));
	struct data_cpu *cpus, *next;
	size_t cpu_count = 1;
	int result = -1;

	for (unsigned int i = 0; i < cut->buffer_count; i++)
		cpu_count += cut->buffers[i].cpu_count;
	next = cpus = calloc(cpu_count, sizeof(*cpus));
	cut->meta.options.length = cut->options_length;
	data_head_free(&cut->head);
	for (unsigned int i = 0; list && cpus && i < cut->buffer_count; i++) {
		const struct cut_buffer *buffer = &cut->buffers[i];

		add_stats(cut, buffer, is_final);
		list[i] = (struct data_buffer){
			.name = buffer->source->name,
			.clock = clock_of(cut, buffer),
			.page_size = buffer->page_size,
			.section = buffer->section,
			.cpus = next,
			.cpu_count = list_cpus(cut, buffer, is_final, next),
		};
		next += list[i].cpu_count;
	}
	if (list && cpus && !cut->meta.options.failed)
		result = data_head_build(&cut->head, &cut->meta, cut->options.version,
					 cut->compressor, list, cut->buffer_count);
	free(list);
	free(cpus);
	return result < 0 ? no_memory(cut, error) : 0;
}

/* ------------------------------------------------------------------------- */
/* The new file                                                               */
/* ------------------------------------------------------------------------- */

/* What is there under the name: nothing, or a file that nobody reads or writes for this. */
static int check_place(const struct datacut *cut, const char *path, struct trace_error *error)
{
	struct stat there, source;
	int fd, busy;

	if (stat(path, &there) < 0)
		return 0;
	if (!S_ISREG(there.st_mode))
		return error_set(error, EINVAL,
				 "cannot write %s: it is there and no regular file; give the name "
				 "of a new one",
				 path);
	if (stat(datafile_path(cut->file), &source) == 0 && source.st_dev == there.st_dev &&
	    source.st_ino == there.st_ino)
		return error_set(error, EINVAL,
				 "cannot write %s: it is the file that is read; give another name",
				 path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	busy = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
	if (fd >= 0)
		close(fd);
	return busy ? error_set(error, EBUSY,
				"cannot write %s: another process is recording into it", path) :
		      0;
}

static int open_output(struct datacut *cut, const char *path, struct trace_error *error)
{
	struct rlimit limit;
	char *real;
	int err;

	if (check_place(cut, path, error) < 0)
		return -1;
	cut->limit = UINT64_MAX;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
		cut->limit = limit.rlim_cur;
	/* a name that renaming over replaces the file itself by, not a link to it */
	real = realpath(path, NULL);
	if (real) {
		free(cut->path);
		cut->path = real;
	}
	if (asprintf(&cut->out_path, "%s.luatrace-%d", cut->path, (int)getpid()) < 0) {
		cut->out_path = NULL;
		return no_memory(cut, error);
	}
	err = descriptor_create(cut->out_path, 0600);
	if (err < 0)
		return error_set(error, -err, "cannot create %s: %s", cut->path, strerror(-err));
	cut->fd = err;
	return 0;
}

static int allocate(struct datacut *cut, struct trace_error *error)
{
	cut->chunk_room = CHUNK_BYTES > cut->meta.page_size ? CHUNK_BYTES : cut->meta.page_size;
	cut->chunk = malloc(cut->chunk_room);
	cut->in = malloc(datafile_layout(cut->file)->size);
	cut->stats = calloc((size_t)cut->stream->lane_count + 1, sizeof(*cut->stats));
	if (cut->options.compress) {
		cut->compressor = compressor_create();
		cut->packed = malloc(compressor_bound(cut->chunk_room) + 8);
		if (!cut->compressor || !cut->packed)
			return no_memory(cut, error);
	}
	return cut->chunk && cut->in && cut->stats ? 0 : no_memory(cut, error);
}

struct datacut *datacut_open(struct stream *stream, const char *path,
			     const struct datacut_options *options, struct trace_error *error)
{
	struct datacut *cut = calloc(1, sizeof(*cut));

	if (!cut) {
		error_set(error, ENOMEM, "no memory to write %s", path);
		return NULL;
	}
	cut->stream = to_file(stream);
	cut->file = datafile_get(cut->stream->file);
	cut->options = *options;
	cut->options.compress = options->compress && options->version == 7;
	/* all of it is what it would have been without a limit */
	if (cut->stream->is_over && merge_is_empty(cut->stream->merge))
		cut->options.only_delivered = false;
	cut->owner = getpid();
	cut->fd = -1;
	cut->path = strdup(path);
	if (!cut->path) {
		error_set(error, ENOMEM, "no memory to write %s", path);
	} else if (datafile_copy_meta(cut->file, &cut->meta, error) == 0 &&
		   allocate(cut, error) == 0) {
		cut->options_length = cut->meta.options.length;
		if (check_damage(cut, error) == 0 && list_buffers(cut, error) == 0 &&
		    check_clocks(cut, error) == 0 && build_head(cut, false, error) == 0 &&
		    open_output(cut, path, error) == 0) {
			cut->offset = cut->head.data_start;
			strbuf_free(&cut->head.bytes);
			return cut;
		}
	}
	datacut_close(cut);
	return NULL;
}

static void close_lane(struct datacut *cut)
{
	datapages_close(cut->lane.pages);
	page_build_free(&cut->lane.page);
	memset(&cut->lane, 0, sizeof(cut->lane));
}

void datacut_close(struct datacut *cut)
{
	if (!cut)
		return;
	close_lane(cut);
	if (cut->fd >= 0) {
		close(cut->fd);
		if (cut->owner == getpid())
			unlink(cut->out_path);
	}
	for (unsigned int i = 0; i < cut->buffer_count; i++)
		free(cut->buffers[i].cpus);
	free(cut->buffers);
	free(cut->stats);
	free(cut->in);
	free(cut->chunk);
	free(cut->packed);
	free(cut->path);
	free(cut->out_path);
	compressor_free(cut->compressor);
	data_head_free(&cut->head);
	data_meta_free(&cut->meta);
	datafile_put(cut->file);
	free(cut);
}

/* ------------------------------------------------------------------------- */
/* Pages                                                                      */
/* ------------------------------------------------------------------------- */

static void align(struct datacut *cut, uint32_t page_size)
{
	cut->offset = (cut->offset + page_size - 1) / page_size * page_size;
}

/* The pages of a CPU begin at a multiple of their size, compressed ones with how many chunks. */
static void begin_in_file(struct datacut *cut)
{
	struct cut_lane *lane = &cut->lane;

	lane->is_begun = true;
	align(cut, lane->layout.size);
	lane->cpu->offset = cut->offset;
	if (cut->compressor) {
		lane->count_at = cut->offset;
		cut->offset += 4;
	}
}

static int flush_chunk(struct datacut *cut, struct trace_error *error)
{
	size_t packed, length = cut->chunk_length;

	if (!length)
		return 0;
	if (!cut->lane.is_begun)
		begin_in_file(cut);
	cut->chunk_length = 0;
	if (!cut->compressor)
		return write_next(cut, cut->chunk, length, error);
	packed = compressor_run(cut->compressor, cut->packed, compressor_bound(cut->chunk_room),
				cut->chunk, length);
	if (!packed)
		return error_set(error, EIO, "cannot compress the pages of %s", cut->path);
	if (write_u32(cut, packed, cut->offset, error) < 0 ||
	    write_u32(cut, length, cut->offset + 4, error) < 0)
		return -1;
	cut->offset += 8;
	cut->lane.chunks++;
	return write_next(cut, cut->packed, packed, error);
}

int datacut_put_page(struct datacut *cut, const uint8_t *page, size_t size,
		     struct trace_error *error)
{
	if (cut->chunk_length + size > cut->chunk_room && flush_chunk(cut, error) < 0)
		return -1;
	memcpy(cut->chunk + cut->chunk_length, page, size);
	cut->chunk_length += size;
	return 0;
}

static int end_lane(struct datacut *cut, unsigned int index, struct trace_error *error)
{
	struct cut_lane *lane = &cut->lane;

	if (cut_lane_end(cut, index, error) < 0 || flush_chunk(cut, error) < 0)
		return -1;
	if (lane->is_begun) {
		if (cut->compressor && write_u32(cut, lane->chunks, lane->count_at, error) < 0)
			return -1;
		lane->cpu->size = cut->offset - lane->cpu->offset;
	}
	cut->done_before += cut->stream->lanes[index].cpu->size;
	close_lane(cut);
	return 0;
}

/* In version 7 the pages of a buffer are a section. */
static void begin_buffer(struct datacut *cut, struct cut_buffer *buffer)
{
	buffer->section = cut->offset;
	if (cut->options.version == 7)
		cut->offset += DATA_SECTION_HEAD;
}

static int end_buffer(struct datacut *cut, const struct cut_buffer *buffer,
		      struct trace_error *error)
{
	uint64_t size = cut->offset - buffer->section - DATA_SECTION_HEAD;
	struct strbuf head = { 0 };
	int result;

	if (cut->options.version == 6)
		return 0;
	/* the name of sections is known with the head, and the same as it was in the first one */
	data_head_section(&head, &cut->head, &cut->meta, cut->compressor != NULL, size);
	result = head.failed ? no_memory(cut, error) :
			       write_at(cut, head.text, head.length, buffer->section, error);
	strbuf_free(&head);
	return result;
}

/* What could only be known now, and the name. */
static int complete(struct datacut *cut, struct trace_error *error)
{
	int err;

	if (check_damage(cut, error) < 0)
		return -1;
	if (build_head(cut, true, error) < 0 ||
	    write_at(cut, cut->head.bytes.text, cut->head.bytes.length, 0, error) < 0)
		return -1;
	if (cut->offset < cut->head.bytes.length)
		cut->offset = cut->head.bytes.length;
	/* after a crash of the machine the name must not stand for an empty file */
	if (ftruncate(cut->fd, (off_t)cut->offset) < 0 || fdatasync(cut->fd) < 0 ||
	    rename(cut->out_path, cut->path) < 0) {
		err = errno;
		return error_set(error, err, "cannot complete %s: %s", cut->path, strerror(err));
	}
	close(cut->fd);
	cut->fd = -1;
	return 0;
}

static struct data_cpu *cpu_of(const struct datacut *cut, const struct cut_buffer *buffer,
			       unsigned int index)
{
	return &buffer->cpus[cut->options.version == 6 ? buffer->source->cpus[index].cpu : index];
}

int datacut_step(struct datacut *cut, struct trace_error *error)
{
	uint64_t bytes = 0;

	while (cut->buffer_index < cut->buffer_count) {
		struct cut_buffer *buffer = &cut->buffers[cut->buffer_index];
		unsigned int index = buffer->first_lane + cut->lane_index;
		int more;

		if (cut->lane_index == 0 && !cut->lane.pages)
			begin_buffer(cut, buffer);
		if (cut->lane_index == buffer->lane_count) {
			if (end_buffer(cut, buffer, error) < 0)
				return -1;
			cut->buffer_index++;
			cut->lane_index = 0;
			continue;
		}
		if (!cut->stream->lanes[index].is_wanted) {
			cut->lane_index++;
			continue;
		}
		if (!cut->lane.pages) {
			cut->lane.cpu = cpu_of(cut, buffer, cut->lane_index);
			if (cut_lane_begin(cut, index, buffer->page_size, error) < 0)
				return -1;
		}
		more = cut_lane_step(cut, index, &bytes, error);
		if (more < 0)
			return -1;
		if (!more) {
			if (end_lane(cut, index, error) < 0)
				return -1;
			cut->lane_index++;
		}
		if (bytes >= STEP_BYTES)
			return 1;
	}
	return complete(cut, error);
}

void datacut_progress(const struct datacut *cut, uint64_t *done, uint64_t *all)
{
	*done = cut->done_before;
	*all = 0;
	if (cut->lane.pages)
		*done += datapages_position(cut->lane.pages);
	for (unsigned int i = 0; i < cut->stream->lane_count; i++)
		if (cut->stream->lanes[i].is_wanted)
			*all += cut->stream->lanes[i].cpu->size;
}

uint64_t datacut_records(const struct datacut *cut)
{
	return cut->records;
}

const char *datacut_path(const struct datacut *cut)
{
	return cut->path;
}
