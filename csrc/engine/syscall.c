/* SPDX-License-Identifier: MIT */
#include "syscall.h"

#include <stddef.h>

const char *syscall_name(int64_t number)
{
	for (const struct syscall_number *at = syscall_numbers; at->name; at++) {
		if (at->number == number)
			return at->name;
	}
	return NULL;
}

const char *syscall_machine(void)
{
#if defined(__x86_64__) && defined(__LP64__)
	return "x86_64";
#elif defined(__aarch64__) && defined(__LP64__)
	return "aarch64";
#elif defined(__riscv) && __riscv_xlen == 64
	return "riscv64";
#elif defined(__powerpc64__)
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "ppc64le" : "ppc64";
#elif defined(__s390x__)
	return "s390x";
#else
	return NULL;
#endif
}
