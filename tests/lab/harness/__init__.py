"""Real hosts on one machine: systemd, sshd, links that can be cut, and real inference servers.

Everything here is test equipment. It needs root on Debian and is never imported by the product.
"""
