"""Attempts to break out of the terminal's sandbox. Each is a command that ends with 0 when it got its way."""

import platform

from gateway_app.tools.support.seccomp import MACHINES, NAMESPACES, TIOCLINUX, TIOCSTI

MACHINE = MACHINES.get(platform.machine())


def perl(code: str) -> str:
    return f"perl -MSocket -MFcntl -e '{code}'"


def connects(family: int, kind: int, protocol: int = 0) -> str:
    return perl(f"exit(socket(my $s, {family}, {kind}, {protocol}) ? 0 : 1)")


READS = {
    "shadow": "grep -q . /etc/shadow",
    "group passwords": "grep -q . /etc/gshadow",
    "private keys of the machine": "ls -A /etc/ssl/private | grep -q .",
    "api key": "cat {home}/api_key",
    "secret key": "cat {home}/secret_key",
    "database": "cat {home}/hermes.sqlite3",
    "configuration": "ls {home}/config.yaml",
    "server log": "cat {home}/server.log",
    "home listing": "ls -A {home} | grep -v ^workspaces$",
    "home by dots": "cat $HOME/../../../../api_key",
    "other owners": "ls {home}/workspaces/999",
    "state of the shell": "ls -A $HOME/.. | grep shell",
    "environment of the server": "cat /proc/*/environ | tr '\\0' '\\n' | grep {secret}",
    "own environment": "env | grep {secret}",
    "command lines": "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep '[m]anage.py'",
    "server by its pid": "ls /proc/{pid}/root",
    "root of process 1": "ls /proc/1/root/root",
    "old root": "ls -A /oldroot /newroot",
    "root's home": "ls -A /root",
    "variable data": "ls -A /var/lib",
    "runtime sockets": "ls -A /run",
    "kernel memory": "head -c1 /proc/kcore",
    "kernel log": "dmesg | grep -q .",
    "kernel log device": "head -c1 /dev/kmsg",
    "kernel symbols": "grep -v ^0000000000000000 /proc/kallsyms",
    "symbolic link": "ln -sf {home}/api_key link && cat link",
    "hard link": "ln {home}/api_key hard",
    "hard link to the system": "ln /etc/passwd passwd-link",
    "inherited descriptors": "ls -l /proc/self/fd | grep -E 'sqlite|socket|log'",
}
WRITES = {
    "root folder": "touch /x",
    "programs": "touch /usr/bin/x",
    "settings of the system": "touch /etc/x",
    "hidden folder of the system": "touch /etc/ssl/private/x",
    "device folder": "touch /dev/x",
    "a link that leads out": "ln -sf /etc out && touch out/x",
    "remount": "mount -o remount,rw /usr",
    "sysctl": "echo 1 > /proc/sys/kernel/panic",
    "core pattern": "echo '|/bin/sh' > /proc/sys/kernel/core_pattern",
    "sysrq": "echo h > /proc/sysrq-trigger",
    "oom score": "echo -1000 > /proc/self/oom_score_adj",
    "id map": "echo '0 0 1' > /proc/self/uid_map",
    "interrupts": "echo 1 > /proc/irq/default_smp_affinity",
    "kernel objects": "ls /sys/kernel",
    "control groups": "ls /sys/fs/cgroup",
    "block device": "ls /dev/[hsv]d[a-z]* /dev/nvme* /dev/dm-*",
    "new block device": "mknod disk b 254 0",
    "new character device": "mknod memory c 1 1",
    "physical memory": "ls /dev/mem /dev/port",
    "virtual machines": "ls /dev/kvm /dev/vhost* /dev/net/tun /dev/fuse",
    "set-user-id file": "cp /bin/true t && chmod u+s t",
    "set-group-id file": "cp /bin/true g && chmod g+s g",
    "set-user-id file at birth": perl('exit(sysopen(my $f, "born", O_CREAT|O_RDWR, 04755) ? 0 : 1)'),
    "set-user-id program": "! grep -q NoNewPrivs:.1 /proc/self/status",
    "capabilities": "! grep -q CapEff:.0000000000000000 /proc/self/status",
    "capabilities to gain": "! grep -q CapBnd:.0000000000000000 /proc/self/status",
    "no filter": "! grep -q Seccomp:.2 /proc/self/status",
    "other owner": "touch o && chown 12345 o",
    "lower nice value": "[ $(nice -n -5 nice) -lt 0 ]",
    "higher limit": "ulimit -H -d unlimited || ulimit -H -t unlimited || ulimit -H -f unlimited",
    "core files": "ulimit -H -c 1",
    "host name": "hostname hostile",
    "clock": "date -s 2001-01-01",
}
NAMESPACE_CALLS = {
    "user namespace": "unshare -U true",
    "mount namespace": "unshare -m true",
    "user and mount namespace": "unshare -Urm true",
    "pid namespace": "unshare -Urpf true",
    "network namespace": "unshare -Urn true",
    "sandbox in the sandbox": "bwrap --ro-bind / / true",
    "namespace of process 1": "nsenter -t 1 -m true",
    "change of root": "chroot /usr /bin/true",
    "bind mount": "mount --bind /usr /tmp",
    "new file system": "mount -t tmpfs none /tmp",
    "unmount": "umount -l /etc",
}
NETWORK = {
    "the server itself": "echo > /dev/tcp/127.0.0.1/{port}",
    "the server itself over IPv6": "echo > /dev/tcp/::1/{port}",
    "any address": "echo > /dev/tcp/0.0.0.0/{port}",
    "metadata of a cloud": "timeout 2 bash -c 'echo > /dev/tcp/169.254.169.254/80'",
    "name server": "echo > /dev/udp/8.8.8.8/53",
    "names": "timeout 2 getent hosts example.com",
    "interfaces": "ls /sys/class/net || grep -E 'eth|ens|wlan' /proc/net/dev",
    "connections of the machine": "grep -c : /proc/net/tcp | grep -v ^[01]$",
    "raw socket": connects(2, 3, 1),
    "packet socket": connects(17, 3, 0x300),
    "socket to the host of a virtual machine": connects(40, 1),
    "socket of the kernel's ciphers": connects(38, 5),
    "abstract socket": perl(
        'socket(my $s, PF_UNIX, SOCK_STREAM, 0); exit(connect($s, pack_sockaddr_un("\\0{abstract}")) ? 0 : 1)'
    ),
    "routes of the machine": "tail -n +2 /proc/net/route | grep -q .",
}
SIGNALS = {
    "signal to the server": "kill -0 {pid}",
    "stop of the server": "kill -STOP {pid}",
    "trace of process 1": perl("exit(syscall({ptrace}, 16, 1, 0, 0) == 0 ? 0 : 1)"),
    "trace of the shell": perl("exit(syscall({ptrace}, 16, getppid(), 0, 0) == 0 ? 0 : 1)"),
    "characters for the terminal": perl(
        f'sysopen(my $m, "/dev/ptmx", O_RDWR); exit(defined(ioctl($m, {TIOCSTI}, "x")) ? 0 : 1)'
    ),
    "paste into the console": perl(
        f'sysopen(my $m, "/dev/ptmx", O_RDWR); exit(defined(ioctl($m, {TIOCLINUX}, "\\3")) ? 0 : 1)'
    ),
    "controlling terminal": "echo > /dev/tty",
}
ATTEMPTS = {
    f"{group}: {name}": command
    for group, commands in (
        ("reads", READS),
        ("writes", WRITES),
        ("namespaces", NAMESPACE_CALLS),
        ("network", NETWORK),
        ("signals", SIGNALS),
    )
    for name, command in commands.items()
}


def attempt(command: str) -> str:
    return f"if ( {command} ) >/dev/null 2>&1; then echo BREACH; else echo HELD; fi"


def system_calls() -> str:
    """Makes every denied call with useless arguments: one line each with its name and error."""
    assert MACHINE is not None
    lines = ["$| = 1;"]
    for name, number in {**MACHINE.denied, **MACHINE.hidden}.items():
        lines.append(f'$! = 0; syscall({number}, -1, 0, 0, 0, 0, 0); print "{name} ", $!+0, "\\n";')
    clone = MACHINE.denied_bits[0][0]
    for bit in range(32):
        if NAMESPACES >> bit & 1:
            lines.append(f"$! = 0; if (syscall({clone}, {1 << bit | 17}, 0, 0, 0, 0) == 0) {{ exit }}")
            lines.append(f'print "clone-{bit} ", $!+0, "\\n";')
    lines.append(f'$! = 0; syscall({MACHINE.personality}, 0x0040000); print "personality ", $!+0, "\\n";')
    return "cat > calls.pl <<'E'\n" + "\n".join(lines) + "\nE\nperl calls.pl"
