-- MSMQ packets: [MS-MQQB], [MS-MQMQ] 2.2.20, [MS-MQSD] 2.2. Written by msmqwire; do not edit.
local msmq = Proto("msmq", "Microsoft Message Queuing")

-- Without the operators of Lua 5.3
local function bits(number, shift, width) return math.floor(number / 2 ^ shift) % 2 ^ width end
local function has(number, mask)
  while mask > 0 do
    if number % 2 == 1 and mask % 2 == 1 then return true end
    number, mask = math.floor(number / 2), math.floor(mask / 2)
  end
  return false
end

local layouts, experts = {}, {}
--@LAYOUTS@
--@EXPERTS@

local destination = ProtoField.string("msmq.messages.destination_queue", "DestinationQueue as a format name")
local body_text = ProtoField.string("msmq.messages.body_text", "MessageBody as text")
local values = {
  int = ProtoField.int64("msmq.notifications.properties.int", "value"),
  guid = ProtoField.guid("msmq.notifications.properties.guid", "value"),
  text = ProtoField.string("msmq.notifications.properties.text", "value"),
  bytes = ProtoField.bytes("msmq.notifications.properties.bytes", "value"),
}
local all, judged = { destination, body_text, values.int, values.guid, values.text, values.bytes }, {}
local function collect(fields)
  for _, field in ipairs(fields) do
    all[#all + 1] = field.proto
    for _, part in ipairs(field.bits or {}) do all[#all + 1] = part end
    collect(field.fields or {})
  end
end
for _, layout in pairs(layouts) do collect(layout) end
msmq.fields = all
for _, of_layout in pairs(experts) do
  for _, expert in pairs(of_layout) do judged[#judged + 1] = expert end
end
msmq.experts = judged

local sizes = { u8 = 1, u16 = 2, u32 = 4, u64 = 8, guid = 16 }

local function guid(range)
  local function number(at, size) return string.format("%0" .. 2 * size .. "x", range(at, size):le_uint()) end
  local function hex(at, size) return tostring(range(at, size):bytes()):lower() end
  return table.concat({ number(0, 4), number(4, 2), number(6, 2), hex(8, 2), hex(10, 6) }, "-")
end

local function text(range)
  return (range:le_ustring():gsub("%z.*", ""))
end

-- Name, type, least bytes and those of each element of the value of a PROPID
local propids = {} --@PROPIDS@

local function add_value(tree, propid, range)
  local name, kind, item = propids[propid][1], propids[propid][2], nil
  if kind == "VT_LPWSTR" then
    item = tree:add_packet_field(values.text, range, ENC_UTF_16 + ENC_LITTLE_ENDIAN)
  elseif kind == "VT_CLSID" then
    item = tree:add_le(values.guid, range)
  elseif kind:find("^VT_U?I%d$") then
    item = tree:add(values.int, range, Int64.new(kind:find("U") and range:le_uint() or range:le_int()))
  else
    item = tree:add(values.bytes, range)
  end
  item:prepend_text(name .. " ")
end

-- The numbers and bytes of a packet that were read, by the names of expressions and of fields
local function add(tree, layout, field, range, read, place)
  local item
  if field.type == "value" then
    add_value(tree, read.number.property_id[place], range)
    return
  elseif field.type == "text" or field.type == "string" then
    item = tree:add_packet_field(field.proto, range, ENC_UTF_16 + ENC_LITTLE_ENDIAN)
  elseif field.time == "unix" then
    item = tree:add(field.proto, range, NSTime.new(range:le_uint(), 0))
  else
    item = tree:add_le(field.proto, range)
  end
  if field.id and field.count then
    read.number[field.id][place] = range:le_uint()
  elseif field.id and field.type ~= "u64" and field.type ~= "guid" then
    read.number[field.id] = range:le_uint()
  end
  read.range[field.name] = range
  if field.id == "command" then read.commands[#read.commands + 1] = read.number.command end
  if field.time == "s" and range:le_uint() == 0xffffffff then
    item:append_text(" (for ever)")
  elseif field.time and field.time ~= "unix" then
    item:append_text(" " .. field.time)
  end
  for _, part in ipairs(field.bits or {}) do item:add_le(part, range) end
  for _, check in ipairs(field.checks or {}) do
    if check.when(read.number) then item:add_proto_expert_info(experts[layout][check.code]) end
  end
end

-- The bytes of a text with its U+0000; more than there are if it has none
local function string_size(tvb, at)
  for place = at, tvb:len() - 2, 2 do
    if tvb(place, 2):le_uint() == 0 then return place + 2 - at end
  end
  return math.huge
end

local function value_size(tvb, at, propid)
  local known = propids[propid]
  if known == nil then return math.huge end
  local kind, size, each = known[2], known[3], known[4]
  if kind == "VT_LPWSTR" then return string_size(tvb, at) end
  if each == 0 then return size end
  if tvb:len() - at < size then return math.huge end
  local count = tvb(at, size):le_uint()
  if kind ~= "VT_LPWSTR|VT_VECTOR" then return size + count * each end
  for _ = 1, count do
    size = size + string_size(tvb, at + size)
    if size > tvb:len() - at then return math.huge end
  end
  return size
end

local function size_of(field, tvb, at, read, place)
  if field.type == "pad" then
    return math.min((4 - at % 4) % 4, (read.number.packet_size or tvb:reported_length_remaining()) - at)
  end
  if field.type == "string" then return string_size(tvb, at) end
  if field.type == "value" then return value_size(tvb, at, read.number.property_id[place]) end
  return sizes[field.type] or field.size(read.number)
end

-- The place after the fields; none where one is truncated
local function dissect_fields(name, fields, tvb, tree, read, at)
  local length = tvb:reported_length_remaining()
  local function dissect_one(field, label, place)
    if field.fields then
      if at >= tvb:len() then
        tree:add_proto_expert_info(experts[name].truncated, "truncated: " .. label)
        return nil
      end
      local start, subtree = at, tree:add(tvb(at), label)
      at = dissect_fields(name, field.fields, tvb, subtree, read, at)
      if at then subtree:set_len(at - start) end
      return at
    end
    local size = size_of(field, tvb, at, read, place)
    if size <= 0 then return at end
    if size > length - at or size > tvb:len() - at then
      local item = at < tvb:len() and tree:add(tvb(at), label .. ": truncated") or tree
      item:add_proto_expert_info(experts[name].truncated, "truncated: " .. label)
      return nil
    end
    read.number.left = length - at - size
    add(tree, name, field, tvb(at, size), read, place)
    return at + size
  end
  for _, field in ipairs(fields) do
    read.number.position, read.number.left = at, length - at
    if field.when == nil or field.when(read.number) then
      if field.count and field.id then read.number[field.id] = {} end
      for place = 0, (field.count and field.count(read.number) or 1) - 1 do
        at = dissect_one(field, field.count and field.name .. "[" .. place .. "]" or field.name, place)
        if at == nil then return nil end
      end
    end
  end
  return at
end

local function destination_queue(read)
  local range, code = read.range, bits(read.number.user_flags or 0, 10, 3)
  if code == 7 and range["DestinationQueue.Name"] then return "DIRECT=" .. text(range["DestinationQueue.Name"]) end
  if code == 5 and range["DestinationQueue.Guid"] then return "PUBLIC=" .. guid(range["DestinationQueue.Guid"]) end
  if code == 3 and range["DestinationQueue.Number"] then
    return string.format("PRIVATE=%s\\%X", guid(range["QueueManagerAddress"]),
      range["DestinationQueue.Number"]:le_uint())
  end
end

-- The body where BodyType says that it is text, or where it is XML; not with control characters
local function text_of_body(read)
  local body, kind, found = read.range["MessageBody"], read.number.body_type, nil
  if body == nil or has(read.number.security_flags or 0, 32) then return end
  if kind == 8 or kind == 31 or (body:len() > 1 and body(0, 2):le_uint() == 0x3c) then
    if body:len() % 2 == 0 then found = body:le_ustring() end
  elseif kind == 30 or body(0, 1):uint() == 0x3c then
    found = body:string(ENC_UTF_8)
    -- Bytes that are no UTF-8 become U+FFFD
    if found:find("\239\191\189") then return end
  end
  if found == nil then return end
  found = found:gsub("%z+$", "")
  return not found:gsub("%s", ""):find("[%c%z]") and found or nil
end

-- The body of a change notification, which goes to the notify queue
local function notification_of(read)
  local queue, body = destination_queue(read), read.range["MessageBody"]
  if queue == nil or body == nil or has(read.number.security_flags or 0, 32) then return end
  if queue:find("^PRIVATE=.*\\3$") or queue:lower():find("^direct=.*\\private%$\\notify_queue%$$") then return body end
end

local operations = {} --@OPERATIONS@

local function dissect_notification(body, tree)
  local read = { number = {}, range = {}, commands = {} }
  local subtree = tree:add(body, "Change notification")
  dissect_fields("notifications", layouts.notifications, body:tvb(), subtree, read, 0)
  for place, command in ipairs(read.commands) do
    subtree:append_text((place == 1 and ": " or ", ") .. (operations[command] or command))
  end
end

local kinds = { [1] = "SessionAck", [2] = "EstablishConnection", [3] = "ConnectionParameters" }
local class_names = {} --@CLASSES@

-- U+FFFD for what a terminal may obey, on which tshark writes the Info column as it is: controls of C0 and C1, separators
-- of lines and paragraphs, marks that change the direction of writing
local unprintable = { "[%z\1-\31\127]", "\194[\128-\159]", "\216\156", "\226\128[\142\143\168-\174]", "\226\129[\166-\169]" }
local function printable(info)
  for _, pattern in ipairs(unprintable) do info = info:gsub(pattern, "\239\191\189") end
  return info
end

-- The summary of a packet for the Info column
local function info_of(name, read)
  local number, range = read.number, read.range
  if name == "ping" then
    return "Ping" .. (has(number.flags or 0, 2) and ", refused" or "") .. " cookie " .. (number.cookie or "?")
  elseif name == "topology" then
    return ({ "TopologyClientRequest", "TopologyServerReply" })[number.type] or "MSMQ discovery, malformed"
  elseif name == "sessions" then
    local kind = kinds[bits(number.internal_flags or 0, 0, 4)] or "InternalHeader"
    if kind == "SessionAck" and number.ack_sequence_number then kind = kind .. " " .. number.ack_sequence_number end
    return kind .. (has(number.internal_flags or 0, 16) and ", refused" or "")
  end
  local class = number.message_class or 0
  local words = { "UserMessage", tostring(number.message_id or "?") }
  if class ~= 0 then words[#words + 1] = class_names[class] or string.format("class 0x%04x", class) end
  if range["Label"] then words[#words + 1] = '"' .. text(range["Label"]) .. '"' end
  local queue = destination_queue(read)
  if queue then words[#words + 1] = "-> " .. queue end
  return table.concat(words, " ")
end

local function dissect(name, tvb, pinfo, tree)
  local read = { number = {}, range = {} }
  pinfo.cols.protocol = "MSMQ"
  local subtree = tree:add(msmq, tvb(), "MSMQ, " .. name)
  dissect_fields(name, layouts[name], tvb, subtree, read, 0)
  local info = printable(info_of(name, read))
  subtree:append_text(": " .. info)
  if name == "messages" then
    local queue, body = destination_queue(read), text_of_body(read)
    if queue then subtree:add(destination, queue):set_generated() end
    local notification = notification_of(read)
    if notification then dissect_notification(notification, subtree) end
    if body then subtree:add(body_text, read.range["MessageBody"], body):set_generated() end
  end
  return info
end

local function packet_length(tvb, _, offset)
  -- The snapshot length of a capture can cut the header
  if tvb:len() - offset < 12 then return 16 end
  local size, flags = tvb(offset + 8, 4):le_uint(), tvb(offset + 2, 2):le_uint()
  -- Not a packet: nothing says where the next one is, and Wireshark would collect up to 4 GiB for this one
  if size > 0x400000 or tvb(offset + 4, 4):string() ~= "LIOR" then
    return math.max(tvb:reported_length_remaining(offset), 16)
  end
  -- PacketSize of a message does not count the SessionHeader after it
  if has(flags, 0x10) and not has(flags, 0x08) then size = size + 16 end
  return math.max(size, 16)
end

function msmq.dissector(tvb, pinfo, tree)
  if pinfo.port_type == 2 then
    if tvb:len() >= 8 and tvb(4, 4):string() ~= "LIOR" then return 0 end
    local found = {}
    -- dissect_tcp_pdus raises an error where bytes of a next packet were not captured
    local captured = tvb:len() < tvb:reported_length_remaining() and tvb():tvb() or tvb
    dissect_tcp_pdus(captured, tree, 16, packet_length, function(packet, _, of_packet)
      local name = packet:len() > 3 and has(packet(2, 2):le_uint(), 0x08) and "sessions" or "messages"
      found[#found + 1] = dissect(name, packet, pinfo, of_packet)
      pinfo.cols.info = table.concat(found, "; ")
      return packet:len()
    end)
  else
    local is_ping = pinfo.src_port == @PING_PORT@ or pinfo.dst_port == @PING_PORT@
    pinfo.cols.info = dissect(is_ping and "ping" or "topology", tvb, pinfo, tree)
  end
  return tvb:len()
end

DissectorTable.get("tcp.port"):add(@SESSION_PORT@, msmq)
DissectorTable.get("udp.port"):add(@DISCOVERY_PORT@, msmq)
DissectorTable.get("udp.port"):add(@PING_PORT@, msmq)
