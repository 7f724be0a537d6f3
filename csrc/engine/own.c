/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "own.h"

#include "bytes.h"
#include "keeper.h"
#include "procfs.h"

/* kernel: struct trace_entry, the same on every kernel that this can run on */
#define ENTRY_TYPE_OFFSET 0
#define ENTRY_FLAGS_OFFSET 2
#define ENTRY_PID_OFFSET 4
#define ENTRY_SIZE 8

/* include/linux/trace_events.h: TRACE_FLAG_HARDIRQ | TRACE_FLAG_SOFTIRQ | TRACE_FLAG_NMI */
#define FLAGS_INTERRUPT 0x58
/* what uprobe events carry on some kernels instead of flags */
#define FLAGS_GARBAGE 0xff

struct own_filter own_filter_here(void)
{
	return (struct own_filter){ .pid = procfs_own_thread() };
}

int own_keep(struct own_filter *filter, unsigned int id)
{
	if (filter->kept_count == OWN_MAX_KEPT || id > UINT16_MAX)
		return -1;
	filter->kept[filter->kept_count++] = (uint16_t)id;
	return 0;
}

bool own_is(const struct own_filter *filter, const uint8_t *data, uint32_t size)
{
	uint16_t id;
	uint8_t flags;
	int pid;

	if (size < ENTRY_SIZE)
		return false;
	pid = (int)load_u32(data + ENTRY_PID_OFFSET, false);
	if (pid != filter->pid && (pid != keeper_thread() || pid < 0))
		return false;
	flags = data[ENTRY_FLAGS_OFFSET];
	if ((flags & FLAGS_INTERRUPT) && flags != FLAGS_GARBAGE)
		return false;
	id = load_u16(data + ENTRY_TYPE_OFFSET, false);
	for (unsigned int i = 0; i < filter->kept_count; i++) {
		if (filter->kept[i] == id)
			return false;
	}
	return true;
}
