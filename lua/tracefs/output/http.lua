--- One page of text for whoever asks, on a socket: GET /metrics. The sockets are luv's; its loop is
--- turned by the session's.
local http = {}

local MAX_REQUEST <const> = 8192
local MAX_CLIENTS <const> = 32
local PATIENCE_MS <const> = 5000
local TYPE <const> = "text/plain; version=0.0.4; charset=utf-8"

local Server = {}
Server.__index = Server

local function answer(status, body, kind, is_head)
  return ("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s")
    :format(status, kind, #body, is_head and "" or body)
end

local function refusal(status)
  return answer(status, status .. "\n", "text/plain")
end

-- What is sent back for the head of a request.
local function respond(head, page)
  local method, target = head:match("^(%u+) (%S+) HTTP/1%.[01]\r?\n")
  if not method then
    return refusal "400 Bad Request"
  elseif method ~= "GET" and method ~= "HEAD" then
    return refusal "405 Method Not Allowed"
  elseif target:gsub("%?.*$", "") ~= "/metrics" then
    return refusal "404 Not Found"
  end
  local ok, body = pcall(page)
  if not ok then
    return refusal "500 Internal Server Error"
  end
  return answer("200 OK", body, TYPE, method == "HEAD")
end

function Server:drop(client)
  local timer = self.clients[client]
  if timer then
    self.clients[client] = nil
    self.count = self.count - 1
    timer:close()
    client:close()
  end
end

function Server:receive(client)
  local request = ""
  client:read_start(function(err, chunk)
    if err or not chunk then
      self:drop(client)
      return
    end
    request = request .. chunk
    local head = request:match("^.-\r?\n\r?\n")
    if not head and #request <= MAX_REQUEST then
      return
    end
    client:read_stop()
    local text = head and respond(head, self.page) or refusal "431 Request Header Fields Too Large"
    client:write(text, function(failed)
      if failed then
        self:drop(client)
        return
      end
      client:shutdown(function() self:drop(client) end)
    end)
  end)
end

function Server:accept()
  local client = self.uv.new_tcp()
  self.socket:accept(client)
  if self.count >= MAX_CLIENTS then
    client:close()
    return
  end
  local timer = self.uv.new_timer()
  self.clients[client] = timer
  self.count = self.count + 1
  timer:start(PATIENCE_MS, 0, function() self:drop(client) end)
  self:receive(client)
end

--- Does what there is to do; never blocks. What a callback begins is looked at by the next turn.
function Server:turn()
  for _ = 1, 4 do
    self.uv.run("nowait")
  end
end

function Server:close()
  if self.session._stream then
    self.session:watch(self.fd, nil)
  end
  for client in pairs(self.clients) do
    self:drop(client)
  end
  self.socket:close()
  self:turn()
end

--- "PORT", "ADDRESS:PORT" or "[ADDRESS]:PORT".
---@param text string
---@return string? address the loopback device's where there is none
---@return integer|string port or a message
function http.parse(text)
  local address, port = text:match("^%[([%x:]+)%]:(%d+)$")
  if not address then
    address, port = text:match("^([%d.]+):(%d+)$")
  end
  port = math.tointeger(tonumber(port or text:match("^%d+$")))
  if not port or port > 65535 then
    return nil, ("'%s' is no address to listen on: PORT, 127.0.0.1:PORT, [::1]:PORT"):format(text)
  end
  return address or "127.0.0.1", port
end

--- Listens for as long as the session runs. Raises why it cannot.
---@param session tracefs.session
---@param where string see http.parse
---@param page fun(): string
---@return table server with url, turn() and close()
function http.listen(session, where, page)
  local address, port = http.parse(where)
  if not address then
    error(port, 0)
  end
  local found, uv = pcall(require, "luv")
  if not found then
    error("listening needs the Lua module luv, which is not there: install lua-luv "
      .. "(apk: lua5.4-luv), or: luarocks install luv", 0)
  end
  local server = setmetatable({
    uv = uv, session = session, page = page, socket = uv.new_tcp(), clients = {}, count = 0,
  }, Server)
  local ok, message = server.socket:bind(address, port)
  if ok then
    ok, message = server.socket:listen(16, function(err)
      if not err then
        server:accept()
      end
    end)
  end
  if not ok then
    server.socket:close()
    server:turn()
    error(("cannot listen on %s: %s"):format(where, message), 0)
  end
  local name = server.socket:getsockname()
  server.url = (address:find(":", 1, true) and "http://[%s]:%d/metrics" or "http://%s:%d/metrics")
    :format(address, name.port)
  server.fd = uv.backend_fd()
  session:watch(server.fd, function()
    server:turn()
  end)
  server:turn()
  return server
end

return http
