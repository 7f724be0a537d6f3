/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_SIGNALS_H
#define LUATRACE_SIGNALS_H

/*
 * Gives a child, between fork and exec, the signal dispositions that this process had
 * before core.signals() changed them. Async-signal-safe.
 */
void signals_restore_in_child(void);

#endif
