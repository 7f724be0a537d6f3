-- Sizes of buffers and sub-buffers.
local guest = require "harness"
local tracefs = require "tracefs"

local has_subbufs = guest.exists(guest.dir .. "/buffer_subbuf_size_kb")

guest.check("the buffer's size is what the kernel says it is", function()
  local instance <close> = assert(tracefs.instance_create())
  local kb = assert(instance:set_buffer_kb(1000))
  guest.equal(tonumber(guest.read(instance:dir() .. "/buffer_size_kb"):match("^%d+")), kb)
  guest.truth(kb >= 1000 and kb < 1010, "%d KiB for 1000", kb)
  guest.equal(kb, instance:get_buffer_kb())
end)

guest.check("a buffer that is too large is refused with its size, the old one kept", function()
  local instance <close> = assert(tracefs.instance_create())
  local old = instance:get_buffer_kb()
  local kb, message, errno = instance:set_buffer_kb(40000000)
  guest.equal(nil, kb)
  guest.equal(12, errno, "errno")
  guest.contains(message, "cannot set the buffer to 40000000 KiB for each CPU",
    "40000000 KiB x 2 CPUs is 76.3 GiB", ("It stays at %d KiB for each CPU"):format(old))
  guest.equal(old, instance:get_buffer_kb())
end)

guest.check("a session takes a small part of a small machine's memory", function()
  local session <close> = tracefs.session()
  local total_kb = tonumber(guest.read("/proc/meminfo"):match("MemTotal:%s*(%d+)"))
  local kb = session.instance:get_buffer_kb()
  guest.truth(kb <= 4096 + 64 and 2 * kb <= total_kb * 0.06, "%d KiB for each CPU", kb)
end)

guest.check("sub-buffers of 64 KiB where the kernel has them, pages where not", function()
  local session <close> = tracefs.session()
  local kb, message = session.instance:get_subbuf_kb()
  if has_subbufs then
    guest.equal(64, kb)
    guest.contains(session.instance:read("events/header_page"), "size:65520")
  else
    guest.equal(nil, kb)
    guest.contains(message, "sub-buffer")
    guest.contains(session.instance:read("events/header_page"), "size:4080")
  end
end)

guest.check("sub-buffers can be asked for, or are refused clearly", function()
  local instance <close> = assert(tracefs.instance_create())
  local kb, message = instance:set_subbuf_kb(16)
  if has_subbufs then
    guest.equal(16, kb, message)
    guest.equal(16, instance:get_subbuf_kb())
    return
  end
  guest.equal(nil, kb)
  guest.contains(message, "buffer_subbuf_size_kb", "6.8")
  local ok, err = pcall(tracefs.session, { subbuf_kb = 16 })
  guest.equal(false, ok)
  guest.contains(err, "buffer_subbuf_size_kb", "6.8")
end)

guest.check("records of every size come through sub-buffers of every size", function()
  for _, subbuf_kb in ipairs(has_subbufs and { 4, 8, 16, 32, 64 } or { 4 }) do
    local session <close> = tracefs.session {
      subbuf_kb = has_subbufs and subbuf_kb or nil, buffer_kb = 8192,
    }
    local wrong, seen = 0, 0
    session:on("ftrace:print", { "buf" }, function(buf)
      seen = seen + 1
      if buf ~= ("%d "):format(seen) .. ("y"):rep(seen * 3) .. "\n" then
        wrong = wrong + 1
      end
    end)
    session:start()
    for i = 1, 300 do
      session:marker(("%d "):format(i) .. ("y"):rep(i * 3) .. "\n")
    end
    session:finish()
    session:run()
    guest.equal(300, seen, ("markers with sub-buffers of %d KiB"):format(subbuf_kb))
    guest.equal(0, wrong, "with another text")
  end
end)
