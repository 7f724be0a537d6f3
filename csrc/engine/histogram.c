/* SPDX-License-Identifier: MIT */
#include "histogram.h"

#include <stdlib.h>
#include <string.h>

#define OCTAVES 64

static bool is_below(const struct histogram_shape *shape, int64_t a, int64_t b)
{
	return shape->is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
}

static double to_double(const struct histogram_shape *shape, int64_t value)
{
	return shape->is_unsigned ? (double)(uint64_t)value : (double)value;
}

void histogram_free(struct histogram *histogram, const struct histogram_shape *shape)
{
	uint64_t **octaves = histogram->buckets;

	if (octaves && shape->scale == HISTOGRAM_LOG) {
		for (unsigned int i = 0; i < 2 * OCTAVES; i++)
			free(octaves[i]);
	}
	free(histogram->buckets);
	*histogram = (struct histogram){ 0 };
}

/*
 * Octave 0 has the values below 2^(bits + 1) one by one, as many as two octaves have; octave n
 * those of the n-th power of two above, in steps of 2^n.
 */
static unsigned int octave_of(const struct histogram_shape *shape, uint64_t magnitude)
{
	unsigned int bits = shape->bits + 1;

	if (magnitude >> bits == 0)
		return 0;
	return 64 - (unsigned int)__builtin_clzll(magnitude) - bits;
}

static uint32_t octave_size(const struct histogram_shape *shape, unsigned int octave)
{
	return octave ? 1U << shape->bits : 2U << shape->bits;
}

static uint32_t bucket_in_octave(const struct histogram_shape *shape, unsigned int octave,
				 uint64_t magnitude)
{
	uint32_t index = (uint32_t)(magnitude >> octave);

	return octave ? index - (1U << shape->bits) : index;
}

/* The greatest magnitude of a bucket. */
static uint64_t bucket_top(const struct histogram_shape *shape, unsigned int octave, uint32_t index)
{
	uint64_t mantissa = octave ? index + (UINT64_C(1) << shape->bits) : index;

	return mantissa << octave | ((UINT64_C(1) << octave) - 1);
}

static uint64_t bucket_bottom(const struct histogram_shape *shape, unsigned int octave,
			      uint32_t index)
{
	uint64_t mantissa = octave ? index + (UINT64_C(1) << shape->bits) : index;

	return mantissa << octave;
}

static uint64_t *octave_get(struct histogram *histogram, const struct histogram_shape *shape,
			    unsigned int octave, bool is_negative)
{
	uint64_t **octaves = histogram->buckets;
	uint64_t **place;

	if (!octaves) {
		octaves = calloc(2 * OCTAVES, sizeof(*octaves));
		if (!octaves)
			return NULL;
		histogram->buckets = octaves;
	}
	place = &octaves[is_negative ? OCTAVES + octave : octave];
	if (!*place)
		*place = calloc(octave_size(shape, octave), sizeof(**place));
	return *place;
}

static uint64_t *log_bucket(struct histogram *histogram, const struct histogram_shape *shape,
			    int64_t value)
{
	bool is_negative = value < 0 && !shape->is_unsigned;
	uint64_t magnitude = is_negative ? -(uint64_t)value : (uint64_t)value;
	unsigned int octave = octave_of(shape, magnitude);
	uint64_t *counts = octave_get(histogram, shape, octave, is_negative);

	return counts ? &counts[bucket_in_octave(shape, octave, magnitude)] : NULL;
}

/* The first bucket is for what lies below, the last for what lies above. */
static uint64_t *linear_bucket(struct histogram *histogram, const struct histogram_shape *shape,
			       int64_t value)
{
	uint64_t *counts = histogram->buckets;
	uint64_t distance = (uint64_t)value - (uint64_t)shape->from;

	if (!counts) {
		counts = calloc((size_t)shape->count + 2, sizeof(*counts));
		if (!counts)
			return NULL;
		histogram->buckets = counts;
	}
	if (is_below(shape, value, shape->from))
		return &counts[0];
	if (distance / shape->width >= shape->count)
		return &counts[shape->count + 1];
	return &counts[distance / shape->width + 1];
}

static void add_to_sum(struct histogram *histogram, uint64_t low, int64_t high)
{
	histogram->sum_low += low;
	histogram->sum_high += high + (histogram->sum_low < low);
}

static void note_extremes(struct histogram *histogram, const struct histogram_shape *shape,
			  int64_t min, int64_t max)
{
	if (!histogram->count || is_below(shape, min, histogram->min))
		histogram->min = min;
	if (!histogram->count || is_below(shape, histogram->max, max))
		histogram->max = max;
}

bool histogram_add(struct histogram *histogram, const struct histogram_shape *shape, int64_t value)
{
	if (shape->scale != HISTOGRAM_NONE) {
		uint64_t *bucket = shape->scale == HISTOGRAM_LOG ?
					   log_bucket(histogram, shape, value) :
					   linear_bucket(histogram, shape, value);

		if (!bucket)
			return false;
		++*bucket;
	}
	note_extremes(histogram, shape, value, value);
	histogram->count++;
	add_to_sum(histogram, (uint64_t)value, value < 0 && !shape->is_unsigned ? -1 : 0);
	if (shape->variance) {
		double distance = to_double(shape, value) - histogram->mean;

		histogram->mean += distance / (double)histogram->count;
		histogram->squares += distance * (to_double(shape, value) - histogram->mean);
	}
	return true;
}

/* All the memory that a merge needs, before anything is changed. */
static bool prepare_merge(struct histogram *into, const struct histogram *from,
			  const struct histogram_shape *shape)
{
	uint64_t **octaves = from->buckets;

	if (!octaves)
		return true;
	if (shape->scale == HISTOGRAM_LINEAR)
		return linear_bucket(into, shape, shape->from) != NULL;
	for (unsigned int i = 0; i < 2 * OCTAVES; i++) {
		if (octaves[i] && !octave_get(into, shape, i % OCTAVES, i >= OCTAVES))
			return false;
	}
	return true;
}

static void merge_buckets(struct histogram *into, const struct histogram *from,
			  const struct histogram_shape *shape)
{
	uint64_t **theirs = from->buckets;
	uint64_t **ours = into->buckets;

	if (!theirs)
		return;
	if (shape->scale == HISTOGRAM_LINEAR) {
		for (uint32_t i = 0; i < shape->count + 2; i++)
			((uint64_t *)into->buckets)[i] += ((uint64_t *)from->buckets)[i];
		return;
	}
	for (unsigned int i = 0; i < 2 * OCTAVES; i++) {
		for (uint32_t k = 0; theirs[i] && k < octave_size(shape, i % OCTAVES); k++)
			ours[i][k] += theirs[i][k];
	}
}

bool histogram_merge(struct histogram *into, const struct histogram *from,
		     const struct histogram_shape *shape)
{
	if (!from->count)
		return true;
	if (!prepare_merge(into, from, shape))
		return false;
	merge_buckets(into, from, shape);
	note_extremes(into, shape, from->min, from->max);
	if (shape->variance) {
		double ours = (double)into->count;
		double theirs = (double)from->count;
		double distance = from->mean - into->mean;

		into->mean += distance * theirs / (ours + theirs);
		into->squares +=
			from->squares + distance * distance * ours * theirs / (ours + theirs);
	}
	into->count += from->count;
	add_to_sum(into, from->sum_low, from->sum_high);
	return true;
}

struct search {
	uint64_t rank;
	uint64_t seen;
	int64_t found;
};

/* True when the value of the rank lies in this bucket. */
static bool search_bucket(struct search *search, uint64_t count, int64_t top)
{
	search->seen += count;
	search->found = top;
	return count && search->seen >= search->rank;
}

static bool search_octave(struct search *search, const struct histogram_shape *shape,
			  const uint64_t *counts, unsigned int octave, bool is_negative)
{
	uint32_t size = octave_size(shape, octave);

	for (uint32_t i = 0; counts && i < size; i++) {
		uint32_t index = is_negative ? size - 1 - i : i;
		uint64_t top = is_negative ? -bucket_bottom(shape, octave, index) :
					     bucket_top(shape, octave, index);

		if (search_bucket(search, counts[index], (int64_t)top))
			return true;
	}
	return false;
}

static void search_log(struct search *search, const struct histogram *histogram,
		       const struct histogram_shape *shape)
{
	uint64_t **octaves = histogram->buckets;

	for (unsigned int i = OCTAVES; i-- > 0;) {
		if (search_octave(search, shape, octaves[OCTAVES + i], i, true))
			return;
	}
	for (unsigned int i = 0; i < OCTAVES; i++) {
		if (search_octave(search, shape, octaves[i], i, false))
			return;
	}
}

static void search_linear(struct search *search, const struct histogram *histogram,
			  const struct histogram_shape *shape)
{
	const uint64_t *counts = histogram->buckets;

	for (uint32_t i = 0; i < shape->count + 1; i++) {
		uint64_t top = (uint64_t)shape->from + i * shape->width - 1;

		if (search_bucket(search, counts[i], (int64_t)top))
			return;
	}
	search->found = histogram->max;
}

/*
 * How many of the values are the share, at least one. 99.9 % of 41000 is 40959, but a little more
 * in floating point: what is whole but for its rounding must not be the next whole number.
 */
static uint64_t rank_of(uint64_t count, double percent)
{
	double rank = (double)count * percent / 100;
	uint64_t whole;

	rank -= rank * 0x1p-50;
	if (rank >= (double)count)
		return count;
	whole = (uint64_t)rank;
	whole += (double)whole < rank;
	return whole ? whole : 1;
}

int64_t histogram_percentile(const struct histogram *histogram, const struct histogram_shape *shape,
			     double percent)
{
	struct search search = { .rank = rank_of(histogram->count, percent) };

	if (search.rank >= histogram->count)
		return histogram->max;
	if (shape->scale == HISTOGRAM_LOG)
		search_log(&search, histogram, shape);
	else
		search_linear(&search, histogram, shape);
	if (is_below(shape, histogram->max, search.found))
		return histogram->max;
	return is_below(shape, search.found, histogram->min) ? histogram->min : search.found;
}

struct rows {
	uint64_t counts[OCTAVES];
};

/* How many values have their highest bit where; that of 0 is that of 1. */
static void count_rows(struct rows *rows, const struct histogram_shape *shape, uint64_t **octaves)
{
	*rows = (struct rows){ 0 };
	for (unsigned int i = 0; i < OCTAVES; i++) {
		for (uint32_t k = 0; octaves[i] && k < octave_size(shape, i); k++) {
			uint64_t top = bucket_top(shape, i, k);

			rows->counts[63 - __builtin_clzll(top | 1)] += octaves[i][k];
		}
	}
}

static void visit_log(const struct histogram *histogram, const struct histogram_shape *shape,
		      void (*visit)(void *context, const struct histogram_bucket *bucket),
		      void *context)
{
	uint64_t **octaves = histogram->buckets;
	struct rows rows;

	count_rows(&rows, shape, octaves + OCTAVES);
	for (unsigned int i = OCTAVES; i-- > 0;) {
		/* -0 is not among them: the row of 0 and 1 is that of -1 alone */
		struct histogram_bucket bucket = {
			.from = (int64_t) - ((UINT64_C(2) << i) - 1),
			.to = (int64_t) - (UINT64_C(1) << i),
			.count = rows.counts[i],
		};

		/* only -2^63 itself has its highest bit there */
		if (i == OCTAVES - 1)
			bucket.from = INT64_MIN;
		if (bucket.count)
			visit(context, &bucket);
	}
	count_rows(&rows, shape, octaves);
	for (unsigned int i = 0; i < OCTAVES; i++) {
		struct histogram_bucket bucket = {
			.from = i ? (int64_t)(UINT64_C(1) << i) : 0,
			.to = (int64_t)((UINT64_C(1) << i) - 1 + (UINT64_C(1) << i)),
			.count = rows.counts[i],
		};

		if (bucket.count)
			visit(context, &bucket);
	}
}

/* The buckets of one sign, each as it is counted. */
static void visit_octave(const struct histogram_shape *shape, unsigned int octave,
			 const uint64_t *counts, bool is_negative,
			 void (*visit)(void *context, const struct histogram_bucket *bucket),
			 void *context)
{
	uint32_t size = octave_size(shape, octave);

	for (uint32_t i = 0; i < size; i++) {
		uint32_t index = is_negative ? size - 1 - i : i;
		uint64_t bottom = bucket_bottom(shape, octave, index);
		uint64_t top = bucket_top(shape, octave, index);
		struct histogram_bucket bucket = {
			.from = (int64_t)(is_negative ? -top : bottom),
			.to = (int64_t)(is_negative ? -bottom : top),
			.count = counts[index],
		};

		/* nothing is below -2^63 */
		if (is_negative && top > UINT64_C(1) << 63)
			bucket.from = INT64_MIN;
		if (bucket.count)
			visit(context, &bucket);
	}
}

static void visit_log_steps(const struct histogram *histogram, const struct histogram_shape *shape,
			    void (*visit)(void *context, const struct histogram_bucket *bucket),
			    void *context)
{
	uint64_t **octaves = histogram->buckets;

	for (unsigned int i = OCTAVES; i-- > 0;) {
		if (octaves[OCTAVES + i])
			visit_octave(shape, i, octaves[OCTAVES + i], true, visit, context);
	}
	for (unsigned int i = 0; i < OCTAVES; i++) {
		if (octaves[i])
			visit_octave(shape, i, octaves[i], false, visit, context);
	}
}

static void visit_linear(const struct histogram *histogram, const struct histogram_shape *shape,
			 void (*visit)(void *context, const struct histogram_bucket *bucket),
			 void *context)
{
	const uint64_t *counts = histogram->buckets;

	for (uint32_t i = 0; i < shape->count + 2; i++) {
		uint64_t from = (uint64_t)shape->from + (i - UINT64_C(1)) * shape->width;
		struct histogram_bucket bucket = {
			.from = i ? (int64_t)from : histogram->min,
			.to = i <= shape->count ? (int64_t)(from + shape->width - 1) :
						  histogram->max,
			.count = counts[i],
		};

		if (bucket.count)
			visit(context, &bucket);
	}
}

void histogram_visit(const struct histogram *histogram, const struct histogram_shape *shape,
		     void (*visit)(void *context, const struct histogram_bucket *bucket),
		     void *context)
{
	if (!histogram->buckets)
		return;
	if (shape->scale == HISTOGRAM_LOG)
		visit_log(histogram, shape, visit, context);
	else
		visit_linear(histogram, shape, visit, context);
}

void histogram_visit_steps(const struct histogram *histogram, const struct histogram_shape *shape,
			   void (*visit)(void *context, const struct histogram_bucket *bucket),
			   void *context)
{
	if (!histogram->buckets)
		return;
	if (shape->scale == HISTOGRAM_LOG)
		visit_log_steps(histogram, shape, visit, context);
	else
		visit_linear(histogram, shape, visit, context);
}

double histogram_sum(const struct histogram *histogram, bool is_unsigned, int64_t *exact,
		     bool *is_exact)
{
	int64_t low = (int64_t)histogram->sum_low;

	*exact = low;
	*is_exact = is_unsigned ? histogram->sum_high == 0 :
				  histogram->sum_high == (low < 0 ? -1 : 0);
	return (double)histogram->sum_high * 18446744073709551616.0 + (double)histogram->sum_low;
}
