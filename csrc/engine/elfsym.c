/* SPDX-License-Identifier: MIT */
#include "elfsym.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef HAVE_LIBELF

#include <gelf.h>
#include <libelf.h>

/* A version that is there for old programs only: nobody links to it any more. */
#define VERSION_HIDDEN 0x8000

struct elf_file {
	const char *path;
	int fd;
	Elf *elf;
	GElf_Ehdr header;
};

/* One symbol table and what belongs to it. */
struct symbols {
	Elf_Data *data;
	Elf_Data *versions; /* of .dynsym, or NULL */
	size_t strings;	    /* index of the section that has the names */
	size_t count;
};

struct match {
	GElf_Sym symbol;
	unsigned int rank;	/* 0: none */
	unsigned int different; /* addresses of the same rank */
	uint64_t addresses[8];
};

bool elfsym_is_there(void)
{
	return true;
}

static void file_close(struct elf_file *file)
{
	if (file->elf)
		elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
}

static int damaged(const struct elf_file *file, const char *what, struct trace_error *error)
{
	const char *why = elf_errmsg(elf_errno());

	return error_set(error, EINVAL, "cannot read %s of %s: the file is damaged%s%s", what,
			 file->path, why ? ": " : "", why ? why : "");
}

static int file_open(struct elf_file *file, const char *path, struct trace_error *error)
{
	struct stat info;
	char head[2] = "";

	memset(file, 0, sizeof(*file));
	file->path = path;
	/* A FIFO must not hold us up. */
	file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file->fd < 0 || fstat(file->fd, &info) < 0)
		return error_set(error, errno, "cannot read the symbols of %s: %s", path,
				 strerror(errno));
	if (!S_ISREG(info.st_mode))
		return error_set(error, EINVAL, "cannot read the symbols of %s: it is not a file",
				 path);
	elf_version(EV_CURRENT);
	file->elf = elf_begin(file->fd, ELF_C_READ, NULL);
	if (!file->elf)
		return damaged(file, "the symbols", error);
	if (elf_kind(file->elf) != ELF_K_ELF) {
		if (pread(file->fd, head, 2, 0) == 2 && head[0] == '#' && head[1] == '!')
			return error_set(error, ENOEXEC,
					 "%s is a script: it has no functions for a uprobe. Probe "
					 "its interpreter",
					 path);
		return error_set(error, ENOEXEC, "%s is not an ELF file: no program, no library",
				 path);
	}
	if (!gelf_getehdr(file->elf, &file->header))
		return damaged(file, "the header", error);
	if (file->header.e_type != ET_EXEC && file->header.e_type != ET_DYN)
		return error_set(error, ENOEXEC,
				 "%s is neither a program nor a shared library: nothing runs it as "
				 "it is",
				 path);
	return 0;
}

/* True when there is a table of type @type, and it can be read. */
static bool symbols_find(const struct elf_file *file, GElf_Word type, struct symbols *symbols)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	memset(symbols, 0, sizeof(*symbols));
	while ((section = elf_nextscn(file->elf, section))) {
		if (!gelf_getshdr(section, &header))
			continue;
		if (header.sh_type == type && !symbols->data) {
			symbols->data = elf_getdata(section, NULL);
			symbols->strings = header.sh_link;
			if (header.sh_entsize)
				symbols->count = (size_t)(header.sh_size / header.sh_entsize);
		} else if (header.sh_type == SHT_GNU_versym && type == SHT_DYNSYM) {
			symbols->versions = elf_getdata(section, NULL);
		}
	}
	return symbols->data && symbols->count;
}

/* Symbol @index and its name; false for what cannot be read. */
static bool symbol_get(const struct elf_file *file, const struct symbols *symbols, size_t index,
		       GElf_Sym *symbol, const char **name)
{
	if (index > INT32_MAX || !gelf_getsym(symbols->data, (int)index, symbol))
		return false;
	*name = elf_strptr(file->elf, symbols->strings, symbol->st_name);
	return *name && **name;
}

static bool is_hidden(const struct symbols *symbols, size_t index, const char *version)
{
	GElf_Versym versym;

	if (version)
		return version[1] != '@';
	return symbols->versions && gelf_getversym(symbols->versions, (int)index, &versym) &&
	       versym & VERSION_HIDDEN;
}

/* The segment that has @address as its code: where that is in the file. */
static bool to_offset(const struct elf_file *file, uint64_t address, uint64_t *offset)
{
	GElf_Phdr header;
	size_t count;

	if (elf_getphdrnum(file->elf, &count) != 0)
		return false;
	for (size_t i = 0; i < count && i <= INT32_MAX; i++) {
		if (!gelf_getphdr(file->elf, (int)i, &header) || header.p_type != PT_LOAD ||
		    !(header.p_flags & PF_X) || address < header.p_vaddr ||
		    address - header.p_vaddr >= header.p_filesz)
			continue;
		*offset = address - header.p_vaddr + header.p_offset;
		return *offset >= header.p_offset;
	}
	return false;
}

static uint64_t code_address(const struct elf_file *file, uint64_t value)
{
	/* The lowest bit of an ARM function says which instruction set it is in. */
	return file->header.e_machine == EM_ARM ? value & ~UINT64_C(1) : value;
}

static bool is_function(const struct elf_file *file, const GElf_Sym *symbol)
{
	unsigned char type = GELF_ST_TYPE(symbol->st_info);
	uint64_t offset;

	if (symbol->st_shndx == SHN_UNDEF)
		return false;
	/* Labels of assembler code have no type. */
	return type == STT_FUNC || type == STT_GNU_IFUNC ||
	       (type == STT_NOTYPE &&
		to_offset(file, code_address(file, symbol->st_value), &offset));
}

static void match_add(struct match *match, const GElf_Sym *symbol, unsigned int rank)
{
	const unsigned int most = sizeof(match->addresses) / sizeof(match->addresses[0]);

	if (rank < match->rank)
		return;
	if (rank > match->rank) {
		match->rank = rank;
		match->different = 0;
		match->symbol = *symbol;
	}
	for (unsigned int i = 0; i < match->different && i < most; i++) {
		if (match->addresses[i] == symbol->st_value)
			return;
	}
	if (match->different < most)
		match->addresses[match->different] = symbol->st_value;
	match->different++;
}

/* How much a symbol is what is meant: not data or another file's, not old, not a file's own. */
static unsigned int rank_of(const struct elf_file *file, const struct symbols *symbols,
			    size_t index, const GElf_Sym *symbol, const char *version)
{
	if (symbol->st_shndx == SHN_UNDEF)
		return 1;
	if (!is_function(file, symbol))
		return 2;
	return 3 + 2 * !is_hidden(symbols, index, version) +
	       (GELF_ST_BIND(symbol->st_info) != STB_LOCAL);
}

static void match_in(const struct elf_file *file, GElf_Word type, const char *wanted,
		     struct match *match)
{
	size_t length = strlen(wanted);
	struct symbols symbols;
	const char *name, *version;
	GElf_Sym symbol;

	if (!symbols_find(file, type, &symbols))
		return;
	for (size_t i = 0; i < symbols.count; i++) {
		if (!symbol_get(file, &symbols, i, &symbol, &name) ||
		    strncmp(name, wanted, length) != 0 ||
		    (name[length] != '\0' && name[length] != '@'))
			continue;
		/* .symtab has versions in its names: "f@@NEW" and "f@OLD". */
		version = name[length] == '@' ? name + length : NULL;
		match_add(match, &symbol, rank_of(file, &symbols, i, &symbol, version));
	}
}

/* The libraries that the file is linked with, "a, b". */
static void add_needed(struct strbuf *out, const struct elf_file *file)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Dyn entry;
	Elf_Data *data;
	const char *name;

	while ((section = elf_nextscn(file->elf, section))) {
		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNAMIC)
			continue;
		data = elf_getdata(section, NULL);
		for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL;
		     i++) {
			if (entry.d_tag != DT_NEEDED)
				continue;
			name = elf_strptr(file->elf, header.sh_link, entry.d_un.d_val);
			if (name)
				strbuf_addf(out, "%s%s", out->length ? ", " : "", name);
		}
	}
}

static int no_function(const struct elf_file *file, const char *symbol, const struct match *match,
		       struct trace_error *error)
{
	struct strbuf needed = { 0 };
	struct symbols symbols;

	if (match->rank == 2)
		return error_set(error, EINVAL, "'%s' of %s is data: a uprobe needs a function",
				 symbol, file->path);
	if (match->rank == 1) {
		add_needed(&needed, file);
		error_set(error, ENOENT,
			  "'%s' is not in %s, which takes it from one of its libraries%s%s: name "
			  "that one",
			  symbol, file->path, needed.length ? ": " : "",
			  needed.length && !needed.failed ? needed.text : "");
		strbuf_free(&needed);
		return -1;
	}
	if (!symbols_find(file, SHT_SYMTAB, &symbols) && !symbols_find(file, SHT_DYNSYM, &symbols))
		return error_set(error, ENOENT,
				 "no function '%s' in %s: it has no symbols at all (stripped). "
				 "Name the place: %s:0xOFFSET",
				 symbol, file->path, file->path);
	if (!symbols_find(file, SHT_SYMTAB, &symbols))
		return error_set(error, ENOENT,
				 "no function '%s' in %s: the file is stripped, and has only the "
				 "symbols that other files link to",
				 symbol, file->path);
	return error_set(error, ENOENT, "no function '%s' in %s", symbol, file->path);
}

static int several(const struct elf_file *file, const char *symbol, const struct match *match,
		   struct trace_error *error)
{
	const unsigned int most = sizeof(match->addresses) / sizeof(match->addresses[0]);
	struct strbuf list = { 0 };
	uint64_t offset;

	for (unsigned int i = 0; i < match->different && i < most; i++) {
		if (to_offset(file, code_address(file, match->addresses[i]), &offset))
			strbuf_addf(&list, "%s%s:0x%llx", list.length ? ", " : "", file->path,
				    (unsigned long long)offset);
	}
	error_set(error, EINVAL, "%u functions of %s have the name '%s': name one by its place: %s",
		  match->different, file->path, symbol, list.failed || !list.text ? "" : list.text);
	strbuf_free(&list);
	return -1;
}

static int find(const struct elf_file *file, const char *symbol, uint64_t delta, uint64_t *offset,
		struct trace_error *error)
{
	struct match match = { 0 };
	uint64_t address;

	match_in(file, SHT_SYMTAB, symbol, &match);
	if (match.rank < 3)
		match_in(file, SHT_DYNSYM, symbol, &match);
	if (match.rank < 3)
		return no_function(file, symbol, &match, error);
	if (match.different > 1)
		return several(file, symbol, &match, error);
	if (GELF_ST_TYPE(match.symbol.st_info) == STT_GNU_IFUNC)
		return error_set(
			error, EINVAL,
			"'%s' of %s is one of several functions, which the loader picks at "
			"run time for the processor at hand (IFUNC): name that one, or its "
			"place: %s:0xOFFSET",
			symbol, file->path, file->path);
	if (delta && match.symbol.st_size && delta >= match.symbol.st_size)
		return error_set(error, EINVAL,
				 "'%s' of %s has %llu bytes: +%llu is behind its end", symbol,
				 file->path, (unsigned long long)match.symbol.st_size,
				 (unsigned long long)delta);
	address = code_address(file, match.symbol.st_value) + delta;
	if (address < delta || !to_offset(file, address, offset))
		return error_set(
			error, EINVAL,
			"'%s' of %s is at the address 0x%llx, which no part of the file is "
			"loaded to as code: the file is damaged, or holds symbols only",
			symbol, file->path, (unsigned long long)address);
	return 0;
}

int elfsym_find(const char *path, const char *symbol, uint64_t delta, uint64_t *offset,
		struct trace_error *error)
{
	struct elf_file file;
	int result;

	result = file_open(&file, path, error);
	if (result == 0)
		result = find(&file, symbol, delta, offset, error);
	file_close(&file);
	return result;
}

int elfsym_functions(const char *path, struct strbuf *names, struct trace_error *error)
{
	static const GElf_Word types[] = { SHT_SYMTAB, SHT_DYNSYM };
	struct elf_file file;
	struct symbols symbols;
	const char *name;
	GElf_Sym symbol;
	int result;

	result = file_open(&file, path, error);
	for (size_t t = 0; result == 0 && t < sizeof(types) / sizeof(types[0]); t++) {
		if (!symbols_find(&file, types[t], &symbols))
			continue;
		for (size_t i = 0; i < symbols.count; i++) {
			if (!symbol_get(&file, &symbols, i, &symbol, &name) ||
			    !is_function(&file, &symbol))
				continue;
			strbuf_add(names, name, strcspn(name, "@"));
			strbuf_add(names, "", 1);
		}
	}
	file_close(&file);
	if (result == 0 && names->failed)
		return error_set(error, ENOMEM, "out of memory");
	return result;
}

/* Labels without a type are in the middle of functions, too: only those that others link to. */
static bool has_code(const GElf_Sym *symbol)
{
	unsigned char type = GELF_ST_TYPE(symbol->st_info);

	return type == STT_FUNC || type == STT_GNU_IFUNC ||
	       (type == STT_NOTYPE && GELF_ST_BIND(symbol->st_info) == STB_GLOBAL);
}

int elfsym_each(const char *path, elfsym_visit visit, void *context, struct trace_error *error)
{
	static const GElf_Word types[] = { SHT_SYMTAB, SHT_DYNSYM };
	struct elf_file file;
	struct symbols symbols;
	const char *name;
	uint64_t offset;
	GElf_Sym symbol;
	int result;
	bool goes_on = true;

	result = file_open(&file, path, error);
	for (size_t t = 0; result == 0 && t < sizeof(types) / sizeof(types[0]); t++) {
		if (!symbols_find(&file, types[t], &symbols))
			continue;
		for (size_t i = 0; goes_on && i < symbols.count; i++) {
			if (!symbol_get(&file, &symbols, i, &symbol, &name) ||
			    symbol.st_shndx == SHN_UNDEF || !has_code(&symbol) ||
			    !to_offset(&file, code_address(&file, symbol.st_value), &offset))
				continue;
			goes_on = visit(context, name, strcspn(name, "@"), offset, symbol.st_size);
		}
	}
	file_close(&file);
	return result;
}

#else /* !HAVE_LIBELF */

static int not_there(const char *path, struct trace_error *error)
{
	return error_set(
		error, ENOSYS,
		"cannot look up functions in %s: this luatrace was built without libelf. "
		"Build it with libelf (libelf-dev, elfutils-libelf-devel, libelf), or name "
		"the place: %s:0xOFFSET",
		path, path);
}

bool elfsym_is_there(void)
{
	return false;
}

int elfsym_find(const char *path, const char *symbol, uint64_t delta, uint64_t *offset,
		struct trace_error *error)
{
	(void)symbol;
	(void)delta;
	(void)offset;
	return not_there(path, error);
}

int elfsym_functions(const char *path, struct strbuf *names, struct trace_error *error)
{
	(void)names;
	return not_there(path, error);
}

int elfsym_each(const char *path, elfsym_visit visit, void *context, struct trace_error *error)
{
	(void)visit;
	(void)context;
	return not_there(path, error);
}

#endif
