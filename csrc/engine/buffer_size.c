/* SPDX-License-Identifier: MIT */
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracefile.h"

int64_t settings_read_number(struct instance *instance, const char *file, struct trace_error *error)
{
	struct strbuf text = { 0 };
	int64_t number = -1;
	char *end;

	if (instance_read(instance, file, &text, error) == 0) {
		number = strtoll(text.text, &end, 10);
		if (end == text.text || number < 0)
			number = error_set(error, EPROTO, "%s/%s holds no number",
					   instance_dir(instance), file);
	}
	strbuf_free(&text);
	return number;
}

int64_t instance_get_buffer_kb(struct instance *instance, struct trace_error *error)
{
	struct strbuf text = { 0 };
	int64_t largest = -1, size;
	unsigned int *cpus;
	char file[64];
	int count;

	if (instance_read(instance, "buffer_size_kb", &text, error) < 0) {
		strbuf_free(&text);
		return -1;
	}
	/* X: CPUs differ, so ask each of them. */
	if (text.text[0] != 'X') {
		strbuf_free(&text);
		return settings_read_number(instance, "buffer_size_kb", error);
	}
	strbuf_free(&text);
	count = instance_cpus(instance, &cpus, error);
	for (int i = 0; i < count; i++) {
		snprintf(file, sizeof(file), "per_cpu/cpu%u/buffer_size_kb", cpus[i]);
		size = settings_read_number(instance, file, error);
		if (size < 0) {
			largest = -1;
			break;
		}
		if (size > largest)
			largest = size;
	}
	if (count > 0)
		free(cpus);
	return largest;
}

/* KiB that could be had without pushing anyone out; UINT64_MAX when that is not known. */
static uint64_t available_kb(void)
{
	struct strbuf text = { 0 };
	uint64_t kb = UINT64_MAX;
	const char *line;

	if (tracefile_read(AT_FDCWD, "/proc/meminfo", &text) == 0) {
		line = strstr(text.text, "\nMemAvailable:");
		if (line && sscanf(line, "\nMemAvailable: %" SCNu64, &kb) != 1)
			kb = UINT64_MAX;
	}
	strbuf_free(&text);
	return kb;
}

static int no_memory(struct instance *instance, uint64_t kb, unsigned int cpus, uint64_t available,
		     int64_t kept, struct trace_error *error)
{
	const double gib = 1024 * 1024;
	char memory[64] = "";

	if (available != UINT64_MAX)
		snprintf(memory, sizeof(memory), ", and %.1f GiB of memory are free",
			 (double)available / gib);
	return error_set(error, ENOMEM,
			 "cannot set the buffer to %" PRIu64
			 " KiB for each CPU (%s/buffer_size_kb): "
			 "%" PRIu64 " KiB x %u CPUs is %.1f GiB%s. It stays at %" PRId64
			 " KiB for each CPU; "
			 "ask for less",
			 kb, instance_dir(instance), kb, cpus, (double)kb * cpus / gib, memory,
			 kept);
}

/*
 * Until something is traced all buffers are tiny: "7 (expanded: 1408)". Before Linux 6.7 one flag
 * says for all of them that this is over, and setting the size of one buffer sets it: the top
 * level's would stay tiny for good, and lose what others trace there. A word written to set_event,
 * even a blank one, first gives every buffer its size, as enabling an event does.
 */
static void expand_buffers(struct instance *instance)
{
	struct strbuf text = { 0 };

	if (tracefile_read(instance_dir_fd(instance), "buffer_size_kb", &text) == 0 &&
	    strstr(text.text, "expanded"))
		(void)tracefile_write_all(instance_dir_fd(instance), "set_event", O_APPEND, "\n",
					  1);
	strbuf_free(&text);
}

int instance_set_buffer_kb(struct instance *instance, uint64_t kb, struct trace_error *error)
{
	unsigned int *cpus;
	char text[32], old_text[32];
	uint64_t available;
	int64_t old, now;
	int count, err;

	if (kb == 0)
		return error_set(error, EINVAL,
				 "bad size of the buffer, 0 KiB for each CPU: it is 1 or more");
	old = instance_get_buffer_kb(instance, error);
	if (old < 0)
		return -1;
	count = instance_cpus(instance, &cpus, error);
	if (count < 0)
		return -1;
	free(cpus);
	/* Asking the kernel for what cannot be there would first push out everything else. */
	available = available_kb();
	if (kb > (uint64_t)old && kb - (uint64_t)old > available / (unsigned int)count)
		return no_memory(instance, kb, (unsigned int)count, available, old, error);

	expand_buffers(instance);
	snprintf(text, sizeof(text), "%" PRIu64, kb);
	err = tracefile_write_all(instance_dir_fd(instance), "buffer_size_kb", 0, text,
				  strlen(text));
	if (!err)
		return 0;
	now = instance_get_buffer_kb(instance, NULL);
	if (now != old) {
		snprintf(old_text, sizeof(old_text), "%" PRId64, old);
		(void)tracefile_write_all(instance_dir_fd(instance), "buffer_size_kb", 0, old_text,
					  strlen(old_text));
		now = instance_get_buffer_kb(instance, NULL);
	}
	if (err == -ENOMEM)
		return no_memory(instance, kb, (unsigned int)count, available, now, error);
	return instance_write_error(instance, "buffer_size_kb", text, strlen(text), -err, error);
}

#define SUBBUF_FILE "buffer_subbuf_size_kb"

static int check_subbuf(struct instance *instance, struct trace_error *error)
{
	if (instance_has(instance, SUBBUF_FILE) || !instance_has(instance, "tracing_on"))
		return 0;
	return error_set(
		error, ENOENT,
		"this kernel has no sub-buffers of another size than a page: %s/" SUBBUF_FILE
		" is there from Linux 6.8 on",
		instance_dir(instance));
}

int64_t instance_get_subbuf_kb(struct instance *instance, struct trace_error *error)
{
	if (check_subbuf(instance, error) < 0)
		return -1;
	return settings_read_number(instance, SUBBUF_FILE, error);
}

int instance_set_subbuf_kb(struct instance *instance, uint64_t kb, struct trace_error *error)
{
	char text[32];
	int64_t old;
	int err;

	if (instance_check_unread(instance, "set the sub-buffer size", error) < 0)
		return -1;
	old = instance_get_subbuf_kb(instance, error);
	if (old < 0)
		return -1;
	snprintf(text, sizeof(text), "%" PRIu64, kb);
	err = tracefile_write_all(instance_dir_fd(instance), SUBBUF_FILE, 0, text, strlen(text));
	if (err == -EINVAL || err == -ENOMEM)
		return error_set(error, -err,
				 "cannot set sub-buffers to %" PRIu64 " KiB (%s/" SUBBUF_FILE
				 "): %s. They "
				 "stay at %" PRId64
				 " KiB; sizes are powers of two from a page (%ld KiB) on, "
				 "and the largest depends on the kernel",
				 kb, instance_dir(instance), strerror(-err), old,
				 sysconf(_SC_PAGESIZE) / 1024);
	if (err)
		return instance_write_error(instance, SUBBUF_FILE, text, strlen(text), -err, error);
	return 0;
}

static int cpu_file(struct instance *instance, unsigned int cpu, char file[64],
		    struct trace_error *error)
{
	snprintf(file, 64, "per_cpu/cpu%u/buffer_size_kb", cpu);
	if (instance_has(instance, file) || !instance_has(instance, "tracing_on"))
		return 0;
	return error_set(error, ENOENT, "no CPU %u here: %s/%s is not there", cpu,
			 instance_dir(instance), file);
}

int64_t instance_get_cpu_buffer_kb(struct instance *instance, unsigned int cpu,
				   struct trace_error *error)
{
	char file[64];

	if (cpu_file(instance, cpu, file, error) < 0)
		return -1;
	return settings_read_number(instance, file, error);
}

int instance_set_cpu_buffer_kb(struct instance *instance, unsigned int cpu, uint64_t kb,
			       struct trace_error *error)
{
	char file[64], text[32];
	uint64_t available;
	int64_t old;
	int err;

	if (cpu_file(instance, cpu, file, error) < 0)
		return -1;
	old = settings_read_number(instance, file, error);
	if (old < 0)
		return -1;
	available = available_kb();
	expand_buffers(instance);
	snprintf(text, sizeof(text), "%" PRIu64, kb);
	err = kb > (uint64_t)old && kb - (uint64_t)old > available ?
		      -ENOMEM :
		      tracefile_write_all(instance_dir_fd(instance), file, 0, text, strlen(text));
	if (!err)
		return 0;
	if (err == -ENOMEM)
		return error_set(error, ENOMEM,
				 "cannot set the buffer of CPU %u to %" PRIu64
				 " KiB (%s/%s): there "
				 "is no memory for it. It stays at %" PRId64 " KiB; ask for less",
				 cpu, kb, instance_dir(instance), file,
				 instance_get_cpu_buffer_kb(instance, cpu, NULL));
	return instance_write_error(instance, file, text, strlen(text), -err, error);
}

int64_t instance_get_buffer_total_kb(struct instance *instance, struct trace_error *error)
{
	return settings_read_number(instance, "buffer_total_size_kb", error);
}
