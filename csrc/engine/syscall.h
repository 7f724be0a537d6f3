/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_SYSCALL_H
#define LUATRACE_SYSCALL_H

#include <stdint.h>

/*
 * Names of system calls by their numbers, as raw_syscalls has them. The numbers are those of the
 * machine that this was built for; a program of another one that it can run too (32 bits on 64) has
 * others, and the events do not tell.
 */
struct syscall_number {
	uint32_t number;
	const char *name;
};

/* Made of the C library's headers when this is built, see csrc/syscalls.cmake; ends with NULL. */
extern const struct syscall_number syscall_numbers[];

/* NULL when there is no such call. */
const char *syscall_name(int64_t number);

/* The machine that they are of, as uname -m says it; NULL for one that is not known here. */
const char *syscall_machine(void);

#endif
