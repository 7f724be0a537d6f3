/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_SCREEN_H
#define LUATRACE_SCREEN_H

/*
 * Gives the terminal back as it was before core.screen() took it, for who is about to die.
 * Async-signal-safe; does nothing when it has not been taken.
 */
void screen_restore(void);

#endif
