/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>

#include "datafile_state.h"
#include "datahead.h"
#include "datameta.h"

/* What a file says, for another file that is made of it. */

/*
 * Those that are whole in themselves. The others are places in the file, or counts of what is
 * in it; what later writers add may be either.
 */
static bool is_lasting(unsigned int id)
{
	switch (id) {
	case OPTION_DATE:
	case OPTION_TRACECLOCK:
	case OPTION_UNAME:
	case OPTION_HOOK:
	case OPTION_OFFSET:
	case OPTION_VERSION:
	case OPTION_PROCMAPS:
	case OPTION_TRACEID:
	case OPTION_TIME_SHIFT:
	case OPTION_GUEST:
	case OPTION_TSC2NSEC:
		return true;
	default:
		return false;
	}
}

void datafile_keep_option(struct datafile *file, unsigned int id, const uint8_t *data,
			  uint32_t size)
{
	if (!is_lasting(id))
		return;
	data_put_int(&file->options, id, 2, file->info.big_endian);
	data_put_int(&file->options, size, 4, file->info.big_endian);
	if (size)
		strbuf_add(&file->options, (const char *)data, size);
}

static int no_memory(struct trace_error *error)
{
	return error_set(error, ENOMEM, "no memory for what a trace file says of its events");
}

static int copy_formats(struct datafile *file, struct data_meta *meta, struct trace_error *error)
{
	struct strbuf text = { 0 };
	int result = 0;

	for (size_t i = 0; i < file->event_count && result == 0; i++) {
		const struct datafile_event *event = &file->events[i];

		strbuf_reset(&text);
		result = datafile_format_text(file, event, &text, error);
		if (result == 0 && text.length &&
		    data_meta_add_format(meta, event->system, event->name, text.text, text.length) <
			    0)
			result = no_memory(error);
	}
	strbuf_free(&text);
	return result;
}

/* The highest number of a CPU, + 1. */
static unsigned int count_cpus(const struct datafile *file)
{
	unsigned int count = file->info.cpu_count ? file->info.cpu_count : 1;

	for (unsigned int i = 0; i < file->buffer_count; i++)
		for (unsigned int k = 0; k < file->buffers[i].cpu_count; k++)
			if (file->buffers[i].cpus[k].cpu >= count)
				count = file->buffers[i].cpus[k].cpu + 1;
	return count;
}

int datafile_copy_meta(struct datafile *file, struct data_meta *meta, struct trace_error *error)
{
	meta->big_endian = file->info.big_endian;
	meta->long_size = file->info.long_size;
	meta->page_size = file->layout.size;
	meta->cpu_count = count_cpus(file);
	meta->trace_id = file->info.trace_id;
	snprintf(meta->clock, sizeof(meta->clock), "%s", file->clock);
	strbuf_add(&meta->header_page, file->header_page.text, file->header_page.length);
	if (file->header_event.length)
		strbuf_add(&meta->header_event, file->header_event.text, file->header_event.length);
	if (file->options.length)
		strbuf_add(&meta->options, file->options.text, file->options.length);
	/* a name that is not there is noted as the file's damage */
	datafile_load_text(file, &file->kallsyms, false, &meta->kallsyms);
	datafile_load_text(file, &file->printk, false, &meta->printk);
	datafile_load_text(file, &file->cmdlines, true, &meta->cmdlines);
	if (meta->header_page.failed || meta->header_event.failed || meta->options.failed ||
	    file->options.failed || meta->kallsyms.failed || meta->printk.failed ||
	    meta->cmdlines.failed)
		return no_memory(error);
	return copy_formats(file, meta, error);
}
