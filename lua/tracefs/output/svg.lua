--- Output as a picture: of every pair how its times are spread, and how over time (a heat map); of
--- aggregates their histograms; of counts by stack a flame graph. One SVG file that needs nothing
--- else.
local aggregate = require "tracefs.aggregate"
local flame = require "tracefs.flame"
local heatmap = require "tracefs.output.heatmap"
local rows = require "tracefs.output.rows"
local text = require "tracefs.output.text"
local units = require "tracefs.units"
local xml = require "tracefs.xml"

local svg = {}

local WIDTH <const> = 860
local LEFT <const> = 150
-- Where bars begin that have keys of any length beside them.
local KEYS_LEFT <const> = 260
local RIGHT <const> = 790
local MAP_HEIGHT <const> = 240
local BAR_HEIGHT <const> = 15
local MAX_KEYS <const> = 12
local MAX_BARS <const> = 30
local MAX_LOSSES <const> = 1000
local LONGEST <const> = 80
local LINE <const> = 115

local STYLE <const> = [[<style>
text { font: 12px system-ui, sans-serif; fill: #222 }
.title { font-size: 15px; font-weight: 600 }
.muted { fill: #666 }
.number { font-variant-numeric: tabular-nums }
.bar { fill: #2a78d6 }
.grid { stroke: #e5e7eb }
.lost { stroke: #d43d2a; stroke-width: 2 }
.warning { fill: #b3261e }
</style>]]

local Picture = text.derive()
Picture.wants_matches = true

local Canvas = {}
Canvas.__index = Canvas

function Canvas:put(format, ...)
  self[#self + 1] = format:format(...)
end

function Canvas:label(x, y, class, value, anchor)
  self:put('<text x="%d" y="%d" class="%s"%s>%s</text>', x, y, class,
    anchor and (' text-anchor="%s"'):format(anchor) or "", xml.text(value))
end

-- A list of texts as lines that are not wider than the picture.
local function wrapped(parts)
  local lines = {}
  for _, part in ipairs(parts) do
    local last = lines[#lines]
    if last and #last + #part < LINE then
      lines[#lines] = last .. ", " .. part
    else
      lines[#lines + 1] = part
    end
  end
  return lines
end

-- A headline with what is below it: a text, or several with commas between them.
function Canvas:head(title, details)
  self.y = self.y + 34
  self:put('<text x="20" y="%d" class="title">%s<title>%s</title></text>', self.y,
    xml.text(xml.cut(title, LONGEST)), xml.text(title))
  for _, line in ipairs(wrapped(type(details) == "table" and details or { details })) do
    self.y = self.y + 18
    self:label(20, self.y, "muted", xml.cut(line, LINE))
  end
  self.y = self.y + 12
end

-- How wide characters are in common fonts of 12 pixels, in tenths of one, rather too much.
local WIDTHS <const> = { { "[%%@mMwW]", 120 }, { "%u", 95 }, { "[ .,:;'il-]", 46 } }

local function width_of(code)
  if code >= 0x80 then
    return code == utf8.codepoint "–" and 72 or 120
  end
  for _, class in ipairs(WIDTHS) do
    if string.char(code):find(class[1]) then
      return class[2]
    end
  end
  return 78
end

-- As much of a text as has room, with "…" where that is not all.
local function fitting(value, room)
  local label, width, count = xml.cut(value, #value + 1), 0, 0
  for _, code in utf8.codes(label) do
    width = width + width_of(code)
    if width > room * 10 then
      return xml.cut(label, math.max(count, 1))
    end
    count = count + 1
  end
  return label
end

-- One bar a line: { label =, value =, shown = }.
function Canvas:bars(list, left)
  left = left or LEFT
  local greatest = 0
  for _, bar in ipairs(list) do
    greatest = math.max(greatest, bar.value)
  end
  for _, bar in ipairs(list) do
    local width = greatest > 0 and math.max(0, bar.value) / greatest * (RIGHT - left - 70) or 0
    self:put('<g><title>%s: %s</title><rect x="%d" y="%d" width="%.1f" height="%d" class="bar"/>',
      xml.text(bar.label), xml.text(bar.shown), left, self.y,
      bar.value > 0 and math.max(width, 0.5) or 0,
      BAR_HEIGHT - 3)
    self:label(left - 8, self.y + 10, "number", fitting(bar.label, left - 8), "end")
    self:label(left + math.floor(width) + 6, self.y + 10, "muted number", bar.shown)
    self:put "</g>"
    self.y = self.y + BAR_HEIGHT
  end
end

local function colour(share)
  local function mix(from, to)
    return math.floor(from + (to - from) * share + 0.5)
  end
  return ("#%02x%02x%02x"):format(mix(0xd6, 0x08), mix(0xe6, 0x30), mix(0xfa, 0x6b))
end

local function shade(count, most)
  return colour(most > 1 and math.log(count) / math.log(most) or 1)
end

-- Round values between two: powers of ten, with their twos and fives where those are too few to
-- read other values by, or else the two themselves.
local function marks(from, to)
  for _, steps in ipairs { { 1 }, { 1, 2, 5 } } do
    local list, power = {}, 1
    while power <= to and power < 1 << 59 do
      for _, step in ipairs(steps) do
        if step * power >= from and step * power <= to then
          list[#list + 1] = step * power
        end
      end
      power = power * 10
    end
    if #list > 1 then
      return list
    end
  end
  return { from, to }
end

function Canvas:value_axis(low, high, height, unit)
  local row = low
  for _, value in ipairs(marks(heatmap.from(low), heatmap.from(high + 1))) do
    while row < high and heatmap.from(row + 1) <= value do
      row = row + 1
    end
    local span = heatmap.from(row + 1) - heatmap.from(row)
    local y = self.y + MAP_HEIGHT - (row - low + (value - heatmap.from(row)) / span) * height
    self:put('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" class="grid"/>', LEFT, RIGHT, y, y)
    self:label(LEFT - 8, math.floor(y) + 4, "number", units.format(value, unit), "end")
  end
end

function Canvas:time_axis(map, used, in_ns)
  for i = 0, 4 do
    local x = LEFT + (RIGHT - LEFT) * i // 4
    local time = map.width * used * i // 4
    self:label(x, self.y + MAP_HEIGHT + 16, "muted number",
      in_ns and units.format(time, "ns") or ("%d"):format(time), "middle")
  end
end

function Canvas:losses(map, used, losses)
  for _, loss in ipairs(losses) do
    local offset = loss.time - map.first
    if offset >= 0 and offset <= map.width * used then
      local x = LEFT + (RIGHT - LEFT) * offset / (map.width * used)
      self:put('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" class="lost"><title>CPU %d: %s</title>'
        .. "</line>", x, x, self.y - 6, self.y, loss.cpu,
        (loss.count or "an unknown number of") .. " events were lost")
    end
  end
end

function Canvas:map(map, losses, in_ns)
  local most, low, high = map:range()
  local used, unit = map:used(), in_ns and "ns" or nil
  local height = MAP_HEIGHT / (high - low + 1)
  local width = (RIGHT - LEFT) / used
  self.y = self.y + 8
  self:value_axis(low, high, height, unit)
  for column = 0, used - 1 do
    for row = low, high do
      local count = map.cells[column] and map.cells[column][row]
      if count then
        self:put('<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s"><title>%s to %s'
          .. ": %d</title></rect>", LEFT + column * width, self.y + (high - row) * height,
          width, height, shade(count, most), units.format(heatmap.from(row), unit),
          units.format(heatmap.from(row + 1), unit), count)
      end
    end
  end
  self:losses(map, used, losses)
  self:time_axis(map, used, in_ns)
  self.y = self.y + MAP_HEIGHT + 26
  for i = 0, 9 do
    self:put('<rect x="%d" y="%d" width="12" height="10" fill="%s"/>', LEFT + i * 12, self.y,
      colour(i / 9))
  end
  self:label(LEFT + 128, self.y + 9, "muted number",
    (most > 1 and "1 to %d" or "%d"):format(most) .. " in a cell; time from left to right")
  self.y = self.y + 22
end

-- With the powers of two between them that have no values: a gap is to be seen.
local function with_empty(buckets)
  local filled = {}
  for i, bucket in ipairs(buckets) do
    local before = buckets[i - 1]
    while before and before.from > 0 and before.to + 1 ~= bucket.from do
      before = { from = before.to + 1, to = 2 * before.to + 1, count = 0 }
      filled[#filled + 1] = before
    end
    filled[#filled + 1] = bucket
  end
  return filled
end

-- Neighbours together, so that there are not too many bars.
local function joined(buckets)
  local size, list = (#buckets + 2 * MAX_BARS - 1) // (2 * MAX_BARS), {}
  for i, bucket in ipairs(buckets) do
    local last = list[#list]
    if size <= 1 or (i - 1) % size == 0 then
      list[#list + 1] = { from = bucket.from, to = bucket.to, count = bucket.count }
    else
      last.to, last.count = bucket.to, last.count + bucket.count
    end
  end
  return list
end

local function bucket_bars(buckets, unit, is_unsigned, is_linear)
  local list = {}
  for _, bucket in ipairs(joined(is_linear and buckets or with_empty(buckets))) do
    local from, to = bucket.from, bucket.to
    if is_unsigned then
      from, to = from < 0 and from + 2.0 ^ 64 or from, to < 0 and to + 2.0 ^ 64 or to
    end
    list[#list + 1] = {
      label = units.format(from, unit) .. " – " .. units.format(to, unit),
      value = bucket.count, shown = ("%d"):format(bucket.count),
    }
  end
  return list
end

function Picture:draw_pair(canvas, name, pair)
  local row = pair.times:rows()[1]
  local unit = pair.in_ns and "ns" or nil
  canvas:head(name, ("%d pairs, median %s, 99 %% up to %s, 99.9 %% up to %s, at most %s"):format(
    row.count, units.format(row.p50, unit), units.format(row.p99, unit),
    units.format(row["p99.9"], unit), units.format(row.maximum, unit)))
  canvas:map(pair.map, self.losses, pair.in_ns)
  canvas:bars(bucket_bars(pair.times:buckets(), unit))
end

local function key_text(row)
  local parts = {}
  for i, key in ipairs(row.keys) do
    parts[i] = tostring(key.value)
  end
  return row.other and "(other)" or table.concat(parts, " ")
end

-- The greatest first, by a column.
local function sorted(list, column)
  local function value(row)
    for _, item in ipairs(row.values) do
      if item.name == column then
        return item.value
      end
    end
    return 0
  end
  local order = {}
  for i, row in ipairs(list) do
    order[i] = { row = row, value = value(row), place = i }
  end
  table.sort(order, function(a, b)
    return a.value > b.value or a.value == b.value and a.place < b.place
  end)
  return order
end

local function draw_aggregate(canvas, object)
  local list, options = rows.of(object)
  local column = options.columns[1] ~= "histogram" and options.columns[1] or nil
  local order = sorted(list, column)
  if options.has_buckets then
    for i, entry in ipairs(order) do
      local row = entry.row
      if i <= MAX_KEYS and not row.other then
        local parts = {}
        for k, item in ipairs(row.values) do
          local has_unit = options.unit and item.name ~= "count" and item.name ~= "variance"
          parts[k] = item.name .. " " .. (item.text or units.format(item.value,
            has_unit and options.unit or nil))
        end
        canvas:head(options.name .. (#row.keys > 0 and ": " .. key_text(row) or ""), parts)
        canvas:bars(bucket_bars(object:buckets(table.unpack(row.key)), options.unit,
          options.unsigned, options.scale == "linear"))
      end
    end
    if #order > MAX_KEYS then
      canvas.y = canvas.y + 20
      canvas:label(20, canvas.y, "muted", ("and %d more"):format(#order - MAX_KEYS))
    end
    return
  end
  local bars, unit = {}, column ~= "count" and options.unit or nil
  for i, entry in ipairs(order) do
    if i <= MAX_BARS then
      bars[i] = {
        label = key_text(entry.row), value = entry.value, shown = units.format(entry.value, unit),
      }
    end
  end
  canvas:head(options.name, column .. (#options.by > 0 and " by "
    .. table.concat(options.by, ", ") or "")
    .. (#order > #bars and (", the first %d of %d"):format(#bars, #order) or ""))
  canvas:bars(bars, KEYS_LEFT)
end

---@param match tracefs.output.match
function Picture:match(match)
  local pair = self.pairs[match.name]
  if not pair then
    pair = {
      map = heatmap.new(), in_ns = match.in_ns,
      times = aggregate.new { "count", "p50", "p99", "p99.9", "maximum", "histogram" },
    }
    self.pairs[match.name] = pair
    self.names[#self.names + 1] = match.name
  end
  pair.map:add(match.stop, match.delta)
  pair.times:add(match.delta)
end

-- Drawn once, with what is in it at the end.
local function remember(list, object)
  if not list[object] then
    list[object] = true
    list[#list + 1] = object
  end
end

---@param object tracefs.aggregate
function Picture:aggregate(object)
  remember(self.aggregates, object)
end

---@param folded tracefs.folded
function Picture:folded(folded)
  remember(self.flames, folded)
end

function Picture:into(list)
  for _, object in ipairs(type(list) == "table" and list or { list }) do
    self:aggregate(object)
  end
end

function Picture:lost(lost)
  local time = lost.before_ts or lost.after_ts
  if time and #self.losses < MAX_LOSSES then
    self.losses[#self.losses + 1] = { time = time, cpu = lost.cpu, count = lost.count }
  end
end

function Picture:failed(message)
  self.failure = message
end

function Picture:stats(stats)
  self.last_stats = stats
end

function Picture:draw_foot(canvas)
  canvas.y = canvas.y + 30
  local stats = self.last_stats
  if stats and stats.lost > 0 then
    canvas:label(20, canvas.y, "warning", ("%d of %d events were lost"):format(stats.lost,
      stats.produced))
    canvas.y = canvas.y + 18
  end
  if self.failure then
    canvas:label(20, canvas.y, "warning", xml.cut("the run ended with an error: " .. self.failure,
      2 * LONGEST))
    canvas.y = canvas.y + 18
  end
end

function Picture:finish()
  local canvas = setmetatable({ y = 0 }, Canvas)
  for _, name in ipairs(self.names) do
    self:draw_pair(canvas, name, self.pairs[name])
  end
  local drawn = #self.names
  for _, object in ipairs(self.aggregates) do
    if #object > 0 then
      drawn = drawn + 1
      draw_aggregate(canvas, object)
    end
  end
  for _, folded in ipairs(self.flames) do
    local body, height = flame.draw(folded, folded.picture, canvas.y)
    canvas[#canvas + 1] = body
    canvas.y = canvas.y + height
    drawn = drawn + 1
  end
  if drawn == 0 then
    canvas:head("nothing was measured",
      "no pair has matched, and no aggregate and no counts by stack were printed")
  end
  self:draw_foot(canvas)
  local out, has_flames = self.out, #self.flames > 0
  local width = has_flames and flame.WIDTH or WIDTH
  out:write_raw(('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
    .. 'viewBox="0 0 %d %d" role="img">\n%s\n<rect width="100%%" height="100%%" fill="#fff"/>\n')
    :format(width, canvas.y, width, canvas.y, STYLE .. (has_flames and flame.STYLE or "")))
  out:write_raw(table.concat(canvas, "\n"))
  out:write_raw "\n</svg>\n"
end

---@param out tracefs.output
---@param beside tracefs.output.writer
---@return tracefs.output.writer
function svg.new(out, beside)
  return setmetatable({
    out = out, beside = beside, pairs = {}, names = {}, aggregates = {}, flames = {}, losses = {},
  }, Picture)
end

return svg
