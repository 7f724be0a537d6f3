/* SPDX-License-Identifier: MIT */
#include "tracefile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper.h"

static int open_retry(int dir_fd, const char *file, int flags)
{
	int fd;

	do {
		fd = openat(dir_fd, file, flags | O_CLOEXEC | O_NOCTTY, 0);
	} while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

int tracefile_read_limited(int dir_fd, const char *file, size_t limit, struct strbuf *out)
{
	/* The kernel makes the text of big files anew for each read: big reads are cheaper. */
	char chunk[16384];
	ssize_t got;
	int fd, err = 0;

	if (keeper_serves(dir_fd, file))
		return keeper_ask(KEEPER_READ, dir_fd, file, 0, NULL, 0, out, NULL);
	fd = open_retry(dir_fd, file, O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		return fd;
	for (;;) {
		got = read(fd, chunk, sizeof(chunk));
		if (got > 0 && (size_t)got > limit) {
			err = -EFBIG;
			break;
		}
		if (got > 0) {
			strbuf_add(out, chunk, (size_t)got);
			limit -= (size_t)got;
			continue;
		}
		if (got == 0)
			break;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			err = -errno;
		break;
	}
	close(fd);
	if (!err) {
		strbuf_add(out, "", 0);
		if (out->failed)
			err = -ENOMEM;
	}
	return err;
}

int tracefile_read(int dir_fd, const char *file, struct strbuf *out)
{
	return tracefile_read_limited(dir_fd, file, SIZE_MAX, out);
}

/* Negative errno, or the bytes taken. */
static ssize_t write_retry(int fd, const char *text, size_t length)
{
	ssize_t put;

	do {
		put = write(fd, text, length);
	} while (put < 0 && errno == EINTR);
	return put < 0 ? -errno : put;
}

int tracefile_write(int dir_fd, const char *file, int flags, const char *text, size_t length,
		    size_t *taken)
{
	ssize_t put = 0;
	int fd;

	if (keeper_serves(dir_fd, file))
		return keeper_ask(KEEPER_WRITE, dir_fd, file, flags, text, length, NULL, taken);
	fd = open_retry(dir_fd, file, O_WRONLY | flags);
	if (fd < 0)
		return fd;
	if (length)
		put = write_retry(fd, text, length);
	close(fd);
	if (put < 0)
		return (int)put;
	if (taken)
		*taken = (size_t)put;
	return 0;
}

int tracefile_write_all(int dir_fd, const char *file, int flags, const char *text, size_t length)
{
	size_t done = 0;
	ssize_t put = 0;
	int fd;

	if (keeper_serves(dir_fd, file))
		return keeper_ask(KEEPER_WRITE_ALL, dir_fd, file, flags, text, length, NULL, NULL);
	fd = open_retry(dir_fd, file, O_WRONLY | flags);
	if (fd < 0)
		return fd;
	while (done < length) {
		put = write_retry(fd, text + done, length - done);
		if (put <= 0)
			break;
		done += (size_t)put;
	}
	close(fd);
	if (put < 0)
		return (int)put;
	return done < length ? -EIO : 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Turns NUL-separated @text into a sorted list in one block. */
static char **list_from(const struct strbuf *text, size_t count)
{
	size_t table = (count + 1) * sizeof(char *);
	char **names, *at;

	names = text->failed ? NULL : malloc(table + text->length);
	if (!names)
		return NULL;
	at = (char *)names + table;
	if (text->length)
		memcpy(at, text->text, text->length);
	for (size_t i = 0; i < count; i++) {
		names[i] = at;
		at += strlen(at) + 1;
	}
	names[count] = NULL;
	qsort(names, count, sizeof(*names), compare_names);
	return names;
}

static int list_from_keeper(int dir_fd, const char *dir, char ***names)
{
	struct strbuf text = { 0 };
	size_t count = 0;
	int err;

	err = keeper_ask(KEEPER_LIST, dir_fd, dir, 0, NULL, 0, &text, NULL);
	for (size_t i = 0; !err && i < text.length; i++)
		count += text.text[i] == '\0';
	*names = err ? NULL : list_from(&text, count);
	strbuf_free(&text);
	if (err)
		return err;
	return *names ? 0 : -ENOMEM;
}

int tracefile_list(int dir_fd, const char *dir, char ***names)
{
	struct strbuf text = { 0 };
	struct dirent *entry;
	size_t count = 0;
	DIR *stream;
	int fd;

	if (keeper_serves(dir_fd, dir))
		return list_from_keeper(dir_fd, dir, names);
	fd = open_retry(dir_fd, dir, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fd;
	stream = fdopendir(fd);
	if (!stream) {
		close(fd);
		return -ENOMEM;
	}
	while ((entry = readdir(stream))) {
		if (!tracefile_is_name(entry->d_name))
			continue;
		strbuf_add(&text, entry->d_name, strlen(entry->d_name) + 1);
		count++;
	}
	closedir(stream);
	*names = list_from(&text, count);
	strbuf_free(&text);
	return *names ? 0 : -ENOMEM;
}

bool tracefile_exists(int dir_fd, const char *file)
{
	struct stat info;

	if (keeper_serves(dir_fd, file))
		return keeper_ask(KEEPER_EXISTS, dir_fd, file, 0, NULL, 0, NULL, NULL) == 0;
	return fstatat(dir_fd, file, &info, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0;
}

bool tracefile_is_below(const char *file)
{
	const char *part = file;
	size_t length;

	if (*file == '\0' || *file == '/')
		return false;
	for (;;) {
		length = strcspn(part, "/");
		if (length == 2 && part[0] == '.' && part[1] == '.')
			return false;
		if (part[length] == '\0')
			return true;
		part += length + 1;
	}
}

bool tracefile_is_name(const char *name)
{
	return *name != '\0' && !strchr(name, '/') && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}
