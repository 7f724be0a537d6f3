/* SPDX-License-Identifier: MIT */
#include "instance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "keeper.h"
#include "tracefile.h"

static void parse_line(const char *line, struct buffer_stats *stats)
{
	const struct {
		const char *label;
		uint64_t *value;
	} numbers[] = {
		{ "entries", &stats->entries },
		{ "overrun", &stats->overrun },
		{ "commit overrun", &stats->commit_overrun },
		{ "bytes", &stats->bytes },
		{ "dropped events", &stats->dropped },
		{ "read events", &stats->read },
	};
	const char *colon = strchr(line, ':');
	size_t length;

	if (!colon)
		return;
	length = (size_t)(colon - line);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (length == strlen(numbers[i].label) &&
		    strncmp(line, numbers[i].label, length) == 0)
			*numbers[i].value = strtoull(colon + 1, NULL, 10);
	}
}

/* Takes @text apart. */
static void parse(char *text, struct buffer_stats *stats)
{
	char *line;

	memset(stats, 0, sizeof(*stats));
	while ((line = strsep(&text, "\n")))
		parse_line(line, stats);
}

int instance_stats(struct instance *instance, unsigned int cpu, struct buffer_stats *stats,
		   struct trace_error *error)
{
	struct strbuf text = { 0 };
	char file[48];

	snprintf(file, sizeof(file), "per_cpu/cpu%u/stats", cpu);
	if (instance_read(instance, file, &text, error) < 0) {
		strbuf_free(&text);
		return -1;
	}
	parse(text.text, stats);
	strbuf_free(&text);
	return 0;
}

int instance_stats_open(struct instance *instance, unsigned int cpu)
{
	struct rlimit limit;
	char file[48];
	int fd;

	snprintf(file, sizeof(file), "per_cpu/cpu%u/stats", cpu);
	if (keeper_serves(instance_dir_fd(instance), file) || getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -1;
	fd = openat(instance_dir_fd(instance), file, O_RDONLY | O_CLOEXEC);
	/* the other half is for what cannot do without */
	if (fd >= 0 && (rlim_t)fd >= limit.rlim_cur / 2) {
		close(fd);
		return -1;
	}
	return fd;
}

int instance_stats_again(int fd, struct buffer_stats *stats)
{
	char text[1024];
	ssize_t got;

	do {
		got = pread(fd, text, sizeof(text) - 1, 0);
	} while (got < 0 && errno == EINTR);
	if (got <= 0)
		return -1;
	text[got] = '\0';
	parse(text, stats);
	return 0;
}

static int compare_cpus(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return (x > y) - (x < y);
}

int instance_cpus(struct instance *instance, unsigned int **cpus, struct trace_error *error)
{
	unsigned int *list, cpu;
	size_t count = 0, room;
	char **names;
	int err, used;

	err = tracefile_list(instance_dir_fd(instance), "per_cpu", &names);
	if (err)
		return instance_read_error(instance, "per_cpu", -err, error);
	for (room = 0; names[room];)
		room++;
	list = malloc((room + 1) * sizeof(*list));
	for (size_t i = 0; list && i < room; i++) {
		if (sscanf(names[i], "cpu%u%n", &cpu, &used) == 1 && !names[i][used])
			list[count++] = cpu;
	}
	free(names);
	if (!list)
		return error_set(error, ENOMEM, "out of memory");
	if (!count) {
		free(list);
		return error_set(error, ENOENT, "%s/per_cpu has no CPU", instance_dir(instance));
	}
	qsort(list, count, sizeof(*list), compare_cpus);
	*cpus = list;
	return (int)count;
}
