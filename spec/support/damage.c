/* SPDX-License-Identifier: MIT */
/*
 * damage FILE STEP COUNT SEED: reads a trace file cut at every STEPth byte (0: not at all), then
 * COUNT copies of it with random damages, each as a report of all its records. Prints how many
 * could be opened, how many ended with an error, how many bytes of text there were (of records, or
 * a latency tracer's), and the largest resident size in KB. Any crash or hang ends it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "datafile.h"
#include "filestream.h"
#include "report.h"

/* What one reading may take, on a slow machine and under sanitizers too. */
#define PATIENCE_S 60

static unsigned long opened, failed, text;

static void read_all(const char *path)
{
	struct filestream_options options = { 0 };
	struct report_options layout = { .in_ns = true, .shows_buffer = true };
	struct trace_error error;
	struct datafile *file = datafile_open(path, &error);
	struct catalog *catalog;
	struct stream *stream;
	struct report *report;
	int result = 1;

	if (!file) {
		failed++;
		return;
	}
	opened++;
	catalog = catalog_create(datafile_info(file)->big_endian, datafile_info(file)->long_size);
	if (!catalog || datafile_fill_catalog(file, catalog, &error) < 0)
		abort();
	stream = filestream_open(file, catalog, &options, &error);
	if (stream) {
		filestream_select_all(stream);
		report = report_open(stream, file, catalog, &layout);
		if (!report)
			abort();
		while (result > 0) {
			struct strbuf out = { 0 };

			result = report_run(report, &out, &error);
			text += out.length;
			strbuf_free(&out);
		}
		failed += result < 0;
		for (unsigned int i = 0; i < stream_cpu_count(stream); i++) {
			struct stream_counts counts;

			if (stream_counts(stream, i, &counts, &error) == 0 &&
			    counts.delivered + counts.lost + counts.pending != counts.produced)
				abort();
		}
		report_close(report);
		stream_close(stream);
	} else {
		failed++;
	}
	for (unsigned int i = 0; i < datafile_buffer_count(file); i++) {
		struct strbuf out = { 0 };

		if (datafile_buffer(file, i)->is_text)
			datafile_read_text(file, datafile_buffer(file, i), &out, &error);
		text += out.length;
		strbuf_free(&out);
	}
	datafile_put(file);
	catalog_free(catalog);
}

static void write_bytes(int fd, const uint8_t *bytes, size_t length)
{
	if (ftruncate(fd, 0) < 0 || pwrite(fd, bytes, length, 0) != (ssize_t)length)
		abort();
	alarm(PATIENCE_S);
}

static uint64_t state;

static uint64_t random_number(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* A few bytes, most of them where the file says where things are. */
static void damage(uint8_t *bytes, size_t length)
{
	static const uint8_t values[] = { 0x00, 0xff, 0x7f, 0x80, 0x01 };
	unsigned int count = 1 + random_number() % 8;
	size_t range = random_number() % 3 ? length : length < 4096 ? length : 4096;
	size_t start = random_number() % 2 ? 0 : length - range;

	for (unsigned int i = 0; i < count; i++) {
		size_t at = start + random_number() % range;
		size_t run = 1 + random_number() % (random_number() % 4 ? 2 : 16);

		for (size_t k = at; k < at + run && k < length; k++)
			bytes[k] = random_number() % 2 ? values[random_number() % sizeof(values)] :
							 (uint8_t)random_number();
	}
}

int main(int argc, char **argv)
{
	struct rusage usage;
	struct stat status;
	uint8_t *bytes, *copy;
	size_t length, step;
	unsigned long count;
	char path[64];
	int fd, memory;

	if (argc != 5)
		return 2;
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	memory = memfd_create("damaged", MFD_CLOEXEC);
	if (fd < 0 || memory < 0 || fstat(fd, &status) < 0)
		return 1;
	length = (size_t)status.st_size;
	bytes = malloc(length);
	copy = malloc(length);
	if (!bytes || !copy || read(fd, bytes, length) != (ssize_t)length)
		return 1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
	step = strtoul(argv[2], NULL, 10);
	count = strtoul(argv[3], NULL, 10);
	state = strtoull(argv[4], NULL, 10) * 2654435761u + 88172645463325252u;

	for (size_t cut = 0; step && cut < length; cut += step) {
		write_bytes(memory, bytes, cut);
		read_all(path);
	}
	for (unsigned long i = 0; i < count; i++) {
		memcpy(copy, bytes, length);
		damage(copy, length);
		write_bytes(memory, copy, length);
		read_all(path);
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("opened %lu failed %lu text %lu rss_kb %ld\n", opened, failed, text,
	       usage.ru_maxrss);
	free(bytes);
	free(copy);
	close(memory);
	close(fd);
	return 0;
}
