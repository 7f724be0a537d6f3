/* SPDX-License-Identifier: MIT */
/* Any bytes as a trace.dat: all of it is read, its formats are parsed, its pages walked. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "datafile.h"
#include "format.h"
#include "page.h"
#include "strbuf.h"

#define BLOCK 65536
#define MOST_PAGES 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_events(struct datafile *file)
{
	const struct datafile_info *info = datafile_info(file);
	struct catalog *catalog = catalog_create(info->big_endian, info->long_size);
	struct trace_error error;

	if (!catalog)
		return;
	if (datafile_fill_catalog(file, catalog, &error) == 0) {
		for (size_t i = 0; i < datafile_event_count(file); i++)
			datafile_describe(file, datafile_event(file, i), catalog, &error);
	}
	catalog_free(catalog);
}

static void read_cpu(struct datafile *file, const struct datafile_buffer *buffer,
		     unsigned int index)
{
	struct datapages *pages = datapages_open(file, buffer, index, BLOCK);
	size_t room = datafile_layout(file)->size, length;
	uint8_t *page = malloc(room);
	struct page_record record;
	struct page_walk walk;
	uint64_t offset;

	for (unsigned int i = 0; pages && page && i < MOST_PAGES; i++) {
		length = datapages_next(pages, page, room, &offset);
		if (!length)
			break;
		page_walk_start(&walk, datafile_layout(file), page, length);
		while (page_walk_next(&walk, &record))
			;
	}
	free(page);
	datapages_close(pages);
}

static void read_file(struct datafile *file)
{
	struct trace_error error;

	read_events(file);
	for (unsigned int i = 0; i < datafile_buffer_count(file); i++) {
		const struct datafile_buffer *buffer = datafile_buffer(file, i);
		struct strbuf text = { 0 };

		if (buffer->is_text)
			datafile_read_text(file, buffer, &text, &error);
		strbuf_free(&text);
		for (unsigned int cpu = 0; cpu < buffer->cpu_count; cpu++)
			read_cpu(file, buffer, cpu);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct trace_error error;
	struct datafile *file;
	char path[64];

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	file = datafile_open(path, &error);
	if (file) {
		read_file(file);
		datafile_put(file);
	}
	close(fd);
	return 0;
}
