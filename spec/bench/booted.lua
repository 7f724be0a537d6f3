--- make bench, letter m: what a pair costs the load that is traced, matched here and by the kernel,
--- in a booted kernel that can do both. Time is counted in instructions there: runs hardly differ.
local process = dofile("spec/bench/process.lua")
local traced = dofile("spec/bench/traced.lua")

local booted = {}

-- As spec/vm/run names them.
local KERNEL <const> = "6.12"
-- More of the same would say the same.
local MOST_EVENTS <const>, MOST_RUNS <const> = 50000, 3

---@param bench table what spec/bench/run.lua has for traced.lua, and runs
---@return table[] rows as traced.rows() has them
function booted.rows(bench)
  local answers, why_none

  -- One boot brings the samples of all ways.
  local function boot()
    io.stderr:write(("a kernel %s is booted\n"):format(KERNEL))
    local line = process.command("spec/bench/booted", KERNEL, math.min(bench.events, MOST_EVENTS),
      math.min(bench.runs, MOST_RUNS))
    local pipe = assert(io.popen("LUATRACE_BUILD=" .. process.quote(bench.build) .. " " .. line
      .. " 2>&1"))
    local text = pipe:read "a"
    answers = {}
    if not pipe:close() then
      why_none = text:match "([^\n]*)\n*$"
      return
    end
    for answer in text:gmatch "[^\n]+" do
      local values = process.parse(answer)
      if values.way then
        answers[values.way] = answers[values.way] or {}
        table.insert(answers[values.way], values)
      end
    end
  end

  local function reading(number)
    local taken = 0
    return function()
      if not answers then
        boot()
      end
      local list = answers[number] or {}
      taken = taken % math.max(#list, 1) + 1
      local answer = list[taken]
      if not answer or answer.why then
        return nil, why_none or answer and answer.why or "the guest said nothing of it"
      end
      return answer
    end
  end

  local rows = {}
  for number, way in ipairs(traced.rows(bench)) do
    if way.is_booted then
      rows[#rows + 1] = {
        letter = "m", what = way.what, is_base = way.is_base, read = reading(number),
        heading = ("traced in a kernel %s under QEMU: instructions of the load for each switch")
          :format(KERNEL),
      }
    end
  end
  return rows
end

return booted
