--- A flame graph: how counts by stack are spread, as one SVG picture without scripts.
local units = require "tracefs.units"
local xml = require "tracefs.xml"

local flame = {}

local WIDTH <const> = 1200
local LEFT <const> = 10
local RIGHT <const> = 1190
local TOP <const> = 60
local FOOT <const> = 30
local ROW <const> = 17
local LETTER <const> = 7.3
local NARROWEST <const> = 0.3
local DEEPEST <const> = 256

-- It may stand in a picture with others.
flame.STYLE = [[<style>
.flame text { font: 12px ui-monospace, monospace; fill: #1c1c1c }
.flame .title { font: 600 15px system-ui, sans-serif }
.flame .muted { font: 12px system-ui, sans-serif; fill: #666 }
.flame rect { stroke: #fff; stroke-width: .5 }
.flame g:hover rect { stroke: #000; stroke-width: 1 }
</style>]]
flame.WIDTH = WIDTH

-- The same name has the same colour in every picture.
local function colour(name)
  local hash = 5381
  for i = 1, #name do
    hash = (hash * 33 + name:byte(i)) & 0xffffff
  end
  return ("hsl(%d,%d%%,%d%%)"):format(12 + hash % 40, 75 + hash // 40 % 15, 62 + hash // 600 % 12)
end

local function new_node(name)
  return { name = name, count = 0, own = 0, children = {}, names = {} }
end

local function child_of(node, name)
  local child = node.children[name]
  if not child then
    child = new_node(name)
    node.children[name] = child
    node.names[#node.names + 1] = name
  end
  return child
end

local function tree_of(folded)
  local root = new_node("all")
  for _, row in ipairs(folded:rows()) do
    local node, depth = root, 0
    root.count = root.count + row.count
    for name in row.stack:gmatch("[^;]+") do
      depth = depth + 1
      if depth <= DEEPEST then
        node = child_of(node, name)
        node.count = node.count + row.count
      end
    end
  end
  return root
end

-- What is drawn: every frame with its place, and how many are too narrow for that.
local function place(root)
  local boxes, depth, hidden = {}, 0, 0
  local scale = root.count > 0 and (RIGHT - LEFT) / root.count or 0
  local function put(node, from, row)
    local width = node.count * scale
    if width < NARROWEST then
      hidden = hidden + 1
      return
    end
    boxes[#boxes + 1] = { node = node, x = LEFT + from * scale, width = width, row = row }
    depth = math.max(depth, row)
    for _, name in ipairs(node.names) do
      local child = node.children[name]
      put(child, from, row + 1)
      from = from + child.count
    end
  end
  put(root, 0, 0)
  return boxes, depth, hidden
end

local function draw_box(box, y, total, say)
  local name, count = box.node.name, box.node.count
  local parts = {
    ('<g><title>%s: %s, %.2f %%</title>'):format(xml.text(name), xml.text(say(count)),
      100 * count / total),
    ('<rect x="%.1f" y="%d" width="%.1f" height="%d" rx="1" fill="%s"/>'):format(box.x, y,
      box.width, ROW - 1, box.row == 0 and "#d9d9d9" or colour(name)),
  }
  local room = math.floor((box.width - 6) / LETTER)
  if room >= 3 then
    parts[#parts + 1] = ('<text x="%.1f" y="%d">%s</text>'):format(box.x + 3, y + 12,
      xml.text(xml.cut(name, room)))
  end
  parts[#parts + 1] = "</g>"
  return table.concat(parts)
end

--- The picture, at a height in another one: a box for each function, as wide as its count, on top
--- of the one that called it. Functions are sorted by name from left to right, which is not a time.
---@param folded tracefs.folded
---@param options tracefs.folded.picture
---@param at integer
---@return string svg without what is around it, and to be shown with flame.STYLE
---@return integer height
function flame.draw(folded, options, at)
  local root = tree_of(folded)
  local boxes, depth, hidden = place(root)
  local height = TOP + (depth + 1) * ROW + FOOT
  local function say(count)
    return options.unit and units.format(count, options.unit)
      or ("%d %s"):format(count, options.what or "samples")
  end
  local out = {
    ('<g class="flame" transform="translate(0 %d)">'):format(at),
    ('<text x="%d" y="24" class="title">%s</text>'):format(LEFT,
      xml.text(xml.cut(options.title or "Flame graph", 120))),
    ('<text x="%d" y="44" class="muted">%s</text>'):format(LEFT,
      root.count > 0 and xml.text(("%s in %d stacks"):format(say(root.count), #folded))
        or "nothing was counted"),
  }
  for _, box in ipairs(root.count > 0 and boxes or {}) do
    out[#out + 1] = draw_box(box, TOP + (depth - box.row) * ROW, root.count, say)
  end
  if hidden > 0 then
    out[#out + 1] = ('<text x="%d" y="%d" class="muted">%s</text>'):format(LEFT,
      height - 10, ("%d more functions are too narrow to be shown"):format(hidden))
  end
  out[#out + 1] = "</g>"
  return table.concat(out, "\n"), height
end

--- The picture as a file of its own.
---@param folded tracefs.folded
---@param options tracefs.folded.picture
---@return string svg
function flame.svg(folded, options)
  local body, height = flame.draw(folded, options, 0)
  local head = '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" '
    .. 'viewBox="0 0 %d %d" role="img">\n%s\n<rect width="100%%" height="100%%" fill="#fff"/>\n'
  return head:format(WIDTH, height, WIDTH, height, flame.STYLE) .. body .. "\n</svg>\n"
end

return flame
