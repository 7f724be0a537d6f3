/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_STACKNAMES_H
#define LUATRACE_STACKNAMES_H

#include <stdbool.h>

#include "stackjoin.h"
#include "strbuf.h"

/*
 * Stacks as text: the names of their functions, the outermost first, with ";" between them. A
 * name has no ";" and no control characters: "?" stands for these. One belongs to each catalog,
 * whose symbols are used.
 */
struct stack_names;

struct stack_names *stack_names_create(void);
void stack_names_free(struct stack_names *names);

/* The processes of user stacks run here: their files are looked into. Else addresses are left. */
void stack_names_set_live(struct stack_names *names);

enum stack_kind {
	STACK_KERNEL,
	STACK_USER,
	STACK_KINDS,
};

/*
 * The text of a stack, which is good until the next one of its kind; NULL when there is no such
 * stack, or no memory.
 */
const struct strbuf *stack_names_text(struct stack_names *names, const struct event_stacks *stacks,
				      enum stack_kind kind);

#endif
