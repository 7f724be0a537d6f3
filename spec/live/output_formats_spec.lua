-- What programs read of a run: hostile names, 64-bit numbers and losses, by another reader.
local helper = require "spec.support.helper"
local loads = require "spec.support.loads"

local SYSCALL <const> = loads.SYSCALL
local NAMES <const> = { 'a"b,\n\27[31mc', "\xff\xfe\x9b31m,'", "{}\\\r\n\u{202e}x" }

-- Every line of NDJSON by itself; CSV as one table with the same number of fields in each row.
local READER <const> = [[
import csv, json, sys
kind, path = sys.argv[1:]
rows = []
if kind == "json":
    with open(path, encoding="utf-8", newline="\n") as lines:
        for line in lines:
            row = json.loads(line)
            assert isinstance(row, dict) and isinstance(row["type"], str), line
            rows.append({**row, **row.get("fields", {})})
else:
    with open(path, encoding="utf-8", newline="") as file:
        table = list(csv.reader(file, strict=True))
    head = table[0]
    for cells in table[1:]:
        assert len(cells) == len(head), cells
        row = {name: cell for name, cell in zip(head, cells) if cell}
        row.update(json.loads(row.pop("more", "{}")))
        if isinstance(row.get("args"), str):
            row["args"] = json.loads(row["args"])
        rows.append(row)
for row in rows:
    if "newcomm" in row:
        print("name", row["newcomm"].encode("utf-8").hex())
    elif "args" in row:
        print("argument", row["args"][0])
    else:
        print(row["type"], row.get("count", "unknown"))
]]

describe("output for programs", function()
  if helper.execute { "python3", "-c", "" } ~= 0 then
    pending("python3 is not there")
    return
  end

  local function read(format, path)
    local status, out, err = helper.execute { "python3", "-c", READER, format, path }
    assert.same({ 0, "" }, { status, err })
    local rows = {}
    for kind, value in out:gmatch("(%S+) (%S*)\n") do
      rows[kind] = rows[kind] or {}
      rows[kind][value] = true
      table.insert(rows[kind], value)
    end
    return rows
  end

  local LOAD <const> = [[
import ctypes, os, sys
libc = ctypes.CDLL(None)
for i, name in enumerate(%s):
    pid = os.fork()
    if pid == 0:
        libc.prctl(15, bytes.fromhex(name), 0, 0, 0)
        libc.syscall(ctypes.c_long(%d), ctypes.c_ulong(2**64 - 1 - i), 0, 0, 0, 0, 0)
        os._exit(0)
    os.waitpid(pid, 0)
]]

  local function hex(name)
    return (name:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
  end

  for format, fields in pairs { json = "", csv = '"args", ' } do
    it("is what it was, as " .. format, function()
      local nr, filter = loads.fresh_nr()
      local path, names = helper.tmpdir() .. "/out", {}
      for i, name in ipairs(NAMES) do
        names[i] = '"' .. hex(name) .. '"'
      end
      local load = LOAD:format("[" .. table.concat(names, ",") .. "]", nr)
      local status, out, err = helper.run {
        "-f", format, "-o", path, "-c", "python3 -c " .. helper.quote(load),
        "-e", ([[on(%q, { %s filter = %q }) on("task:task_rename", { %s })]]):format(
          SYSCALL, fields, filter, fields == "" and "" or '"newcomm"'),
      }
      assert.same({ 0, "", "" }, { status, out, helper.without_late(err) })
      local rows = read(format, path)
      assert.same({ "18446744073709551615", "18446744073709551614", "18446744073709551613" },
        table.move(rows.argument, 1, 3, 1, {}))
      assert.equal(3, #rows.argument)
      for _, name in ipairs(NAMES) do
        name = name:sub(1, 15)
        -- bytes that are no UTF-8 are the characters of their numbers
        if not utf8.len(name) then
          name = name:gsub("[\x80-\xff]", function(byte)
            return utf8.char(byte:byte())
          end)
        end
        assert.is_true(rows.name[hex(name)], name)
      end
    end)

    it("has the losses, as " .. format, function()
      local nr, filter = loads.fresh_nr()
      local path = helper.tmpdir() .. "/out"
      local status, _, err = helper.run {
        "-b", "64", "-f", format, "-o", path,
        "-c", ("%s --nr %d syscalls 20011 >/dev/null"):format(
          helper.quote(helper.program("support/load")), nr),
        "-e", ([[
          on(%q, { "args", filter = %q })
          on(%q, { "id", filter = %q }, function()
            if not seen then
              seen = true
              local t = os.clock() + 1 while os.clock() < t do end
            end
          end)
        ]]):format(SYSCALL, filter, SYSCALL, filter),
      }
      assert.equal(0, status)
      local rows = read(format, path)
      local warned = err:match("warning: (%d+) of 20011 events were lost %(CPU ")
      assert.equal(20011, #rows.argument + assert(warned, err))
      assert.is_true(#rows.lost > 0)
    end)
  end
end)
