-- funcgraph: what a kernel function calls, and how long each call takes
--
-- As `trace-cmd record -p function_graph -g FUNCTION` with its report, at once and with totals.
-- A call that calls nothing is one line, all others are a block; the time stands where the call
-- ends and includes what it called. Before Linux 6.12 the kernel has this tracer at the top level
-- of tracefs only: there it runs while nobody else uses that.
--
-- Usage
--   luatrace funcgraph.lua [--depth N] [--only GLOB]... [--not GLOB]... [--quiet] FUNCTION...
--   luatrace -c 'cat /etc/hosts' funcgraph.lua vfs_read --depth 3
--   luatrace -d 5 funcgraph.lua 'ext4_*' --quiet   the totals alone
--
-- Sample output, of an emulated machine, where all is slow
--    0)               |  vfs_read() {
--    0)               |    rw_verify_area() {
--    0) + 81.354 us   |      security_file_permission();
--    0) * 15521.20 us |    }
--    0)               |    seq_read_iter() {
--    0) + 65.123 us   |      seq_printf();
--    0) ! 247.919 us  |    }
--    0) * 16830.72 us |  }
--
--   function                              calls     avg     p99     max   total
--   vfs_read                                  1  16.8ms  16.8ms  16.8ms  16.8ms
--   rw_verify_area                            1  15.5ms  15.5ms  15.5ms  15.5ms
--   ...
--
--   5 calls of 5 functions, 0 records lost
--
--   0)             the CPU; lines between dashes say that it runs another task now
--   + ! # * @ $    longer than 10 us, 100 us, 1 ms, 10 ms, 100 ms, 1 s
--   } /* name */   an end whose beginning is not above it: on another CPU, or before the start
--   CPU:1 [LOST n EVENTS]  n records are missing there; ends behind it may have no beginning
--   total          of all calls, with what they called; nested functions count in both
--
--   With luatrace -f json the totals are objects, with times in ns, with -f csv rows, with
--   -f prometheus metrics that are there all the time, and with -f svg bars; there are no lines.
--
-- Overhead
--   Two records a call. Without --only every function that the kernel can trace is patched, some
--   tens of thousands, and each call of any of them, in all tasks, passes through the tracer until
--   the end, shown or not. Name some with --only where others must not suffer.

local aggregate = require "tracefs.aggregate"
local argparse = require "argparse"
local funcgraph = require "tracefs.funcgraph"
local tracefs = require "tracefs"
local trace = require "tracefs.script"

local function whole_number(text)
  local number = math.tointeger(tonumber(text))
  if not number or number < 1 then
    return nil, ("'%s' is not a whole number above 0"):format(text)
  end
  return number
end

local parser = argparse("funcgraph", "What a kernel function calls, and how long each call takes.")
  :help_max_width(79)
parser:argument("function", "Whose calls are shown; * and ? stand for others."):args "+"
parser:option("--depth", "So many levels of calls."):argname("N"):convert(whole_number)
parser:option("--only", "Show only these functions below it."):argname("GLOB"):count "*"
parser:option("--not", "Do not show these functions."):argname("GLOB"):count "*"
parser:flag("--quiet", "Only the totals.")
local options = parser:parse(trace.args)

local wanted = {
  tracer = "function_graph",
  graph = options["function"],
  depth = options.depth,
  notrace = #options["not"] > 0 and options["not"] or nil,
}
if #options.only > 0 then
  table.move(options["function"], 1, #options["function"], 1, wanted)
  table.move(options.only, 1, #options.only, #wanted + 1, wanted)
end
trace:functions(wanted)

local lost, is_more = 0, ""
local times = aggregate.new {
  "count", "average", "p99", "maximum", "sum", name = "function", by = "function", unit = "ns",
  max = 100000,
  titles = { count = "calls", sum = "total" },
}

local graph = funcgraph.new(function(line)
  print(line)
end)

-- Lines are for people; in other formats there are the totals.
local has_lines = trace.format == "text" and not options.quiet

local function show(record)
  if has_lines then
    graph:add(record)
  end
end

trace:on("ftrace:funcgraph_entry", show)
trace:on("ftrace:funcgraph_exit", function(record)
  local name = tracefs.ksym(record.func) or ("%#x"):format(record.func)
  times:add(record.rettime - record.calltime, name)
  show(record)
end)

trace:on_lost(function(gap)
  lost = lost + (gap.count or 0)
  is_more = gap.count and is_more or " or more"
  if has_lines then
    graph:lost(gap)
  end
end)

trace:at_end(function()
  graph:finish()
  local lines, calls = times:rows { sort = "sum" }, 0
  for _, line in ipairs(lines) do
    calls = calls + line.count
  end
  if trace.format == "json" or trace.format == "csv" then
    for _, line in ipairs(lines) do
      trace:print {
        type = "function", name = line["function"] or "(other)", calls = line.count,
        avg_ns = math.floor(line.average), p99_ns = line.p99, max_ns = line.maximum,
        total_ns = line.sum,
      }
    end
    return
  elseif trace.format ~= "text" then
    trace:print(times)
    return
  end
  if #lines > 0 then
    print()
    print(times:text { sort = "sum" })
    print()
  end
  print(("%d call%s of %d function%s, %d%s records lost"):format(calls,
    calls == 1 and "" or "s", #lines, #lines == 1 and "" or "s", lost, is_more))
end)
