/* SPDX-License-Identifier: MIT */
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "tracefile.h"

/* The digits that the snapshot files take. */
#define GIVE_BACK "0"
#define TAKE "1"
#define EMPTY "2"

static int check_there(struct instance *instance, struct trace_error *error)
{
	if (instance_has(instance, "snapshot") || !instance_has(instance, "tracing_on"))
		return 0;
	return error_set(error, ENOENT,
			 "this kernel takes no snapshots: %s/snapshot needs CONFIG_TRACER_SNAPSHOT",
			 instance_dir(instance));
}

static int snapshot_error(struct instance *instance, const char *file, const char *digit, int cpu,
			  int code, struct trace_error *error)
{
	if (cpu >= 0 && code == ENOENT && instance_has(instance, "tracing_on"))
		return error_set(error, code, "no CPU %d here: %s/%s is not there", cpu,
				 instance_dir(instance), file);
	if (cpu >= 0 && code == EINVAL && *digit == *TAKE)
		return error_set(error, code,
				 "cannot take a snapshot of CPU %d (%s/%s): this kernel takes them "
				 "of all CPUs only, or (with CONFIG_TRACER_SNAPSHOT_PER_CPU_SWAP) "
				 "of one when the snapshot has its memory already",
				 cpu, instance_dir(instance), file);
	if (cpu >= 0 && code == EINVAL)
		return error_set(error, code,
				 "cannot clear the snapshot of CPU %d (%s/%s): there is none, or "
				 "this kernel clears them for all CPUs only",
				 cpu, instance_dir(instance), file);
	if (code == ENOMEM)
		return error_set(error, code,
				 "cannot take a snapshot (%s/%s): out of memory; it takes as much "
				 "as the buffer has, so make that smaller (set_buffer_kb)",
				 instance_dir(instance), file);
	return instance_write_error(instance, file, digit, 1, code, error);
}

static int command(struct instance *instance, int cpu, const char *digit, struct trace_error *error)
{
	char file[64] = "snapshot";
	int err;

	if (check_there(instance, error) < 0)
		return -1;
	if (cpu >= 0)
		snprintf(file, sizeof(file), "per_cpu/cpu%d/snapshot", cpu);
	err = tracefile_write_all(instance_dir_fd(instance), file, 0, digit, 1);
	return err ? snapshot_error(instance, file, digit, cpu, -err, error) : 0;
}

int instance_snapshot_take(struct instance *instance, int cpu, struct trace_error *error)
{
	/* The buffer that is read becomes the snapshot, and its counters with it. */
	if (instance_check_unread(instance, "take a snapshot", error) < 0)
		return -1;
	return command(instance, cpu, TAKE, error);
}

int instance_snapshot_clear(struct instance *instance, int cpu, struct trace_error *error)
{
	return command(instance, cpu, EMPTY, error);
}

int instance_snapshot_free(struct instance *instance, struct trace_error *error)
{
	return command(instance, -1, GIVE_BACK, error);
}

int instance_has_snapshot(struct instance *instance, struct trace_error *error)
{
	struct strbuf text = { 0 };
	int result = -1;

	if (check_there(instance, error) == 0 &&
	    instance_read(instance, "snapshot", &text, error) == 0)
		result = !strstr(text.text, "* Snapshot is freed *");
	strbuf_free(&text);
	return result;
}
