/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_STREAM_H
#define LUATRACE_STREAM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"
#include "instance.h"
#include "merge.h"
#include "sample.h"

/*
 * The records of one source, in order: a live instance's (stream_open) or those of a trace
 * file (filestream.h). Who takes them does not have to know which.
 */
struct stream_ops;

#define STREAM_MAX_TOP_IDS 4

struct stream {
	const struct stream_ops *ops;
	struct sampler sampler;
};

struct stream_options {
	const char *clock; /* what the instance is set to */
	uint64_t margin_ns;
	uint64_t interval_ns;	     /* longest time between two looks at a quiet buffer */
	uint64_t memory;	     /* bytes that read but not handed out records may take */
	unsigned int buffer_percent; /* fill at which a look is taken at once; 0: any event */
	bool overwrite;
	bool keep_own; /* hand out the tracer's own events too */
	bool snapshot; /* read the snapshot, which has no counters, instead of the buffer */
};

/*
 * The records of a live instance. With a clock that user space can read, the order across
 * CPUs is exact: the clock is read, every CPU is drained, and what is older than that
 * reading less the margin is handed out. The margin covers the time between an event
 * taking its timestamp and becoming visible. With other clocks what was seen one round ago
 * is handed out, which is best effort.
 *
 * @instance stays the caller's and must outlive the stream. The events of the calling
 * thread are its own ones (see stream_next).
 */
struct stream *stream_open(struct instance *instance, const struct stream_options *options,
			   struct trace_error *error);

struct stream_counts {
	uint64_t produced; /* by the kernel, without the tracer's own that were left out */
	uint64_t delivered;
	uint64_t lost;
	uint64_t pending; /* not handed out yet */
	uint64_t own;
	uint64_t skipped; /* left out by a sample, see stream_sample(); not in @produced */
	uint64_t overrun;
	uint64_t dropped;
	uint64_t commit_overrun;
};

/*
 * Who wants the sub-buffers too, as they were read and before their records are handed out.
 * @look comes with every fill. What they refuse (-1) is the fill's error, and is tried with
 * every page again: take a sink that has failed away.
 */
struct stream_sink {
	int (*page)(void *arg, unsigned int cpu, const uint8_t *bytes, size_t length,
		    struct trace_error *error);
	int (*look)(void *arg, struct trace_error *error);
	void *arg;
};

/* Can more records of a CPU be had than those that are in the merge? */
enum stream_more {
	MORE_NOW,   /* they are there now, and the bytes of the last item are gone */
	MORE_LATER, /* stream_fill() may bring some */
	MORE_NEVER,
};

/* What a source does; each is described at the function below that calls it. */
struct stream_ops {
	void (*close)(struct stream *stream);
	/* These three are NULL for a source that is no instance. */
	void (*close_files)(struct stream *stream);
	int (*open_files)(struct stream *stream, struct trace_error *error);
	int (*add_top)(struct stream *stream, const uint16_t *ids, unsigned int count,
		       struct trace_error *error);
	int (*fd)(const struct stream *stream);
	int (*watch)(struct stream *stream, int fd);
	int (*unwatch)(struct stream *stream, int fd);
	int (*fill)(struct stream *stream, struct trace_error *error);
	enum item_kind (*next)(struct stream *stream, struct item *item);
	struct merge *(*merge)(const struct stream *stream);
	enum stream_more (*more)(struct stream *stream, unsigned int index);
	bool (*may_skip)(const struct stream *stream, unsigned int index);
	bool (*is_behind)(const struct stream *stream);
	void (*kick)(struct stream *stream);
	void (*set_tick)(struct stream *stream, uint64_t mono_ns);
	void (*finish)(struct stream *stream);
	int (*keep)(struct stream *stream, unsigned int id);
	int (*set_sink)(struct stream *stream, const struct stream_sink *sink); /* or NULL */
	int (*counts)(struct stream *stream, unsigned int index, struct stream_counts *counts,
		      struct trace_error *error);
	unsigned int (*cpu_count)(const struct stream *stream);
	unsigned int (*cpu)(const struct stream *stream, unsigned int index);
	uint64_t (*late)(const struct stream *stream);
};

static inline void stream_close(struct stream *stream)
{
	if (stream)
		stream->ops->close(stream);
}

/*
 * The kernel lets nobody change an instance's tracer while somebody has the files of its buffer
 * open, and forgets what is in the buffer when one does. Before the first record only.
 */
static inline void stream_close_files(struct stream *stream)
{
	if (stream->ops->close_files)
		stream->ops->close_files(stream);
}

static inline int stream_open_files(struct stream *stream, struct trace_error *error)
{
	return stream->ops->open_files ? stream->ops->open_files(stream, error) : 0;
}

/*
 * Reads the top level's buffer too, on the instance's clock, which the caller has set there: its
 * records of the events @ids are in the stream, all others count as own ones, as they are not
 * this session's. Once, before the first record. 0 or -1.
 */
static inline int stream_add_top(struct stream *stream, const uint16_t *ids, unsigned int count,
				 struct trace_error *error)
{
	if (stream->ops->add_top)
		return stream->ops->add_top(stream, ids, count, error);
	return error_set(error, EINVAL, "a file has no top level");
}

/*
 * One descriptor to poll: readable when stream_fill() should be called, at the latest
 * after the interval.
 */
static inline int stream_fd(const struct stream *stream)
{
	return stream->ops->fd(stream);
}

/*
 * Makes the descriptor readable also while @fd is, for callers that wait for something
 * else as well. -1 with errno.
 */
static inline int stream_watch(struct stream *stream, int fd)
{
	return stream->ops->watch(stream, fd);
}

static inline int stream_unwatch(struct stream *stream, int fd)
{
	return stream->ops->unwatch(stream, fd);
}

/* Takes what the kernel has. Never blocks. 0 or -1. */
static inline int stream_fill(struct stream *stream, struct trace_error *error)
{
	return stream->ops->fill(stream, error);
}

/*
 * The next item that may be handed out. ITEM_NONE: call stream_fill() again, now when
 * stream_is_behind(), else once the descriptor is readable. An event's data is valid
 * until the next call.
 *
 * The tracer's own events are left out: those of the thread that opened the stream, in
 * task context. What an interrupt does on top of the tracer is other people's work and
 * stays, as do the events of stream_keep(). Inside a pid namespace, where the kernel's
 * number of the thread is not known, all stay.
 */
static inline enum item_kind stream_next(struct stream *stream, struct item *item)
{
	return stream->ops->next(stream, item);
}

/*
 * For who looks at records before they are handed out: where they are, by the CPU's place in
 * the list, and whether the CPU's buffer may have left some out without a mark.
 */
static inline struct merge *stream_merge(const struct stream *stream)
{
	return stream->ops->merge(stream);
}

static inline enum stream_more stream_more(struct stream *stream, unsigned int index)
{
	return stream->ops->more(stream, index);
}

static inline bool stream_may_skip(const struct stream *stream, unsigned int index)
{
	return stream->ops->may_skip(stream, index);
}

static inline bool stream_is_behind(const struct stream *stream)
{
	return stream->ops->is_behind(stream);
}

/* Makes the descriptor readable at once, for a caller that leaves items untaken. */
static inline void stream_kick(struct stream *stream)
{
	stream->ops->kick(stream);
}

/*
 * Asks for an ITEM_TICK between the events before and behind a time, given as
 * ns of the clock "mono". 0: none. With a clock that cannot be read it comes as soon as the
 * time has passed.
 */
static inline void stream_set_tick(struct stream *stream, uint64_t mono_ns)
{
	stream->ops->set_tick(stream, mono_ns);
}

/*
 * Tracing has been switched off: from now on everything that is left is handed out,
 * then ITEM_END.
 */
static inline void stream_finish(struct stream *stream)
{
	stream->ops->finish(stream);
}

/*
 * Records of this event are handed out also when the tracer caused them. -1: too many, or
 * not an id.
 */
static inline int stream_keep(struct stream *stream, unsigned int id)
{
	return stream->ops->keep(stream, id);
}

/*
 * Only some records of an event are handed out from now on, and have the scale in them. The
 * others are counted as skipped. -1: not an id, or no memory.
 */
static inline int stream_sample(struct stream *stream, int id, const struct sample *sample)
{
	return sampler_set(&stream->sampler, id, sample);
}

/* @sink is copied; NULL takes it away. -1: this source has none. */
static inline int stream_set_sink(struct stream *stream, const struct stream_sink *sink)
{
	return stream->ops->set_sink ? stream->ops->set_sink(stream, sink) : -1;
}

/* delivered + lost + pending = produced. @index counts the CPUs of stream_cpu(). */
static inline int stream_counts(struct stream *stream, unsigned int index,
				struct stream_counts *counts, struct trace_error *error)
{
	return stream->ops->counts(stream, index, counts, error);
}

static inline unsigned int stream_cpu_count(const struct stream *stream)
{
	return stream->ops->cpu_count(stream);
}

static inline unsigned int stream_cpu(const struct stream *stream, unsigned int index)
{
	return stream->ops->cpu(stream, index);
}

static inline uint64_t stream_late(const struct stream *stream)
{
	return stream->ops->late(stream);
}

#endif
