/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_FIELD_TYPE_H
#define LUATRACE_FIELD_TYPE_H

#include <stdbool.h>
#include <stdint.h>

/* What the spelling of a C type in a format file says about the bytes. */
struct field_type {
	uint8_t size; /* of one element; 0: the name does not say */
	bool sign_known;
	bool is_signed;
	bool is_pointer;  /* the element is an address */
	bool is_array;	  /* has [...] */
	bool is_char;	  /* elements are text */
	bool is_byte;	  /* elements are single bytes that are not text */
	bool is_mask;	  /* a cpumask */
	bool is_compound; /* struct or union by value */
	bool is_data_loc;
	bool is_rel_loc;
};

void field_type_parse(const char *spelling, unsigned int long_size, struct field_type *type);

#endif
