# SPDX-License-Identifier: MIT OR Unlicense
"""bindings.py CC DIRECTORY - tests of examples/cci.py: its tables beside cci.h, and each of its calls at work. The last
line is the sum. CC compiles a program, made in DIRECTORY of cci.py's own tables, that prints what the header says."""
import array
import os
import re
import signal
import subprocess
import sys
import threading

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "examples"))
sys.dont_write_bytecode = True
import cci  # noqa: E402

counts = {"passed": 0, "failed": 0}


def check(text, holds, details=""):
    counts["passed" if holds else "failed"] += 1
    if not holds:
        print("FAIL: %s %s" % (text, details))


def same(text, mirror, header):
    check(text, mirror == header, "cci.py: %s, cci.h: %s" % (mirror, header))


# ---- the tables -----------------------------------------------------------------------------------------------------

def public_header():
    """The section >>api, without comments, and the lines that come before it."""
    with open(os.path.join(TOP, "cci.h"), encoding="utf-8") as file:
        text = file.read().split("\n * >>transport\n")[0]
    return re.sub(r"/\*.*?\*/", "", text.split("\n * >>api\n")[1] + "*/", flags=re.S)


def mirrored():
    """Expressions in C, and the values that they have in cci.py."""
    values = {"CCI_ABI_VERSION": cci.ABI_VERSION, "CCI_CONN_REQ_LEN": cci.CONN_REQ_LEN}
    for prefix, names in cci.ENUMERATIONS.items():
        for name, member in names.__members__.items():
            values[prefix + name] = int(member)
    for name, structure in cci.STRUCTURES.items():
        values["sizeof(%s)" % name] = cci.ctypes.sizeof(structure)
        for field, _kind in structure._fields_:
            values["offsetof(%s, %s)" % (name, field)] = getattr(structure, field).offset
            values["sizeof(((%s *)0)->%s)" % (name, field)] = getattr(structure, field).size
    return values


def compiled(expressions, compiler, directory):
    """What the header says these are; None for what it does not have."""
    source, program = os.path.join(directory, "mirror.c"), os.path.join(directory, "mirror")
    with open(source, "w", encoding="utf-8") as file:
        file.write('#include "cci.h"\n#include <stdio.h>\nint main(void) {\n')
        for expression in expressions:
            file.write('    printf("%%lld\\n", (long long)(%s));\n' % expression)
        file.write("    return 0;\n}\n")
    subprocess.run([compiler, "-std=gnu11", "-I", TOP, "-o", program, source], check=True)
    return [int(line) for line in subprocess.run([program], check=True, stdout=subprocess.PIPE).stdout.split()]


def kind_of(parameter):
    """The kind of a C parameter or result, as ctypes would pass it."""
    if "*" in parameter:
        return "pointer"
    for word in ("uint64_t", "uint32_t"):
        if re.search(r"\b%s\b" % word, parameter):
            return word
    return "int"


def kind_of_mirror(kind):
    numbers = {cci.c_int: "int", cci.c_uint32: "uint32_t", cci.c_uint64: "uint64_t"}
    return numbers.get(kind, "pointer")


def compare_functions(header):
    found = re.findall(r"^CCI_API ([^;(]*?)\b(cci_\w+)\(([^;]*)\);", header, flags=re.M)
    declared = {name for _result, name, _parameters in found} - cci.NOT_MIRRORED
    same("functions", sorted(cci.FUNCTIONS), sorted(declared))
    for result, name, parameters in found:
        if name in cci.FUNCTIONS:
            kinds = [] if parameters == "void" else [kind_of(each) for each in parameters.split(",")]
            same(name, [kind_of_mirror(each) for each in cci.FUNCTIONS[name]], [kind_of(result)] + kinds)


def compare_names(header, values):
    """Whatever the header enumerates or defines with a prefix of cci.py's is in cci.py, too."""
    names = set(re.findall(r"^ *X\((CCI_\w+),", header, flags=re.M))
    for body in re.findall(r"^typedef enum \w+ \{(.*?)\} \w+;", header, flags=re.M | re.S):
        names.update(re.findall(r"\b(CCI_[A-Z_0-9]+)\b *(?:=|,|\n|$)", body))
    names.update(re.findall(r"^#define (CCI_\w+) \(?[0-9]", header, flags=re.M))
    names -= {"CCI_STATUS_NONE_", "CCI_STATUS_ENUM", *cci.NOT_MIRRORED}
    check("too few names were found", len(names) > 50, str(names))
    same("names", sorted(names - set(values)), [])


def compare_structures(header):
    """Each member of a mirrored structure: those that a size does not show, too."""
    found = r"^typedef (?:CCI_CONST )?(?:struct|union) \w+ \{(.*?)\} (cci_\w+_t);"
    for body, name in re.findall(found, header, flags=re.M | re.S):
        if name in cci.STRUCTURES:
            flat = re.sub(r"struct \{[^}]*\} *(\w+);", r"int \1;", body)
            flat = re.sub(r"\(\*(\w+)\)\([^)]*\)", r"\1", flat)
            members = re.findall(r"(\w+)(?:\[\w+\])?\s*[,;]", flat)
            same(name, [field for field, _kind in cci.STRUCTURES[name]._fields_], members)


def compare_tables(compiler, directory):
    header, values = public_header(), mirrored()
    for (expression, value), said in zip(values.items(), compiled(values, compiler, directory)):
        same(expression, value, said)
    compare_functions(header)
    compare_names(header, values)
    compare_structures(header)
    for status in cci.Status:
        check("text and hint of %s" % status.name, cci.strerror(status) and cci.hint(status))
    for kind in cci.EventType:
        same("name", "CCI_EVENT_" + kind.name, cci.event_type_str(kind))
    check("texts of what is none", (cci.strerror(9999), cci.hint(9999)) == ("status 9999", ""))
    check("no name of what is none", cci.event_type_str(9999) is None)


# ---- the calls ------------------------------------------------------------------------------------------------------

def refused(status, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except cci.Error as error:
        check("status of a refused call", error.status == status, repr(error))
        check("the exception's text", cci.hint(status) in str(error), str(error))
    else:
        check("%s was not refused" % call, False)


class Pair:
    """Two endpoints. until() lets both work and gives the first event of that type; others are kept for later."""

    def __init__(self, server, client):
        self.both, self.server, self.client, self.kept = (server, client), server, client, []

    def until(self, endpoint, kind):
        while True:
            for event in self.kept:
                if event.endpoint is endpoint and event.type == kind:
                    self.kept.remove(event)
                    return event
            for each in self.both:
                event = each.wait(0.01)
                if event is not None:
                    self.kept.append(event)

    def connect(self, **how):
        self.client.connect(self.server.uri, timeout=60, **how)
        return self.until(self.server, cci.EventType.CONNECT_REQUEST)


def call_connections(pair):
    thing = ["any", "object"]
    request = pair.connect(data=b"who \0 am I", attribute=cci.ConnAttr.RU, context=thing)
    check("the request", (request.data, request.attribute) == (b"who \0 am I", cci.ConnAttr.RU), repr(request))
    check("who asks", request.peer_uri is None or request.peer_uri == pair.client.uri, request.peer_uri)
    request.reject(b"not \0 you")
    refused(cci.Status.EINVAL, request.accept)
    event = pair.until(pair.client, cci.EventType.CONNECT)
    check("rejected", event.status == cci.Status.ECONNREFUSED and event.context is thing, repr(event))
    check("no connection, but a reason", event.connection is None and event.data == b"not \0 you", event.data)
    refused(cci.Status.ECONNREFUSED, event.check)
    request = pair.connect(context=thing)
    refused(cci.Status.EINVAL, request.accept, data=bytes(cci.CONN_REQ_LEN + 1))
    request.accept(context="accepted", data=bytes(cci.CONN_REQ_LEN))
    outcomes = [pair.until(pair.client, cci.EventType.CONNECT), pair.until(pair.server, cci.EventType.ACCEPT)]
    check("data of the answer", outcomes[0].data == bytes(cci.CONN_REQ_LEN) and outcomes[1].data is None)
    check("contexts", [each.check().context for each in outcomes] == [thing, "accepted"])
    check("contexts stay", [each.connection.context for each in outcomes] == [thing, "accepted"])
    check("nothing is kept", not pair.client._contexts and not pair.server._contexts)
    return [each.connection for each in outcomes]


def call_messages(pair, to_server):
    for number in range(100):
        to_server.send(b"number %d" % number, context=number)
    got = [pair.until(pair.server, cci.EventType.RECV) for _ in range(100)]
    check("messages", [each.data for each in got] == [b"number %d" % number for number in range(100)])
    sent = [pair.until(pair.client, cci.EventType.SEND).check() for _ in range(100)]
    check("completions", [each.context for each in sent] == list(range(100)) and sent[0].connection is to_server)
    to_server.send([b"one ", bytearray(b"two"), b"", memoryview(b" three")], flags=cci.Flag.NO_COPY)
    to_server.send(b"", flags=cci.Flag.SILENT)
    check("pieces", pair.until(pair.server, cci.EventType.RECV).data == b"one two three")
    check("an empty message", pair.until(pair.server, cci.EventType.RECV).data == b"")
    pair.until(pair.client, cci.EventType.SEND)
    refused(cci.Status.EMSGSIZE, to_server.send, bytes(to_server.max_send_size + 1))
    refused(cci.Status.EINVAL, to_server.send, b"", flags=cci.Flag.SILENT | cci.Flag.NO_COPY)
    refused(cci.Status.EINVAL, to_server.send, b"", flags=1 << 30)
    # While one thread blocks in the library, others run.
    helper = threading.Thread(target=to_server.send, args=(b"blocking",), kwargs={"flags": cci.Flag.BLOCKING})
    helper.start()
    check("a blocking send", pair.until(pair.server, cci.EventType.RECV).data == b"blocking")
    while helper.is_alive():
        pair.server.wait(0.01)
    check("nothing is kept of messages", not pair.client._contexts)


def call_memory(pair, to_server):
    there, here = bytearray(5000), array.array("B", range(250)) * 20
    remote = pair.server.register(there, cci.Flag.READ | cci.Flag.WRITE)
    local = pair.client.register(here)
    to_server.rma(local, 0, remote.handle, 0, 5000, cci.Flag.WRITE, message=b"written", context="w")
    check("the completion message", pair.until(pair.server, cci.EventType.RECV).data == b"written")
    check("a write", pair.until(pair.client, cci.EventType.SEND).check().context == "w" and there == here.tobytes())
    here[:] = array.array("B", 5000 * [0])
    to_server.rma(local, 10, remote.handle, 20, 1000, cci.Flag.READ)
    pair.until(pair.client, cci.EventType.SEND).check()
    check("a read", here.tobytes()[10:1010] == there[20:1020] and not any(here[1010:]))
    to_server.rmav([(local, 10, 700), (local, 2000, 300)], [(remote.handle, 20, 100), (remote.handle, 4000, 0),
                                                            (remote.handle, 150, 900)], cci.Flag.WRITE, message=b"list")
    check("the message of a list", pair.until(pair.server, cci.EventType.RECV).data == b"list")
    pair.until(pair.client, cci.EventType.SEND).check()
    moved = here.tobytes()[10:710] + here.tobytes()[2000:2300]
    check("a list", there[20:120] == moved[:100] and there[150:1050] == moved[100:])
    refused(cci.Status.EINVAL, to_server.rmav, [(local, 0, 8)], [(remote.handle, 0, 9)], cci.Flag.READ)
    there[64:72] = (41).to_bytes(8, sys.byteorder)
    previous = to_server.atomic(cci.AtomicOp.FETCH_ADD, remote.handle, 64, 1, context="a")
    check("an atomic", pair.until(pair.client, cci.EventType.SEND).check().context == "a" and previous.value == 41 and
          int.from_bytes(there[64:72], sys.byteorder) == 42)
    refused(cci.Status.ERR_RMA_HANDLE, to_server.rma, local, 4000, remote.handle, 0, 1001, cci.Flag.WRITE)
    remote.deregister()
    remote.deregister()
    there.extend(b"free to grow again")
    to_server.rma(local, 0, remote.handle, 0, 8, cci.Flag.WRITE)
    check("memory that is not registered any more",
          pair.until(pair.client, cci.EventType.SEND).status == cci.Status.ERR_RMA_HANDLE)
    shared = pair.server.alloc(4096, cci.Flag.WRITE)
    to_server.rma(local, 10, shared.handle, 96, 1000, cci.Flag.WRITE)
    pair.until(pair.client, cci.EventType.SEND).check()
    check("memory of the library", bytes(shared.buffer[96:1096]) == here.tobytes()[10:1010])
    shared.deregister()
    local.deregister()


def call_options(pair, to_server):
    for name in cci.Opt:
        handle = to_server if name.name.startswith("CONN") else pair.client
        try:
            value = handle.get_opt(name)
        except cci.Error as error:  # not every transport has all that is beyond CCI 0.3.0
            check(name.name, error.status in (cci.Status.ERR_NOT_IMPLEMENTED, cci.Status.EINVAL), str(error))
            continue
        if isinstance(value, str):
            check("a URI", value.startswith(pair.client.device.transport + "://"), value)
        elif isinstance(value, cci.Structure):
            check("a structure", isinstance(getattr(value, value._fields_[0][0]), int))
        elif name in (cci.Opt.ENDPT_SEND_FD, cci.Opt.ENDPT_MAX_SEND_SIZE):  # for reading; for before the first connection
            refused(cci.Status.EINVAL, handle.set_opt, name, value)
        else:
            handle.set_opt(name, value)
            same(name.name, handle.get_opt(name), value)
    same("the peer", to_server.get_opt(cci.Opt.CONN_PEER_URI), pair.server.uri)
    check("alignments", pair.client.get_opt(cci.Opt.ENDPT_RMA_ALIGN).rma_write_length == 0)
    pair.client.set_opt(cci.Opt.ENDPT_SEND_TIMEOUT, 12345678)
    same("an option", pair.client.get_opt(cci.Opt.ENDPT_SEND_TIMEOUT), 12345678)
    refused(cci.Status.EINVAL, pair.client.set_opt, cci.Opt.ENDPT_URI, 1)
    refused(cci.Status.EINVAL, pair.client.get_opt, 999)
    refused(cci.Status.EINVAL, pair.client.connect, pair.server.uri, timeout=-0.5)
    try:
        pair.client.connect(pair.server.uri + "\0/")
        check("a NUL in a URI", False, "it was cut off there")
    except ValueError:
        pass


def call_status(pair, to_server):
    pair.client.set_opt(cci.Opt.ENDPT_EVENT_MASK, 1 << cci.EventType.STATUS)
    to_server.send(b"nobody listens")
    seen = {}
    while cci.What.PATH_SUSPENDED not in seen:  # the server makes no calls meanwhile
        event = pair.client.get_event()
        if event is not None and event.type == cci.EventType.STATUS:
            seen[event.what] = event
    event = seen[cci.What.PATH_SUSPENDED]
    check("a path is suspended", event.connection is to_server and event.value == 0 and event.status is None)
    pair.until(pair.server, cci.EventType.RECV)
    while cci.What.PATH_RESUMED not in seen:
        event = pair.until(pair.client, cci.EventType.STATUS)
        seen[event.what] = event
    pair.until(pair.client, cci.EventType.SEND).check()
    pair.client.set_opt(cci.Opt.ENDPT_EVENT_MASK, 0)


def call_ends(pair, to_server, to_client):
    pair.server.set_opt(cci.Opt.ENDPT_EVENT_MASK, 1 << cci.EventType.DISCONNECT)
    to_server.disconnect()
    to_server.disconnect()
    refused(cci.Status.EINVAL, to_server.send, b"too late")
    event = pair.until(pair.server, cci.EventType.DISCONNECT)
    check("who has left", event.connection is to_client and event.context == "accepted")
    check("the end", event.status == cci.Status.SUCCESS, repr(event))
    to_client.disconnect()
    check("nothing is left", not pair.server._connections and not pair.client._connections)
    check("no event is left", pair.kept == [], pair.kept)
    pair.connect().accept()
    last = pair.until(pair.client, cci.EventType.CONNECT).check().connection
    with pair.server, pair.client:
        check("descriptors", all(each.fileno() >= 0 for each in pair.both))
    client = pair.client
    for call, arguments in ((last.send, (b"",)), (last.get_opt, (6,)), (client.get_event, ()), (client.alloc, (8,)),
                            (client.connect, ("udp://127.0.0.1:1",)), (client.register, (bytearray(8),))):
        refused(cci.Status.EINVAL, call, *arguments)


def make_calls(config, service):
    lines = []
    cci.setup(config=config, log=lambda level, text: lines.append((level, text)))
    check("threads", cci.init() == cci.Caps.THREAD_SAFETY)
    devices = cci.get_devices()
    transport = devices[0].transport
    check("the device", [(each.name, each.up) for each in devices] == [("here", True)], [each.name for each in devices])
    check("its members", devices[0].max_send_size > 1000 and devices[0].info and devices[0].rate >= 0)
    check("it is on no bus", devices[0].pci is None)
    check("its keys", all("=" in each for each in devices[0].conf_argv), devices[0].conf_argv)
    check("transports", (transport, "") in cci.transports() and len(cci.transports()) == 3, cci.transports())
    check("the device of a URI", cci.device_for(transport + "://x").name == "here" and cci.device_for("no://x") is None)
    pair = Pair(cci.Endpoint(devices[0], service), cci.Endpoint())
    check("the service", service is None or pair.server.uri.endswith(service), pair.server.uri)
    refused(cci.Status.EINVAL, pair.client.connect, "nonsense")
    check("the log has a reason", any("nonsense" in text for _level, text in lines), lines)
    pair.client.arm_os_handle()
    pair.client.arm_os_handle(cci.Arm.WAKE | cci.Arm.OTHER)
    refused(cci.Status.EINVAL, pair.client.arm_os_handle, 16)
    pair.client.arm_os_handle(0)
    check("the second descriptor", pair.client.get_opt(cci.Opt.ENDPT_SEND_FD) != pair.client.fileno())
    check("a deadline", pair.client.next_deadline() is None or pair.client.next_deadline() >= 0)
    check("no event, at once", pair.client.get_event() is None and pair.client.wait(0) is None)
    connections = call_connections(pair)
    call_messages(pair, connections[0])
    call_memory(pair, connections[0])
    call_options(pair, connections[0])
    if service is None:  # in the memory of one host no path is suspended
        call_status(pair, connections[0])
    call_ends(pair, *connections)
    forgotten = cci.Endpoint()
    cci.finalize()
    refused(cci.Status.EINVAL, forgotten.get_event)
    refused(cci.Status.ERROR, cci.finalize)


def main():
    signal.alarm(600)  # an event that does not come is a failure, not a test that hangs
    compare_tables(sys.argv[1], sys.argv[2])
    make_calls("[here]\ntransport = udp\ninterface = lo\n", None)
    make_calls("[here]\ntransport = sisci\n", "77")
    print("%(passed)d passed, %(failed)d failed" % counts)
    return counts["failed"] > 0


sys.exit(main())
