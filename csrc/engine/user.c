/* SPDX-License-Identifier: MIT */
#include "user.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel_error.h"
#include "strbuf.h"

#define PASSWD "/etc/passwd"
#define GROUP "/etc/group"

/* Decimal digits up to @end; not the number that the kernel takes for "unchanged". */
static bool parse_id(const char **at, char end, unsigned int *id)
{
	unsigned long long value;
	char *rest;

	if (!isdigit((unsigned char)**at))
		return false;
	errno = 0;
	value = strtoull(*at, &rest, 10);
	if (errno || value >= UINT32_MAX || *rest != end)
		return false;
	*at = rest + (end != '\0');
	*id = (unsigned int)value;
	return true;
}

static bool add_group(struct user *user, gid_t gid)
{
	if (user->group_count == USER_MAX_GROUPS)
		return false;
	user->groups[user->group_count++] = gid;
	return true;
}

/* By name, or by @uid when @name is NULL. False when the file has no such line. */
static bool find_in_passwd(const char *name, uid_t uid, struct user *user)
{
	FILE *file = fopen(PASSWD, "re");
	struct passwd *entry;
	bool found = false;

	while (file && !found && (entry = fgetpwent(file))) {
		if (name ? strcmp(entry->pw_name, name) != 0 : entry->pw_uid != uid)
			continue;
		snprintf(user->name, sizeof(user->name), "%s", entry->pw_name);
		user->uid = entry->pw_uid;
		user->gid = entry->pw_gid;
		found = true;
	}
	if (file)
		fclose(file);
	return found;
}

/* The groups that name the user as a member, behind the own one. */
static bool add_groups(struct user *user)
{
	FILE *file = fopen(GROUP, "re");
	struct group *entry;
	bool fits = true;

	while (file && fits && (entry = fgetgrent(file))) {
		for (char **member = entry->gr_mem; *member; member++) {
			if (strcmp(*member, user->name) != 0 || entry->gr_gid == user->gid)
				continue;
			fits = add_group(user, entry->gr_gid);
			break;
		}
	}
	if (file)
		fclose(file);
	return fits;
}

static int no_such_user(const char *name, struct trace_error *error)
{
	struct strbuf quoted = { 0 };
	const char *at = name;
	unsigned int id;

	kernel_error_quote(&quoted, name, strlen(name));
	if (parse_id(&at, '\0', &id))
		error_set(error, ENOENT, "no user %u in " PASSWD ": give the group too, as %u:GID",
			  id, id);
	else
		error_set(error, ENOENT,
			  "no user %s in " PASSWD ": give a name from there, or UID:GID",
			  quoted.failed ? "" : quoted.text);
	strbuf_free(&quoted);
	return -1;
}

int user_find(const char *name, struct user *user, struct trace_error *error)
{
	unsigned int uid, gid;
	const char *at = name;
	bool known;

	memset(user, 0, sizeof(*user));
	if (parse_id(&at, ':', &uid) && parse_id(&at, '\0', &gid)) {
		snprintf(user->name, sizeof(user->name), "%u:%u", uid, gid);
		user->uid = uid;
		user->gid = gid;
		known = false;
	} else {
		known = find_in_passwd(name, 0, user);
		at = name;
		if (!known && parse_id(&at, '\0', &uid))
			known = find_in_passwd(NULL, uid, user);
		if (!known)
			return no_such_user(name, error);
	}
	add_group(user, user->gid);
	if (known && !add_groups(user))
		return error_set(error, E2BIG, "the user %s is in more than %d groups", user->name,
				 USER_MAX_GROUPS);
	if (user->uid == 0)
		return error_set(error, EINVAL,
				 "%s has root's uid 0, and would keep its rights: choose an "
				 "ordinary user",
				 user->name);
	for (int i = 0; i < user->group_count; i++) {
		if (user->groups[i] == 0)
			return error_set(error, EINVAL,
					 "%s is in root's group, which has rights in tracefs: "
					 "choose a user who is not",
					 user->name);
	}
	return 0;
}

/* Capabilities of uid 0 go with it, but not where securebits say otherwise. */
static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (syscall(SYS_capset, &header, data) < 0)
		return errno;
	if (syscall(SYS_capget, &header, data) < 0)
		return errno;
	for (unsigned int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		if (data[i].effective || data[i].permitted || data[i].inheritable)
			return EPERM;
	}
	return 0;
}

int user_become(const struct user *user)
{
	uid_t real, effective, saved;
	gid_t real_group, effective_group, saved_group;

	/* What no_new_privs would make useless anyway; without CAP_SETPCAP it is left at that. */
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0 ||
	    setgroups((size_t)user->group_count, user->groups) < 0 ||
	    setresgid(user->gid, user->gid, user->gid) < 0 ||
	    setresuid(user->uid, user->uid, user->uid) < 0)
		return errno;
	/* The keys of root's session are for who is in it, whatever the uid. */
	(void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
	/* The kernel has done that, but for fs.suid_dumpable: other processes of the user's may
	 * not take what is open here. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (drop_capabilities() != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errno ? errno : EPERM;
	if (getresuid(&real, &effective, &saved) < 0 ||
	    getresgid(&real_group, &effective_group, &saved_group) < 0)
		return errno;
	if (real != user->uid || effective != user->uid || saved != user->uid ||
	    real_group != user->gid || effective_group != user->gid || saved_group != user->gid ||
	    setuid(0) == 0 || setgid(0) == 0)
		return EPERM;
	return 0;
}
