/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "datawrite_state.h"
#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The regions of all CPUs together: below what ext4 allows for a file with blocks of 4 KiB. */
#define MAX_EXTENT (UINT64_C(8) << 40)
#define MAX_REGION (UINT64_C(1) << 40)
/* The disk is asked for so much at once. */
#define RESERVE_BYTES (UINT64_C(4) << 20)
/* Regions of less make no recording. */
#define MIN_REGION_PAGES 16

static int write_error(struct datawrite *writer, int code, struct trace_error *error)
{
	return error_set(error, code, "cannot write %s: %s%s", writer->path, strerror(code),
			 code == ENOSPC || code == EDQUOT ? "; what was written before is in it" :
							    "");
}

static int check_owner(const struct datawrite *writer, struct trace_error *error)
{
	if (writer->owner == getpid())
		return 0;
	return error_set(error, EPERM,
			 "cannot write %s: this process is a child of the one that records into it",
			 writer->path);
}

int datawrite_write_at(struct datawrite *writer, int fd, const void *bytes, size_t length,
		       uint64_t offset, struct trace_error *error)
{
	int err;

	if (check_owner(writer, error) < 0)
		return -1;
	err = descriptor_write_at(fd, bytes, length, offset);
	return err ? write_error(writer, err, error) : 0;
}

/* A name that renaming over replaces the file itself by, not a link to it. */
static char *real_path(const char *path)
{
	char *real = realpath(path, NULL);

	return real ? real : strdup(path);
}

static int open_file(struct datawrite *writer, struct trace_error *error)
{
	struct stat info;
	int err;

	writer->fd = open(writer->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
	err = errno;
	if (writer->fd < 0)
		return error_set(error, err, "cannot create %s: %s", writer->path, strerror(err));
	if (fstat(writer->fd, &info) < 0 || !S_ISREG(info.st_mode))
		return error_set(error, EINVAL,
				 "cannot record into %s: a trace file is written in more than one "
				 "place at a time, so it must be a regular file",
				 writer->path);
	if (flock(writer->fd, LOCK_EX | LOCK_NB) < 0)
		return error_set(error, EBUSY,
				 "cannot record into %s: another process is recording into it",
				 writer->path);
	if (ftruncate(writer->fd, 0) < 0) {
		err = errno;
		return write_error(writer, err, error);
	}
	return 0;
}

/* Regions as large as this file system and the limits of this process allow. */
static int lay_out(struct datawrite *writer, struct trace_error *error)
{
	uint64_t page = writer->layout.size, extent = MAX_EXTENT, region;
	uint64_t base = writer->head.data_start + page - 1;
	struct rlimit limit;
	int err = EFBIG;

	base -= base % page;
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    limit.rlim_cur < extent)
		extent = limit.rlim_cur;
	region = extent > base ? (extent - base) / writer->cpu_count : 0;
	if (region > MAX_REGION)
		region = MAX_REGION;
	for (; region >= MIN_REGION_PAGES * page; region /= 2) {
		region -= region % page;
		if (ftruncate(writer->fd, (off_t)(base + region * writer->cpu_count)) == 0) {
			writer->region = region;
			for (unsigned int i = 0; i < writer->cpu_count; i++)
				writer->lanes[i].start = base + i * region;
			return 0;
		}
		err = errno;
		if (err != EFBIG && err != EINVAL && err != ENOSPC)
			break;
	}
	return error_set(error, err, "cannot record into %s: no room for the pages of %u CPUs: %s",
			 writer->path, writer->cpu_count, strerror(err));
}

/* What the table says about each CPU. */
static void fill_table(const struct datawrite *writer, struct data_cpu *cpus)
{
	for (unsigned int i = 0; i < writer->cpu_count; i++)
		cpus[i] = (struct data_cpu){ i, writer->lanes[i].start, writer->lanes[i].size };
}

static int build_head(struct datawrite *writer, const struct data_meta *meta,
		      struct trace_error *error)
{
	struct data_cpu *cpus = calloc(writer->cpu_count, sizeof(*cpus));
	int result = -1;

	if (cpus) {
		struct data_buffer top = {
			.name = "",
			.clock = meta->clock,
			.page_size = meta->page_size,
			.cpus = cpus,
			.cpu_count = writer->cpu_count,
		};

		fill_table(writer, cpus);
		result = data_head_build(&writer->head, meta, writer->version, NULL, &top, 1);
	}
	free(cpus);
	return result < 0 ? error_set(error, ENOMEM, "no memory for the head of a trace file") : 0;
}

static int set_up(struct datawrite *writer, const struct data_meta *meta, struct trace_error *error)
{
	uint64_t end;

	if (page_layout_parse(&writer->layout, meta->header_page.text, meta->header_page.length,
			      meta->big_endian, error) < 0)
		return -1;
	writer->big_endian = meta->big_endian;
	for (unsigned int i = 0; i < writer->cpu_count; i++) {
		if (page_build_init(&writer->lanes[i].open, &writer->layout) < 0)
			return error_set(error, ENOMEM, "no memory for a page of each CPU");
	}
	if (build_head(writer, meta, error) < 0 || open_file(writer, error) < 0)
		return -1;
	if (lay_out(writer, error) < 0 ||
	    datawrite_write_at(writer, writer->fd, writer->head.bytes.text, writer->head.data_start,
			       0, error) < 0)
		return -1;
	if (writer->head.section_size_at) {
		struct strbuf size = { 0 };
		int result;

		end = writer->lanes[0].start + writer->region * writer->cpu_count;
		data_put_int(&size, end - writer->head.data_start, 8, writer->big_endian);
		result = size.failed ?
				 -1 :
				 datawrite_write_at(writer, writer->fd, size.text, size.length,
						    writer->head.section_size_at, error);
		strbuf_free(&size);
		if (result < 0)
			return -1;
	}
	/* the head is in the file; its places are all that is needed of it now */
	strbuf_free(&writer->head.bytes);
	return datawrite_checkpoint(writer, error);
}

struct datawrite *datawrite_open(const char *path, const struct data_meta *meta,
				 const struct datawrite_options *options, struct trace_error *error)
{
	unsigned int count = meta->cpu_count ? meta->cpu_count : 1;
	struct datawrite *writer = calloc(1, sizeof(*writer) + count * sizeof(writer->lanes[0]));

	if (!writer) {
		error_set(error, ENOMEM, "no memory to write %s", path);
		return NULL;
	}
	writer->owner = getpid();
	writer->fd = -1;
	writer->out_fd = -1;
	writer->version = options->version;
	writer->compress = options->compress && options->version >= 7;
	writer->own = options->own;
	writer->cpu_count = count;
	writer->path = real_path(path);
	if (!writer->path) {
		error_set(error, ENOMEM, "no memory to write %s", path);
	} else if (set_up(writer, meta, error) == 0) {
		return writer;
	} else if (writer->fd >= 0 && writer->lanes[0].start) {
		/* nothing of ours is worth keeping */
		if (ftruncate(writer->fd, 0) < 0)
			unlink(writer->path);
	}
	writer->broken = true;
	datawrite_close(writer);
	return NULL;
}

void datawrite_close(struct datawrite *writer)
{
	if (!writer)
		return;
	if (writer->fd >= 0 && !writer->broken && !writer->finished)
		datawrite_checkpoint(writer, NULL);
	if (writer->out_fd >= 0)
		datawrite_drop_output(writer);
	if (writer->fd >= 0)
		close(writer->fd);
	for (unsigned int i = 0; i < writer->cpu_count; i++)
		page_build_free(&writer->lanes[i].open);
	page_build_free(&writer->rebuilt);
	compressor_free(writer->compressor);
	free(writer->chunk);
	free(writer->packed);
	free(writer->out_cpus);
	free(writer->out_path);
	free(writer->path);
	data_head_free(&writer->head);
	data_head_free(&writer->out_head);
	free(writer);
}

/* ------------------------------------------------------------------------- */
/* Pages                                                                      */
/* ------------------------------------------------------------------------- */

static struct write_lane *find_lane(struct datawrite *writer, unsigned int cpu,
				    struct trace_error *error)
{
	if (cpu < writer->cpu_count)
		return &writer->lanes[cpu];
	error_set(error, EINVAL, "cannot write pages of CPU %u into %s: it is for %u CPUs", cpu,
		  writer->path, writer->cpu_count);
	return NULL;
}

static int region_full(struct datawrite *writer, unsigned int cpu, struct trace_error *error)
{
	return error_set(error, EFBIG,
			 "cannot write more pages of CPU %u into %s: this file system or the limit "
			 "for files (ulimit -f) leaves %llu bytes for each CPU",
			 cpu, writer->path, (unsigned long long)writer->region);
}

int datawrite_reserve(struct datawrite *writer, unsigned int cpu, size_t bytes,
		      struct trace_error *error)
{
	struct write_lane *lane = find_lane(writer, cpu, error);
	uint64_t end, far;
	int err = 0;

	if (!lane || check_owner(writer, error) < 0)
		return -1;
	end = lane->size + bytes + writer->layout.size; /* the open page may come before it */
	if (end <= lane->reserved || end > writer->region || writer->cannot_reserve)
		return 0;
	far = end + RESERVE_BYTES < writer->region ? end + RESERVE_BYTES : end;
	if (fallocate(writer->fd, FALLOC_FL_KEEP_SIZE, (off_t)lane->start, (off_t)far) == 0) {
		lane->reserved = far;
		return 0;
	}
	if (fallocate(writer->fd, FALLOC_FL_KEEP_SIZE, (off_t)lane->start, (off_t)end) == 0) {
		lane->reserved = end;
		return 0;
	}
	err = errno;
	if (err == ENOSPC || err == EDQUOT)
		return write_error(writer, err, error);
	writer->cannot_reserve = true;
	return 0;
}

/* The page that is still open goes behind the others of its CPU. */
static int put_open_page(struct datawrite *writer, struct write_lane *lane,
			 struct trace_error *error)
{
	if (!lane->open_is_dirty)
		return 0;
	if (datawrite_write_at(writer, writer->fd, page_build_bytes(&lane->open),
			       writer->layout.size, lane->start + lane->open_at, error) < 0)
		return -1;
	lane->open_is_dirty = false;
	lane->size = lane->open_at + writer->layout.size;
	return 0;
}

/* No more is added to the open page. */
static int close_open_page(struct datawrite *writer, struct write_lane *lane,
			   struct trace_error *error)
{
	if (put_open_page(writer, lane, error) < 0)
		return -1;
	lane->open.is_open = false;
	return 0;
}

static int put_page(struct datawrite *writer, struct write_lane *lane, unsigned int cpu,
		    const uint8_t *page, size_t length, struct trace_error *error)
{
	if (lane->size + writer->layout.size > writer->region)
		return region_full(writer, cpu, error);
	if (datawrite_write_at(writer, writer->fd, page, length, lane->start + lane->size, error) <
	    0)
		return -1;
	lane->size += writer->layout.size;
	writer->bytes += writer->layout.size;
	return 0;
}

int datawrite_page(struct datawrite *writer, unsigned int cpu, const uint8_t *page, size_t length,
		   struct trace_error *error)
{
	struct write_lane *lane = find_lane(writer, cpu, error);
	struct page_walk walk;

	if (!lane)
		return -1;
	if (length > writer->layout.size)
		length = writer->layout.size;
	page_walk_start(&walk, &writer->layout, page, length);
	if (page_build_append(&lane->open, page, length)) {
		lane->open_is_dirty = true;
		return 0;
	}
	if (close_open_page(writer, lane, error) < 0)
		return -1;
	if ((size_t)(walk.end - walk.next) < writer->layout.size / 2 &&
	    page_build_take(&lane->open, page, length)) {
		if (lane->size + writer->layout.size > writer->region)
			return region_full(writer, cpu, error);
		lane->open_at = lane->size;
		lane->open_is_dirty = true;
		writer->bytes += writer->layout.size;
		return 0;
	}
	return put_page(writer, lane, cpu, page, length, error);
}

int datawrite_begin_direct(struct datawrite *writer, unsigned int cpu, size_t length, int *fd,
			   off_t *offset, struct trace_error *error)
{
	struct write_lane *lane = find_lane(writer, cpu, error);

	if (!lane || check_owner(writer, error) < 0 || close_open_page(writer, lane, error) < 0)
		return -1;
	if (length > writer->region - lane->size)
		return region_full(writer, cpu, error);
	*fd = writer->fd;
	*offset = (off_t)(lane->start + lane->size);
	return 0;
}

void datawrite_end_direct(struct datawrite *writer, unsigned int cpu, size_t bytes)
{
	bytes -= bytes % writer->layout.size;
	writer->lanes[cpu].size += bytes;
	writer->bytes += bytes;
}

int datawrite_checkpoint(struct datawrite *writer, struct trace_error *error)
{
	struct data_meta order = { .big_endian = writer->big_endian };
	struct strbuf table = { 0 };
	struct data_cpu *cpus;
	int result = 0;

	/* a page that cannot be written must not keep the table from telling of the others */
	for (unsigned int i = 0; i < writer->cpu_count; i++) {
		if (put_open_page(writer, &writer->lanes[i], error) < 0)
			result = -1;
	}
	cpus = calloc(writer->cpu_count, sizeof(*cpus));
	if (!cpus)
		return error_set(error, ENOMEM, "no memory for a checkpoint of %s", writer->path);
	fill_table(writer, cpus);
	data_head_table(&table, &order, writer->version, cpus, writer->cpu_count);
	if (table.failed)
		result = error_set(error, ENOMEM, "no memory for a checkpoint of %s", writer->path);
	else if (datawrite_write_at(writer, writer->fd, table.text, table.length,
				    writer->head.table_at, error) < 0)
		result = -1;
	strbuf_free(&table);
	free(cpus);
	return result;
}

uint64_t datawrite_bytes(const struct datawrite *writer)
{
	return writer->bytes;
}

uint64_t datawrite_left_out(const struct datawrite *writer)
{
	return writer->left_out;
}

uint64_t datawrite_done(const struct datawrite *writer)
{
	return writer->done;
}

const char *datawrite_path(const struct datawrite *writer)
{
	return writer->path;
}
