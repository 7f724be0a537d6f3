#!/usr/bin/env bash
# What boots a Debian kernel under QEMU with what was built: for spec/vm/run and spec/bench/booted,
# which source it. They set `build`, the build folder, `work`, a folder of their own, and `limit`,
# the seconds that a guest may take.
# shellcheck disable=SC2154  # these three

die() {
  printf 'vm: %s\n' "$*" >&2
  exit 1
}

# suite_of KERNEL: the suite whose kernel that is.
suite_of() {
  case $1 in
  5.10) echo bullseye ;;
  6.1) echo bookworm ;;
  6.12) echo trixie ;;
  newest) echo sid ;;
  *)
    [[ $1 =~ ^[a-z]+$ ]] || die "no kernel \"$1\"; there are 5.10, 6.1, 6.12, newest, and the" \
      "names of Debian's suites (spec/vm/run --help)"
    printf '%s\n' "$1"
    ;;
  esac
}

check_tools() {
  local tool
  for tool in qemu-system-x86_64 cpio busybox; do
    type -P "$tool" >/dev/null || die "no $tool here: run .ci/deps vm"
  done
  ldd "$(type -P busybox)" >/dev/null 2>&1 && die "busybox is not static: run .ci/deps vm"
  [[ -r $build/CMakeCache.txt && -x $build/support/load ]] ||
    die "$build is not built, or without LUATRACE_TESTS: run make"
}

# copy FILE...: to the same place in the guest, with what links lead to.
copy() {
  local file
  for file in "$@"; do
    mkdir -p "$work/root$(dirname "$file")" && cp -L "$file" "$work/root$file" || return
  done
}

libraries() {
  ldd "$@" | grep -oE '/[^ ]+ \(0x' | sed 's/ (0x//' | sort -u
}

# A Lua module that the command needs, as a path.
lua_module() {
  "$1" -e "print(assert(package.searchpath('$2', package.path)))"
}

# What every guest sees: the installed module and command, the interpreter, the loads, and the
# libraries of all of them. Its init runs PROGRAM, a path in the guest.
begin_root() {
  local program=$1 lua name file
  lua=$(sed -n 's/^LUATRACE_HOST:INTERNAL=//p' "$build/CMakeCache.txt")
  mkdir -p "$work/root/bin" "$work/root/spec" || return
  DESTDIR=$work/root cmake --install "$build" --prefix /usr/local >/dev/null || return
  cp "$(type -P busybox)" "$work/root/bin/busybox" && cp spec/vm/init "$work/root/init" || return
  cp "$build"/support/{load,probed,variety} "$work/root/spec/" || return
  printf '%s\n' "$lua" >"$work/root/interpreter"
  printf '%s\n' "$program" >"$work/root/program"
  for name in argparse dkjson; do
    file=$(lua_module "$lua" "$name") && copy "$file" || return
  done
  # The interpreter is also found by its name, through the launcher's first line.
  copy "$lua" && ln -sf "$lua" "$work/root/bin/$(basename "$lua")" || return
  while read -r file; do
    copy "$file" || return
  done < <(libraries "$lua" "$build"/support/{load,probed,variety} "$build/tracefs/core.so")
}

# All that was put into the guest's files is in them.
end_root() {
  archive "$work/root" >"$work/base.cpio.gz"
}

archive() {
  (cd "$1" && find . | cpio --quiet -o -H newc -R 0:0) | gzip -1
}

# fetch SUITE: the kernel's folder to $work/SUITE.kernel, or why there is none to $work/SUITE.skip.
fetch() {
  local suite=$1
  if [[ $(uname -m) != x86_64 ]]; then
    echo "the kernel is for x86-64, and what is built here is not" >"$work/$suite.skip"
  elif spec/vm/fetch "$suite" >"$work/$suite.kernel" 2>"$work/$suite.skip"; then
    cat "$work/$suite.skip" >&2
    rm "$work/$suite.skip"
  fi
}

# boot SUITE OPTION...: the output of the guest's program to $work/SUITE.tap, its console to
# $work/SUITE.console, and why it did not come to its end to $work/SUITE.broken. The options are
# QEMU's.
boot() {
  local suite=$1 kernel status
  shift
  kernel=$(cat "$work/$suite.kernel")
  cp "$kernel/release" "$work/$suite.release"
  mkdir -p "$work/$suite"
  cp -r "$kernel/modules" "$work/$suite/modules"
  # Archives one behind the other are one for the kernel.
  { cat "$work/base.cpio.gz" && archive "$work/$suite"; } >"$work/$suite.cpio.gz"
  timeout --kill-after=5 "$limit" nice qemu-system-x86_64 \
    -accel tcg,thread=single "$@" -m 512 -nodefaults -no-reboot -display none \
    -kernel "$kernel/vmlinuz" -initrd "$work/$suite.cpio.gz" \
    -append "console=ttyS0 quiet panic=-1 no_hash_pointers no_timer_check" \
    -serial "file:$work/$suite.console" -serial "file:$work/$suite.tap" \
    </dev/null >"$work/$suite.qemu" 2>&1
  status=$?
  case $status in
  0) ;;
  124 | 137) echo "the guest did not come to its end within $limit s" >"$work/$suite.broken" ;;
  *) echo "QEMU ended with status $status: $(tail -n 1 "$work/$suite.qemu")" \
    >"$work/$suite.broken" ;;
  esac
}
