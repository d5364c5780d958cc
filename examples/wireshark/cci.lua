-- cci.lua - a Wireshark dissector for the datagram protocol of CCI.
-- SPDX-License-Identifier: MIT OR Unlicense
--
--     wireshark -X lua_script:cci.lua capture.pcap
--     tshark -X lua_script:cci.lua -r capture.pcap -Y 'cci.nack or cci.type == 8'
--
-- or copy it to the directory of personal Lua plugins (Help, About, Folders). UDP packets are recognised by how they
-- begin; where they are not, choose Decode As, CCI. Every field has the name that tests/wire/wire.md gives it: those of
-- a packet's own part are cci.NAME, those of a frame are cci.FRAME.NAME, and cci.FRAME alone finds packets with such a
-- frame. The tables below are those of that document; a test compares them.
--
-- Packets of one connection have one number, cci.stream, even when a side gets another address; follow one with the
-- filter "cci.stream == 0". An acknowledgement names the frame of the latest packet that it is for (cci.acks) and the
-- round trip from there (cci.round_trip: seen from where the capture was made, less what the receiver says it waited).
-- What is sent again names the frame that had it before (cci.repeats). Of sealed packets only the number of the
-- connection is known.
--
-- On a loopback interface, and where a network card splits or joins datagrams (UDP_SEGMENT, UDP_GRO), a capture shows a
-- train of them as one: packets of one length, the last perhaps shorter. They are shown as what they are, one by one.

local cci = Proto("cci", "Common Communication Interface")

local MALFORMED = ProtoExpert.new("cci.shown.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local UNEXPECTED = ProtoExpert.new("cci.shown.unexpected", "Not what a sender may write", expert.group.PROTOCOL,
                                   expert.severity.WARN)
cci.experts = {MALFORMED, UNEXPECTED}

-- ---- what the tables say ------------------------------------------------------------------------------------------

local kinds = {Packet = {}, Frame = {}}                -- by type
local layouts = {Packet = {}, Frame = {}, Part = {}}   -- by name
local proto_fields, proto_list = {}, {}

-- Every expression is compiled once. Its names are fields; `end`, a word of Lua's, is how many bytes are left.
local functions = {
    min = math.min,
    pieces = function(n, size) return size > 0 and math.ceil(n / size) or math.huge end,
    ones = function(n) return 2 ^ n - 1 end,
}

local function compile(text)
    local code = ("return " .. text):gsub("%f[%w_]end%f[^%w_]", "end_")
    local names = {}
    local run = assert(load(code, text, "t", setmetatable({}, {__index = function(_, name) return names[name] end})))
    return function(fields)
        names = setmetatable(fields, {__index = functions})
        return run()
    end
end

-- "3, 5" or "0..total-length": a function that says whether a number is in it.
local function compile_values(text)
    if text == "any" or text == "" then return nil end
    local ranges = {}
    local depth, item = 0, ""
    for c in (text .. ","):gmatch(".") do
        depth = depth + (c == "(" and 1 or c == ")" and -1 or 0)
        if c == "," and depth == 0 then
            local low, high = item:match("^(.-)%.%.(.*)$")
            ranges[#ranges + 1] = {compile(low or item), compile(high or item)}
            item = ""
        else
            item = item .. c
        end
    end
    return function(value, fields)
        for _, range in ipairs(ranges) do
            if range[1](fields) <= value and value <= range[2](fields) then return true end
        end
        return false
    end
end

local function kind(of, number, name, size, what)
    kinds[of][number] = {name = name, size = size, what = what}
end

local function add_proto_field(abbreviation, name, size, meaning)
    local key = abbreviation .. "/" .. size
    if proto_fields[key] then return proto_fields[key] end
    local wide = name:match("token$") or name:match("key$") or name == "cookie" or name == "name" or name == "missing" or name == "bits"
    local shown = (wide or name == "version") and base.HEX or base.DEC
    local make = ({["1"] = ProtoField.uint8, ["2"] = ProtoField.uint16, ["4"] = ProtoField.uint32,
                   ["8"] = ProtoField.uint64})[size]
    meaning = meaning ~= "" and meaning or nil
    local field = make and make(abbreviation, name, shown, nil, nil, meaning) or
                  ProtoField.bytes(abbreviation, name, base.NONE, meaning)
    proto_fields[key] = field
    proto_list[#proto_list + 1] = field
    return field
end

local function layout(of, name, rows, conditions)
    local made = {fields = {}, conditions = {}, name = name}
    local prefix = of == "Packet" and "cci." or of == "Part" and "cci." .. (name == "ADDRESS" and "addresses.addresses." or name:match("^%a+"):lower() .. ".ranges.") or "cci." .. name:lower() .. "."
    for _, row in ipairs(rows) do
        local count, part = row[3]:match("^(.+) of ([A-Z_]+)$")
        made.fields[#made.fields + 1] = {
            name = row[1], offset = row[2], part = part, count = part and compile(count),
            size = not part and (tonumber(row[3]) or compile(row[3])),
            values = compile_values(row[4]), allowed = row[4],
            is_number = row[3] == "1" or row[3] == "2" or row[3] == "4" or row[3] == "8",
            proto = not part and add_proto_field(prefix .. row[1], row[1], row[3], row[5]),
        }
    end
    for _, condition in ipairs(conditions or {}) do
        made.conditions[#made.conditions + 1] = {text = condition, holds = compile(condition)}
    end
    if of == "Frame" then -- the whole frame, for filters
        made.proto = ProtoField.none("cci." .. name:lower(), name)
        proto_list[#proto_list + 1] = made.proto
    end
    layouts[of][name] = made
end

-- ---- the tables of wire.md ------------------------------------------------------------------------------------------

kind("Packet", 1, "REQUEST", "48+length", "nothing")
kind("Packet", 2, "COOKIE", "24", "nothing")
kind("Packet", 3, "ACCEPT", "40", "answer")
kind("Packet", 4, "REJECT", "24", "answer")
kind("Packet", 5, "CONFIRM", "24", "nothing")
kind("Packet", 6, "CONFIRMED", "24", "nothing")
kind("Packet", 7, "DATA", "24", "frames")
kind("Packet", 8, "RESET", "end", "nothing")
kind("Packet", 9, "GROUP", "24", "frames")
kind("Packet", 10, "CLOSE", "24", "nothing")
kind("Packet", 11, "CLOSED", "24", "nothing")
kind("Packet", 12, "BUSY", "24", "nothing")
kind("Packet", 13, "NOT_HERE", "24", "nothing")

kind("Frame", 0, "PAD", "end", "R U G")
kind("Frame", 1, "MESSAGE", "8+length", "R U G")
kind("Frame", 2, "FRAGMENT", "16+length", "R U G")
kind("Frame", 3, "BULK", "48+length", "R")
kind("Frame", 4, "SKIP", "8+length", "R")
kind("Frame", 5, "VOID", "16", "R")
kind("Frame", 6, "ACK", "16+4*more", "R U")
kind("Frame", 7, "NACK", "8", "R")
kind("Frame", 8, "PING", "8", "R U")
kind("Frame", 9, "TAKEN", "8+4*count", "R")
kind("Frame", 16, "READ", "48", "R")
kind("Frame", 17, "DATA", "16+length", "R")
kind("Frame", 18, "DENIED", "8", "R")
kind("Frame", 19, "ATOMIC", "48", "R")
kind("Frame", 32, "CHALLENGE", "16", "R U")
kind("Frame", 33, "RESPONSE", "16", "R U")
kind("Frame", 34, "MARKS", "16", "R")
kind("Frame", 35, "ADDRESSES", "8+24*count", "R U")
kind("Frame", 36, "HEARD", "8", "R U")

layout("Part", "ACK_RANGE", {
    {"gap", 0, "2", "1..65535", "so many numbers below the range before have not arrived"},
    {"length", 2, "2", "1..65535", "so many numbers below those have"},
})

layout("Part", "TAKEN_RANGE", {
    {"begin", 0, "2", "1..65534", "base + begin is the first number that has been delivered"},
    {"behind", 2, "2", "begin+1..65535", "base + behind is the first behind them"},
})

layout("Part", "ADDRESS", {
    {"family", 0, "1", "any", "over UDP 4 or 6; other links have their own form of all 24 bytes"},
    {"reserved_1", 1, "1", "0", ""},
    {"port", 2, "2", "any", "over UDP, big-endian as all of an IP address"},
    {"scope", 4, "4", "any", "over UDP 0, since the number of an interface means nothing elsewhere"},
    {"ip", 8, "16", "any", "IPv4: the first 4 bytes, and zeros"},
})

layout("Packet", "REQUEST", {
    {"version", 0, "1", "0xC1", "of the protocol"},
    {"type", 1, "1", "1", "of the packet"},
    {"attribute", 2, "1", "0..2", "0 RO: reliable and ordered; 1 RU: reliable, unordered; 2 UU: unreliable"},
    {"flags", 3, "1", "0..1, 4..5", "bit 0: a checksum is behind the packet (section 13); bit 2: the server is asked for by name (section 5.5)"},
    {"client_index", 4, "4", "any", "chosen by the client: it finds the connection by it"},
    {"client_token", 8, "8", "any", "chosen by the client: unguessable, new for each connection"},
    {"cookie", 16, "8", "any", "0 at first, then what a COOKIE brought"},
    {"max_send_size", 24, "4", "1..65535", "bytes of the longest message that the client can take; 0 is dropped"},
    {"window", 28, "4", "any", "bytes that may be under way to the client at once; less than 4,096 counts as 4,096"},
    {"data_len", 32, "2", "0..1024", "bytes of the whole request data"},
    {"unit", 34, "2", "0..1024", "bytes of the data in each piece but the last"},
    {"offset", 36, "2", "0..1023", "of this piece in the data"},
    {"length", 38, "2", "0..1024", "bytes of this piece"},
    {"name", 40, "8", "any", "with bit 2 of the flags: what the name stands for, and in bits 0 to 2 the place of the port"},
    {"piece", 48, "length", "any", "of the request data"},
}, {
    "flags >= 4 and name >= 8 or flags < 4 and name == 0",
    "offset == 0 and length == data_len or unit >= 32 and offset < data_len",
    "offset == 0 and length == data_len or offset % unit == 0",
    "offset == 0 and length == data_len or length == min(unit, data_len - offset)",
})

layout("Packet", "COOKIE", {
    {"version", 0, "1", "0xC1", ""},
    {"type", 1, "1", "2", ""},
    {"attribute", 2, "1", "0", ""},
    {"flags", 3, "1", "0..1", "bit 0: a checksum is behind the packet (section 13)"},
    {"client_index", 4, "4", "any", "of the REQUEST"},
    {"client_token", 8, "8", "any", "of the REQUEST"},
    {"cookie", 16, "8", "1..ones(64)", "to be repeated in the next REQUEST; never 0"},
})

layout("Packet", "ACCEPT", {
    {"version", 0, "1", "0xC1", ""},
    {"type", 1, "1", "3", ""},
    {"attribute", 2, "1", "0..2", "of the REQUEST"},
    {"flags", 3, "1", "0..1", "bit 0: a checksum is behind the packet (section 13)"},
    {"client_index", 4, "4", "any", "of the REQUEST; a connection that is not there is answered with RESET"},
    {"client_token", 8, "8", "any", "of the REQUEST; likewise"},
    {"server_index", 16, "4", "any", "chosen by the server: it finds the connection by it"},
    {"number", 20, "4", "0", ""},
    {"server_token", 24, "8", "any", "chosen by the server: unguessable, new for each connection"},
    {"max_send_size", 32, "4", "1..65535", "bytes of the longest message, in both directions"},
    {"window", 36, "4", "any", "bytes that may be under way to the server at once; less than 4,096 counts as 4,096"},
})

layout("Packet", "REJECT", {
    {"version", 0, "1", "0xC1", ""},
    {"type", 1, "1", "4", ""},
    {"attribute", 2, "1", "0", ""},
    {"flags", 3, "1", "0..1", "bit 0: a checksum is behind the packet (section 13)"},
    {"client_index", 4, "4", "any", "of the REQUEST"},
    {"client_token", 8, "8", "any", "of the REQUEST"},
    {"sender_index", 16, "4", "0", ""},
    {"number", 20, "4", "0", ""},
})

layout("Packet", "ANSWER", {
    {"data_len", 0, "2", "1..1024", "bytes of all the data"},
    {"unit", 2, "2", "0..1024", "bytes of the data in each piece but the last"},
    {"offset", 4, "2", "0..1023", "of this piece in the data"},
    {"length", 6, "2", "1..1024", "bytes of this piece"},
    {"piece", 8, "length", "any", "of the data"},
}, {
    "offset == 0 and length == data_len or unit >= 32 and offset < data_len",
    "offset == 0 and length == data_len or offset % unit == 0",
    "offset == 0 and length == data_len or length == min(unit, data_len - offset)",
})

layout("Packet", "CONFIRM", {
    {"version", 0, "1", "0xC1", ""},
    {"type", 1, "1", "5", ""},
    {"attribute", 2, "1", "0", ""},
    {"flags", 3, "1", "0..1", "bit 0: a checksum is behind the packet (section 13)"},
    {"receiver_index", 4, "4", "any", "the server's; a connection that is not there is answered with RESET"},
    {"receiver_token", 8, "8", "any", "the server's; likewise"},
    {"sender_index", 16, "4", "any", "the client's"},
    {"number", 20, "4", "0", ""},
})

layout("Packet", "CONFIRMED", {
    {"version", 0, "1", "0xC1", ""},
    {"type", 1, "1", "6", ""},
    {"attribute", 2, "1", "0", ""},
    {"flags", 3, "1", "0..1", "bit 0: a checksum is behind the packet (section 13)"},
    {"receiver_index", 4, "4", "any", "the client's; a connection that is not there is answered with RESET"},
    {"receiver_token", 8, "8", "any", "the client's; likewise"},
    {"sender_index", 16, "4", "any", "the server's"},
    {"number", 20, "4", "0", ""},
})

layout("Packet", "DATA", {
    {"version", 0, "1", "0xC1", ""},
    {"type", 1, "1", "7", ""},
    {"attribute", 2, "1", "0", ""},
    {"flags", 3, "1", "0..1", "bit 0: a checksum is behind the packet (section 13)"},
    {"receiver_index", 4, "4", "any", "the receiver's; a connection that is not there is answered with RESET"},
    {"receiver_token", 8, "8", "any", "the receiver's; likewise"},
    {"sender_index", 16, "4", "any", "the sender's, for a RESET"},
    {"number", 20, "4", "any", "low 32 bits of the packet number (section 4.2)"},
})

layout("Packet", "RESET", {
    {"version", 0, "1", "0xC1", ""},
    {"type", 1, "1", "8", ""},
    {"attribute", 2, "1", "0", ""},
    {"flags", 3, "1", "0..1", "bit 0: a checksum is behind the packet (section 13)"},
    {"receiver_index", 4, "4", "any", "what the answered packet had as sender_index or server_index"},
    {"sender_token", 8, "8", "any", "what the answered packet had as receiver_token or client_token"},
    {"sender_index", 16, "4", "any", "what the answered packet had as receiver_index or client_index"},
    {"number", 20, "4", "any", "number of the packet that it answers"},
    {"secret", 24, "end-24", "any", "of a sealed connection"},
}, {
    "end == 24 or end == 32",
})

layout("Packet", "GROUP", {
    {"version", 0, "1", "0xC1", ""},
    {"type", 1, "1", "9", ""},
    {"attribute", 2, "1", "0", ""},
    {"flags", 3, "1", "0..1", "bit 0: a checksum is behind the packet (section 13)"},
    {"receiver_index", 4, "4", "0", ""},
    {"receiver_token", 8, "8", "0", ""},
    {"sender_index", 16, "4", "any", "tells one sender's connections apart, for people who read captures"},
    {"number", 20, "4", "any", ""},
})

layout("Packet", "CLOSE", {
    {"version", 0, "1", "0xC1", ""},
    {"type", 1, "1", "10", ""},
    {"attribute", 2, "1", "0", ""},
    {"flags", 3, "1", "0..1", "bit 0: a checksum is behind the packet (section 13)"},
    {"receiver_index", 4, "4", "any", "the receiver's; a connection that is not there is answered with RESET"},
    {"receiver_token", 8, "8", "any", "the receiver's; likewise"},
    {"sender_index", 16, "4", "any", "the sender's, for a RESET"},
    {"number", 20, "4", "0", ""},
})

layout("Packet", "CLOSED", {
    {"version", 0, "1", "0xC1", ""},
    {"type", 1, "1", "11", ""},
    {"attribute", 2, "1", "0", ""},
    {"flags", 3, "1", "0..1", "bit 0: a checksum is behind the packet (section 13)"},
    {"receiver_index", 4, "4", "any", "the receiver's"},
    {"receiver_token", 8, "8", "any", "the receiver's"},
    {"sender_index", 16, "4", "any", "the sender's"},
    {"number", 20, "4", "0", ""},
})

layout("Packet", "BUSY", {
    {"version", 0, "1", "0xC1", ""},
    {"type", 1, "1", "12", ""},
    {"attribute", 2, "1", "0", ""},
    {"flags", 3, "1", "0..1", "bit 0: a checksum is behind the packet (section 13)"},
    {"client_index", 4, "4", "any", "of the REQUEST"},
    {"client_token", 8, "8", "any", "of the REQUEST"},
    {"sender_index", 16, "4", "0", ""},
    {"number", 20, "4", "0", ""},
})

layout("Packet", "NOT_HERE", {
    {"version", 0, "1", "0xC1", ""},
    {"type", 1, "1", "13", ""},
    {"attribute", 2, "1", "0", ""},
    {"flags", 3, "1", "0..1", "bit 0: a checksum is behind the packet (section 13)"},
    {"client_index", 4, "4", "any", "of the REQUEST"},
    {"client_token", 8, "8", "any", "of the REQUEST"},
    {"name", 16, "8", "8..ones(64)", "of the REQUEST, with the place of the port"},
})

layout("Frame", "PAD", {
    {"type", 0, "1", "0", ""},
    {"zeros", 1, "end-1", "0", ""},
})

layout("Frame", "MESSAGE", {
    {"type", 0, "1", "1", ""},
    {"flags", 1, "1", "0..1, 4..5", "bit 0, AFTER: not to be delivered before the sequence number just before it is done; bit 2, WAKE"},
    {"length", 2, "2", "0..min(65535, end-8)", "bytes of the message; at most the connection's max_send_size"},
    {"sequence", 4, "4", "any", "low 32 bits of the sequence number (section 4.3)"},
    {"data", 8, "length", "any", "the message"},
})

layout("Frame", "FRAGMENT", {
    {"type", 0, "1", "2", ""},
    {"flags", 1, "1", "0..1, 4..5", "of the message, as in MESSAGE; the same in all its fragments"},
    {"length", 2, "2", "1..min(65535, end-16)", "bytes of this piece"},
    {"sequence", 4, "4", "any", "of the message"},
    {"offset", 8, "4", "0..total-length", "of this piece in the message"},
    {"total", 12, "4", "1..65535", "bytes of the message; at most the connection's max_send_size"},
    {"data", 16, "length", "any", ""},
})

layout("Frame", "BULK", {
    {"type", 0, "1", "3", ""},
    {"flags", 1, "1", "0", ""},
    {"length", 2, "2", "1..min(65535, end-48)", "bytes of this piece"},
    {"sequence", 4, "4", "any", "of the write"},
    {"key", 8, "8", "any", "of the target's registration, from its handle; NACK with reason 5"},
    {"region", 16, "4", "any", "index of the registration, from its handle; likewise"},
    {"reserved_20", 20, "4", "0", ""},
    {"remote_offset", 24, "8", "any", "of the write in the registered memory; likewise"},
    {"offset", 32, "8", "0..total-length", "of this piece in the write"},
    {"total", 40, "8", "1..ones(64)", "bytes of the write; likewise"},
    {"data", 48, "length", "any", ""},
})

layout("Frame", "SKIP", {
    {"type", 0, "1", "4", ""},
    {"flags", 1, "1", "0..1, 4..5", ""},
    {"length", 2, "2", "0..min(65535, end-8)", ""},
    {"sequence", 4, "4", "any", "what was withdrawn"},
    {"data", 8, "length", "any", "means nothing"},
})

layout("Frame", "VOID", {
    {"type", 0, "1", "5", ""},
    {"flags", 1, "1", "0..1", "bit 0: one sequence number more, that of the message behind a withdrawn write"},
    {"reserved_2", 2, "2", "0", ""},
    {"sequence", 4, "4", "any", "the first that was withdrawn"},
    {"count", 8, "4", "1..0x3fffffff", "so many"},
    {"reserved_12", 12, "4", "0", ""},
})

layout("Frame", "ACK", {
    {"type", 0, "1", "6", ""},
    {"more", 1, "1", "0..14", "ranges besides the first"},
    {"delay", 2, "2", "any", "time since the largest number arrived, in 4 µs; 65,535 stands for more, too"},
    {"largest", 4, "4", "any", "low 32 bits of the largest packet number that has arrived"},
    {"first", 8, "4", "1..0x7fffffff", "so many numbers, from the largest down, have arrived"},
    {"expected", 12, "4", "any", "low 32 bits of a sequence number: all below have been taken (0 on a UU connection)"},
    {"ranges", 16, "more of ACK_RANGE", "", "downwards"},
})

layout("Frame", "NACK", {
    {"type", 0, "1", "7", ""},
    {"reason", 1, "1", "3, 5", "3: no receive buffer; 5 and all others: memory not accessible"},
    {"number", 2, "2", "any", "reason 3: low bits of the number of the refused packet, or of a later refused one"},
    {"sequence", 4, "4", "any", "what could not be taken"},
})

layout("Frame", "PING", {
    {"type", 0, "1", "8", ""},
    {"reserved_1", 1, "7", "0", ""},
})

layout("Frame", "TAKEN", {
    {"type", 0, "1", "9", ""},
    {"count", 1, "1", "1..16", "ranges"},
    {"reserved_2", 2, "2", "0", ""},
    {"base", 4, "4", "any", "low 32 bits of a sequence number: the sender's `expected`"},
    {"ranges", 8, "count of TAKEN_RANGE", "", "ascending: each begins above where the one before ends"},
})

layout("Frame", "READ", {
    {"type", 0, "1", "16", ""},
    {"reserved_1", 1, "3", "0", ""},
    {"chunk", 4, "4", "any", "the reader's name for the chunk; the answer repeats it"},
    {"key", 8, "8", "any", "of the registration, from its handle; DENIED"},
    {"region", 16, "4", "any", "index of the registration, from its handle; DENIED"},
    {"segment", 20, "4", "64..65528", "bytes of each segment but the last"},
    {"offset", 24, "8", "any", "of the chunk in the registered memory; DENIED"},
    {"length", 32, "4", "1..64*segment", "bytes of the chunk"},
    {"reserved_36", 36, "4", "0", ""},
    {"missing", 40, "8", "1..ones(pieces(length, segment))", "bit n: segment n is wanted"},
})

layout("Frame", "DATA", {
    {"type", 0, "1", "17", ""},
    {"reserved_1", 1, "1", "0", ""},
    {"length", 2, "2", "1..min(65535, end-16)", "bytes of this segment"},
    {"chunk", 4, "4", "any", "of the READ"},
    {"segment", 8, "4", "0..63", "number of this segment in the chunk"},
    {"reserved_12", 12, "4", "0", ""},
    {"data", 16, "length", "any", ""},
}, {
    "end == 16 + length",
})

layout("Frame", "DENIED", {
    {"type", 0, "1", "18", ""},
    {"reason", 1, "1", "5..6", "5: the memory; 6: of an ATOMIC, there is no such operation here"},
    {"reserved_2", 2, "2", "0", ""},
    {"chunk", 4, "4", "any", "of the READ or ATOMIC"},
})

layout("Frame", "ATOMIC", {
    {"type", 0, "1", "19", ""},
    {"operation", 1, "1", "any", "0: add, 1: swap, 2: compare and swap; DENIED"},
    {"width", 2, "1", "any", "bytes of the number: 4 or 8; DENIED"},
    {"reserved_3", 3, "1", "0", ""},
    {"chunk", 4, "4", "any", "the initiator's name for the request; the answer repeats it"},
    {"key", 8, "8", "any", "of the registration, from its handle; DENIED"},
    {"region", 16, "4", "any", "index of the registration, from its handle; DENIED"},
    {"number", 20, "4", "any", "of the atomic among those of this connection and direction, from 0 on (section 7.3)"},
    {"offset", 24, "8", "any", "of the number in the registered memory; DENIED"},
    {"operand", 32, "8", "any", "what is added or put there"},
    {"compare", 40, "8", "any", "what must be there for operation 2"},
})

layout("Frame", "CHALLENGE", {
    {"type", 0, "1", "32", ""},
    {"reserved_1", 1, "7", "0", ""},
    {"bits", 8, "8", "any", "unguessable, new for each address that is to be proven"},
})

layout("Frame", "RESPONSE", {
    {"type", 0, "1", "33", ""},
    {"reserved_1", 1, "7", "0", ""},
    {"bits", 8, "8", "any", "of the last CHALLENGE"},
})

layout("Frame", "MARKS", {
    {"type", 0, "1", "34", ""},
    {"reserved_1", 1, "3", "0", ""},
    {"ect0", 4, "4", "any", "packets that came with ECT(0), modulo 2^32"},
    {"ect1", 8, "4", "any", "packets that came with ECT(1)"},
    {"ce", 12, "4", "any", "packets that came with CE"},
})

layout("Frame", "ADDRESSES", {
    {"type", 0, "1", "35", ""},
    {"count", 1, "1", "0..8", "of addresses"},
    {"reserved_1", 2, "2", "0", ""},
    {"number", 4, "4", "any", "larger when the addresses are others than before"},
    {"addresses", 8, "count of ADDRESS", "", "all at which the sender is reached"},
})

layout("Frame", "HEARD", {
    {"type", 0, "1", "36", ""},
    {"reserved_1", 1, "3", "0", ""},
    {"number", 4, "4", "any", "of the last ADDRESSES that came"},
})

layout("Packet", "SEALED", {
    {"version", 0, "1", "0xC1", ""},
    {"type", 1, "1", "1, 3..7, 9..11", "of the packet"},
    {"attribute", 2, "1", "0..2", ""},
    {"flags", 3, "1", "2..3, 6..7", ""},
    {"first_index", 4, "4", "any", "as in the layout of the type"},
    {"first_token", 8, "8", "1..ones(64)", "as in the layout of the type; of a GROUP its sender's"},
    {"others", 16, "end-16", "any", "as in the layout of the type, then encrypted bytes, then the tag"},
})

local seen = {
    stream = ProtoField.uint32("cci.stream", "Connection", base.DEC, nil, nil, "the same number for all of its packets"),
    acks = ProtoField.framenum("cci.acks", "Acknowledges what was sent in", base.NONE, frametype.ACK),
    round_trip = ProtoField.double("cci.round_trip", "Round trip", "seconds, without the time that the receiver waited"),
    repeats = ProtoField.framenum("cci.repeats", "Was sent before in", base.NONE, frametype.RETRANS_PREV),
}
for _, field in pairs(seen) do proto_list[#proto_list + 1] = field end
cci.fields = proto_list

-- ---- connections ----------------------------------------------------------------------------------------------------

-- What is known of the capture so far. A direction of a connection is known by the token of the side that receives.
local stream_count, by_token, by_indices, notes

function cci.init()
    stream_count, by_token, by_indices, notes = 0, {}, {}, {}
end

-- The connection of a token: {number, ways = {token = {sent = {}, had = {}}}}.
local function know(token, stream)
    if not stream then
        stream = {number = stream_count, ways = {}, count = 0}
        stream_count = stream_count + 1
    end
    if not stream.ways[token] then
        stream.ways[token] = {sent = {}, had = {}}
        stream.count = stream.count + 1
    end
    by_token[token] = stream
    return stream
end

-- Finds the connection of a packet, and the token of who gets the packet.
local function find_stream(name, buffer, pinfo)
    local token = buffer(8, 8):bytes():tohex()
    if name == "GROUP" then
        token = "group of " .. tostring(pinfo.src) .. " " .. buffer(16, 4):le_uint()
        return by_token[token] or know(token), token
    end
    local stream = by_token[token]
    if not stream and name ~= "RESET" then -- the beginning was not captured: the indices and addresses are those of the other way
        local from = ("%s %d %d"):format(tostring(pinfo.src), pinfo.src_port, buffer(16, 4):le_uint())
        local to = ("%s %d %d"):format(tostring(pinfo.dst), pinfo.dst_port, buffer(4, 4):le_uint())
        local key = from < to and from .. "," .. to or to .. "," .. from
        local has_both = kinds.Packet[buffer(1, 1):uint()].size == "24" and buffer(16, 4):le_uint() ~= 0
        local other = has_both and by_indices[key]
        stream = know(token, other and other.count < 2 and other or nil)
        if has_both then by_indices[key] = stream end
    end
    if stream and name == "ACCEPT" and buffer:len() >= 32 then know(buffer(24, 8):bytes():tohex(), stream) end
    return stream, token
end

-- What was sent from the side that `token` belongs to.
local function way_back(stream, token)
    for other, way in pairs(stream.ways) do
        if other ~= token then return way end
    end
end

-- Looks at the packets of a frame once, in the order of the capture, and keeps what it sees.
local function note_of(name, buffer, pinfo, place)
    local of_frame = notes[pinfo.number] or {}
    notes[pinfo.number] = of_frame
    if of_frame[place] or pinfo.visited or buffer:len() < 24 then return of_frame[place] or {} end
    local stream, token = find_stream(name, buffer, pinfo)
    local note = {}
    if stream then note = {stream = stream.number, way = stream.ways[token], back = way_back(stream, token), first = true} end
    of_frame[place] = note
    return note
end

local function add_seen(tree, name, value)
    tree:add(seen[name], value):set_generated()
end

-- A frame of a packet that is looked at for the first time, or again: the notes about it.
local function note_frame(note, name, values, number, pinfo, at)
    local key = name .. " " .. at
    if not note.first then return note[key] end
    local made = {}
    if name == "ACK" and note.back then
        local sent = note.back.sent[values.largest]
        if sent and not sent.is_acked then
            sent.is_acked = true
            local passed, waited = tonumber(tostring(pinfo.rel_ts)) - sent.time, values.delay * 4e-6
            made.acks, made.round_trip = sent.frame, math.max(passed - waited, 0)
        end
    elseif (name == "MESSAGE" or name == "FRAGMENT" or name == "BULK") and note.way then
        local piece = name .. " " .. values.sequence .. " " .. (values.offset or 0)
        local had = note.way.had[piece]
        if had and had.number ~= number then made.repeats = had.frame end
        note.way.had[piece] = {frame = pinfo.number, number = number}
    end
    note[key] = made
    return made
end

-- ---- dissection -----------------------------------------------------------------------------------------------------

local attributes = {[0] = "RO", "RU", "UU"}

local function number_of(range)
    if range:len() == 8 then return range:le_uint64():tonumber() end
    return range:le_uint()
end

local function all_zero(range)
    return range:bytes():tohex():match("^0*$") ~= nil
end

-- Adds the fields of a layout at `at` to a tree. Returns their values and where they end, or nil if it is malformed.
local function add_layout(tree, made, buffer, at)
    local values = {end_ = buffer:len() - at}
    local start, left = at, buffer:len()
    for _, field in ipairs(made.fields) do
        if field.part then
            for _ = 1, field.count(values) do
                local part, stop = add_layout(tree, layouts.Part[field.part], buffer, at)
                if not part then return nil end
                at = stop
            end
        else
            local size = type(field.size) == "number" and field.size or field.size(values)
            if size < 0 or at + size > left then
                tree:add_proto_expert_info(MALFORMED, made.name .. "." .. field.name .. " is longer than what is there")
                return nil
            end
            if size > 0 then
                local range = buffer(at, size)
                field.item = tree:add_le(field.proto, range)
                if field.is_number then
                    values[field.name] = number_of(range)
                elseif field.values and not all_zero(range) then
                    field.item:add_proto_expert_info(UNEXPECTED, field.name .. " is not 0")
                end
            end
            at = at + size
        end
    end
    for _, field in ipairs(made.fields) do -- afterwards, because the limits of one may be others
        if field.values and field.is_number and not field.values(values[field.name], values) then
            local what = field.name:match("^reserved") and UNEXPECTED or MALFORMED
            field.item:add_proto_expert_info(what, field.name .. " is not in: " .. field.allowed)
        end
    end
    for _, condition in ipairs(made.conditions) do
        if not condition.holds(values) then
            tree:add_proto_expert_info(MALFORMED, "does not hold: " .. condition.text)
        end
    end
    return values, at, start
end

-- What the column and the tree say about a frame.
local summaries = {
    MESSAGE = function(f)
        return ("seq=%d len=%d%s%s"):format(f.sequence, f.length, f.flags % 2 == 1 and " AFTER" or "",
                                            f.flags % 8 >= 4 and " WAKE" or "")
    end,
    FRAGMENT = function(f) return ("seq=%d %d+%d of %d"):format(f.sequence, f.offset, f.length, f.total) end,
    BULK = function(f) return ("seq=%d %.0f+%d of %.0f"):format(f.sequence, f.offset, f.length, f.total) end,
    SKIP = function(f) return ("seq=%d"):format(f.sequence) end,
    CHALLENGE = function(f) return ("%x"):format(f.bits % 2 ^ 32) end,
    RESPONSE = function(f) return ("%x"):format(f.bits % 2 ^ 32) end,
    ADDRESSES = function(f) return ("number=%d and %d addresses"):format(f.number, f.count) end,
    HEARD = function(f) return ("number=%d"):format(f.number) end,
    MARKS = function(f) return ("ect0=%d ect1=%d ce=%d"):format(f.ect0, f.ect1, f.ce) end,
    VOID = function(f) return ("seq=%d count=%d"):format(f.sequence, f.count + f.flags % 2) end,
    TAKEN = function(f) return ("base=%d and %d ranges above"):format(f.base, f.count) end,
    NACK = function(f) return ("seq=%d reason=%d"):format(f.sequence, f.reason) end,
    READ = function(f) return ("chunk=%x %.0f+%d"):format(f.chunk, f.offset, f.length) end,
    DATA = function(f) return ("chunk=%x segment=%d len=%d"):format(f.chunk, f.segment, f.length) end,
    DENIED = function(f) return ("chunk=%x reason=%d"):format(f.chunk, f.reason) end,
    ATOMIC = function(f)
        return ("chunk=%x number=%d operation=%d width=%d"):format(f.chunk, f.number, f.operation, f.width)
    end,
    ACK = function(f)
        local first = f.largest - f.first + 1
        local text = f.first == 1 and ("%d"):format(f.largest) or ("%.0f-%.0f"):format(first % 2 ^ 32, f.largest)
        return f.more > 0 and text .. (" and %d ranges below"):format(f.more) or text
    end,
}

local function add_frame(tree, buffer, at, note, number, pinfo)
    local found = kinds.Frame[buffer(at, 1):uint()]
    if not found then
        tree:add(buffer(at), "Frame of an unknown type"):add_proto_expert_info(MALFORMED, "unknown type of frame")
        return nil
    end
    local made = layouts.Frame[found.name]
    local item = tree:add(made.proto, buffer(at))
    local values, stop = add_layout(item, made, buffer, at)
    if not values then return nil, found.name end
    item:set_len(stop - at)
    local text = summaries[found.name] and summaries[found.name](values)
    if text then item:append_text(" " .. text) end
    local made = note_frame(note, found.name, values, number, pinfo, at) or {}
    for _, name in ipairs({"acks", "round_trip", "repeats"}) do
        if made[name] then add_seen(item, name, made[name]) end
    end
    if made.round_trip then text = ("%s rtt=%.3f ms"):format(text, made.round_trip * 1000) end
    if made.repeats then text = text .. " again" end
    return stop, text and found.name .. " " .. text or found.name
end

local function add_padding(tree, buffer, at)
    local padding = math.min(-at % 8, buffer:len() - at)
    if padding > 0 then
        local item = tree:add(buffer(at, padding), "Padding")
        if not all_zero(buffer(at, padding)) then item:add_proto_expert_info(UNEXPECTED, "padding is not 0") end
    end
    return at + padding
end

local function add_frames(tree, buffer, at, note, number, pinfo)
    local said = {}
    while at < buffer:len() do
        local stop, text = add_frame(tree, buffer, at, note, number, pinfo)
        said[#said + 1] = text
        if not stop then
            said[#said + 1] = "[malformed]"
            break
        end
        at = add_padding(tree, buffer, stop)
    end
    return table.concat(said, ", ")
end

-- CRC-32C; Wireshark's `bit` has it that numbers are 32 bits and perhaps negative.
local function checksum(range)
    local bytes, crc = range:bytes(), -1
    for i = 0, bytes:len() - 1 do
        crc = bit.bxor(crc, bytes:get_index(i))
        for _ = 1, 8 do
            crc = bit.bxor(bit.rshift(crc, 1), bit.band(crc, 1) == 1 and 0x82F63B78 or 0)
        end
    end
    return bit.tobit(bit.bnot(crc))
end

-- Takes off what the flags say is behind the packet: the packet without it, and whether it is sealed.
local function unwrap(buffer, top)
    local flags = buffer:len() > 3 and buffer(3, 1):uint() or 0
    if flags % 2 == 1 and buffer:len() >= 28 then
        local rest = buffer:len() - 4
        local item = top:add(buffer(rest), "CRC-32C")
        if bit.tobit(buffer(rest):le_uint()) ~= checksum(buffer(0, rest)) then
            item:add_proto_expert_info(MALFORMED, "the checksum is wrong")
        end
        buffer = buffer(0, rest):tvb()
    elseif flags % 2 == 1 then
        top:add_proto_expert_info(MALFORMED, "the checksum is missing")
    end
    return buffer, flags % 4 >= 2
end

-- Whether a packet begins at `at`, counted from 0.
local function begins(raw, at)
    local version, type, attribute, flags = raw:byte(at + 1, at + 4)
    return #raw - at >= 24 and version == 0xC1 and kinds.Packet[type] and attribute <= 2 and flags <= 7
end

-- The length of the packets of a train; nil if there is one packet only. That of a handshake, perhaps of several
-- connections, follows from the type. Otherwise the second begins where the connection's index and token are found
-- again: nobody guesses 64 bits.
local function spacing(buffer)
    local raw = buffer:raw()
    if #raw < 48 then return nil end
    local made, flags = kinds.Packet[raw:byte(2)], raw:byte(4)
    if made and made.what ~= "frames" and flags % 4 < 2 then
        local size = tonumber(made.size) or made.name == "REQUEST" and 48 + raw:byte(39) + 256 * raw:byte(40)
        size = size and size + 4 * (flags % 2)
        local at = 0
        while size and at < #raw and begins(raw, at) do at = at + size end
        if size and at >= #raw and #raw > size then return size end
    end
    if not begins(raw, 0) or raw:sub(9, 16) == ("\0"):rep(8) then return nil end
    local found = raw:find(raw:sub(5, 16), 24 + 5, true)
    while found do
        local size, at = found - 5, 0
        repeat at = at + size until at >= #raw or not begins(raw, at)
        if at >= #raw then return size end
        found = raw:find(raw:sub(5, 16), found + 1, true)
    end
end

-- Shows one packet, the `place`th of its frame. Returns what the column says about it.
local function add_packet(buffer, tree, pinfo, place)
    local found = buffer:len() >= 2 and kinds.Packet[buffer(1, 1):uint()]
    local top = tree:add(cci, buffer())
    if not found then
        top:add_proto_expert_info(MALFORMED, "unknown type of packet")
        return "[malformed]"
    end
    local sealed
    buffer, sealed = unwrap(buffer, top)
    local made = layouts.Packet[sealed and "SEALED" or found.name]
    local values, at = add_layout(top, made, buffer, 0)
    local info = found.name
    local note = note_of(found.name, buffer, pinfo, place)
    if note.stream then
        add_seen(top, "stream", note.stream)
        info = ("[%d] %s"):format(note.stream, info)
    end
    if sealed then
        info = info .. " sealed"
    elseif not values then
        info = info .. " [malformed]"
    elseif found.what == "frames" then
        info = info .. " " .. values.number
        top:append_text(", " .. info)
        if note.first and note.way then
            note.way.sent[values.number] = {frame = pinfo.number, time = tonumber(tostring(pinfo.rel_ts))}
        end
        info = info .. " " .. add_frames(top, buffer, at, note, values.number, pinfo)
    else
        if found.what == "answer" and at < buffer:len() then
            local answer, stop = add_layout(top, layouts.Packet.ANSWER, buffer, at)
            info = info .. (answer and (" data=%d+%d"):format(answer.offset, answer.length) or " [malformed]")
            at = stop or buffer:len()
        end
        if at < buffer:len() then
            top:add(buffer(at), "Bytes behind the packet"):add_proto_expert_info(MALFORMED, "bytes behind the packet")
        end
        if found.name == "REQUEST" or found.name == "ACCEPT" then
            info = info .. " " .. (attributes[values.attribute] or "?")
        end
        top:append_text(", " .. info)
    end
    note.first = nil
    return info
end

function cci.dissector(buffer, pinfo, tree)
    pinfo.cols.protocol = "CCI"
    local all, size = buffer:len(), spacing(buffer)
    if not size then
        pinfo.cols.info = add_packet(buffer, tree, pinfo, 1)
        return all
    end
    local said = {}
    for at = 0, all - 1, size do
        said[#said + 1] = add_packet(buffer(at, math.min(size, all - at)):tvb(), tree, pinfo, #said + 1)
    end
    pinfo.cols.info = ("%d packets: %s"):format(#said, table.concat(said, "; "))
    return all
end

-- A packet of ours has the version, a known type and known flags.
local function recognise(buffer, pinfo, tree)
    if buffer:len() < 24 or buffer(0, 1):uint() ~= 0xC1 or not kinds.Packet[buffer(1, 1):uint()] or
       buffer(3, 1):uint() > (buffer(1, 1):uint() == 1 and 7 or 3) then
        return false
    end
    pinfo.conversation = cci
    cci.dissector(buffer, pinfo, tree)
    return true
end

cci:register_heuristic("udp", recognise)
DissectorTable.get("udp.port"):add_for_decode_as(cci)
