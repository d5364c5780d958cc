#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Unlicense
"""wire_check.py - holds captured packets to the tables of tests/wire/wire.md, and nothing else.

    wire_check.py [options] CAPTURE...      each file by itself; status 1 if anything differs from the document
    wire_check.py --self-test CAPTURE       damages the capture and the document in many ways: each must be found

    --spec FILE     the document (default: wire.md beside this file)
    --cover         all packet types, frame types and rules of the document must occur in the captures together
    --partial       the capture may lack packets: rules that need all of them are left out
    --hostile       the capture lacks packets that somebody forged: what answers a packet that is not there is no error
    --pdml FILE     the dissection of the one capture by tshark -T pdml must have the same fields with the same values
    --damaged       with --pdml: the capture is what --damage wrote: nothing is expected of it but the same judgement
    --damage FILE   writes packets of the one capture into a new one, most of them damaged in one way each
    --lua FILE      the tables in this dissector must be those of the document
    --dump          prints every field

What a field is called, where it is, how long it is, what it may hold, which types there are and what follows what: all
of that comes from the tables. This file knows what a table looks like, how a capture file is built, and, for the rules
between packets, what the names of fields mean.
"""
import argparse
import os
import random
import re
import struct
import sys
import xml.etree.ElementTree

MAX_PRINTED = 20


class Wrong(Exception):
    """The packet or the document is not as it must be."""


# ---- the document ----------------------------------------------------------------------------------------------------

def ones(n):
    return (1 << n) - 1


def pieces(n, size):
    return -(-n // size) if size else 1 << 70


def make_crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


CRC_TABLE = make_crc_table()


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 255]
    return crc ^ 0xffffffff


FUNCTIONS = {'min': min, 'ones': ones, 'pieces': pieces}
WORDS = {'and', 'or'} | set(FUNCTIONS)
TOKEN = re.compile(r'\s*(0x[0-9a-fA-F]+|\d+|[a-z_][a-z0-9_]*|==|<=|>=|!=|[-+*%()<>,])')


def expression(text, names):
    """Python for an expression of the document, whose names are those of fields or `end`."""
    out, at = [], 0
    text = text.strip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise Wrong('can not read the expression: ' + text)
        token, at = match.group(1), match.end()
        if re.match(r'[a-z_]', token) and token not in WORDS:
            if token not in names and token != 'end':
                raise Wrong('no field has the name %s: %s' % (token, text))
            token = 'f_' + token
        out.append(token)
    if not out:
        raise Wrong('an expression is empty')
    return ' '.join(out)


class Field:
    def __init__(self, row, layout):
        self.name, self.offset, self.size = row['field'], int(row['offset'], 0), row['size']
        self.values, self.meaning = row['values'], row['meaning']
        if not re.match(r'[a-z][a-z0-9_]*$', self.name):
            raise Wrong('%s: %s is no name of a field' % (layout, self.name))
        if row['otherwise'] not in ('', 'ignored', 'dropped', 'rest dropped', 'refused', 'checked'):
            raise Wrong('%s.%s: otherwise what?' % (layout, self.name))
        self.part = None
        match = re.match(r'(.+) of ([A-Z_]+)$', self.size)
        if match:
            self.size, self.part = match.group(1), match.group(2)
        self.fixed = int(self.size) if self.size.isdigit() and not self.part else None
        self.is_number = self.fixed in (1, 2, 4, 8)


class Layout:
    """A table of fields, and a function made of it that decodes."""

    def __init__(self, name, rows, conditions):
        self.name = name
        self.fields = [Field(row, name) for row in rows]
        self.conditions = conditions
        self.rows = rows
        self.names = set()
        self.fixed_size = 0
        self.compile()

    def compile(self):
        layout, code = '<', []
        fixed = [f for f in self.fields if f.fixed is not None]
        rest = self.fields[len(fixed):]
        if [f for f in rest if f.fixed is not None] or len(rest) > 1:
            raise Wrong('%s: only the last field may have a size that is not fixed' % self.name)
        for f in self.fields:
            if f.name in self.names:
                raise Wrong('%s: two fields have the name %s' % (self.name, f.name))
            if f.offset != self.fixed_size:
                raise Wrong('%s.%s: offset %d, but the fields before it end at %d' %
                            (self.name, f.name, f.offset, self.fixed_size))
            self.names.add(f.name)
            if f.fixed is not None:
                self.fixed_size += f.fixed
                layout += {1: 'B', 2: 'H', 4: 'I', 8: 'Q'}.get(f.fixed, '%ds' % f.fixed)
                if f.is_number and f.offset % f.fixed:
                    raise Wrong('%s.%s: a number of %d bytes at offset %d' % (self.name, f.name, f.fixed, f.offset))
        code.append('def decode(b, at, stop, parts):')
        code.append('    f_end = stop - at')
        code.append('    if f_end < %d: raise Wrong("%s: %%d bytes, fewer than %d" %% f_end)' %
                    (self.fixed_size, self.name, self.fixed_size))
        code.append('    %s, = unpack(b, at)' % ', '.join('f_' + f.name for f in fixed))
        for f in fixed:
            self.compile_values(f, code)
        code.append('    size = %d' % self.fixed_size)
        for f in rest:
            code.append('    n = %s' % expression(f.size, self.names))
            if f.part:
                code.append('    f_%s = []' % f.name)
                code.append('    for i in range(n):')
                code.append('        part, used = parts["%s"].decode(b, at + size, stop, parts)' % f.part)
                code.append('        f_%s.append(part); size += used' % f.name)
            else:
                code.append('    if not 0 <= n <= f_end - size: raise Wrong("%s.%s: %%d bytes, but there are %%d" %% '
                            '(n, f_end - size))' % (self.name, f.name))
                code.append('    f_%s = b[at + size:at + size + n]; size += n' % f.name)
                self.compile_values(f, code)
        for condition in self.conditions:
            code.append('    if not (%s): raise Wrong("%s: does not hold: %s")' %
                        (expression(condition, self.names), self.name, condition.replace('%', '%%')))
        code.append('    return {%s}, size' % ', '.join('"%s": f_%s' % (f.name, f.name) for f in self.fields))
        space = dict(FUNCTIONS, Wrong=Wrong, unpack=struct.Struct(layout).unpack_from)
        exec('\n'.join(code), space)
        self.decode = space['decode']

    def compile_values(self, field, code):
        if field.values in ('any', '') or field.part:
            return
        variable, allowed = 'f_' + field.name, []
        if not field.is_number:
            if field.values != '0':
                raise Wrong('%s.%s: bytes are 0, or any' % (self.name, field.name))
            code.append('    if any(%s): raise Wrong("%s.%s: not all bytes are 0")' % (variable, self.name, field.name))
            return
        for item in re.split(r',\s*(?![^(]*\))', field.values):
            ends = [expression(end, self.names) for end in item.split('..')]
            if len(ends) > 2:
                raise Wrong('%s.%s: %s is no range' % (self.name, field.name, item))
            allowed.append('%s <= %s <= %s' % (ends[0], variable, ends[1]) if len(ends) == 2 else
                           '%s == %s' % (variable, ends[0]))
        # A later field may set a limit: then it is looked at behind all fields, which compile() has unpacked by now.
        code.append('    if not (%s): raise Wrong("%s.%s: %%d is not in: %s" %% %s)' %
                    (' or '.join(allowed), self.name, field.name, field.values.replace('%', '%%'), variable))


class Document:
    COLUMNS = {'field': ['field', 'offset', 'size', 'values', 'otherwise', 'meaning'],
               'packet': ['type', 'packet', 'size', 'then', 'sent by', 'meaning'],
               'bit': ['bit', 'flag', 'behind', 'meaning'],
               'frame': ['type', 'frame', 'size', 'elicits', 'in', 'meaning'],
               'rule': ['rule', 'must hold']}

    def __init__(self, text):
        self.layouts, self.parts = {}, {}
        self.packets, self.frames, self.rules, self.flags = {}, {}, {}, {}
        tables = self.tables(text)
        for heading, rows in tables.items():
            kind, _, name = heading.partition(' ')
            if kind in ('Packet', 'Frame', 'Part') and name.isupper():
                fields = [row for row in rows if 'field' in row]
                conditions = [row['must hold'] for row in rows if 'must hold' in row]
                layout = Layout(kind.lower() + ' ' + name, fields, conditions)
                (self.parts if kind == 'Part' else self.layouts)[name if kind == 'Part' else (kind, name)] = layout
        for row in tables.get('Packet types', []):
            self.add_type(self.packets, 'Packet', row['packet'], row)
        for row in tables.get('Frame types', []):
            self.add_type(self.frames, 'Frame', row['frame'], row)
        for row in tables.get('Rules', []):
            self.rules[row['rule']] = row['must hold']
        used = {('Packet', t['name']) for t in self.packets.values()}
        used |= {('Frame', t['name']) for t in self.frames.values()}
        for row in tables.get('Packet flags', []):
            self.flags[int(row['bit'])] = (row['flag'], int(row['behind']))
        if used | {('Packet', 'SEALED'), ('Packet', 'ANSWER')} != set(self.layouts):
            raise Wrong('types and layouts differ: %s' % sorted(used ^ set(self.layouts)))
        if not self.packets or not self.frames or not self.rules:
            raise Wrong('a table is missing')

    def tables(self, text):
        """The rows of all tables that this file reads, by the heading above them."""
        found, heading, columns = {}, '', None
        for line in text.split('\n'):
            if line.startswith('#'):
                heading, columns = line.lstrip('#').strip(), None
            if not line.startswith('|'):
                columns = None
                continue
            cells = [cell.strip() for cell in line.strip().strip('|').split('|')]
            if columns is None:
                columns = cells
                known = self.COLUMNS.get(cells[0])
                if known and cells != known and heading != 'Rules':
                    raise Wrong('%s: the columns are not %s' % (heading, known))
            elif not all(re.match(r':?-+:?$', cell) for cell in cells):
                if len(cells) != len(columns):
                    raise Wrong('%s: a row has %d cells, not %d: %s' % (heading, len(cells), len(columns), line))
                found.setdefault(heading, []).append(dict(zip(columns, cells)))
        return found

    def add_type(self, types, kind, name, row):
        layout = self.layouts.get((kind, name))
        number = int(row['type'], 0)
        if not layout or number in types:
            raise Wrong('%s type %d, %s: no layout, or given twice' % (kind, number, name))
        size = expression(row['size'], layout.names)
        size = eval('lambda f_end, f: ' + re.sub(r'f_(?!end\b)(\w+)', r'f["\1"]', size), dict(FUNCTIONS))
        named = [f for f in layout.fields if f.name == 'type']
        if not named or int(named[0].values, 0) != number:
            raise Wrong('%s: the layout says another type than %d' % (layout.name, number))
        types[number] = {'name': name, 'layout': layout, 'size': size, 'then': row.get('then'),
                         'in': row.get('in', '').split(), 'row': row}

    # ---- one packet ----

    def decode(self, b):
        """[(kind and name, offset, fields, size)] of a datagram: the packet's own part, then its frames."""
        if len(b) < 2:
            raise Wrong('%d bytes are no packet' % len(b))
        any_layout = next(iter(self.packets.values()))['layout'].fields
        at_type = [f.offset for f in any_layout if f.name == 'type'][0]
        at_flags = [f.offset for f in any_layout if f.name == 'flags'][0]
        if len(b) > at_flags:
            for bit, (flag, behind) in self.flags.items():
                if b[at_flags] >> bit & 1 and flag == 'CRC':
                    if len(b) < behind or crc32c(b[:-behind]) != int.from_bytes(b[-behind:], 'little'):
                        raise Wrong('the checksum is wrong')
                    b = b[:-behind]
                elif b[at_flags] >> bit & 1 and ('Packet', flag) in self.layouts:
                    fields, size = self.layouts[('Packet', flag)].decode(b, 0, len(b), self.parts)
                    return [(('packet', flag), 0, fields, size)]
        found = [self.decode_one(self.packets, 'packet', b, 0, b[at_type])]
        at = found[0][3]
        if self.packets[b[at_type]]['then'] != 'frames':
            if self.packets[b[at_type]]['then'] == 'answer' and at < len(b):
                fields, size = self.layouts[('Packet', 'ANSWER')].decode(b, at, len(b), self.parts)
                found.append((('packet', 'ANSWER'), at, fields, size))
                at += size
            if at != len(b):
                raise Wrong('%s: %d bytes behind its end' % (found[0][0][1], len(b) - at))
            return found
        while at < len(b):
            if at % 8:
                raise Wrong('a frame at %d, which is not a multiple of 8' % at)
            item = self.decode_one(self.frames, 'frame', b, at, b[at])
            found.append(item)
            at += item[3]
            padding = min(-at % 8, len(b) - at)
            if any(b[at:at + padding]):
                raise Wrong('the padding at %d is not 0' % at)
            at += padding
        return found

    def decode_one(self, types, kind, b, at, number):
        entry = types.get(number)
        if not entry:
            raise Wrong('%s type %d is unknown' % (kind, number))
        fields, size = entry['layout'].decode(b, at, len(b), self.parts)
        if entry['size'](len(b) - at, fields) != size:
            raise Wrong('%s: %d bytes, but its fields have %d' %
                        (entry['layout'].name, entry['size'](len(b) - at, fields), size))
        return (kind, entry['name']), at, fields, size

    def flat(self, items):
        """(name, offset, size, value) of every field, in the order of the packet. Parts are one level below."""
        for (kind, name), at, fields, _ in items:
            layout = self.layouts[(kind.capitalize(), name)]
            prefix = 'cci.' if kind == 'packet' else 'cci.%s.' % name.lower()
            for f in layout.fields:
                value = fields[f.name]
                if not f.part:
                    size = f.fixed if f.fixed is not None else len(value)
                    yield prefix + f.name, at + f.offset, size, value
                    continue
                part_at = at + f.offset
                for part in value:
                    for g in self.parts[f.part].fields:
                        yield '%s%s.%s' % (prefix, f.name, g.name), part_at + g.offset, g.fixed, part[g.name]
                    part_at += self.parts[f.part].fixed_size


# ---- captures --------------------------------------------------------------------------------------------------------

LINK_HEADERS = {0: 4, 1: 14, 101: 0, 113: 16, 228: 0, 229: 0, 276: 20}


class Datagram:
    def __init__(self, index, source, target, is_group, bytes_):
        self.index, self.source, self.target, self.is_group, self.bytes = index, source, target, is_group, bytes_

    def with_bytes(self, new):
        return Datagram(self.index, self.source, self.target, self.is_group, bytes(new))


def read_capture(path):
    with open(path, 'rb') as file:
        raw = file.read()
    magic = raw[:4]
    order = '<' if magic in (b'\x4d\x3c\xb2\xa1', b'\xd4\xc3\xb2\xa1') else '>'
    if struct.unpack(order + 'I', magic)[0] not in (0xa1b23c4d, 0xa1b2c3d4):
        raise Wrong('%s is no capture file of the kind that tcpdump writes' % path)
    link = struct.unpack_from(order + 'I', raw, 20)[0] & 0xffff
    if link not in LINK_HEADERS:
        raise Wrong('%s: link type %d is unknown' % (path, link))
    at, index = 24, 0
    while at + 16 <= len(raw):
        captured, original = struct.unpack_from(order + 'II', raw, at + 8)
        frame = raw[at + 16:at + 16 + captured]
        at, index = at + 16 + captured, index + 1
        if captured != original or len(frame) != captured:
            raise Wrong('%s: frame %d was cut short: capture with -s 0' % (path, index))
        datagram = unwrap(index, frame[LINK_HEADERS[link]:])
        if datagram:
            yield datagram


def unwrap(index, ip):
    """The UDP datagram in an IP packet, None if it has none."""
    if ip[0] >> 4 == 4:
        head = (ip[0] & 15) * 4
        if ip[9] != 17:
            return None
        if struct.unpack_from('>H', ip, 6)[0] & 0x3fff:
            raise Wrong('frame %d is a fragment of IP: capture with a smaller MTU' % index)
        source, target, is_group = ip[12:16], ip[16:20], 224 <= ip[16] < 240
    elif ip[0] >> 4 == 6 and ip[6] == 17:
        head, source, target, is_group = 40, ip[8:24], ip[24:40], ip[24] == 0xff
    else:
        return None
    from_port, to_port, length = struct.unpack_from('>HHH', ip, head)
    return Datagram(index, source + struct.pack('>H', from_port), target + struct.pack('>H', to_port), is_group,
                    ip[head + 8:head + length])


# ---- rules across packets --------------------------------------------------------------------------------------------

def new_numbers(low, high, known):
    """The numbers from low to high - 1 that none of the known ranges has; the highest range comes first."""
    for begin, end in known:
        if end <= low:
            break
        yield from range(max(low, end), high)
        high = min(high, begin)
    yield from range(low, high)


def expand(low, near):
    difference = (low - near) & 0xffffffff
    return near + difference - (1 << 32 if difference >= 1 << 31 else 0)


class Content:
    """What a sequence number stands for: a message of which pieces are known, or a write."""

    def __init__(self, kind, what):
        self.kind, self.what, self.withdrawn = kind, what, False
        self.pieces = {}
        if kind == 'message':
            self.data, self.mask = bytearray(what[0]), bytearray(what[0])

    def same(self, offset, data):
        """Adds a piece; False if it differs from what is known."""
        if self.kind != 'message':
            known = self.pieces.setdefault((offset, len(data)), hash(data))
            return known == hash(data)
        end = offset + len(data)
        mask = self.mask[offset:end]
        if not any(mask):
            same = True
        elif all(mask):
            same = self.data[offset:end] == data
        else:
            same = all(not m or self.data[offset + i] == data[i] for i, m in enumerate(mask))
        self.data[offset:end] = data
        self.mask[offset:end] = b'\1' * len(data)
        return same


class Side:
    """One side of a connection, by the token that it chose, and what is sent to it."""

    def __init__(self, token, index, attribute):
        self.token, self.index, self.attribute = token, index, attribute
        self.peer, self.max_send_size = None, None
        self.numbers, self.next_number = set(), 0
        self.contents, self.next_sequence = {}, 0
        self.reads = {}  # by this side, of the peer's memory
        self.atomics = {}  # by this side: what each number asks for
        self.asked = {}  # by this side: the numbers of atomics by chunk
        self.answered, self.open = set(), 0  # of its atomics; the lowest without an answer
        self.challenges = set()  # sent to this side
        self.told = set()  # numbers of ADDRESSES sent to the peer
        self.acked = []  # what the last ACK sent to this side named
        self.confirmed_at = self.closed_at = False


class Rules:
    def __init__(self, document, partial, hostile):
        self.document, self.partial, self.hostile = document, partial, hostile
        self.used = dict.fromkeys(document.rules, 0)
        self.requests, self.sides, self.headers, self.groups, self.sealed = {}, {}, set(), {}, {}
        self.problems = []
        missing = set(document.rules) ^ set(RULES)
        if missing:
            raise Wrong('rules of the document and of the checker differ: %s' % sorted(missing))

    def hold(self, rule, condition, text):
        self.used[rule] += 1
        if not condition:
            self.problems.append('%s: %s' % (rule, text))

    # ---- handshake ----

    def request(self, datagram, p):
        token = p['client_token']
        self.hold('token-new', token != 0, 'the token is 0')
        facts = (p['client_index'], p['attribute'], p['max_send_size'], p['window'], p['data_len'], datagram.source)
        known = self.requests.get(token)
        if not known:
            self.hold('token-new', token not in self.sides, 'token %016x was a server\'s' % token)
            known = self.requests[token] = {'facts': facts, 'pieces': {}, 'cookies': set(), 'accept': None,
                                            'answers': {}, 'longest': 0, 'proven': False, 'names': set()}
            side = Side(token, p['client_index'], p['attribute'])
            self.sides[token] = side
        self.hold('request-once', known['facts'] == facts, 'facts differ: %s, %s' % (known['facts'], facts))
        piece = known['pieces'].setdefault((p['offset'], p['length']), p['piece'])
        self.hold('request-once', piece == p['piece'], 'other data than before')
        known['longest'] = max(known['longest'], len(datagram.bytes))
        known['names'].add(p['name'])
        if p['cookie']:
            known['proven'] = True
            self.hold('cookie-returned', p['cookie'] in known['cookies'], 'cookie %016x is unknown' % p['cookie'])

    def answered(self, rule, p):
        """The REQUEST that a server's packet answers, None if there is none."""
        known = self.requests.get(p['client_token'])
        good = known and known['facts'][0] == p['client_index']
        if not known and (self.partial or self.hostile):
            return None
        self.hold(rule, good, 'no REQUEST with index %d, token %016x' % (p['client_index'], p['client_token']))
        return known if good else None

    def answer(self, known, kind, datagram, p):
        """The data with an ACCEPT or REJECT, if there is any."""
        if not p:
            return
        facts, pieces = known['answers'].setdefault(kind, ((p['data_len'], p['unit']), {}))
        self.hold('answer-pieces', facts == (p['data_len'], p['unit']), 'data_len and unit were %d, %d' % facts)
        self.hold('answer-pieces', pieces.setdefault(p['offset'], p['piece']) == p['piece'], 'other data than before')
        self.hold('answer-proven', known['proven'] or len(datagram.bytes) <= known['longest'],
                  '%d bytes for a REQUEST of %d' % (len(datagram.bytes), known['longest']))

    def cookie(self, p):
        known = self.answered('cookie-answers', p)
        if known:
            known['cookies'].add(p['cookie'])

    def accept(self, datagram, p, answer):
        known = self.answered('accept-answers', p)
        self.headers.add((p['server_index'], p['client_token'], p['client_index'], p['number']))
        if not known:
            return
        facts = (p['server_index'], p['server_token'], p['max_send_size'], p['window'])
        if not known['accept']:
            known['accept'] = facts
            token = p['server_token']
            self.hold('token-new', token != 0 and token not in self.sides, 'token %016x is not new' % token)
            server, client = Side(token, p['server_index'], known['facts'][1]), self.sides[p['client_token']]
            server.peer, client.peer = client, server
            server.max_send_size = client.max_send_size = p['max_send_size']
            self.sides[token] = server
        self.hold('accept-answers', known['accept'] == facts, 'ACCEPT differs: %s, %s' % (known['accept'], facts))
        self.hold('accept-answers', p['attribute'] == known['facts'][1], 'attribute %d' % p['attribute'])
        self.hold('accept-answers', p['max_send_size'] <= known['facts'][2],
                  'max_send_size %d of %d' % (p['max_send_size'], known['facts'][2]))
        self.answer(known, 'ACCEPT', datagram, answer)

    def reject(self, datagram, p, answer):
        known = self.answered('reject-answers', p)
        if known:
            self.hold('reject-answers', not known['accept'], 'rejected after it was accepted')
            self.answer(known, 'REJECT', datagram, answer)

    def busy(self, p):
        known = self.answered('busy-answers', p)
        if known:
            self.hold('busy-answers', not known['accept'], 'busy after it was accepted')

    def not_here(self, p):
        known = self.answered('not-here-answers', p)
        if known:
            self.hold('not-here-answers', p['name'] in known['names'], 'name %016x was not asked for' % p['name'])

    def receiver(self, rule, p):
        """The side that a packet is for."""
        self.headers.add((p['sender_index'], p['receiver_token'], p['receiver_index'], p['number']))
        side = self.sides.get(p['receiver_token'])
        good = side and side.peer and side.index == p['receiver_index'] and side.peer.index == p['sender_index']
        if not good and self.partial and not side:
            return None
        self.hold(rule, good, 'no connection has indices %d, %d and token %016x' %
                  (p['receiver_index'], p['sender_index'], p['receiver_token']))
        return side if good else None

    def confirm(self, p):
        side = self.receiver('confirm-follows', p)
        if side:
            side.confirmed_at = True

    def confirmed(self, p):
        side = self.receiver('confirmed-follows', p)
        if side:
            self.hold('confirmed-follows', side.peer.confirmed_at or self.partial, 'nobody has sent CONFIRM')

    def close(self, p):
        side = self.receiver('close-follows', p)
        if side:
            side.closed_at = True

    def closed(self, p):
        side = self.receiver('closed-follows', p)
        if side:
            self.hold('closed-follows', side.peer.closed_at or self.partial, 'nobody has sent CLOSE')

    def reset(self, p):
        if not self.hostile and not self.partial:
            self.hold('reset-answers', (p['receiver_index'], p['sender_token'], p['sender_index'], p['number'])
                      in self.headers, 'no packet had index %d, token %016x, index %d, number %d' %
                      (p['receiver_index'], p['sender_token'], p['sender_index'], p['number']))

    # ---- data ----

    def data(self, p, frames):
        side = self.receiver('data-follows', p)
        place = 'R' if side and side.attribute < 2 else 'U'
        if not side:
            return
        number = expand(p['number'], side.next_number)
        self.hold('number-increases', number >= side.next_number, 'number %d after %d' % (number, side.next_number - 1))
        side.numbers.add(number)
        side.next_number = max(side.next_number, number + 1)
        self.frames(side, place, frames)

    def group(self, datagram, p, frames):
        key = (datagram.source, datagram.target, p['sender_index'])
        side = self.groups.get(key)
        if not side:
            side = self.groups[key] = Side(0, 0, 3)
        self.frames(side, 'G', frames)

    def frames(self, side, place, frames):
        run_end = run_next = None
        behind_other, pieces_found = False, 0
        allowed = self.document.frames
        for (_, name), at, f, size in frames:
            entry = allowed[f['type']]
            self.hold('frame-allowed', place in entry['in'], '%s in %s' % (name, place))
            if place not in entry['in']:
                return
            if name in ('FRAGMENT', 'VOID') or (name == 'BULK' and f['length'] != f['total']):
                pieces_found += 1
                self.hold('few-pieces', pieces_found <= 4, '%d pieces' % pieces_found)
            in_run = name in ('MESSAGE', 'SKIP') or (name == 'BULK' and f['length'] == f['total'])
            if in_run:
                if run_end is not None:
                    self.hold('run-adjacent', at == run_end and f['sequence'] == run_next,
                              '%s %d at %d is not next' % (name, f['sequence'], at))
                self.hold('run-adjacent', not behind_other, '%s behind a frame of another layer' % name)
                run_end, run_next = at + size + -size % 8, (f['sequence'] + 1) & 0xffffffff
            behind_other = behind_other or f['type'] >= 16
            handler = getattr(self, 'frame_' + name.lower(), None)
            if handler:
                handler(side, f)

    def content(self, side, f, kind, what):
        sequence = expand(f['sequence'], side.next_sequence)
        side.next_sequence = max(side.next_sequence, sequence + 1)
        known = side.contents.get(sequence)
        if not known:
            known = side.contents[sequence] = Content(kind, what)
        good = (known.kind, known.what) == (kind, what)
        self.hold('one-content', good or known.withdrawn, 'sequence number %d is %s %s and %s %s' %
                  (sequence, known.kind, known.what, kind, what))
        self.hold('one-content', not known.withdrawn or known.withdrawn == 'behind', '%d was withdrawn' % sequence)
        return known if good and not known.withdrawn else None

    def piece(self, side, f, kind, what, offset):
        known = self.content(side, f, kind, what)
        if known:
            self.hold('one-content', known.same(offset, f['data']), '%d has other bytes than before' % f['sequence'])

    def fits(self, side, length):
        if side.max_send_size is not None:
            self.hold('message-fits', length <= side.max_send_size,
                      '%d bytes, more than %d' % (length, side.max_send_size))

    def frame_message(self, side, f):
        self.fits(side, f['length'])
        if side.attribute < 2:
            self.piece(side, f, 'message', (f['length'], f['flags']), 0)

    def frame_fragment(self, side, f):
        self.fits(side, f['total'])
        self.piece(side, f, 'message', (f['total'], f['flags']), f['offset'])

    def frame_bulk(self, side, f):
        self.piece(side, f, 'write', (f['key'], f['region'], f['remote_offset'], f['total']), f['offset'])

    def withdraw(self, side, sequence, how):
        content = side.contents.setdefault(sequence, Content('none', None))
        if not content.withdrawn or how is True:
            content.withdrawn = how
        side.next_sequence = max(side.next_sequence, sequence + 1)

    def frame_skip(self, side, f):
        self.withdraw(side, expand(f['sequence'], side.next_sequence), True)

    def frame_void(self, side, f):
        first = expand(f['sequence'], side.next_sequence)
        for sequence in range(first, first + min(f['count'], 1 << 20)):
            self.withdraw(side, sequence, True)
        if f['flags'] & 1:
            self.withdraw(side, first + f['count'], 'behind')

    def frame_ack(self, side, f):
        sent = side.peer
        if self.partial:
            return
        top = expand(f['largest'], sent.next_number) + 1
        ranges = [(top - f['first'], top)]
        for part in f['ranges']:
            high = ranges[-1][0] - part['gap']
            ranges.append((high - part['length'], high))
        for low, high in ranges:
            lost = [n for n in new_numbers(max(low, high - 100000), high, side.acked) if n not in sent.numbers]
            self.hold('ack-names-sent', low >= 0 and not lost, 'packets %s were not sent' % lost[:5])
        for low, high in side.acked:
            low = max(low, ranges[-1][0])
            self.hold('ack-stays', low >= high or len(ranges) == 15 or any(a <= low and high <= b for a, b in ranges),
                      'packets %d to %d were acknowledged before, and not any more' % (low, high - 1))
        side.acked = ranges

    def frame_nack(self, side, f):
        sent = side.peer
        if not self.partial:
            self.hold('nack-names-sent', expand(f['sequence'], sent.next_sequence) in sent.contents,
                      'sequence number %d was not sent' % f['sequence'])

    def frame_taken(self, side, f):
        sent, end = side.peer, 0
        base = expand(f['base'], sent.next_sequence)
        for part in f['ranges']:
            lost = [n for n in range(base + part['begin'], base + part['behind']) if n not in sent.contents]
            self.hold('taken-names-sent', end < part['begin'] and (not lost or self.partial),
                      'sequence numbers %s were not sent' % lost[:5])
            end = part['behind']
        self.hold('taken-names-sent', side.attribute == 1, 'the attribute is %s' % side.attribute)

    def frame_read(self, side, f):
        known = side.peer.reads.get(f['chunk'])
        facts = (f['segment'], f['length'], f['key'], f['region'], f['offset'])
        missing = f['missing'] | (known[1] if known and known[0] == facts else 0)
        side.peer.reads[f['chunk']] = (facts, missing)

    def frame_atomic(self, side, f):
        facts = tuple(f[name] for name in ('operation', 'width', 'key', 'region', 'offset', 'operand', 'compare'))
        self.hold('atomic-number', side.atomics.setdefault(f['number'], facts) == facts,
                  'number %d asks for something else' % f['number'])
        self.hold('atomic-number', f['number'] < side.open + 16 or self.partial,
                  'number %d, and %d has no answer' % (f['number'], side.open))
        side.peer.reads[f['chunk']] = ((64, 8), 1)
        side.asked[f['chunk']] = f['number']

    def atomic_answered(self, initiator, chunk):
        if chunk in initiator.asked:
            initiator.answered.add(initiator.asked[chunk])
        while initiator.open in initiator.answered:
            initiator.open += 1

    def frame_data(self, side, f):
        self.atomic_answered(side.peer, f['chunk'])
        known = side.reads.get(f['chunk'])
        if not known and self.partial:
            return
        self.hold('read-answered', known, 'nobody asked for chunk %x' % f['chunk'])
        if known:
            (segment, length, *_), missing = known
            self.hold('read-answered', missing >> f['segment'] & 1, 'segment %d was not asked for' % f['segment'])
            self.hold('read-answered', f['length'] == min(segment, length - f['segment'] * segment),
                      'segment %d has %d bytes' % (f['segment'], f['length']))

    def frame_challenge(self, side, f):
        side.challenges.add(f['bits'])

    def frame_response(self, side, f):
        self.hold('response-answers', f['bits'] in side.peer.challenges or self.partial, 'nobody sent %x' % f['bits'])

    def frame_addresses(self, side, f):
        side.told.add(f['number'])

    def frame_heard(self, side, f):
        self.hold('heard-answers', f['number'] in side.peer.told or self.partial, 'nobody told number %d' % f['number'])

    def frame_marks(self, side, f):
        total = f['ect0'] + f['ect1'] + f['ce']
        self.hold('marks-sent', total <= len(side.peer.numbers) or self.partial, '%d packets were counted' % total)

    def frame_denied(self, side, f):
        self.atomic_answered(side.peer, f['chunk'])
        self.hold('denied-answers', f['chunk'] in side.reads or self.partial, 'nobody asked for chunk %x' % f['chunk'])
        self.hold('denied-answers', f['reason'] == 5 or f['chunk'] in side.peer.asked or self.partial,
                  'chunk %x is read' % f['chunk'])

    # ---- one packet ----

    def packet(self, datagram, items):
        (_, name), _, p, _ = items[0]
        token = p.get('first_token', p.get('receiver_token', p.get('client_token')))
        if token and name not in ('COOKIE', 'BUSY', 'NOT_HERE', 'RESET'):
            sealed = name == 'SEALED'
            self.hold('sealed-apart', self.sealed.setdefault(token, sealed) == sealed, 'sealed and not sealed')
        if name == 'SEALED':
            problems, self.problems = self.problems, []
            return problems
        self.hold('group-by-multicast', (name == 'GROUP') == datagram.is_group, name)
        if name in ('REQUEST',):
            self.request(datagram, p)
        elif name in ('ACCEPT', 'REJECT'):
            getattr(self, name.lower())(datagram, p, items[1][2] if len(items) > 1 else None)
        elif name == 'GROUP':
            self.group(datagram, p, items[1:])
        elif name == 'DATA':
            self.data(p, items[1:])
        else:
            getattr(self, name.lower())(p)
        problems, self.problems = self.problems, []
        return problems


RULES = ('request-once', 'cookie-answers', 'cookie-returned', 'accept-answers', 'reject-answers', 'confirm-follows',
         'answer-pieces', 'answer-proven',
         'confirmed-follows', 'close-follows', 'closed-follows', 'busy-answers', 'not-here-answers', 'data-follows', 'reset-answers',
         'token-new', 'number-increases', 'ack-names-sent', 'ack-stays', 'sealed-apart', 'few-pieces', 'response-answers', 'heard-answers',
         'marks-sent',
         'nack-names-sent', 'taken-names-sent', 'one-content', 'run-adjacent', 'message-fits', 'frame-allowed', 'read-answered',
         'denied-answers', 'atomic-number', 'group-by-multicast')


# ---- checking a capture ----------------------------------------------------------------------------------------------

class Result:
    def __init__(self):
        self.packets, self.frames, self.problems, self.decoded = {}, {}, [], []
        self.rules = {}


def check(document, datagrams, options, keep=False, until_wrong=False):
    result, rules = Result(), Rules(document, options.partial, options.hostile)
    for datagram in datagrams:
        if not datagram.bytes:
            continue  # what a client sends to hear from ICMP that nobody receives
        try:
            items = document.decode(datagram.bytes)
        except Wrong as wrong:
            items, problems = None, [str(wrong)]
        else:
            problems = rules.packet(datagram, items)
        result.problems += ['frame %d: %s' % (datagram.index, text) for text in problems]
        for (kind, name), _, _, _ in items or []:
            counts = result.packets if kind == 'packet' else result.frames
            counts[name] = counts.get(name, 0) + 1
        if keep:
            result.decoded.append((datagram.index, list(document.flat(items)) if items else None))
        if until_wrong and result.problems:
            break
    result.rules = rules.used
    return result


def show(counts):
    return ', '.join('%s %d' % item for item in sorted(counts.items(), key=lambda item: -item[1]))


def report(path, result):
    print('%s: %d packets (%s); frames: %s' %
          (path, sum(result.packets.values()), show(result.packets), show(result.frames)))
    for problem in result.problems[:MAX_PRINTED]:
        print('%s: %s' % (path, problem))
    if len(result.problems) > MAX_PRINTED:
        print('%s: and %d more' % (path, len(result.problems) - MAX_PRINTED))


def uncovered(document, results):
    def seen(name, kind):
        return any(getattr(result, kind).get(name) for result in results)
    return (['packet ' + t['name'] for t in document.packets.values() if not seen(t['name'], 'packets')] +
            ['frame ' + t['name'] for t in document.frames.values() if not seen(t['name'], 'frames')] +
            ['rule ' + rule for rule in document.rules if not seen(rule, 'rules')])


# ---- the dissector ---------------------------------------------------------------------------------------------------

def compare_lua(document, path):
    """The dissector's tables are `layout("packet", "ACK", "values", {...})` and rows of strings in the same order."""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    problems, seen = [], set()
    for match in re.finditer(r'^layout\("(\w+)", "(\w+)", \{\n(.*?)^\}(?:, \{\n(.*?)^\})?\)', text, re.M | re.S):
        kind, name = match.group(1), match.group(2)
        rows = re.findall(r'^    \{"(\w+)", (\d+), "([^"]*)", "([^"]*)", "(?:[^"\\]|\\.)*"\},$', match.group(3), re.M)
        conditions = re.findall(r'^    "([^"]*)",$', match.group(4) or '', re.M)
        key = name if kind == 'Part' else (kind, name)
        layout = (document.parts if kind == 'Part' else document.layouts).get(key)
        seen.add((kind, name))
        if not layout:
            problems.append('%s %s is not in the document' % (kind, name))
            continue
        wanted = [(r['field'], r['offset'], r['size'], r['values']) for r in layout.rows]
        if rows != wanted or conditions != layout.conditions:
            problems.append('%s %s differs: %s' % (kind, name, sorted(set(rows) ^ set(wanted))))
    for kind in ('packet', 'frame'):
        types = document.packets if kind == 'packet' else document.frames
        wanted = {(str(n), t['name'], t['row']['size']) for n, t in types.items()}
        found = set(re.findall(r'^kind\("%s", (\d+), "(\w+)", "([^"]*)"' % kind.capitalize(), text, re.M))
        if found != wanted:
            problems.append('%s types differ: %s' % (kind, sorted(found ^ wanted)))
    missing = set(document.layouts) - seen
    if missing:
        problems.append('the dissector lacks %s' % sorted(missing))
    return problems, len(seen)


def compare_pdml(document, result, path):
    """Each field that tshark shows is a field of ours: the same name, place, size and value, in the same order. What is
    malformed here is malformed there, and nothing else is."""
    problems, compared, packets, malformed = [], 0, 0, 0
    decoded = dict(result.decoded)
    whole = {'cci.' + entry['name'].lower() for entry in document.frames.values()}
    for _, packet in xml.etree.ElementTree.iterparse(path):
        if packet.tag != 'packet':
            continue
        protocols = packet.findall('proto')
        number = int([f for f in protocols[0] if f.get('name') == 'num'][0].get('show'))
        if number not in decoded:
            continue
        ours = decoded.pop(number)
        udp = [p for p in protocols if p.get('name') == 'udp']
        cci = [p for p in protocols if p.get('name') == 'cci']
        base = int(udp[0].get('pos')) + int(udp[0].get('size'))
        packets += 1
        theirs, complaints = [], []
        for field in packet.iter('field'):
            name = field.get('name') or ''
            if name == '_ws.malformed' or name.startswith('cci.shown.') or 'Lua Error' in \
                    (field.get('show') or ''):
                complaints.append(field.get('showname') or field.get('show'))
            elif name.startswith('cci.') and name not in whole and field.get('value') is not None:
                theirs.append((name, int(field.get('pos')) - base, int(field.get('size')),
                               bytes.fromhex(field.get('value'))))
        packet.clear()
        if len(cci) != 1 or [text for text in complaints if 'Lua' in text]:
            problems.append('frame %d: tshark did not dissect it: %s' % (number, complaints))
        elif ours is None:
            malformed += 1
            if not complaints:
                problems.append('frame %d is malformed, and tshark did not say so' % number)
        else:
            wanted = [(name, at, size, value.to_bytes(size, 'little') if isinstance(value, int) else bytes(value))
                      for name, at, size, value in ours if size]
            compared += len(wanted)
            if wanted != theirs or complaints:
                differ = [pair for pair in zip(wanted, theirs) if pair[0] != pair[1]][:1]
                problems.append(('frame %d: %s %s' % (number, differ or 'other fields', complaints))[:300])
    if decoded:
        problems.append('%d packets are not in the dissection' % len(decoded))
    print('%s: %d packets, %d of them malformed, %d fields compared, %d packets differ' %
          (path, packets, malformed, compared, len(problems)))
    return problems, compared


# ---- the test of the test --------------------------------------------------------------------------------------------

def damaged(document, datagrams, choose):
    """A copy of the capture in which `choose` has changed the first packet that it can: it gets the packet's items and
    bytes, and returns new bytes, a list of several packets, or None."""
    for at, datagram in enumerate(datagrams):
        items = document.decode(datagram.bytes)
        changed = choose(items, bytearray(datagram.bytes))
        if changed is not None:
            changed = changed if isinstance(changed, list) else [changed]
            new = [datagram.with_bytes(b) for b in changed]
            return datagrams[:at] + new + datagrams[at + 1:]
    return None


def set_field(document, kind, name, field, value, where=None):
    """Damage: writes a value, or what a function makes of the old one, into a field."""
    layout = document.layouts[(kind, name)]
    target = [f for f in layout.fields if f.name == field][0]

    def choose(items, b):
        for (k, n), at, fields, _ in items:
            if (k, n) == (kind.lower(), name) and (where is None or where(fields)):
                if target.is_number:
                    new = value(fields[field]) if callable(value) else value
                    b[at + target.offset:at + target.offset + target.fixed] = \
                        (new % (1 << 8 * target.fixed)).to_bytes(target.fixed, 'little')
                elif not len(fields[field]):
                    continue
                else:
                    b[at + target.offset] ^= 0x5a
                return b
        return None
    return choose


def damages(document):
    """(what is done, the function that does it): each must be found."""
    def more(old):
        return old + 1
    result = []
    for number, entry in document.packets.items():
        result.append(('version of ' + entry['name'], set_field(document, 'Packet', entry['name'], 'version', 0xC2)))
        result.append(('type of ' + entry['name'], set_field(document, 'Packet', entry['name'], 'type', 200)))
        for f in entry['layout'].fields:
            for new in {'0': (1,), '0..1': (1, 2, 128), '0..1, 4..5': (2, 8, 128)}.get(f.values, ()):
                result.append(('%s.%s %d' % (entry['name'], f.name, new),
                               set_field(document, 'Packet', entry['name'], f.name, new)))
            if f.name.endswith('_token') or f.name.endswith('_index'):
                if entry['name'] not in ('REQUEST', 'GROUP'):
                    result.append(('%s.%s' % (entry['name'], f.name),
                                   set_field(document, 'Packet', entry['name'], f.name, lambda old: old ^ 0x10000)))
        result.append(('%s cut short' % entry['name'],
                       lambda items, b, name=entry['name']: b[:items[0][3] - 1] if items[0][0][1] == name else None))
        if entry['then'] != 'frames':
            result.append(('%s with a byte more' % entry['name'],
                           lambda items, b, name=entry['name']: b + b'\0' if items[0][0][1] == name else None))
    for number, entry in document.frames.items():
        name = entry['name']
        result.append(('type of frame ' + name, set_field(document, 'Frame', name, 'type', 99)))
        result.append(('type of frame %s, small' % name, set_field(document, 'Frame', name, 'type', 15)))
        for f in entry['layout'].fields:
            if f.values == '0' and f.name not in ('type',):
                result.append(('%s.%s' % (name, f.name), set_field(document, 'Frame', name, f.name, 1)))
        if entry['layout'].fields[-1].name == 'data':
            result.append(('a frame %s longer than its packet' % name,
                           set_field(document, 'Frame', name, 'length', lambda old: old + 4000)))
    frame = set_field
    result += [
        ('a packet sent twice', lambda items, b: [b, b] if items[0][0][1] == 'DATA' else None),
        ('ACK of what was not sent', frame(document, 'Frame', 'ACK', 'largest', lambda old: old + 100000)),
        ('ACK without packets', frame(document, 'Frame', 'ACK', 'first', 0)),
        ('ACK below 0', frame(document, 'Frame', 'ACK', 'first', 0x7fffffff)),
        ('ACK with 15 more ranges', frame(document, 'Frame', 'ACK', 'more', 15)),
        ('NACK of what was not sent', frame(document, 'Frame', 'NACK', 'sequence', lambda old: old + 100000)),
        ('NACK with a strange reason', frame(document, 'Frame', 'NACK', 'reason', 4)),
        ('cookie of nobody', frame(document, 'Packet', 'REQUEST', 'cookie', 77)),
        ('COOKIE 0', frame(document, 'Packet', 'COOKIE', 'cookie', 0)),
        ('attribute 3', frame(document, 'Packet', 'REQUEST', 'attribute', 3)),
        ('data_len 1025', frame(document, 'Packet', 'REQUEST', 'data_len', 1025)),
        ('ACCEPT of another attribute', frame(document, 'Packet', 'ACCEPT', 'attribute', lambda old: (old + 1) % 3)),
        ('answer longer than its packet', frame(document, 'Packet', 'ANSWER', 'length', lambda old: old + 4000)),
        ('answer without data', frame(document, 'Packet', 'ANSWER', 'data_len', 0)),
        ('ACCEPT of longer messages', frame(document, 'Packet', 'ACCEPT', 'max_send_size', 65535)),
        ('message flags', frame(document, 'Frame', 'MESSAGE', 'flags', 2)),
        ('fragment behind its message', frame(document, 'Frame', 'FRAGMENT', 'offset', 65535)),
        ('fragment of another message', frame(document, 'Frame', 'FRAGMENT', 'total', more, lambda f: f['offset'] > 0)),
        ('empty fragment', frame(document, 'Frame', 'FRAGMENT', 'length', 0)),
        ('piece behind its write', frame(document, 'Frame', 'BULK', 'offset', lambda old: old + (1 << 40))),
        ('piece of another write', frame(document, 'Frame', 'BULK', 'key', more, lambda f: f['offset'] > 0)),
        ('VOID of nothing', frame(document, 'Frame', 'VOID', 'count', 0)),
        ('READ of nothing', frame(document, 'Frame', 'READ', 'missing', 0)),
        ('READ of what is not there', frame(document, 'Frame', 'READ', 'missing', ones(64),
                                            lambda f: f['missing'] < 16)),
        ('READ of tiny segments', frame(document, 'Frame', 'READ', 'segment', 8)),
        ('READ of a long chunk', frame(document, 'Frame', 'READ', 'length', lambda old: old + (1 << 24))),
        ('DATA of an unknown chunk', frame(document, 'Frame', 'DATA', 'chunk', lambda old: old ^ 0x55550000)),
        ('DATA of segment 64', frame(document, 'Frame', 'DATA', 'segment', 64)),
        ('DATA of another segment', frame(document, 'Frame', 'DATA', 'segment', lambda old: old ^ 63)),
        ('ATOMIC far ahead', frame(document, 'Frame', 'ATOMIC', 'number', lambda old: old + 100)),
        ('MARKS of what was not sent', frame(document, 'Frame', 'MARKS', 'ect0', lambda old: old + 100000)),
        ('DENIED for nobody', frame(document, 'Frame', 'DENIED', 'chunk', lambda old: old ^ 0x55550000)),
        ('a message with other bytes', other_bytes(document)),
        ('padding that is not 0', dirty_padding(document)),
        ('a frame that is not aligned', lambda items, b: b[:24] + b'\x08' + bytes(3) + b[24:]
         if items[0][0][1] == 'DATA' and len(items) > 1 and items[1][0][1] != 'PAD' else None),
        ('a run that is not in order', frame(document, 'Frame', 'MESSAGE', 'sequence', lambda old: old + 5)),
    ]
    return result


def write_damaged(document, path, target):
    """One packet for each damage, with those that are good enough to be decoded all the same, to port 49152."""
    datagrams, count = list(read_capture(path)), 0
    with open(target, 'wb') as file:
        file.write(struct.pack('<IHHiIII', 0xa1b2c3d4, 2, 4, 0, 0, 65535, 101))
        for _, how in damages(document):
            changed = damaged(document, datagrams, how)
            for new in [d for d, old in zip(changed, datagrams) if d is not old][:1] if changed else []:
                udp = struct.pack('>HHHH', 49153, 49152, len(new.bytes) + 8, 0) + new.bytes
                ip = struct.pack('>BBHHHBBHII', 0x45, 0, len(udp) + 20, 0, 0, 64, 17, 0, 0x7f000001, 0x7f000001) + udp
                file.write(struct.pack('<IIII', count, 0, len(ip), len(ip)) + ip)
                count += 1
    print('%s: %d packets' % (target, count))
    return 0


def other_bytes(document):
    """Sends a message once more, in a packet with the next number, with one bit changed."""
    def choose(items, b):
        if items[0][0][1] != 'DATA' or len(items) != 2 or items[1][0][1] != 'MESSAGE' or items[1][2]['length'] == 0:
            return None
        number = [f for f in document.layouts[('Packet', 'DATA')].fields if f.name == 'number'][0]
        at, fields = items[1][1], items[1][2]
        data = [f for f in document.layouts[('Frame', 'MESSAGE')].fields if f.name == 'data'][0]
        again = bytearray(b)
        again[number.offset:number.offset + 4] = ((items[0][2]['number'] + 1) % (1 << 32)).to_bytes(4, 'little')
        again[at + data.offset + fields['length'] - 1] ^= 1
        return [b, again]
    return choose


def dirty_padding(document):
    def choose(items, b):
        for (kind, _), at, _, size in items[1:]:
            if (at + size) % 8 and at + size < len(b):
                b[at + size] = 1
                return b
        return None
    return choose


def documents_changed(text):
    """(what was changed, the document so): each must be found, by itself or with a capture."""
    lines = text.split('\n')
    heading, rows = '', []
    for i, line in enumerate(lines):
        if line.startswith('#'):
            heading = line.lstrip('#').strip()
        cells = [c.strip() for c in line.strip().strip('|').split('|')]
        if re.match(r'(Packet|Frame|Part) [A-Z_]+$', heading) and line.startswith('|') and len(cells) == 6 and \
                cells[1].isdigit():
            rows.append((i, heading, cells))

    def with_row(i, cells):
        return '\n'.join(lines[:i] + ['| ' + ' | '.join(cells) + ' |'] + lines[i + 1:])
    for i, where, cells in rows:
        if where == 'Part HANDLE':
            continue
        yield '%s.%s at another offset' % (where, cells[0]), \
            with_row(i, cells[:1] + [str(int(cells[1]) + 1)] + cells[2:])
        if cells[2].isdigit():
            yield '%s.%s of another size' % (where, cells[0]), \
                with_row(i, cells[:2] + [str(int(cells[2]) + 1)] + cells[3:])
        if re.match(r'(0x[0-9A-F]+|\d+)$', cells[3]):
            yield '%s.%s with another value' % (where, cells[0]), \
                with_row(i, cells[:3] + [str(int(cells[3], 0) + 1)] + cells[4:])
    # Fields of one size change places: offsets still add up, only a capture can tell.
    for where, first, second in (('Frame ACK', 'largest', 'first'), ('Frame READ', 'region', 'segment'),
                                 ('Frame READ', 'length', 'reserved_36'), ('Frame BULK', 'offset', 'total'),
                                 ('Frame FRAGMENT', 'offset', 'total'), ('Frame DATA', 'segment', 'reserved_12'),
                                 ('Frame DATA', 'chunk', 'segment'), ('Packet DATA', 'receiver_index', 'number'),
                                 ('Packet ACCEPT', 'server_index', 'max_send_size'),
                                 ('Packet REQUEST', 'cookie', 'client_token'),
                                 ('Packet RESET', 'receiver_index', 'sender_index'),
                                 ('Part ACK_RANGE', 'gap', 'length'), ('Part TAKEN_RANGE', 'begin', 'behind')):
        at = {cells[0]: (i, cells) for i, h, cells in rows if h == where}
        (i, a), (j, b) = at[first], at[second]
        changed = lines[:]
        changed[i] = '| ' + ' | '.join(b[:1] + a[1:3] + b[3:]) + ' |'
        changed[j] = '| ' + ' | '.join(a[:1] + b[1:3] + a[3:]) + ' |'
        yield '%s: %s and %s change places' % (where, first, second), '\n'.join(changed)
    for old, new in (('| 6 | ACK | 16+4*more |', '| 6 | ACK | 16+8*more |'),
                     ('| 3 | BULK | 48+length |', '| 3 | BULK | 40+length |'),
                     ('| 8 | PING | 8 |', '| 10 | PING | 8 |'), ('8+4*count', '8+8*count'),
                     ('| 7 | DATA | 24 | frames |', '| 7 | DATA | 24 | nothing |'),
                     ('| 16 | READ | 48 | no | R |', '| 16 | READ | 48 | no | U |'),
                     ('| run-adjacent |', '| run-somewhere |'), ('more of ACK_RANGE', 'first of ACK_RANGE'),
                     ('count of TAKEN_RANGE', 'reserved_2 of TAKEN_RANGE'),
                     ('end == 16 + length', 'end == 8 + length')):
        if old not in text:
            raise Wrong('the self-test does not find: ' + old)
        yield '%s becomes %s' % (old, new), text.replace(old, new)


def self_test(text, path, options):
    """Status 0 if every damage is found, and nothing in what is undamaged."""
    document = Document(text)
    datagrams = list(read_capture(path))
    first = check(document, datagrams, options)
    report(path, first)
    missed, found, absent = [], 0, []
    if first.problems:
        missed.append('what is not damaged')
    for what, how in damages(document):
        changed = damaged(document, datagrams, how)
        if changed is None:
            absent.append(what)
        elif check(document, changed, options, until_wrong=True).problems:
            found += 1
        else:
            missed.append(what)
    rng = random.Random(1)
    for number in range(100):  # bits of headers, anywhere: nearly all of them matter, but not a window or a number
        at = rng.randrange(len(datagrams))
        b = bytearray(datagrams[at].bytes)
        b[rng.choice([0, 3, 4, 5, 8, 9, 10, 15])] ^= 1 << rng.randrange(8)
        if b == datagrams[at].bytes or datagrams[at].bytes[1] in (1, 9):
            continue
        changed = datagrams[:at] + [datagrams[at].with_bytes(b)] + datagrams[at + 1:]
        if check(document, changed, options, until_wrong=True).problems:
            found += 1
        else:
            missed.append('a bit of the header of frame %d' % datagrams[at].index)
    if crc32c(b'123456789') != 0xE3069283:
        missed.append('a wrong checksum')
    print('damaged captures: %d found' % found)
    found = 0
    for what, changed in documents_changed(text):
        try:
            wrong = check(Document(changed), datagrams, options, until_wrong=True).problems
        except Wrong as problem:
            wrong = [problem]
        layout = re.match(r'(Packet|Frame) ([A-Z]+)\.', what)
        if wrong:
            found += 1
        elif layout and layout.group(2) not in (first.packets if layout.group(1) == 'Packet' else first.frames):
            absent.append('the document: ' + what)
        else:
            missed.append('the document: ' + what)
    print('changed documents: %d found' % found)
    for what in missed:
        print('NOT FOUND: %s' % what)
    for what in absent:
        print('the capture has nothing to damage so: %s' % what)
    return 1 if missed else 0


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description='Holds captured packets to the tables of wire.md.')
    parser.add_argument('captures', nargs='*', metavar='CAPTURE')
    parser.add_argument('--spec', default=os.path.join(here, 'wire.md'))
    for flag in ('--cover', '--partial', '--hostile', '--dump', '--self-test', '--damaged'):
        parser.add_argument(flag, action='store_true')
    parser.add_argument('--pdml')
    parser.add_argument('--lua')
    parser.add_argument('--damage')
    options = parser.parse_args()
    with open(options.spec, encoding='utf-8') as file:
        text = file.read()
    try:
        document = Document(text)
        if options.self_test:
            return self_test(text, options.captures[0], options)
        if options.damage:
            return write_damaged(document, options.captures[0], options.damage)
        bad, results = 0, []
        if options.lua:
            problems, count = compare_lua(document, options.lua)
            print('%s: %d layouts compared, %d differ' % (options.lua, count, len(problems)))
            for problem in problems:
                print('%s: %s' % (options.lua, problem))
            bad |= bool(problems) or not count
        for path in options.captures:
            result = check(document, read_capture(path), options, options.dump or options.pdml)
            report(path, result)
            bad |= bool(result.problems) or not result.packets
            results.append(result)
            for number, fields in result.decoded if options.dump else []:
                for name, at, size, value in fields:
                    print(number, name, at, size, value if isinstance(value, int) else value.hex())
            if options.pdml:
                problems, compared = compare_pdml(document, result, options.pdml)
                for problem in problems[:MAX_PRINTED]:
                    print(problem)
                bad = bool(problems) or not compared if options.damaged else bad or bool(problems) or not compared
            result.decoded = None
        if options.cover:
            missing = uncovered(document, results)
            print('all packets, frames and rules occur' if not missing else 'these do not occur: ' + ', '.join(missing))
            bad |= bool(missing)
        return 1 if bad else 0
    except Wrong as wrong:
        print('%s: %s' % (options.spec, wrong))
        return 1


if __name__ == '__main__':
    sys.exit(main())
