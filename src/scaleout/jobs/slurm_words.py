"""What Slurm's states and reasons mean, in words and with what to do."""

from collections.abc import Mapping

# The states of a job that has not ended.
LIVE = (
    *("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED"),
    *("REQUEUED", "STAGE_OUT", "SIGNALING", "STOPPED"),
)
# Why a job waits, in words; those in NEVER do not pass by themselves.
WAITS = {
    "None": "Slurm has not looked at it yet",
    "Priority": "jobs of higher priority are before it",
    "Resources": "other jobs hold the nodes",
    "ReqNodeNotAvail": "nodes that it needs are down, drained or reserved",
    "Nodes_required": "nodes that it needs are down, drained or reserved; `sinfo -R` says why",
    "Reservation": "its reservation has not begun",
    "Licenses": "it waits for a licence",
    "QOSMaxJobsPerUserLimit": "you have as many jobs running as you may",
    "AssocMaxJobsLimit": "your account has as many jobs running as it may",
}
NEVER = {
    "PartitionTimeLimit": "it asks for more time than the partition allows: set fewer minutes in the site file",
    "PartitionNodeLimit": "it asks for more nodes than the partition allows: take fewer with -N",
    "PartitionConfig": "the partition cannot give what it asks for: take fewer nodes, ranks or minutes",
    "PartitionDown": "the partition takes no jobs now: name another in the site file",
    "PartitionInactive": "the partition takes no jobs now: name another in the site file",
    "BadConstraints": "no node can give what it asks for: take fewer ranks a node or threads",
    "AccountNotAllowed": "the account may not use this partition: correct account or partition in the site file",
    "InvalidAccount": "Slurm does not know the account: correct it in the site file",
    "InvalidQOS": "Slurm does not know the quality of service: correct sbatch in the site file",
    "JobHeldUser": "it is held: type  scontrol release JOBID  or submit without --hold",
    "JobHeldAdmin": "an administrator holds it: ask them",
    "QOSMaxWallDurationPerJobLimit": "it asks for more time than you may have: set fewer minutes in the site file",
    "AssocMaxWallDurationPerJobLimit": "it asks for more time than you may have: set fewer minutes in the site file",
    "ReservationDeleted": "its reservation is gone: correct reservation in the site file",
}
# How a job ended that neither finished nor failed by itself.
ENDS = {
    "CANCELLED": "was cancelled, by somebody or by Slurm",
    "NODE_FAIL": "lost one of its nodes",
    "OUT_OF_MEMORY": "needed more memory than it was given: take fewer ranks a node, or ask for more with sbatch",
    "PREEMPTED": "had to make room for another job: submit it again",
    "BOOT_FAIL": "got nodes that would not start: submit it again",
    "DEADLINE": "could not end before its deadline",
    "REVOKED": "was taken over by another cluster",
}


def reason(state: Mapping[str, str]) -> str:
    """Why a job waits, as WAITS and NEVER have it."""
    said = state.get("Reason", "None")
    return "Nodes_required" if said.startswith("Nodes_required") else said.partition(",")[0]
