"""The files that the daemons of a lab read. All stay within one folder, and all sockets on loopback."""

import getpass
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fairlead_testkit.processes.free_ports import free_ports
from fairlead_testkit.slurmlab.options import CLUSTER, OPERATOR, PEOPLE, TREE, SlurmOptions

GPU_TYPE = "h100"
BACKUP_HOST, BACKUP_ADDRESS = "slurm-backup", "127.0.0.2"
"""Host and address of the second slurmctld."""
_QUICK = ("batch_sched_delay=0", "sched_interval=2", "bf_interval=2", "sched_min_interval=0")
"""Words of SchedulerParameters with which jobs start at once."""
DATABASE = "slurm_acct"
DATABASE_USER = "slurm"
DATABASE_WORD = "loopback"
"""Password of a database that only this machine reaches and that holds a lab's jobs."""


@dataclass(frozen=True)
class SlurmPorts:
    """The ports of one lab."""

    slurmctld: int
    slurmdbd: int
    mariadb: int
    slurmrestd: int
    slurmd: tuple[int, ...]

    @classmethod
    def free(cls, nodes: int) -> Self:
        """Ports that nobody listens on now."""
        slurmctld, slurmdbd, mariadb, slurmrestd, *slurmd = free_ports(4 + nodes)
        return cls(slurmctld, slurmdbd, mariadb, slurmrestd, tuple(slurmd))


class SlurmLabPaths:
    """The paths in the lab's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.conf = folder / "etc" / "slurm.conf"
        self.logs = folder / "log"
        self.munge_socket = folder / "munge" / "socket"
        self.rest_socket = folder / "rest" / "socket"
        """Socket of the slurmrestd that takes no tokens."""
        self.database = folder / "database"
        """Folder of MariaDB's files."""
        self.jwt_key = folder / "state" / "jwt_hs256.key"
        """File of the key that tokens are signed with."""

    def make(self) -> None:
        """Make the folders. Others may pass through them: munged and the commands of plain users insist on it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        for name in ("etc", "log", "munge", "run", "state", "spool", "database", "devices", "rest"):
            (self.folder / name).mkdir(exist_ok=True)
        (self.folder / "munge").chmod(0o711)
        (self.folder / "out").mkdir(exist_ok=True)
        (self.folder / "out").chmod(0o1777)


def slurm_conf(layout: SlurmLabPaths, ports: SlurmPorts, options: SlurmOptions) -> str:
    """slurm.conf of several slurmd on one host, without cgroups."""
    folder, user = layout.folder, getpass.getuser()
    nodes = [f"n{number}" for number in range(1, options.nodes + 1)]
    lines = [
        f"ClusterName={CLUSTER}",
        *_controllers(options),
        f"SlurmUser={user}",
        f"SlurmdUser={user}",
        f"SlurmctldPort={ports.slurmctld}",
        "AuthType=auth/munge",
        f"AuthInfo=socket={layout.munge_socket},cred_expire=5",
        "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny",
        "MpiDefault=none",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/none",
        "SwitchType=switch/none",
        "ReturnToService=2",
        f"StateSaveLocation={folder}/state",
        f"SlurmctldPidFile={folder}/run/slurmctld.pid",
        f"SlurmctldLogFile={layout.logs}/slurmctld.log",
        f"SlurmdPidFile={folder}/run/slurmd-%n.pid",
        f"SlurmdLogFile={layout.logs}/slurmd-%n.log",
        f"SlurmdSpoolDir={folder}/spool/%n",
        "SlurmdParameters=config_overrides",  # nodes may claim more processors than this machine has
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core_Memory",
        "DefMemPerCPU=100",
        "GresTypes=gpu",
        "SchedulerType=sched/backfill",
        f"SchedulerParameters={','.join((*_QUICK, *options.scheduler))}",
        "MailProg=/bin/true",
        "MaxJobCount=30000",
        "PriorityType=priority/multifactor",
        "PriorityCalcPeriod=1",
        "PriorityWeightAge=1000",
        "PriorityWeightFairshare=2000",
        "PriorityWeightJobSize=500",
        *(_accounting(layout, ports) if options.accounting else ()),
        *options.lines,
        *(_node(name, port, options) for name, port in zip(nodes, ports.slurmd, strict=True)),
        *(line.format(nodes=",".join(nodes)) for line in options.partitions),
    ]
    return "\n".join(lines) + "\n"


def _node(name: str, port: int, options: SlurmOptions) -> str:
    return (
        f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs={options.cpus} Boards=1"
        f" SocketsPerBoard=1 CoresPerSocket={options.cpus} ThreadsPerCore=1 RealMemory=64000"
        f" Gres=gpu:{GPU_TYPE}:{options.gpus} State=UNKNOWN"
    )


def _controllers(options: SlurmOptions) -> list[str]:
    """The hosts of slurmctld. With a backup the first may not be called localhost, which each host calls itself."""
    if not options.backup:
        return ["SlurmctldHost=localhost(127.0.0.1)"]
    here = socket.gethostname().partition(".")[0]
    return [
        f"SlurmctldHost={here}(127.0.0.1)",
        f"SlurmctldHost={BACKUP_HOST}({BACKUP_ADDRESS})",
        "SlurmctldTimeout=3",
    ]


def _accounting(layout: SlurmLabPaths, ports: SlurmPorts) -> list[str]:
    return [
        "AccountingStorageType=accounting_storage/slurmdbd",
        "AccountingStorageHost=127.0.0.1",
        f"AccountingStoragePort={ports.slurmdbd}",
        # Where munged listens: without it slurmctld and sacctmgr ask the system's own munged.
        f"AccountingStoragePass={layout.munge_socket}",
        f"AccountingStorageTRES=gres/gpu,gres/gpu:{GPU_TYPE}",
        "AccountingStorageEnforce=associations,limits,qos",
        "AuthAltTypes=auth/jwt",
        f"AuthAltParameters=jwt_key={layout.jwt_key}",
    ]


def slurmdbd_conf(layout: SlurmLabPaths, ports: SlurmPorts) -> str:
    """slurmdbd.conf; Slurm wants it readable by its user alone."""
    return f"""\
AuthType=auth/munge
AuthInfo=socket={layout.munge_socket}
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={layout.jwt_key}
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ports.slurmdbd}
SlurmUser={getpass.getuser()}
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports.mariadb}
StorageUser={DATABASE_USER}
StoragePass={DATABASE_WORD}
StorageLoc={DATABASE}
LogFile={layout.logs}/slurmdbd.log
PidFile={layout.folder}/run/slurmdbd.pid
CommunicationParameters=NoInAddrAny
CommitDelay=1
"""


def my_cnf(layout: SlurmLabPaths, ports: SlurmPorts) -> str:
    """MariaDB's settings: small, and quick rather than safe against a power loss."""
    return f"""\
[mysqld]
datadir={layout.database}/data
tmpdir={layout.database}
socket={layout.database}/socket
pid-file={layout.database}/pid
bind-address=127.0.0.1
port={ports.mariadb}
user=mysql
innodb_buffer_pool_size=128M
innodb_log_file_size=64M
innodb_lock_wait_timeout=900
innodb_flush_log_at_trx_commit=0
debug-no-sync
skip-name-resolve
"""


def gres_conf(layout: SlurmLabPaths, options: SlurmOptions) -> str:
    """gres.conf: Slurm counts GPUs by their device files, of which each must be a different one."""
    return (
        f"AutoDetect=off\nName=gpu Type={GPU_TYPE} File={layout.folder}/devices/gpu[0-{options.gpus - 1}]\n"
    )


def accounts_file() -> str:
    """The tree of accounts, as `sacctmgr load` reads it. Root may submit for each of them."""
    lines = [f"Cluster - '{CLUSTER}':DefaultQOS='normal':Fairshare=1:QOS='normal'"]
    for parent in ("root", *TREE):
        children = [account for account, above in TREE.items() if above == parent]
        leaf = parent in TREE and parent not in TREE.values()
        if not children and not leaf:
            continue
        lines.append(f"Parent - '{parent}'")
        lines += [f"Account - '{child}':Description='{child}':Organization='lab'" for child in children]
        if parent == "root":
            lines.append("Account - 'fairlead':Description='fairlead':Organization='lab'")
        if leaf:
            lines.append(f"User - 'root':DefaultAccount='{parent}':AdminLevel='Administrator'")
            person = PEOPLE.get(parent)
            lines += [f"User - '{person}':DefaultAccount='{parent}'"] if person else []
    lines += ["Parent - 'fairlead'", f"User - '{OPERATOR}':DefaultAccount='fairlead':AdminLevel='Operator'"]
    return "\n".join(lines) + "\n"
