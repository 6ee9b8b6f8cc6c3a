-- MSMQ packets: [MS-MQQB], [MS-MQMQ] 2.2.20, [MS-MQSD] 2.2. Written by msmqwire; do not edit.
local msmq = Proto("msmq", "Microsoft Message Queuing")

-- Without the operators of Lua 5.3; every mask is one bit
local function bits(number, shift, width) return math.floor(number / 2 ^ shift) % 2 ^ width end
local function has(number, mask) return math.floor(number / mask) % 2 == 1 end

local layouts, experts = {}, {}
--@LAYOUTS@
--@EXPERTS@

local destination = ProtoField.string("msmq.messages.destination_queue", "DestinationQueue as a format name")
local body_text = ProtoField.string("msmq.messages.body_text", "MessageBody as text")
local all, judged = { destination, body_text }, {}
for _, layout in pairs(layouts) do
  for _, field in ipairs(layout) do
    all[#all + 1] = field.proto
    for _, part in ipairs(field.bits or {}) do all[#all + 1] = part end
  end
end
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

-- The numbers and bytes of a packet that were read, by the names of expressions and of fields
local function add(tree, layout, field, range, read)
  local item
  if field.type == "text" then
    item = tree:add_packet_field(field.proto, range, ENC_UTF_16 + ENC_LITTLE_ENDIAN)
  elseif field.time == "unix" then
    item = tree:add(field.proto, range, NSTime.new(range:le_uint(), 0))
  else
    item = tree:add_le(field.proto, range)
  end
  if field.id and field.type ~= "u64" and field.type ~= "guid" then read.number[field.id] = range:le_uint() end
  read.range[field.name] = range
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

local function dissect_fields(name, tvb, tree, read)
  local at, length = 0, tvb:reported_length_remaining()
  for _, field in ipairs(layouts[name]) do
    read.number.position, read.number.left = at, length - at
    if field.when == nil or field.when(read.number) then
      local size = sizes[field.type]
      if field.type == "pad" then
        size = math.min((4 - at % 4) % 4, (read.number.packet_size or length) - at)
      elseif size == nil then
        size = field.size(read.number)
      end
      if size > 0 then
        if size > length - at or size > tvb:len() - at then
          local item = at < tvb:len() and tree:add(tvb(at), field.name .. ": truncated") or tree
          item:add_proto_expert_info(experts[name].truncated, "truncated: " .. field.name)
          return
        end
        read.number.left = length - at - size
        add(tree, name, field, tvb(at, size), read)
        at = at + size
      end
    end
  end
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
    found = body:string()
  end
  if found == nil then return end
  found = found:gsub("%z+$", "")
  return not found:gsub("%s", ""):find("[%c%z]") and found or nil
end

local kinds = { [1] = "SessionAck", [2] = "EstablishConnection", [3] = "ConnectionParameters" }
local class_names = {} --@CLASSES@

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
  dissect_fields(name, tvb, subtree, read)
  local info = info_of(name, read)
  subtree:append_text(": " .. info)
  if name == "messages" then
    local queue, body = destination_queue(read), text_of_body(read)
    if queue then subtree:add(destination, queue):set_generated() end
    if body then subtree:add(body_text, read.range["MessageBody"], body):set_generated() end
  end
  return info
end

local function packet_length(tvb, _, offset)
  local size, flags = tvb(offset + 8, 4):le_uint(), tvb(offset + 2, 2):le_uint()
  -- PacketSize of a message does not count the SessionHeader after it
  if has(flags, 0x10) and not has(flags, 0x08) then size = size + 16 end
  return math.max(size, 16)
end

function msmq.dissector(tvb, pinfo, tree)
  if pinfo.port_type == 2 then
    if tvb:len() >= 8 and tvb(4, 4):string() ~= "LIOR" then return 0 end
    local found = {}
    dissect_tcp_pdus(tvb, tree, 16, packet_length, function(packet, _, of_packet)
      local name = has(packet(2, 2):le_uint(), 0x08) and "sessions" or "messages"
      found[#found + 1] = dissect(name, packet, pinfo, of_packet)
      pinfo.cols.info = table.concat(found, "; ")
      return packet:len()
    end)
  else
    local is_ping = pinfo.src_port == 3527 or pinfo.dst_port == 3527
    pinfo.cols.info = dissect(is_ping and "ping" or "topology", tvb, pinfo, tree)
  end
  return tvb:len()
end

DissectorTable.get("tcp.port"):add(1801, msmq)
DissectorTable.get("udp.port"):add(1801, msmq)
DissectorTable.get("udp.port"):add(3527, msmq)
