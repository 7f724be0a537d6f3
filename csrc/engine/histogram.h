/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_HISTOGRAM_H
#define LUATRACE_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What is known of many values in bounded memory: count, exact sum, least, greatest, variance,
 * and, if wanted, how many there are in each of a row of buckets. Merging two gives the same as
 * adding all values to one.
 */
enum histogram_scale {
	HISTOGRAM_NONE,
	HISTOGRAM_LOG,	  /* every power of two is cut into 2^bits buckets */
	HISTOGRAM_LINEAR, /* @count buckets of @width, and one on either side */
};

#define HISTOGRAM_MAX_BITS 11
#define HISTOGRAM_MAX_LINEAR 65536

struct histogram_shape {
	enum histogram_scale scale;
	unsigned int bits;
	int64_t from;
	uint64_t width;
	uint32_t count;
	bool is_unsigned; /* the values' bits are unsigned numbers */
	bool variance;
};

/* Begins as zeroes. */
struct histogram {
	uint64_t count;
	uint64_t sum_low;
	int64_t sum_high; /* the sum is sum_high * 2^64 + sum_low */
	int64_t min;
	int64_t max;
	double mean;
	double squares; /* of the distances from the mean */
	/*
	 * LOG: 64 pointers to the counts of an octave for values from 0, then 64 for those below,
	 * each made when it is needed. LINEAR: the counts.
	 */
	void *buckets;
};

/* Values from @from to @to, both in it. */
struct histogram_bucket {
	int64_t from;
	int64_t to;
	uint64_t count;
};

void histogram_free(struct histogram *histogram, const struct histogram_shape *shape);

/* False when memory is short; nothing has been added then. */
bool histogram_add(struct histogram *histogram, const struct histogram_shape *shape, int64_t value);

/* Both of one shape. False when memory is short; nothing has been added then. */
bool histogram_merge(struct histogram *into, const struct histogram *from,
		     const struct histogram_shape *shape);

/*
 * A value that the share of @percent of all values does not exceed, and that is not below the
 * least such value: above it by at most 1/2^bits of it, or by less than the width of a bucket.
 * The histogram has a scale and is not empty.
 */
int64_t histogram_percentile(const struct histogram *histogram, const struct histogram_shape *shape,
			     double percent);

/*
 * Calls @visit with each bucket that is not empty, in the order of values; a power of two is one
 * bucket whatever the bits.
 */
void histogram_visit(const struct histogram *histogram, const struct histogram_shape *shape,
		     void (*visit)(void *context, const struct histogram_bucket *bucket),
		     void *context);

/* The same with the buckets as they are counted: 2^bits for each power of two. */
void histogram_visit_steps(const struct histogram *histogram, const struct histogram_shape *shape,
			   void (*visit)(void *context, const struct histogram_bucket *bucket),
			   void *context);

/* The sum as a float; true with @exact when it fits into that. */
double histogram_sum(const struct histogram *histogram, bool is_unsigned, int64_t *exact,
		     bool *is_exact);

#endif
