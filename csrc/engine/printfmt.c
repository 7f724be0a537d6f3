/* SPDX-License-Identifier: MIT */
#include "printfmt.h"

#include <string.h>

#include "bytes.h"
#include "kprintf.h"
#include "ksym.h"
#include "printeval.h"
#include "printk.h"
#include "printlex.h"
#include "text.h"

/* One pass over a format string. */
struct printer {
	struct strbuf *out;
	struct print_context context;
	const struct print_node *arg; /* of the next conversion */
};

static void printer_start(struct printer *printer, struct strbuf *out,
			  const struct event_format *format, const uint8_t *data, uint32_t size)
{
	*printer = (struct printer){
		.out = out,
		.context = { .format = format, .data = data, .size = size },
		.arg = format->print->args,
	};
}

static void printer_end(struct printer *printer)
{
	print_arena_free(printer->context.arena);
}

/* The next argument's value; false when there is none or nobody knows it. */
static bool printer_take(struct printer *printer, struct operand *operand)
{
	const struct print_node *arg = printer->arg;

	if (!arg)
		return false;
	printer->arg = arg->next;
	return print_eval(&printer->context, arg, operand);
}

static void add_unknown(struct printer *printer, const struct kspec *spec)
{
	/* Of %*ph and %*pb the width is a count. */
	bool is_count = spec->conversion == 'p' && spec->extension[0] &&
			strchr("hb", spec->extension[0]);
	const struct kspec plain = { .width = -1, .precision = -1 };

	kprint_string(printer->out, is_count ? &plain : spec, "?", 1);
}

static unsigned int spec_size(const struct printer *printer, const struct kspec *spec)
{
	return spec->size ? spec->size : printer->context.format->long_size;
}

static void print_number(struct printer *printer, const struct kspec *spec,
			 const struct operand *operand)
{
	struct print_type type = {
		.size = (uint8_t)spec_size(printer, spec),
		.is_signed = spec->conversion == 'd' || spec->conversion == 'i',
	};

	if (operand->kind == OPERAND_NUMBER)
		kprint_number(printer->out, spec, print_narrow(operand->number, type));
	else
		add_unknown(printer, spec);
}

static void print_character(struct printer *printer, const struct kspec *spec,
			    const struct operand *operand)
{
	struct kspec padding = *spec;
	char c = (char)operand->number;

	if (operand->kind != OPERAND_NUMBER) {
		add_unknown(printer, spec);
		return;
	}
	padding.width--;
	padding.precision = -1;
	if (!spec->left)
		kprint_string(printer->out, &padding, "", 0);
	text_add_safe(printer->out, &c, 1);
	if (spec->left)
		kprint_string(printer->out, &padding, "", 0);
}

/* Width and precision count what the kernel prints, not what makes it safe. */
static void print_text(struct printer *printer, const struct kspec *spec, const char *text,
		       size_t length)
{
	struct kspec padding = *spec;

	if (spec->precision >= 0 && (size_t)spec->precision < length)
		length = (size_t)spec->precision;
	padding.precision = -1;
	padding.width =
		spec->width > 0 && (size_t)spec->width > length ? spec->width - (int)length : 0;
	if (!spec->left)
		kprint_string(printer->out, &padding, "", 0);
	text_add_safe(printer->out, text, length);
	if (spec->left)
		kprint_string(printer->out, &padding, "", 0);
}

static void print_string(struct printer *printer, const struct kspec *spec,
			 const struct operand *operand)
{
	const struct event_format *format = printer->context.format;
	const char *text;
	struct kspec address = { .conversion = 'x',
				 .alternate = true,
				 .width = spec->width,
				 .precision = -1,
				 .left = spec->left };
	size_t length;

	if (operand->kind == OPERAND_NUMBER) {
		text = operand->number ?
			       printk_lookup(catalog_printks(format->catalog), operand->number) :
			       "(null)";
		if (text)
			print_text(printer, spec, text, strlen(text));
		else
			kprint_number(printer->out, &address, operand->number);
		return;
	}
	length = operand->length ? strnlen((const char *)operand->bytes, operand->length) : 0;
	print_text(printer, spec, (const char *)operand->bytes, length);
}

static bool operand_bit(void *context, unsigned int index)
{
	const struct operand *operand = context;

	return index / 8 < operand->length && operand->bytes[index / 8] >> index % 8 & 1;
}

/* %*pb and %*pbl; the width is the number of bits. */
static void print_bits(struct printer *printer, const struct kspec *spec, struct operand *operand)
{
	unsigned int count = spec->width > 0 ? (unsigned int)spec->width : 0;

	if (count > operand->length * 8)
		count = (unsigned int)operand->length * 8;
	if (spec->extension[1] == 'l')
		kprint_bitmap_list(printer->out, operand_bit, operand, count);
	else
		kprint_bitmap(printer->out, operand_bit, operand, count);
}

static void print_address(struct printer *printer, const struct kspec *spec, uint64_t address)
{
	const struct event_format *format = printer->context.format;
	struct strbuf name = { 0 };

	switch (spec->extension[0]) {
	case 'S':
	case 'F':
	case 'B':
		print_symbol(&name, format, address, true);
		break;
	case 's':
	case 'f':
		print_symbol(&name, format, address, false);
		break;
	case 'e':
		/* An error in the place of a pointer. */
		if (address >= UINT64_MAX - 4094) {
			strbuf_addf(&name, "%lld", (long long)address);
			break;
		}
		kprint_pointer(printer->out, spec, address, format->long_size);
		return;
	default:
		kprint_pointer(printer->out, spec, address, format->long_size);
		return;
	}
	if (name.text)
		print_text(printer, spec, name.text, name.length);
	strbuf_free(&name);
}

static void print_pointer(struct printer *printer, const struct kspec *spec,
			  struct operand *operand)
{
	const struct event_format *format = printer->context.format;

	if (operand->kind == OPERAND_NUMBER) {
		/* What stands at that address is inside of the kernel. */
		if (spec->extension[0] && strchr("IiMmUhbaN", spec->extension[0]))
			add_unknown(printer, spec);
		else
			print_address(printer, spec, operand->number);
	} else if (spec->extension[0] == 'b') {
		print_bits(printer, spec, operand);
	} else if (!kprint_memory(printer->out, spec, operand->bytes, operand->length,
				  format->big_endian)) {
		add_unknown(printer, spec);
	}
}

/* A width or precision that is an argument. */
static bool take_count(struct printer *printer, int32_t *count)
{
	struct operand operand;

	if (!printer_take(printer, &operand) || operand.kind != OPERAND_NUMBER)
		return false;
	*count = (int32_t)operand.number;
	return true;
}

static void take_counts(struct printer *printer, struct kspec *spec)
{
	int32_t count;

	if (spec->width_argument & 1 && take_count(printer, &count))
		kspec_set_width(spec, count);
	if (spec->width_argument & 2 && take_count(printer, &count))
		kspec_set_precision(spec, count);
}

static void print_conversion(struct printer *printer, struct kspec *spec)
{
	struct operand operand;

	if (spec->conversion == '%') {
		strbuf_add_char(printer->out, '%');
		return;
	}
	take_counts(printer, spec);
	if (!printer_take(printer, &operand)) {
		add_unknown(printer, spec);
		return;
	}
	switch (spec->conversion) {
	case 'd':
	case 'i':
	case 'u':
	case 'x':
	case 'X':
	case 'o':
		print_number(printer, spec, &operand);
		break;
	case 'c':
		print_character(printer, spec, &operand);
		break;
	case 's':
		print_string(printer, spec, &operand);
		break;
	case 'p':
		print_pointer(printer, spec, &operand);
		break;
	default:
		add_unknown(printer, spec);
		break;
	}
}

/* Text of the format itself keeps its line breaks. */
static void add_literal(struct strbuf *out, const char *text, size_t length)
{
	while (length) {
		const char *newline = memchr(text, '\n', length);
		size_t part = newline ? (size_t)(newline - text) : length;

		text_add_safe(out, text, part);
		if (!newline)
			return;
		strbuf_add_char(out, '\n');
		text += part + 1;
		length -= part + 1;
	}
}

static const char *next_conversion(const char *at, const char *end)
{
	const char *percent = at < end ? memchr(at, '%', (size_t)(end - at)) : NULL;

	return percent ? percent : end;
}

void print_record(struct strbuf *out, const struct event_format *format, const uint8_t *data,
		  uint32_t size)
{
	const char *at = format->print->format, *end = at + format->print->format_length;
	struct printer printer;

	printer_start(&printer, out, format, data, size);
	while (at < end) {
		const char *percent = next_conversion(at, end);
		struct kspec spec;

		add_literal(out, at, (size_t)(percent - at));
		if (percent == end)
			break;
		at = kspec_parse(percent, end, &spec);
		print_conversion(&printer, &spec);
	}
	printer_end(&printer);
}

/* A string that the probe could not read has no bytes, not even a NUL. */
static bool is_fault(const struct printer *printer, const struct kspec *spec)
{
	const struct print_node *arg = printer->arg;
	const struct event_field *field;

	if (spec->conversion != 's' || !arg || arg->kind != PRINT_CALL ||
	    arg->function != PRINT_GET_STR)
		return false;
	field = arg->a->field;
	if (field->end > printer->context.size ||
	    (field->place != FIELD_DATA_LOC && field->kind != FIELD_STRINGS) ||
	    arg->number >= field->size / 4)
		return false;
	return !(load_u32(printer->context.data + field->offset + 4 * arg->number,
			  printer->context.format->swaps) >>
		 16);
}

void print_probe_arguments(struct strbuf *out, const struct event_format *format,
			   const uint8_t *data, uint32_t size)
{
	const char *at = format->print->format, *end = at + format->print->format_length;
	const char *close = memchr(at, ')', (size_t)(end - at));
	struct printer printer;
	bool is_printed = false;

	printer_start(&printer, out, format, data, size);
	while (at < end) {
		const char *percent = next_conversion(at, end);
		struct kspec spec;

		if (is_printed)
			add_literal(out, at, (size_t)(percent - at));
		if (!is_printed && (!close || percent > close)) {
			/* Behind the parenthesis that closes the address. */
			is_printed = true;
			at = close ? close + 1 : at;
			add_literal(out, at, (size_t)(percent - at));
		}
		if (percent == end)
			break;
		at = kspec_parse(percent, end, &spec);
		if (!is_printed) {
			printer.arg = printer.arg ? printer.arg->next : NULL;
		} else if (is_fault(&printer, &spec)) {
			if (out->length && out->text[out->length - 1] == '"')
				out->text[--out->length] = '\0';
			strbuf_add_string(out, "(fault)");
			printer.arg = printer.arg->next;
			at += at < end && *at == '"';
		} else {
			print_conversion(&printer, &spec);
		}
	}
	printer_end(&printer);
}

/* Which fields an expression looks at. */
struct field_use {
	const struct event_field *field;
	bool is_used;
	bool has_others;
	bool has_names; /* it has a list of names for values */
};

static void field_use_collect(const struct print_node *node, struct field_use *use)
{
	if (!node || use->has_others)
		return;
	if (node->kind == PRINT_FIELD || node->kind == PRINT_FIELD_ADDRESS) {
		if (node->field == use->field)
			use->is_used = true;
		else
			use->has_others = true;
		return;
	}
	if (node->kind == PRINT_CALL) {
		use->has_names = use->has_names || node->symbols;
		for (const struct print_node *arg = node->a; arg; arg = arg->next)
			field_use_collect(arg, use);
		return;
	}
	field_use_collect(node->a, use);
	field_use_collect(node->b, use);
	field_use_collect(node->c, use);
}

/* Conversions that show more of a value than its number. */
static bool is_telling(const struct kspec *spec, const struct field_use *use)
{
	if (spec->conversion == 'p')
		return spec->extension[0] && !strchr("Kx", spec->extension[0]);
	return use->has_names || spec->conversion == 's';
}

bool print_field_symbol(struct strbuf *out, const struct event_format *format,
			const struct event_field *field, const uint8_t *data, uint32_t size)
{
	const char *at = format->print->format, *end = at + format->print->format_length;
	struct printer printer;
	bool found = false;

	printer_start(&printer, out, format, data, size);
	while (at < end) {
		const char *percent = next_conversion(at, end);
		struct field_use use = { .field = field };
		struct kspec spec;

		/* "%s%s" of one field, such as prev_state, belong together. */
		if (percent == end || (found && percent != at))
			break;
		at = kspec_parse(percent, end, &spec);
		if (spec.conversion == '%')
			continue;
		if (!spec.width_argument)
			field_use_collect(printer.arg, &use);
		if (use.is_used && !use.has_others && (found || is_telling(&spec, &use))) {
			found = true;
			print_conversion(&printer, &spec);
			continue;
		}
		if (found)
			break;
		for (int i = spec.width_argument; i; i &= i - 1)
			printer.arg = printer.arg ? printer.arg->next : NULL;
		printer.arg = printer.arg ? printer.arg->next : NULL;
	}
	printer_end(&printer);
	return found;
}
