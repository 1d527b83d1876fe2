"""Which addresses are public.

Tables of our own: those of Python are as old as the Python that runs.
"""

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# https://www.iana.org/assignments/iana-ipv4-special-registry: all entries, and multicast.
_SPECIAL_IPV4 = [
    ipaddress.IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local; metadata of most clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; metadata of Oracle Cloud at .192
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "168.63.129.16/32",  # in no registry: the platform of Azure, inside each virtual machine
    )
]
# https://www.iana.org/assignments/ipv6-address-space: all public addresses are in this block, which
# leaves out loopback, IPv4-compatible, SIIT, 64:ff9b:1::/48, 100::/64, 5f00::/16, local and others.
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
# https://www.iana.org/assignments/iana-ipv6-special-registry: the entries in that block.
_SPECIAL_IPV6 = [
    ipaddress.IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments, with Teredo, benchmarks and ORCHID
        "2001:db8::/32",  # documentation
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
]
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_ISATAP = (0x00005EFE, 0x02005EFE)  # before the IPv4 address; RFC 5214


def is_public(address: Address) -> bool:
    """An address that stands for an IPv4 address is as public as that one."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _SPECIAL_IPV4)
    inner = _embedded(address)
    if inner is not None and not is_public(inner):
        return False
    if address.ipv4_mapped is not None or address in _NAT64:
        return True
    is_special = any(address in network for network in _SPECIAL_IPV6)
    return address in _GLOBAL_UNICAST and not is_special


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    inner = address.ipv4_mapped or address.sixtofour
    if inner is not None:
        return inner
    low = int(address) & 0xFFFFFFFF
    is_isatap = (int(address) >> 32) & 0xFFFFFFFF in _ISATAP
    if address in _NAT64 or is_isatap:
        return ipaddress.IPv4Address(low)
    return None
