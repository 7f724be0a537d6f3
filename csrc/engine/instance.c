/* SPDX-License-Identifier: MIT */
#include "instance.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "holders.h"
#include "keeper_state.h"
#include "kernel_error.h"
#include "stale.h"
#include "tracedir.h"
#include "tracefile.h"
#include "trigger.h"

struct instance {
	char *tracing_dir;
	char *name;
	char *dir;
	int dir_fd;
	/* Of a created instance: an open file in it, which makes rmdir by others fail. */
	int hold_fd;
	pid_t creator; /* 0 if it was opened */
	bool is_removed;
	unsigned int readers; /* streams that are open */
	/* Trigger files that were written to, a line each. */
	struct strbuf triggered;
};

static struct instance *instance_alloc(const char *tracing_dir, const char *name,
				       struct trace_error *error)
{
	struct instance *instance = calloc(1, sizeof(*instance));

	if (instance) {
		instance->dir_fd = -1;
		instance->hold_fd = -1;
		instance->is_removed = true;
		instance->tracing_dir = strdup(tracing_dir);
		instance->name = strdup(name);
		if (asprintf(&instance->dir, "%s/instances/%s", tracing_dir, name) < 0)
			instance->dir = NULL;
		if (instance->tracing_dir && instance->name && instance->dir)
			return instance;
		instance_free(instance);
	}
	error_set(error, ENOMEM, "out of memory");
	return NULL;
}

static int open_dir(struct instance *instance)
{
	do {
		instance->dir_fd =
			open(instance->dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	} while (instance->dir_fd < 0 && errno == EINTR);
	return instance->dir_fd < 0 ? -errno : 0;
}

static int check_name(const char *name, struct trace_error *error)
{
	const char *wrong = NULL;

	if (*name == '\0')
		wrong = "is empty";
	else if (strchr(name, '/'))
		wrong = "has a slash";
	else if (!tracefile_is_name(name))
		wrong = "is a directory's own or parent's name";
	else if (strlen(name) > NAME_MAX)
		wrong = "is longer than 255 bytes";
	for (const char *at = name; *at && !wrong; at++) {
		if (iscntrl((unsigned char)*at))
			wrong = "has a control byte";
	}
	if (wrong) {
		struct strbuf quoted = { 0 };

		kernel_error_quote(&quoted, name, strlen(name));
		error_set(
			error, EINVAL,
			"bad name of an instance %s: it %s. It becomes a directory in instances/: "
			"use letters, digits, - and _",
			quoted.failed ? "" : quoted.text, wrong);
		strbuf_free(&quoted);
		return -1;
	}
	return 0;
}

static int make_dir(const char *dir)
{
	return mkdir(dir, 0755) < 0 ? -errno : 0;
}

/* A directory of our own naming: the first number that this process does not use. */
static struct instance *make_own(const char *tracing_dir, int *err, struct trace_error *error)
{
	struct instance *instance;
	char name[OWN_NAME_SIZE];

	for (unsigned int n = 1;; n++) {
		stale_own_name(name, n);
		instance = instance_alloc(tracing_dir, name, error);
		if (!instance)
			return NULL;
		*err = make_dir(instance->dir);
		if (*err != -EEXIST)
			return instance;
		instance_free(instance);
	}
}

static int create_error(struct trace_error *error, int code, struct instance *instance)
{
	struct stat info;
	char *parent;

	if (code == EEXIST)
		return error_set(
			error, code,
			"cannot create the instance %s: there is one of this name (%s). Choose "
			"another name, open that one with instance_open, or remove it: rmdir '%s'",
			instance->name, instance->dir, instance->dir);
	if (code == ENOMEM)
		return error_set(
			error, code,
			"cannot create the instance %s: out of memory for its buffers, which the "
			"kernel makes with 1.4 MB for each CPU",
			instance->name);
	/* A lockdown that began after boot leaves the files, and makes this fail oddly. */
	if (code == EINVAL && tracing_is_locked_down())
		code = EPERM;
	/* tracefs answers EPERM or ENOENT where instances/ is missing. */
	if (asprintf(&parent, "%s/instances", instance->tracing_dir) < 0)
		return error_set(error, ENOMEM, "out of memory");
	if (stat(parent, &info) < 0 && errno == ENOENT)
		error_set(error, ENOENT,
			  "cannot create the instance %s: %s is not there: either it is no tracing "
			  "directory, or the kernel has no instances",
			  instance->dir, parent);
	else if (code == EACCES)
		tracing_dir_refusal(error, code, "create an instance in", parent);
	else
		tracing_dir_refusal(error, code, "create the instance", instance->dir);
	free(parent);
	return -1;
}

struct instance *instance_create(const char *tracing_dir, const char *name,
				 struct trace_error *error)
{
	struct instance *instance;
	int err;

	if (name && check_name(name, error) < 0)
		return NULL;
	if (name && stale_is_ours(name)) {
		error_set(error, EINVAL,
			  "bad name of an instance \"%s\": names like luatrace-PID-STARTTIME-N are "
			  "given by luatrace itself and removed when that process is gone. "
			  "Choose another name, or none",
			  name);
		return NULL;
	}
	if (name) {
		instance = instance_alloc(tracing_dir, name, error);
		err = instance ? make_dir(instance->dir) : 0;
	} else {
		instance = make_own(tracing_dir, &err, error);
	}
	if (!instance)
		return NULL;
	if (err) {
		create_error(error, -err, instance);
		instance_free(instance);
		return NULL;
	}
	instance->creator = getpid();
	instance->is_removed = false;

	err = open_dir(instance);
	if (!err) {
		do {
			instance->hold_fd =
				openat(instance->dir_fd, "tracing_on", O_RDONLY | O_CLOEXEC);
		} while (instance->hold_fd < 0 && errno == EINTR);
		if (instance->hold_fd < 0)
			err = -errno;
	}
	/* A new instance records; ours must not before everything in it is set. */
	if (!err)
		err = tracefile_write_all(instance->dir_fd, "tracing_on", 0, "0", 1);
	if (err) {
		create_error(error, -err, instance);
		instance_free(instance);
		return NULL;
	}
	return instance;
}

static int no_such_instance(struct trace_error *error, struct instance *instance)
{
	struct strbuf list = { 0 };
	char **names;

	if (instance_list(instance->tracing_dir, &names, error) < 0)
		return -1;
	for (size_t i = 0; names[i]; i++)
		strbuf_addf(&list, "%s%s", i ? ", " : "", names[i]);
	free(names);
	error_set(error, ENOENT, "no instance %s in %s/instances; there %s%s", instance->name,
		  instance->tracing_dir, list.length ? "are: " : "is none",
		  list.length ? list.text : "");
	strbuf_free(&list);
	return -1;
}

struct instance *instance_open(const char *tracing_dir, const char *name, struct trace_error *error)
{
	struct instance *instance;
	int err;

	if (check_name(name, error) < 0)
		return NULL;
	instance = instance_alloc(tracing_dir, name, error);
	if (!instance)
		return NULL;
	err = open_dir(instance);
	if (!err)
		return instance;
	if (err == -ENOENT)
		no_such_instance(error, instance);
	else
		tracing_dir_refusal(error, -err, "open the instance", instance->dir);
	instance_free(instance);
	return NULL;
}

struct instance *instance_open_top(const char *tracing_dir, struct trace_error *error)
{
	struct instance *instance = instance_alloc(tracing_dir, "", error);
	char *dir;
	int err;

	if (!instance)
		return NULL;
	dir = strdup(tracing_dir);
	if (!dir) {
		instance_free(instance);
		error_set(error, ENOMEM, "out of memory");
		return NULL;
	}
	free(instance->dir);
	instance->dir = dir;
	err = open_dir(instance);
	if (!err)
		return instance;
	tracing_dir_refusal(error, -err, "open", dir);
	instance_free(instance);
	return NULL;
}

static int busy_error(struct instance *instance, struct trace_error *error)
{
	struct strbuf who = { 0 };

	holders_add(&who, instance->name);
	if (who.length && !who.failed)
		error_set(error, EBUSY,
			  "cannot remove the instance %s: it is busy, as its files are open: %s. "
			  "End or close that, then: rmdir '%s'",
			  instance->dir, who.text, instance->dir);
	else
		error_set(error, EBUSY,
			  "cannot remove the instance %s: it is busy, although no process that is "
			  "visible from here has a file of it open: its buffer may be mapped, or a "
			  "trigger of another instance may use it. End that, then: rmdir '%s'",
			  instance->dir, instance->dir);
	strbuf_free(&who);
	return -1;
}

static void close_files(struct instance *instance)
{
	if (instance->hold_fd >= 0)
		close(instance->hold_fd);
	if (instance->dir_fd >= 0)
		close(instance->dir_fd);
	instance->hold_fd = -1;
	instance->dir_fd = -1;
}

int instance_note_trigger(struct instance *instance, const char *file, struct trace_error *error)
{
	struct strbuf *files = &instance->triggered;
	size_t length = strlen(file);

	for (const char *at = files->text; at && (at = strstr(at, file)); at += length) {
		if ((at == files->text || at[-1] == '\n') && at[length] == '\n')
			return 0;
	}
	strbuf_addf(files, "%s\n", file);
	return files->failed ? error_set(error, ENOMEM, "out of memory") : 0;
}

/* Triggers that were set behind our back hold the instance too: look at every event. */
static void sweep_triggers(struct instance *instance)
{
	if (open_dir(instance) < 0)
		return;
	triggers_sweep(instance->dir_fd);
	close_files(instance);
}

void instance_fds(const struct instance *instance, int fds[2])
{
	fds[0] = instance->dir_fd;
	fds[1] = instance->hold_fd;
}

int instance_hand_over(struct instance *instance, int sock)
{
	if (dup3(sock, instance->dir_fd, O_CLOEXEC) < 0)
		return -errno;
	close(instance->hold_fd);
	instance->hold_fd = -1;
	return 0;
}

/* The rights are the keeper's. */
static int have_removed(struct instance *instance, struct trace_error *error)
{
	strbuf_free(&instance->triggered);
	if (keeper_remove(error) < 0)
		return -1;
	instance->dir_fd = -1;
	instance->is_removed = true;
	return 0;
}

int instance_destroy(struct instance *instance, struct trace_error *error)
{
	int err = 0;

	if (!instance->is_removed && instance->dir_fd >= 0 && keeper_serves(instance->dir_fd, ""))
		return have_removed(instance, error);

	if (!instance->is_removed && instance_is_ours(instance) && instance->dir_fd >= 0 &&
	    instance->triggered.length)
		triggers_clear_listed(instance->dir_fd, instance->triggered.text);
	strbuf_free(&instance->triggered);
	close_files(instance);
	if (instance->is_removed || !instance_is_ours(instance)) {
		instance->is_removed = true;
		return 0;
	}
	/* Others look into instances for a moment (a find, a cat): wait for up to 1/4 s. */
	for (long ms = 1; ms <= 128; ms *= 2) {
		err = rmdir(instance->dir) < 0 ? errno : 0;
		if (err != EBUSY)
			break;
		if (ms == 1)
			sweep_triggers(instance);
		clock_sleep_ms(ms);
	}
	if (err == EBUSY)
		return busy_error(instance, error);
	if (err && err != ENOENT)
		return tracing_dir_refusal(error, err, "remove the instance", instance->dir);
	instance->is_removed = true;
	return 0;
}

void instance_free(struct instance *instance)
{
	if (!instance)
		return;
	instance_destroy(instance, NULL);
	free(instance->tracing_dir);
	free(instance->name);
	free(instance->dir);
	free(instance);
}

const char *instance_name(const struct instance *instance)
{
	return instance->name;
}

const char *instance_dir(const struct instance *instance)
{
	return instance->dir;
}

const char *instance_tracing_dir(const struct instance *instance)
{
	return instance->tracing_dir;
}

int instance_dir_fd(const struct instance *instance)
{
	return instance->dir_fd;
}

bool instance_is_ours(const struct instance *instance)
{
	return instance->creator == getpid();
}

void instance_set_ours(struct instance *instance, bool ours)
{
	instance->creator = ours ? getpid() : 0;
	instance->is_removed = false;
}

int instance_set_kept(struct instance *instance, struct trace_error *error)
{
	struct stat status;

	if (fstat(instance->dir_fd, &status) < 0 ||
	    fchmodat(instance->dir_fd, ".", (status.st_mode & 07777) | S_ISVTX, 0) < 0)
		return error_set(error, errno, "cannot mark %s as one that stays: %s",
				 instance->dir, strerror(errno));
	return 0;
}

bool instance_is_kept(const struct instance *instance)
{
	struct stat status;

	return fstat(instance->dir_fd, &status) == 0 && status.st_mode & S_ISVTX;
}

int instance_list(const char *tracing_dir, char ***names, struct trace_error *error)
{
	char *path;
	int err;

	if (asprintf(&path, "%s/instances", tracing_dir) < 0)
		return error_set(error, ENOMEM, "out of memory");
	err = tracefile_list(AT_FDCWD, path, names);
	if (err)
		tracing_dir_refusal(error, -err, "list the instances in", path);
	free(path);
	return err ? -1 : 0;
}

void instance_begin_reading(struct instance *instance)
{
	instance->readers++;
}

void instance_end_reading(struct instance *instance)
{
	instance->readers--;
}

int instance_check_unread(const struct instance *instance, const char *what,
			  struct trace_error *error)
{
	if (!instance->readers)
		return 0;
	return error_set(error, EBUSY,
			 "cannot %s of instance %s: a session is reading it; choose that when the "
			 "session is made",
			 what, instance->name);
}
