/* SPDX-License-Identifier: MIT */
#include "tracedir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "keeper.h"
#include "strbuf.h"
#include "tracefile.h"

#define TRACEFS_MAGIC 0x74726163

bool tracing_is_locked_down(void)
{
	struct strbuf text = { 0 };
	bool locked;

	/* No such file: no lockdown in this kernel, or securityfs is not mounted. */
	locked = tracefile_read(AT_FDCWD, "/sys/kernel/security/lockdown", &text) == 0 &&
		 strstr(text.text, "[confidentiality]");
	strbuf_free(&text);
	return locked;
}

/* The part of @path that refuses us: the first directory that may not be searched. */
static void refusing_part(const char *path, char *part, size_t size, struct stat *info)
{
	struct stat next;
	const char *slash = path;

	snprintf(part, size, "/");
	memset(info, 0, sizeof(*info));
	(void)!stat("/", info);
	while (*slash) {
		slash = strchrnul(slash + 1, '/');
		if ((size_t)(slash - path) >= size)
			return;
		memcpy(part, path, (size_t)(slash - path));
		part[slash - path] = '\0';
		if (stat(part, &next) < 0) {
			*strrchr(part, '/') = '\0';
			if (!*part)
				strcpy(part, "/");
			return;
		}
		*info = next;
	}
}

int tracing_dir_refusal(struct trace_error *error, int code, const char *what, const char *path)
{
	char part[512];
	struct stat info;

	if ((code == EACCES || code == EPERM) && keeper_user())
		return error_set(
			error, code,
			"cannot %s %s: root's rights have been given up for the user %s (--user). "
			"What is left is events, filters, triggers, options and markers in the "
			"session's own instance",
			what, path, keeper_user());
	if (code == EPIPE && keeper_user())
		return error_set(error, code,
				 "cannot %s %s: the helper process that has the right to is gone",
				 what, path);
	if ((code == EPERM || code == EACCES) && tracing_is_locked_down())
		return error_set(
			error, code,
			"cannot %s %s: %s: the kernel is locked down "
			"(/sys/kernel/security/lockdown says confidentiality), which forbids tracing "
			"to root too. Boot with lockdown=integrity or none, or without secure boot",
			what, path, strerror(code));
	if (code == EACCES) {
		refusing_part(path, part, sizeof(part), &info);
		return error_set(
			error, code,
			"cannot %s %s: permission denied, it is there but not for uid %u: %s belongs to "
			"uid %u, gid %u, mode %04o. Run as root (sudo), or have these rights changed",
			what, path, (unsigned int)geteuid(), part, (unsigned int)info.st_uid,
			(unsigned int)info.st_gid, (unsigned int)info.st_mode & 07777);
	}
	if (code == EPERM)
		return error_set(
			error, code,
			"cannot %s %s: operation not permitted, although the file permissions allow it: "
			"a container, a security module or a setting of this kernel forbids it. "
			"Run on the host as root",
			what, path);
	if (code == EROFS)
		return error_set(
			error, code,
			"cannot %s %s: it is mounted read-only, as in many containers. Run on the host, "
			"or remount it as root: mount -o remount,rw /sys/kernel/tracing",
			what, path);
	return error_set(error, code, "cannot %s %s: %s", what, path, strerror(code));
}

/* 0 if @dir is a tracing directory that we may look into. */
static int dir_check(const char *dir, struct trace_error *error)
{
	int fd;

	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return tracing_dir_refusal(error, errno, "open the tracing directory", dir);
	if (tracefile_exists(fd, "events") && tracefile_exists(fd, "instances")) {
		close(fd);
		return 0;
	}
	close(fd);
	/* Under lockdown the kernel leaves the directory empty. */
	if (tracing_is_locked_down())
		return tracing_dir_refusal(error, EPERM, "use the tracing directory", dir);
	return error_set(error, ENOENT,
			 "%s is not a tracing directory: it has no events and instances. "
			 "It should be a mounted tracefs, mostly /sys/kernel/tracing",
			 dir);
}

/* Undoes the kernel's \040 for a blank (and tab, newline, backslash, #) in place. */
static void decode_octal(char *text)
{
	char *out = text;

	while (*text) {
		if (text[0] == '\\' && text[1] >= '0' && text[1] <= '3' && text[2] >= '0' &&
		    text[2] <= '7' && text[3] >= '0' && text[3] <= '7') {
			*out++ = (char)((text[1] - '0') << 6 | (text[2] - '0') << 3 |
					(text[3] - '0'));
			text += 4;
		} else {
			*out++ = *text++;
		}
	}
	*out = '\0';
}

/* The usual mount point is an empty directory when nothing is mounted there. */
static bool is_tracefs(const char *dir)
{
	struct statfs info;

	return statfs(dir, &info) == 0 && info.f_type == TRACEFS_MAGIC;
}

/* What the search knows while it goes through the mounts. */
struct search {
	char *found;
	bool was_there; /* @error says why it cannot be used */
	struct trace_error error;
};

static void try_dir(struct search *search, const char *dir)
{
	struct trace_error error;
	struct stat info;

	/* A debugfs of a kernel that does not trace. */
	if (search->found || (stat(dir, &info) < 0 && errno == ENOENT))
		return;
	if (dir_check(dir, &error) == 0) {
		search->found = strdup(dir);
		return;
	}
	if (!search->was_there) {
		search->was_there = true;
		search->error = error;
	}
}

/* Goes through the mounts of file system @type; "tracing" is the directory below it. */
static void try_mounts(struct search *search, const char *mounts, const char *type,
		       const char *below)
{
	char *lines, *line, *point, *kind, *rest, *dir;

	lines = strdup(mounts);
	if (!lines)
		return;
	for (char *next = lines; (line = strsep(&next, "\n"));) {
		rest = line;
		strsep(&rest, " ");
		point = strsep(&rest, " ");
		kind = strsep(&rest, " ");
		if (!kind || strcmp(kind, type) != 0)
			continue;
		decode_octal(point);
		if (asprintf(&dir, "%s%s", point, below) < 0)
			break;
		try_dir(search, dir);
		free(dir);
	}
	free(lines);
}

static int not_mounted(struct trace_error *error)
{
	struct strbuf text = { 0 };
	bool known;

	known = tracefile_read(AT_FDCWD, "/proc/filesystems", &text) != 0 ||
		strstr(text.text, "\ttracefs\n");
	strbuf_free(&text);
	if (!known)
		return error_set(
			error, ENOENT,
			"this kernel has no tracefs (not in /proc/filesystems): it is built without "
			"CONFIG_FTRACE and cannot be traced");
	if (tracing_is_locked_down())
		return error_set(
			error, EPERM,
			"tracefs is not mounted, and the kernel is locked down "
			"(/sys/kernel/security/lockdown says confidentiality), which forbids tracing. "
			"Boot with lockdown=integrity or none, or without secure boot");
	return error_set(error, ENOENT,
			 "tracefs is not mounted: /proc/self/mounts has no tracefs and no debugfs. "
			 "Mount it as root: mount -t tracefs nodev /sys/kernel/tracing "
			 "(in a container: on the host, and pass it in)");
}

char *tracing_dir_find(const char *override, struct trace_error *error)
{
	static const char *const usual[] = {
		"/sys/kernel/tracing",
		"/sys/kernel/debug/tracing",
	};
	struct search search = { 0 };
	struct strbuf mounts = { 0 };

	if (override) {
		if (dir_check(override, error) < 0)
			return NULL;
		search.found = strdup(override);
	} else if (tracefile_read(AT_FDCWD, "/proc/self/mounts", &mounts) == 0) {
		try_mounts(&search, mounts.text, "tracefs", "");
		/* Looking below debugfs lets the kernel mount tracefs there by itself. */
		if (!search.was_there)
			try_mounts(&search, mounts.text, "debugfs", "/tracing");
	} else {
		for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
			if (is_tracefs(usual[i]))
				try_dir(&search, usual[i]);
		}
	}
	strbuf_free(&mounts);
	if (search.found)
		return search.found;
	if (override)
		error_set(error, ENOMEM, "out of memory");
	else if (!search.was_there)
		not_mounted(error);
	else if (error)
		*error = search.error;
	return NULL;
}
