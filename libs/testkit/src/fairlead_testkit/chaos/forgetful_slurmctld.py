"""A slurmctld that is killed and comes back without its last seconds: what it had saved before is put in place of the rest."""

import time

from fairlead_testkit.fleets.pod_fleet import PodFleetSite


def saved_while(site: PodFleetSite, job: str, state: str) -> bytes:
    """The jobs as slurmctld saves them, once it has done so with this job in that state: within five seconds."""
    file = site.lab.layout.folder / "state" / "job_state"
    site.lab.until(lambda: site.state_of(job) == state, f"it is {state}")
    began = time.time()
    site.lab.run("scontrol", "update", f"jobid={job}", "nice=1")  # it has something to save
    site.lab.until(lambda: file.exists() and file.stat().st_mtime > began, "its state is saved")
    assert site.state_of(job) == state  # noqa: S101 # else what follows would show nothing
    return file.read_bytes()


def forget(site: PodFleetSite, saved: bytes) -> None:
    """Kills slurmctld, which then knows of what was saved alone."""
    slurmctld = site.lab.process("slurmctld")
    slurmctld.kill()
    (site.lab.layout.folder / "state" / "job_state").write_bytes(saved)
    slurmctld.start()
    site.lab.until(site.lab.answers, "slurmctld answers")
