#!/usr/bin/env python3
"""iser_frames.py siw|rxe CAPTURE [--whole]: what an iSER session has sent, as text, a frame a line.

The captures are those of two guests with Debian's kernel 6.1, ib_iser and LIO (isert), from the
discovery to the logout: `tcpdump -w` on the interface between them, without loss. Of siw each frame
of MPA and each FPDU is told, of rxe each message of a Send, without the headers of RoCE.

A line is the sender (`>` initiator, `<` target), then words: bytes in hex, `00*512` for a run, and
`random*LEN=CRC` for data of RDMA Writes and RDMA Read Responses that was /dev/urandom's: its
length and its CRC32C. With --whole that is hex, too.
"""
import struct
import sys
from itertools import groupby

RUN = 8  # Equal bytes that are worth a word.
ETHERNET = 14


def packets(path):
    """Of each packet of IP: its source, its protocol, its payload."""
    with open(path, "rb") as file:
        capture = file.read()
    assert capture[:4] == struct.pack("<I", 0xA1B2C3D4), "a pcap file of little-endian order"
    at = 24
    while at < len(capture):
        taken, = struct.unpack_from("<I", capture, at + 8)
        frame = capture[at + 16:at + 16 + taken]
        at += 16 + taken
        if frame[12:14] == b"\x08\x00":
            ip = frame[ETHERNET:ETHERNET + int.from_bytes(frame[16:18], "big")]
            yield ip[12:16], ip[9], ip[(ip[0] & 15) * 4:]


def segments(path):
    """What segments of TCP add to their streams: which stream, its sender, bytes."""
    due = {}
    for _, protocol, tcp in packets(path):
        if protocol != 6:
            continue
        source, destination, number = struct.unpack_from(">HHI", tcp)
        payload = tcp[(tcp[12] >> 4) * 4:]
        way = (source, destination)
        if payload and number == due.setdefault(way, number):
            due[way] = (number + len(payload)) % 2**32
            yield way, ">" if destination == 3260 else "<", payload


def frame_len(stream):
    """How long the first frame of a stream is; None where that is not known yet."""
    if stream[:3] == b"MPA":
        return 20 + int.from_bytes(stream[18:20], "big") if len(stream) >= 20 else None
    return (int.from_bytes(stream[:2], "big") + 2 + 3) // 4 * 4 + 4 if len(stream) >= 2 else None


def siw_frames(path):
    """Each frame of MPA and each FPDU, in the order in which they ended."""
    streams = {}
    for way, sender, payload in segments(path):
        stream = streams.get(way, b"") + payload
        while (length := frame_len(stream)) is not None and length <= len(stream):
            yield sender, stream[:length]
            stream = stream[length:]
        streams[way] = stream
    assert not any(streams.values()), "a part of a frame is left over"


def rxe_messages(path):
    """Each message of a Send: opcodes of the Base Transport Header and what stands behind it."""
    behind = {0: 0, 1: 0, 2: 0, 4: 0, 22: 4, 23: 4}
    due, messages, initiator = {}, {}, None
    for source, protocol, udp in packets(path):
        if protocol != 17 or udp[2:4] != struct.pack(">H", 4791):
            continue
        header = udp[8:20]
        way, number = (source, header[5:8]), int.from_bytes(header[9:12], "big")
        if header[0] not in behind or number < due.get(way, 0):
            continue
        due[way] = number + 1
        end = len(udp) - 4 - (header[1] >> 4 & 3)
        message = messages.pop(way, b"") + udp[20 + behind[header[0]]:end]
        if header[0] in (0, 1):
            messages[way] = message
            continue
        # A session begins with a Login Request.
        initiator = initiator or source
        yield ">" if source == initiator else "<", message


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
    return crc ^ 0xFFFFFFFF


def words(data):
    """Hex, and runs."""
    text = ""
    for byte, run in groupby(data):
        run = len(list(run))
        text += f" {byte:02x}*{run} " if run >= RUN else f"{byte:02x}" * run
    return text.split()


def random_part(frame):
    """Where the data of a tagged segment begins and ends, if it is random."""
    end = 2 + int.from_bytes(frame[:2], "big")
    is_tagged = frame[:3] != b"MPA" and frame[2] & 0x80
    is_random = is_tagged and end > 1000 and len(words(frame[16:end])) == 1
    return (16, end) if is_random else (len(frame), len(frame))


def line(sender, frame, is_whole):
    start, end = (len(frame),) * 2 if is_whole else random_part(frame)
    left_out = [f"random*{end - start}={crc32c(frame[start:end]):08x}"] * (start < end)
    return " ".join([sender, *words(frame[:start]), *left_out, *words(frame[end:])])


def main():
    kind, path, *options = sys.argv[1:]
    read = {"siw": siw_frames, "rxe": rxe_messages}[kind]
    print(f"# Made by `iser_frames.py {kind}`, which says what stands here.")
    for sender, frame in read(path):
        print(line(sender, frame, kind == "rxe" or "--whole" in options))


main()
