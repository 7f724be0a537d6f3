/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_MACHINE_H
#define LUATRACE_MACHINE_H

#include <stdbool.h>

/*
 * The duties of the first process of a machine, for luatrace as the only program of an initramfs
 * (rdinit=/luatrace). In every other process, and in the first one of a container, nothing is
 * done.
 */

/* Mounts what is not there: /proc, /sys, /dev and tracefs. True for the machine's first process. */
bool machine_begin(void);

/* Turns the machine off: its first process must not end. */
void machine_end(void);

#endif
