"""Records of event files, by another implementation than the writer's. Standard library only."""

import struct


def _table():
    entries = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        entries.append(value)
    return entries


_TABLE = _table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked_crc32c(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


class Torn(Exception):
    """The data end within a record."""


def records(data):
    """Begin and payload of each record. Torn where the data end within one, ValueError for a wrong checksum."""
    position = 0
    while position < len(data):
        if position + 12 > len(data):
            raise Torn(position)
        length, length_crc = struct.unpack_from("<QI", data, position)
        if masked_crc32c(data[position:position + 8]) != length_crc:
            raise ValueError(f"the length at byte {position} has another checksum")
        end = position + 12 + length + 4
        if end > len(data):
            raise Torn(position)
        payload = data[position + 12:end - 4]
        if masked_crc32c(payload) != struct.unpack_from("<I", data, end - 4)[0]:
            raise ValueError(f"the record at byte {position} has another checksum")
        yield position, payload
        position = end
