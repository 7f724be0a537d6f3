/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "cpu.h"

/* What a kill may cost of a CPU that does not fill its sub-buffers, and of the file's table. */
#define CHECKPOINT_NS UINT64_C(1000000000)

/* One splice takes as much; the kernel allows it to everyone. */
#define PIPE_BYTES (1 << 20)

/* So much of one CPU, then the others get their turn. */
#define TURN_BYTES (64 << 20)

#define BUFFER_PERCENT "25"

struct recorder_lane {
	struct cpu_reader reader;
	bool is_watched;
	bool has_moved; /* since the last checkpoint */
};

struct recorder {
	struct instance *instance;
	struct datawrite *writer;
	int epoll_fd;
	int pipe[2];
	uint64_t checkpoint_at;
	bool can_splice;
	uint8_t *page;
	size_t page_size;
	unsigned int lane_count;
	struct recorder_lane lanes[];
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A CPU without a buffer (never online) answers with an error for ever. */
static void watch(struct recorder *recorder, struct recorder_lane *lane)
{
	struct pollfd now = { .fd = lane->reader.fd, .events = POLLIN };
	struct epoll_event event = { .events = EPOLLIN };

	if (poll(&now, 1, 0) > 0 && now.revents & (POLLERR | POLLHUP))
		return;
	lane->is_watched = epoll_ctl(recorder->epoll_fd, EPOLL_CTL_ADD, lane->reader.fd, &event) ==
			   0;
}

static int read_layout(struct recorder *recorder, struct trace_error *error)
{
	struct page_layout layout;
	struct strbuf text = { 0 };
	int result = instance_read(recorder->instance, "events/header_page", &text, error);

	if (result == 0)
		result = page_layout_parse(&layout, text.text ? text.text : "", text.length,
					   __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, error);
	strbuf_free(&text);
	if (result < 0)
		return -1;
	recorder->page_size = layout.size;
	recorder->page = malloc(layout.size);
	return recorder->page ? 0 : error_set(error, ENOMEM, "no memory for a sub-buffer");
}

static int open_all(struct recorder *recorder, const unsigned int *cpus, struct trace_error *error)
{
	if (read_layout(recorder, error) < 0)
		return -1;
	/* epoll takes the threshold when a descriptor is added, so it is set first */
	if (instance_has(recorder->instance, "buffer_percent") &&
	    instance_write(recorder->instance, "buffer_percent", BUFFER_PERCENT,
			   strlen(BUFFER_PERCENT), error) < 0)
		return -1;
	recorder->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (recorder->epoll_fd < 0 || pipe2(recorder->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
		int err = errno;

		return error_set(error, err, "cannot record: %s", strerror(err));
	}
	fcntl(recorder->pipe[1], F_SETPIPE_SZ, PIPE_BYTES);
	for (unsigned int i = 0; i < recorder->lane_count; i++) {
		struct recorder_lane *lane = &recorder->lanes[i];

		if (cpu_reader_open(&lane->reader, instance_dir_fd(recorder->instance), cpus[i],
				    "trace_pipe_raw", error) < 0)
			return -1;
		watch(recorder, lane);
	}
	return 0;
}

struct recorder *recorder_open(struct instance *instance, struct datawrite *writer,
			       struct trace_error *error)
{
	struct recorder *recorder;
	unsigned int *cpus = NULL;
	int count = instance_cpus(instance, &cpus, error);

	if (count < 0)
		return NULL;
	recorder = calloc(1, sizeof(*recorder) + (size_t)count * sizeof(recorder->lanes[0]));
	if (!recorder) {
		error_set(error, ENOMEM, "no memory to record %d CPUs", count);
		free(cpus);
		return NULL;
	}
	recorder->instance = instance;
	recorder->writer = writer;
	recorder->epoll_fd = recorder->pipe[0] = recorder->pipe[1] = -1;
	recorder->can_splice = true;
	recorder->checkpoint_at = now_ns();
	recorder->lane_count = (unsigned int)count;
	for (unsigned int i = 0; i < recorder->lane_count; i++)
		recorder->lanes[i].reader.fd = -1;
	instance_begin_reading(instance);
	if (open_all(recorder, cpus, error) < 0) {
		recorder_close(recorder);
		recorder = NULL;
	}
	free(cpus);
	return recorder;
}

void recorder_close(struct recorder *recorder)
{
	if (!recorder)
		return;
	for (unsigned int i = 0; i < recorder->lane_count; i++)
		cpu_reader_close(&recorder->lanes[i].reader);
	for (unsigned int i = 0; i < 2; i++) {
		if (recorder->pipe[i] >= 0)
			close(recorder->pipe[i]);
	}
	if (recorder->epoll_fd >= 0)
		close(recorder->epoll_fd);
	instance_end_reading(recorder->instance);
	free(recorder->page);
	free(recorder);
}

int recorder_fd(const struct recorder *recorder)
{
	return recorder->epoll_fd;
}

/* One read of a sub-buffer, full or not. */
static long move_page(struct recorder *recorder, struct recorder_lane *lane,
		      struct trace_error *error)
{
	long got;

	/* what has left the kernel must have a place to go to */
	if (datawrite_reserve(recorder->writer, lane->reader.cpu, recorder->page_size, error) < 0)
		return -1;
	got = cpu_reader_read(&lane->reader, recorder->page, recorder->page_size, error);
	if (got <= 0)
		return got;
	memset(recorder->page + got, 0, recorder->page_size - (size_t)got);
	if (datawrite_page(recorder->writer, lane->reader.cpu, recorder->page, recorder->page_size,
			   error) < 0)
		return -1;
	return got;
}

/* What has come out of the pipe goes into the file, all of it. */
static int empty_pipe(struct recorder *recorder, size_t left, int fd, off_t offset,
		      struct trace_error *error)
{
	while (left) {
		ssize_t done = splice(recorder->pipe[0], NULL, fd, &offset, left, SPLICE_F_MOVE);
		int err = errno;

		if (done < 0 && err == EINTR)
			continue;
		if (done <= 0) {
			if (done == 0)
				err = ENOSPC;
			return error_set(error, err, "cannot write %s: %s%s",
					 datawrite_path(recorder->writer), strerror(err),
					 err == ENOSPC ? "; what was written before is in it" : "");
		}
		left -= (size_t)done;
	}
	return 0;
}

/* Whole sub-buffers by one splice: bytes, 0 when there are none, -2 where that does not work. */
static long splice_pages(struct recorder *recorder, struct recorder_lane *lane,
			 struct trace_error *error)
{
	off_t offset;
	ssize_t got;
	int fd, err;

	if (datawrite_reserve(recorder->writer, lane->reader.cpu, PIPE_BYTES, error) < 0)
		return -1;
	do {
		got = splice(lane->reader.fd, NULL, recorder->pipe[1], NULL, PIPE_BYTES,
			     SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
		err = errno;
	} while (got < 0 && err == EINTR);
	if (got == 0 || (got < 0 && (err == EAGAIN || err == ENODEV || err == ENXIO)))
		return 0;
	if (got < 0)
		return -2;
	if (datawrite_begin_direct(recorder->writer, lane->reader.cpu, (size_t)got, &fd, &offset,
				   error) < 0 ||
	    empty_pipe(recorder, (size_t)got, fd, offset, error) < 0)
		return -1;
	datawrite_end_direct(recorder->writer, lane->reader.cpu, (size_t)got);
	return (long)got;
}

static long move_lane(struct recorder *recorder, struct recorder_lane *lane,
		      struct trace_error *error)
{
	long got, moved = 0;

	while (moved < TURN_BYTES) {
		got = recorder->can_splice ? splice_pages(recorder, lane, error) :
					     move_page(recorder, lane, error);
		if (got == -2) {
			recorder->can_splice = false;
			continue;
		}
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		moved += got;
	}
	if (moved && !lane->is_watched)
		watch(recorder, lane);
	lane->has_moved |= moved > 0;
	return moved;
}

static int checkpoint(struct recorder *recorder, struct trace_error *error)
{
	for (unsigned int i = 0; i < recorder->lane_count; i++) {
		struct recorder_lane *lane = &recorder->lanes[i];

		if (!lane->has_moved && move_page(recorder, lane, error) < 0)
			return -1;
		lane->has_moved = false;
	}
	return datawrite_checkpoint(recorder->writer, error);
}

long recorder_pump(struct recorder *recorder, struct trace_error *error)
{
	uint64_t now = now_ns();
	long got, moved = 0;

	for (unsigned int i = 0; i < recorder->lane_count; i++) {
		got = move_lane(recorder, &recorder->lanes[i], error);
		if (got < 0)
			return -1;
		moved += got;
	}
	if (now - recorder->checkpoint_at >= CHECKPOINT_NS) {
		recorder->checkpoint_at = now;
		if (checkpoint(recorder, error) < 0)
			return -1;
	}
	return moved;
}

long recorder_drain(struct recorder *recorder, struct trace_error *error)
{
	long got, moved = 0;

	for (unsigned int i = 0; i < recorder->lane_count; i++) {
		struct recorder_lane *lane = &recorder->lanes[i];

		do {
			got = move_lane(recorder, lane, error);
			if (got == 0)
				got = move_page(recorder, lane, error);
			if (got < 0)
				return -1;
			moved += got;
		} while (got > 0);
	}
	return datawrite_checkpoint(recorder->writer, error) < 0 ? -1 : moved;
}
