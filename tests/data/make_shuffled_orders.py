#!/usr/bin/env python3
# Makes shuffled_orders.json: what shuffled_order() has to return, computed by a second implementation written from
# the definition alone. Run by hand, needs only Python:
#
#   python3 tests/data/make_shuffled_orders.py
#
# Definition. Philox4x32-10 (Salmon et al., SC11) with key (seed mod 2^32, seed div 2^32) and counter (block, 2, epoch,
# repeat), block = 0, 1, …; the four words of each block in order are a stream of 32-bit numbers. A number below b is
# Lemire's: m = word * b; while m mod 2^32 < 2^32 mod b take the next word; the number is m div 2^32. The order is
# Fisher and Yates': for i = count - 1 down to 1 swap elements i and (a number below i + 1) of 0 … count - 1.
import hashlib
import itertools
import json
import pathlib
import struct

MASK = 0xFFFFFFFF


def philox(counter, key):
    (a, b, c, d), (j, k) = counter, key
    for _ in range(10):
        left, right = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (right >> 32) ^ b ^ j, right & MASK, (left >> 32) ^ d ^ k, left & MASK
        j, k = (j + 0x9E3779B9) & MASK, (k + 0xBB67AE85) & MASK
    return a, b, c, d


# Known answers of the Random123 library (its tests/kat_vectors).
assert philox((0, 0, 0, 0), (0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
assert philox((MASK,) * 4, (MASK,) * 2) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)
assert philox((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0)) == \
    (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)


def order(count, seed, repeat, epoch):
    words = (word for block in itertools.count() for word in philox((block, 2, epoch, repeat), (seed & MASK, seed >> 32)))

    def below(bound):
        while (product := next(words) * bound) & MASK < (1 << 32) % bound:
            pass
        return product >> 32

    values = list(range(count))
    for i in range(count - 1, 0, -1):
        j = below(i + 1)
        values[i], values[j] = values[j], values[i]
    return values


def main():
    cases = []
    for count, seed, repeat, epoch in [(0, 1, 0, 0), (1, 1, 0, 0), (2, 1, 0, 0), (10, 1, 0, 0), (10, 1, 0, 1), (10, 1, 1, 0),
                                       (10, 1 << 32, 0, 0), (17, 123456789012345, 3, 999), (60000, 0, 0, 0), (60000, 1, 2, 3)]:
        values = order(count, seed, repeat, epoch)
        case = {"count": count, "seed": seed, "repeat": repeat, "epoch": epoch, "first": values[:20],
                # SHA-256 of all of them as little-endian 32-bit integers.
                "sha256": hashlib.sha256(struct.pack(f"<{count}I", *values)).hexdigest()}
        cases.append(json.dumps(case))
    path = pathlib.Path(__file__).with_name("shuffled_orders.json")
    path.write_text("[\n" + ",\n".join(cases) + "\n]\n")


if __name__ == "__main__":
    main()
