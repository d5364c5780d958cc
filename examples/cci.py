# SPDX-License-Identifier: MIT OR Unlicense
"""cci.py - CCI for Python: the API of cci.h over ctypes and the shared library of `make lib`.

    import cci

    cci.init()
    with cci.Endpoint() as endpoint:
        print(endpoint.uri)                              # give it to the client
        while True:
            event = endpoint.wait()                      # sleeps; endpoint.get_event() does not
            if event.type == cci.EventType.CONNECT_REQUEST:
                event.accept()
            elif event.type == cci.EventType.RECV:
                event.connection.send(b"you said " + event.data, flags=cci.Flag.SILENT)

The library is $CCI_LIBRARY if that is set, then build/libcci.so beside this directory, then the one that is installed.
Names are those of cci.h without CCI_, and cci.h documents them. What differs:
- A status other than SUCCESS is an exception, Error, with the advice of cci_status_hint(). No event is None.
- Events are copies, already returned to the library. A request alone stays there: the program accepts or rejects it.
- A context is any object; it comes back with the event, and is the connection's from the CONNECT or ACCEPT event on.
- An endpoint that is destroyed and a connection that is disconnected answer every call with EINVAL.
- Links and transports of one's own and encryption need C: setup() has the log and the configuration alone."""
import ctypes
import ctypes.util
import enum
import errno
import itertools
import os
import select
import time
from ctypes import (CFUNCTYPE, POINTER, Structure, Union, addressof, byref, c_char, c_char_p, c_int, c_long, c_size_t,
                    c_uint32, c_uint64, c_void_p)

ABI_VERSION = 2
CONN_REQ_LEN = 1024


# ---- enumerations: the names without their prefix, see ENUMERATIONS -------------------------------------------------

class Status(enum.IntEnum):
    SUCCESS = 0
    ERROR = 1
    ERR_DISCONNECTED = 2
    ERR_RNR = 3
    ERR_DEVICE_DEAD = 4
    ERR_RMA_HANDLE = 5
    ERR_RMA_OP = 6
    ERR_NOT_IMPLEMENTED = 7
    ERR_NOT_FOUND = 8
    EINVAL = errno.EINVAL
    ETIMEDOUT = errno.ETIMEDOUT
    ENOMEM = errno.ENOMEM
    ENODEV = errno.ENODEV
    ENETDOWN = errno.ENETDOWN
    EBUSY = errno.EBUSY
    ERANGE = errno.ERANGE
    EAGAIN = errno.EAGAIN
    ENOBUFS = errno.ENOBUFS
    EMSGSIZE = errno.EMSGSIZE
    ENOMSG = errno.ENOMSG
    EADDRNOTAVAIL = errno.EADDRNOTAVAIL
    ECONNREFUSED = errno.ECONNREFUSED


class Flag(enum.IntFlag):
    BLOCKING = 1 << 0
    NO_COPY = 1 << 1
    WAKE = 1 << 2
    SILENT = 1 << 3
    READ = 1 << 4
    WRITE = 1 << 5
    FENCE = 1 << 6


class Caps(enum.IntFlag):
    THREAD_SAFETY = 1 << 0


class Can(enum.IntFlag):
    ORDERED = 1 << 0
    MULTICAST = 1 << 1
    RMA = 1 << 2
    RMA_SHARED = 1 << 3
    RMA_HARDWARE = 1 << 4
    SEAL = 1 << 5
    ATOMICS_32 = 1 << 6
    ATOMICS_64 = 1 << 7
    FENCE = 1 << 8
    WAKE = 1 << 9


class Arm(enum.IntFlag):
    RECV = 1 << 0
    SEND = 1 << 1
    OTHER = 1 << 2
    WAKE = 1 << 3


class EndpointFlag(enum.IntFlag):
    FLAGS_NONE = 0
    SHARED = 1 << 0


AtomicOp = enum.IntEnum("AtomicOp", "FETCH_ADD SWAP COMPARE_SWAP", start=0)
ConnAttr = enum.IntEnum("ConnAttr", "RO RU UU UU_MC_TX UU_MC_RX", start=0)
EventType = enum.IntEnum("EventType", "NONE SEND RECV CONNECT CONNECT_REQUEST ACCEPT KEEPALIVE_TIMEDOUT "
                         "ENDPOINT_DEVICE_FAILED DISCONNECT STATUS", start=0)
What = enum.IntEnum("What", "DEVICE_UP DEVICE_DOWN ADDRESS_CHANGED MTU_CHANGED PATH_SUSPENDED PATH_RESUMED PATH_MTU "
                    "PEER_MOVED PATH_CHANGED ROUTE_CHANGED", start=0)
Opt = enum.IntEnum("Opt", "ENDPT_SEND_TIMEOUT ENDPT_RECV_BUF_COUNT ENDPT_SEND_BUF_COUNT "
                   "ENDPT_KEEPALIVE_TIMEOUT ENDPT_URI ENDPT_RMA_ALIGN CONN_SEND_TIMEOUT "
                   "CONN_KEEPALIVE_TIMEOUT ENDPT_EVENT_MASK CONN_PEER_URI CONN_CONTEXT CAPS ENDPT_STATS "
                   "CONN_STATS ENDPT_CONN_STATS ENDPT_SEND_FD CONN_LINGER ENDPT_BACKLOG ENDPT_MAX_SEND_SIZE",
                   start=0)
Log = enum.IntEnum("Log", "ERROR WARN INFO DEBUG", start=0)
ENUMERATIONS = {"CCI_": Status, "CCI_ATOMIC_": AtomicOp, "CCI_FLAG_": Flag, "CCI_CAPS_": Caps, "CCI_CAN_": Can, "CCI_ARM_": Arm,
                "CCI_ENDPOINT_": EndpointFlag,
                "CCI_CONN_ATTR_": ConnAttr, "CCI_EVENT_": EventType, "CCI_STATUS_": What, "CCI_OPT_": Opt, "CCI_LOG_": Log}


# ---- structures as the library has them, see STRUCTURES -------------------------------------------------------------

def _structure(title, base=Structure, /, **fields):
    return type(title, (base,), {"_fields_": list(fields.items())})


_Pci = _structure("_Pci", domain=c_uint32, bus=c_uint32, dev=c_uint32, func=c_uint32)
_Device = _structure("_Device", name=c_char_p, transport=c_char_p, up=ctypes.c_uint, info=c_char_p,
                     conf_argv=POINTER(c_char_p), max_send_size=c_uint32, rate=c_uint64, pci=_Pci)
_Endpoint = _structure("_Endpoint", device=POINTER(_Device))
_Connection = _structure("_Connection", max_send_size=c_uint32, endpoint=c_void_p, attribute=c_int, context=c_void_p)
_Send = _structure("_Send", type=c_int, status=c_int, connection=c_void_p, context=c_void_p)
_Recv = _structure("_Recv", type=c_int, len=c_uint32, ptr=c_void_p, connection=c_void_p)
_Connect = _structure("_Connect", type=c_int, status=c_int, context=c_void_p, connection=c_void_p, data_ptr=c_void_p,
                      data_len=c_uint32)
_Request = _structure("_Request", type=c_int, data_len=c_uint32, data_ptr=c_void_p, attribute=c_int, peer_uri=c_char_p)
_Accept = _structure("_Accept", type=c_int, status=c_int, context=c_void_p, connection=c_void_p)
_Keepalive = _structure("_Keepalive", type=c_int, connection=c_void_p)
_DevFailed = _structure("_DevFailed", type=c_int, endpoint=c_void_p)
_Disconnect = _structure("_Disconnect", type=c_int, status=c_int, connection=c_void_p, context=c_void_p)
_EventStatus = _structure("_EventStatus", type=c_int, what=c_int, connection=c_void_p, value=c_uint64)
_Event = _structure("_Event", Union, type=c_int, send=_Send, recv=_Recv, connect=_Connect, request=_Request,
                    accept=_Accept, keepalive=_Keepalive, dev_failed=_DevFailed, disconnect=_Disconnect,
                    status=_EventStatus)
Alignment = _structure("Alignment", rma_write_local_addr=c_uint32, rma_write_remote_addr=c_uint32,
                       rma_write_length=c_uint32, rma_read_local_addr=c_uint32, rma_read_remote_addr=c_uint32,
                       rma_read_length=c_uint32)
Capabilities = _structure("Capabilities", can=c_uint64, max_rma_length=c_uint64, max_send_size=c_uint32,
                          max_request_len=c_uint32, max_connections=c_uint32, max_send_bufs=c_uint32,
                          max_recv_bufs=c_uint32, max_rma_segments=c_uint32, max_name_len=c_uint32, reserved=c_uint32 * 7)
EndpointStats = _structure("EndpointStats", datagrams_sent=c_uint64, bytes_sent=c_uint64, datagrams_received=c_uint64,
                           bytes_received=c_uint64, packets_retransmitted=c_uint64, packets_lost=c_uint64,
                           dropped_corrupt=c_uint64, dropped_not_ours=c_uint64, dropped_no_connection=c_uint64,
                           dropped_no_buffer=c_uint64, dropped_not_authentic=c_uint64, dropped_duplicate=c_uint64,
                           requests_refused=c_uint64, connections_ended=c_uint64, system_calls=c_uint64,
                           connections_open=c_uint32, connections_active=c_uint32, connections_opening=c_uint32,
                           events_waiting=c_uint32, recv_buffers_used=c_uint32, recv_buffers_most=c_uint32,
                           send_buffers_used=c_uint32, send_buffers_most=c_uint32)
ConnectionStats = _structure("ConnectionStats", messages_sent=c_uint64, bytes_sent=c_uint64,
                             messages_received=c_uint64, bytes_received=c_uint64, rma_writes=c_uint64,
                             rma_write_bytes=c_uint64, rma_reads=c_uint64, rma_read_bytes=c_uint64,
                             peer_write_bytes=c_uint64, peer_read_bytes=c_uint64, packets_sent=c_uint64,
                             packet_bytes_sent=c_uint64, packets_received=c_uint64, packet_bytes_received=c_uint64,
                             packets_retransmitted=c_uint64, packets_lost=c_uint64, rnr=c_uint64,
                             latest_rtt_ns=c_uint64, srtt_ns=c_uint64, min_rtt_ns=c_uint64,
                             congestion_window=c_uint64, in_flight_bytes=c_uint64, silent_ns=c_uint64,
                             operations_pending=c_uint32, path_mtu=c_uint32, is_counted=c_uint32, is_active=c_uint32)
_RmaHandle = _structure("_RmaHandle", stuff=c_uint64 * 4)
_RmaSegment = _structure("_RmaSegment", handle=c_void_p, offset=c_uint64, length=c_uint64)
_LogHook = CFUNCTYPE(None, c_void_p, c_int, c_char_p)
_Setup = _structure("_Setup", alloc=c_void_p, release=c_void_p, log=_LogHook, random=c_void_p, user=c_void_p,
                    config=c_char_p, transports=c_void_p, seal=c_void_p, log_level=c_int)
_Timeval = _structure("_Timeval", tv_sec=c_long, tv_usec=c_long)
_Iovec = _structure("_Iovec", iov_base=c_char_p, iov_len=c_size_t)
STRUCTURES = {
    "cci_device_t": _Device, "cci_endpoint_t": _Endpoint, "cci_connection_t": _Connection, "cci_event_send_t": _Send,
    "cci_event_recv_t": _Recv, "cci_event_connect_t": _Connect, "cci_event_connect_request_t": _Request,
    "cci_event_accept_t": _Accept, "cci_event_keepalive_timedout_t": _Keepalive,
    "cci_event_endpoint_device_failed_t": _DevFailed, "cci_event_disconnect_t": _Disconnect,
    "cci_event_status_t": _EventStatus, "cci_event_t": _Event,
    "cci_caps_t": Capabilities,
    "cci_endpt_stats_t": EndpointStats,
    "cci_conn_stats_t": ConnectionStats,
    "cci_alignment_t": Alignment, "cci_rma_handle_t": _RmaHandle, "cci_rma_segment_t": _RmaSegment,
    "cci_setup_t": _Setup, "struct timeval": _Timeval, "struct iovec": _Iovec}

# ---- functions: the result, then the arguments ----------------------------------------------------------------------

_AT = c_void_p  # the address of an endpoint, a connection, an event or a handle
FUNCTIONS = {
    "cci_init": (c_int, c_uint32, c_uint32, POINTER(c_uint32)),
    "cci_finalize": (c_int,),
    "cci_setup": (c_int, POINTER(_Setup)),
    "cci_strerror": (c_char_p, _AT, c_int),
    "cci_status_hint": (c_char_p, c_int),
    "cci_event_type_str": (c_char_p, c_int),
    "cci_get_devices": (c_int, POINTER(POINTER(POINTER(_Device)))),
    "cci_create_endpoint": (c_int, POINTER(_Device), c_int, POINTER(_AT), POINTER(c_int)),
    "cci_create_endpoint_at": (c_int, POINTER(_Device), c_char_p, c_int, POINTER(_AT), POINTER(c_int)),
    "cci_destroy_endpoint": (c_int, _AT),
    "cci_accept": (c_int, _AT, c_void_p),
    "cci_reject": (c_int, _AT),
    "cci_accept_data": (c_int, _AT, c_void_p, c_char_p, c_uint32),
    "cci_reject_data": (c_int, _AT, c_char_p, c_uint32),
    "cci_connect": (c_int, _AT, c_char_p, c_char_p, c_uint32, c_int, c_void_p, c_int, POINTER(_Timeval)),
    "cci_disconnect": (c_int, _AT),
    "cci_arm_os_handle": (c_int, _AT, c_int),
    "cci_next_deadline": (c_int, _AT, POINTER(c_uint64)),
    "cci_get_event": (c_int, _AT, POINTER(POINTER(_Event))),
    "cci_return_event": (c_int, POINTER(_Event)),
    "cci_set_opt": (c_int, _AT, c_int, c_void_p),
    "cci_get_opt": (c_int, _AT, c_int, c_void_p),
    "cci_send": (c_int, _AT, c_char_p, c_uint32, c_void_p, c_int),
    "cci_sendv": (c_int, _AT, POINTER(_Iovec), c_uint32, c_void_p, c_int),
    "cci_rma_register": (c_int, _AT, c_void_p, c_uint64, c_int, POINTER(_AT)),
    "cci_rma_deregister": (c_int, _AT, _AT),
    "cci_rma": (c_int, _AT, c_char_p, c_uint32, _AT, c_uint64, _AT, c_uint64, c_uint64, c_void_p, c_int),
    "cci_rmav": (c_int, _AT, c_char_p, c_uint32, POINTER(_RmaSegment), c_uint32, POINTER(_RmaSegment), c_uint32,
                 c_void_p, c_int),
    "cci_atomic": (c_int, _AT, c_int, c_uint32, _AT, c_uint64, c_uint64, c_uint64, POINTER(c_uint64), c_void_p, c_int),
    "cci_rma_alloc": (c_int, _AT, c_uint64, POINTER(c_void_p)),
    "cci_rma_free": (c_int, _AT, c_void_p),
    "cci_transport_reason": (c_char_p, c_uint32, POINTER(c_char_p)),
}
# What takes tables of C functions.
NOT_MIRRORED = {"cci_register_transport", "cci_deregister_transport", "CCI_SEAL_NONCE_LEN"}


class Error(Exception):
    """A call or an operation failed. `status` says how, `hint` what can be done about it."""

    def __init__(self, status, what):
        self.status, self.hint = Status(status), hint(status)
        super().__init__("%s: %s: %s" % (what, strerror(status), self.hint))


def _library():
    beside = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build", "libcci.so")
    name = os.environ.get("CCI_LIBRARY") or (beside if os.path.exists(beside) else ctypes.util.find_library("cci"))
    if not name:
        raise ImportError("there is no shared library of CCI: run `make lib`, or set CCI_LIBRARY")
    library = ctypes.CDLL(name)
    for name, (result, *arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
        if result is c_int:
            function.errcheck = _check
    return library


def _check(status, function, _arguments):
    if status != Status.SUCCESS:
        raise Error(status, function.__name__)
    return status


_cci = _library()
_free = ctypes.CDLL(None).free
_free.argtypes = [c_void_p]
_endpoints = set()  # what one of them has registered stays, until it is destroyed
_setup = None  # the library keeps pointers into it


# ---- the library ----------------------------------------------------------------------------------------------------

def strerror(status):
    text = _cci.cci_strerror(None, status)
    return text.decode() if text is not None else "status %d" % status


def hint(status):
    return (_cci.cci_status_hint(status) or b"").decode()


def event_type_str(kind):
    text = _cci.cci_event_type_str(kind)
    return None if text is None else text.decode()


def _text(text):
    """As C takes it, where a NUL would end it."""
    if "\0" in text:
        raise ValueError("a NUL in %r" % text)
    return text.encode()


def setup(config=None, log=None):
    """Before init(): the configuration as text, and a function log(level, text)."""
    global _setup
    hook = _LogHook(lambda _user, level, text: log(Log(level), text.decode(errors="replace"))) if log else _LogHook()
    made = _Setup(log=hook, config=None if config is None else _text(config))
    _cci.cci_setup(byref(made))
    _setup = made


def init():
    caps = c_uint32()
    _cci.cci_init(ABI_VERSION, 0, byref(caps))
    return Caps(caps.value)


def finalize():
    for endpoint in list(_endpoints):
        endpoint.destroy()
    _cci.cci_finalize()


class Device:
    """A device; its members are read from the library each time. pci: (domain, bus, dev, func), or None."""

    def __init__(self, at):
        self._at = at

    name = property(lambda self: self._at.contents.name.decode(errors="replace"))
    transport = property(lambda self: self._at.contents.transport.decode())
    up = property(lambda self: bool(self._at.contents.up))
    info = property(lambda self: (self._at.contents.info or b"").decode(errors="replace"))
    max_send_size = property(lambda self: self._at.contents.max_send_size)
    rate = property(lambda self: self._at.contents.rate)

    @property
    def conf_argv(self):
        words = self._at.contents.conf_argv
        return [word.decode(errors="replace") for word in itertools.takewhile(bool, words)] if words else []

    @property
    def pci(self):
        pci = self._at.contents.pci
        return None if pci.domain == 0xFFFFFFFF else (pci.domain, pci.bus, pci.dev, pci.func)


# The pointer itself is copied: it may lie in memory of the library that goes.
def _device(at):
    return Device(ctypes.cast(at, POINTER(_Device)))


def get_devices():
    """All devices, the highest priority first."""
    array = POINTER(POINTER(_Device))()
    _cci.cci_get_devices(byref(array))
    return [_device(at) for at in itertools.takewhile(bool, array)]


def device_for(uri):
    """The first usable device of the URI's transport, None if there is none."""
    return next((each for each in get_devices() if each.up and uri.startswith(each.transport + ":")), None)


def transports():
    """Of each transport its name, and why it has no devices: "" when it has some."""
    name, found = c_char_p(), []
    for index in itertools.count():
        reason = _cci.cci_transport_reason(index, byref(name))
        if reason is None:
            return found
        found.append((name.value.decode(), reason.decode(errors="replace")))


# ---- endpoints ------------------------------------------------------------------------------------------------------

_TEXTS = {Opt.ENDPT_URI, Opt.CONN_PEER_URI}
_STRUCTURED = {Opt.ENDPT_RMA_ALIGN: Alignment,
               Opt.CAPS: Capabilities,
               Opt.ENDPT_STATS: EndpointStats,
               Opt.CONN_STATS: ConnectionStats}


class _Options:
    """Options of endpoints and connections: a str, a structure with the members of the header's, or a number."""

    def get_opt(self, name):
        if name == Opt.CONN_CONTEXT:  # what the library has is a number, see Endpoint._call()
            return self.context
        if name in _TEXTS:
            text = c_void_p()
            _cci.cci_get_opt(self._at, name, byref(text))
            copy = ctypes.string_at(text.value).decode()
            _free(text)
            return copy
        value = _STRUCTURED.get(name, c_uint32)()
        _cci.cci_get_opt(self._at, name, byref(value))
        return value if name in _STRUCTURED else value.value

    def set_opt(self, name, value):
        if name == Opt.CONN_CONTEXT:
            self.context = value
        else:
            _cci.cci_set_opt(self._at, name, byref(c_uint32(value)))


class Endpoint(_Options):
    """An endpoint on a device (None: the default one), perhaps at a service. `with` destroys it."""

    def __init__(self, device=None, service=None, flags=0):
        self._at, descriptor = c_void_p(), c_int(-1)
        self._contexts, self._connections, self._memories = {}, {}, set()
        self._numbers = itertools.count(1)
        _cci.cci_create_endpoint_at(device and device._at, None if service is None else _text(str(service)), flags,
                                    byref(self._at), byref(descriptor))
        self._descriptor = descriptor.value
        self.device = _device(ctypes.cast(self._at, POINTER(_Endpoint)).contents.device)
        _endpoints.add(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()

    def destroy(self):
        """Ends everything that belongs to the endpoint. Again: does nothing."""
        at, self._at = self._at, None
        if at is not None:
            for each in [*self._connections.values(), *self._memories]:
                each._forget()
            _cci.cci_destroy_endpoint(at)
            self._contexts.clear()
            _endpoints.discard(self)

    def fileno(self):
        """For select and the like: readable while events wait, or the library wants a get_event()."""
        return self._descriptor if self._at else -1

    uri = property(lambda self: self.get_opt(Opt.ENDPT_URI))

    def connect(self, uri, data=b"", attribute=ConnAttr.RO, context=None, timeout=None):
        """Asks for a connection: a CONNECT event follows, within `timeout` seconds (None: for ever)."""
        limit = None if timeout is None else _Timeval(int(timeout // 1), int(timeout % 1 * 1e6))
        data = bytes(data)
        self._call(context, _cci.cci_connect, self._at, _text(uri), data, len(data), attribute, ..., 0,
                   limit and byref(limit))

    def arm_os_handle(self, flags=0):
        """Chooses what makes fileno() readable: a set of Arm, 0 for all events."""
        _cci.cci_arm_os_handle(self._at, flags)

    def next_deadline(self):
        """Seconds within which to call get_event() again if nothing arrives; None: not before something does."""
        left_ns = c_uint64()
        _cci.cci_next_deadline(self._at, byref(left_ns))
        return None if left_ns.value == 2 ** 64 - 1 else left_ns.value / 1e9

    def get_event(self):
        """The next event, None if there is none now."""
        at = POINTER(_Event)()
        try:
            _cci.cci_get_event(self._at, byref(at))
        except Error as error:
            if error.status == Status.EAGAIN:
                return None
            raise
        if at.contents.type == EventType.CONNECT_REQUEST:
            return Request(self, at)
        event = Event(self, at.contents)
        _cci.cci_return_event(at)
        return event

    def wait(self, timeout=None):
        """The next event; sleeps until there is one, or None after `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            event = self.get_event()
            left = None if end is None else end - time.monotonic()
            if event is not None or left is not None and left <= 0:
                return event
            sleeper = select.poll()
            sleeper.register(self, select.POLLIN)
            sleeper.poll(None if left is None else left * 1000 + 1)

    def register(self, buffer, flags=0):
        """Registers a writable buffer (bytearray, array, mmap, memoryview) for RMA."""
        return Memory(self, buffer, flags)

    def alloc(self, length, flags=0):
        """The same with memory that the transport can share with peers of this host."""
        at = c_void_p()
        _cci.cci_rma_alloc(self._at, length, byref(at))
        return Memory(self, (c_char * length).from_address(at.value), flags, at)

    # A context is a number for the library, and stands for what is kept here until its event comes.
    def _call(self, kept, function, *arguments):
        number = next(self._numbers)
        self._contexts[number] = kept
        try:
            function(*[number if each is ... else each for each in arguments])
        except Error:
            del self._contexts[number]
            raise

    def _connection(self, at):
        if at and at not in self._connections:
            self._connections[at] = Connection(self, at)
        return self._connections.get(at)


class Event:
    """An event. Members that a type does not have are None.
    SEND: connection, status, context. RECV: connection, data. CONNECT, ACCEPT: status, context; with SUCCESS also
    connection; CONNECT: data, what the server gave with its answer. KEEPALIVE_TIMEDOUT: connection.
    DISCONNECT: connection, status, context. STATUS: what, value; connection, or None: the device."""
    status = connection = context = data = what = value = None

    def __init__(self, endpoint, event):
        self.endpoint, self.type = endpoint, EventType(event.type)
        if self.type == EventType.SEND:
            self.status = Status(event.send.status)
            self.connection, self.context, _buffer = endpoint._contexts.pop(event.send.context)
        elif self.type == EventType.RECV:
            self.connection = endpoint._connection(event.recv.connection)
            self.data = ctypes.string_at(event.recv.ptr, event.recv.len)
        elif self.type in (EventType.CONNECT, EventType.ACCEPT):
            outcome = event.connect if self.type == EventType.CONNECT else event.accept
            self.status, self.context = Status(outcome.status), endpoint._contexts.pop(outcome.context)
            self.connection = endpoint._connection(outcome.connection)
            if self.connection:
                self.connection.context = self.context
            if self.type == EventType.CONNECT:
                self.data = ctypes.string_at(outcome.data_ptr, outcome.data_len)
        elif self.type == EventType.KEEPALIVE_TIMEDOUT:
            self.connection = endpoint._connection(event.keepalive.connection)
        elif self.type == EventType.DISCONNECT:
            self.status = Status(event.disconnect.status)
            self.connection = endpoint._connection(event.disconnect.connection)
            self.context = self.connection.context
        elif self.type == EventType.STATUS:
            self.what, self.value = What(event.status.what), event.status.value
            self.connection = endpoint._connection(event.status.connection)

    def check(self):
        """Raises an Error unless the operation succeeded; returns the event."""
        if self.status not in (None, Status.SUCCESS):
            raise Error(self.status, self.type.name)
        return self

    def __repr__(self):
        return "<%s %s>" % (self.type.name, self.data if self.status is None else self.status.name)


class Request(Event):
    """A CONNECT_REQUEST: data, attribute, peer_uri (None if the transport can't say). It wants accept() or reject()."""

    def __init__(self, endpoint, at):
        self.endpoint, self.type, self._at, request = endpoint, EventType.CONNECT_REQUEST, at, at.contents.request
        self.data = ctypes.string_at(request.data_ptr, request.data_len)
        self.attribute = ConnAttr(request.attribute)
        self.peer_uri = request.peer_uri and request.peer_uri.decode(errors="replace")

    def accept(self, context=None, data=b""):
        """An ACCEPT event follows; the client finds `data` in its CONNECT event."""
        data = bytes(data)
        self.endpoint._call(context, _cci.cci_accept_data, self._event(), ..., data, len(data))
        self._return()

    def reject(self, data=b""):
        """The client finds `data` in its CONNECT event."""
        data = bytes(data)
        _cci.cci_reject_data(self._event(), data, len(data))
        self._return()

    def _event(self):
        return self._at if self._at and self.endpoint._at else None

    def _return(self):
        at, self._at = self._at, None
        _cci.cci_return_event(at)


class Connection(_Options):
    def __init__(self, endpoint, at):
        connection = ctypes.cast(at, POINTER(_Connection)).contents
        self.endpoint, self._at, self.context = endpoint, at, None
        self.max_send_size, self.attribute = connection.max_send_size, ConnAttr(connection.attribute)

    def send(self, data, context=None, flags=0):
        """Sends a message: bytes, or a list of them. A SEND event follows, unless flags have SILENT or BLOCKING."""
        if isinstance(data, (list, tuple)):
            data = [bytes(each) for each in data]
            pieces = (_Iovec * len(data))(*[_Iovec(each, len(each)) for each in data])
            self._start(context, flags, data, _cci.cci_sendv, self._at, pieces, len(data))
        else:
            data = bytes(data)
            self._start(context, flags, data, _cci.cci_send, self._at, data, len(data))

    def rma(self, local, local_offset, remote_handle, remote_offset, length, flags, message=None, context=None):
        """Moves bytes between a Memory and one of the peer, of which remote_handle is the 32 bytes."""
        remote, message = _RmaHandle.from_buffer_copy(remote_handle), None if message is None else bytes(message)
        self._start(context, flags, local, _cci.cci_rma, self._at, message, len(message or b""),
                    local._at, local_offset, addressof(remote), remote_offset, length)

    def rmav(self, local, remote, flags, message=None, context=None):
        """The same between lists, equal in sum: (Memory, offset, length) here, (its 32 bytes, offset, length) there."""
        handles = [_RmaHandle.from_buffer_copy(each[0]) for each in remote]
        here = (_RmaSegment * len(local))(*[(memory._at, *rest) for memory, *rest in local])
        there = (_RmaSegment * len(remote))(*[(addressof(handle), *rest) for handle, (_, *rest) in zip(handles, remote)])
        message = None if message is None else bytes(message)
        self._start(context, flags, local, _cci.cci_rmav, self._at, message, len(message or b""),
                    here, len(local), there, len(remote))

    def atomic(self, operation, remote_handle, remote_offset, operand, compare=0, width=8, flags=0, context=None):
        """Changes a number in the peer's memory in one step. What was there is the `value` of the result, when the
        operation has completed; with SILENT nobody learns it."""
        remote, previous = _RmaHandle.from_buffer_copy(remote_handle), c_uint64()
        self._start(context, flags, previous, _cci.cci_atomic, self._at, operation, width, addressof(remote),
                    remote_offset, operand, compare, None if flags & Flag.SILENT else byref(previous))
        return previous

    def disconnect(self):
        """Ends the connection at once. Again: does nothing."""
        at, self._at = self._at, None
        if at is not None:
            del self.endpoint._connections[at]
            _cci.cci_disconnect(at)

    # What the library may still read stays until the operation has completed.
    def _start(self, context, flags, buffer, function, *arguments):
        if flags & Flag.SILENT and flags & Flag.NO_COPY:
            raise Error(Status.EINVAL, "SILENT with NO_COPY: nothing would tell when the buffer is free")
        if flags & (Flag.SILENT | Flag.BLOCKING):
            function(*arguments, None, flags)
        else:
            self.endpoint._call((self, context, buffer), function, *arguments, ..., flags)

    def _forget(self):
        self._at = None


class Memory:
    """Registered memory: `buffer` is a memoryview of it, `handle` the 32 bytes with which a peer reaches it. `buffer`
    ends with deregister() or with the endpoint; a slice of what alloc() gave must not be used from then on."""

    def __init__(self, endpoint, buffer, flags, allocated=None):
        view = memoryview(buffer)
        self._pinned = buffer if allocated else (c_char * view.nbytes).from_buffer(buffer)
        self.endpoint, self._allocated, self._at = endpoint, allocated, c_void_p()
        try:
            _cci.cci_rma_register(endpoint._at, addressof(self._pinned), view.nbytes, flags, byref(self._at))
        except Error:
            if allocated:
                _cci.cci_rma_free(endpoint._at, allocated)
            raise
        self.buffer, self.handle = view.cast("B"), ctypes.string_at(self._at.value, ctypes.sizeof(_RmaHandle))
        endpoint._memories.add(self)

    def deregister(self):
        """From now on nothing touches the memory. Again: does nothing."""
        at = self._at
        if at is not None:
            _cci.cci_rma_deregister(self.endpoint._at, at)
            if self._allocated:
                _cci.cci_rma_free(self.endpoint._at, self._allocated)
            self.endpoint._memories.discard(self)
            self._forget()

    def _forget(self):
        self.buffer.release()
        self._at = self._pinned = None
