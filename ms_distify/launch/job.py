"""Runs the processes of one data-parallel job and watches over them: the inner half of run_distribute.sh.

This file is part of every launcher that ms-distify writes, and is started in two ways:

* ``job.py run NAME WORK RANKS PORT LOGS MSRUN SCRIPT [ARGUMENT...]`` by the launcher, in place of itself. A
  child of this process, the watcher, has msrun start the job and waits. It is the parent of all that the job
  leaves behind (a "child subreaper"), so it learns how each rank ended as soon as it ends, and can stop every
  process of the job and nothing else, whatever groups, sessions or names they gave themselves. The process
  itself passes signals on to the watcher; if either of the two is killed, the other still stops the job.
* ``job.py`` by msrun, once for each rank and once for the scheduler that lets the ranks find each other. The
  process says which it is and becomes it: ``python SCRIPT ARGUMENT...``, as it would be started by hand.

It runs on whatever Python the training program uses: 3.7 or newer, and only the standard library.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time

# How long a process that was asked to stop may take, and how long to wait for one that was killed.
GRACE_SECONDS = 5.0
KILL_SECONDS = 3.0
# How long what a finished rank left behind may take to end by itself.
AFTERMATH_SECONDS = 1.0
# How long a process may take from being started by msrun to saying so.
START_SECONDS = 60.0
TAIL_LINES = 30
TAIL_BYTES = 16384
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

# msrun would run the training program as the scheduler too, up to `init()`: everything the program does
# before that, once more and beside rank 0. This does the scheduler's part and nothing else, on no card.
SCHEDULER = """\
import mindspore
from mindspore.communication import init
mindspore.set_context(device_target="CPU")
init()
"""


class CannotStartError(Exception):
    """The job was not started; the message says why."""


class Stopped(Exception):
    """The run ends early, with this exit status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Job:
    """One run: N ranks, for more than one also msrun and the scheduler."""

    def __init__(self, name: str, work: str, ranks: int, port: int, logs: str, msrun: str, command: list[str]) -> None:
        self.name = name
        self.work = os.path.abspath(work)
        self.ranks = ranks
        self.port = port
        self.logs = logs
        self.msrun = msrun
        self.command = command
        self.starter = 0
        self.all_started_by = 0.0
        self.ended: dict[int, str] = {}
        # A signal that was ignored when the launcher was started (nohup, a background job) stays so.
        self.stop_signals = {
            number
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
            if signal.getsignal(number) != signal.SIG_IGN
        }

    def run(self) -> int:
        """Have a watcher run the job to its end; return the exit status."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK, self.stop_signals | {signal.SIGCHLD})
        launcher = os.getpid()
        watcher = os.fork()
        try:
            prctl(PR_SET_CHILD_SUBREAPER, 1)
            if watcher == 0:
                os.setsid()  # Ctrl-C at the terminal reaches the launcher alone
                prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
                if os.getppid() != launcher:
                    return 1
                return self.watch()
            return self.follow(watcher)
        except CannotStartError as error:
            self.say(str(error))
            return 2
        finally:
            self.stop(signal.SIGKILL)
            shutil.rmtree(self.work, ignore_errors=True)

    def follow(self, watcher: int) -> int:
        """Pass signals on to the watcher until it ends; return its exit status."""
        while True:
            received = signal.sigtimedwait(self.stop_signals | {signal.SIGCHLD}, 1.0)
            if received and received.si_signo != signal.SIGCHLD:
                send(watcher, received.si_signo)
            for pid, status in reap():
                if pid == watcher:
                    if status < 0:
                        self.say(f"its watcher was killed by signal {-status}; stopping the job")
                    return shell_status(status)

    def watch(self) -> int:
        """Run the job to its end; return the exit status."""
        if self.ranks > 1:
            self.port = find_port(self.port)
        self.prepare_logs()
        began = time.monotonic()
        self.start()
        what = f"{self.ranks} ranks, port {self.port}" if self.ranks > 1 else "1 rank, on one card"
        self.say(f"{what}; to watch: tail -f {shlex.quote(self.log_of('0'))}", stream=1)
        try:
            while len(set(self.ended.values()) - {"scheduler"}) < self.ranks:
                self.wait()
        except Stopped as stopped:
            return stopped.status
        left = self.stop(signal.SIGTERM, patience=AFTERMATH_SECONDS)
        if left:
            self.say(f"stopped {left} process(es) that the ranks left running")
        what = f"all {self.ranks} ranks" if self.ranks > 1 else "rank 0"
        self.say(f"{what} finished after {time.monotonic() - began:.0f} s", stream=1)
        return 0

    def say(self, text: str, stream: int = 2) -> None:
        """Write a line to the terminal; that nobody listens any more must not end a training."""
        with contextlib.suppress(OSError):
            os.write(stream, os.fsencode(f"{self.name}: {text}\n"))

    def log_of(self, rank: str) -> str:
        """Return where the rank's output goes."""
        return os.path.join(self.logs, f"device{rank}", "train.log")

    def prepare_logs(self) -> None:
        """Make the log directories, or use those that are there, and begin each rank's log anew."""
        for rank in range(self.ranks):
            log = self.log_of(str(rank))
            try:
                os.makedirs(os.path.dirname(log), exist_ok=True)
                with open(log, "wb"):
                    pass
            except OSError as error:
                raise CannotStartError(
                    f"cannot write {log}: {error.strerror}. --log-dir puts the logs elsewhere"
                ) from error

    def start(self) -> None:
        """Start msrun, which starts the rest; a single rank needs no msrun and no scheduler."""
        settings = {
            "python": sys.executable,
            "command": self.command,
            "logs": self.logs,
            "path": os.environ.get("PATH"),
            "watcher": os.getpid(),
        }
        with open(os.path.join(self.work, "settings.json"), "w", encoding="ascii") as file:
            json.dump(settings, file)
        job = os.path.join(self.work, "job.py")
        environment = dict(os.environ)
        if self.ranks > 1:
            # msrun starts whatever `python` is first on PATH.
            first = os.path.join(self.work, "bin")
            os.mkdir(first)
            os.symlink(sys.executable, os.path.join(first, "python"))
            environment["PATH"] = first + os.pathsep + environment.get("PATH", os.defpath)
            command = [self.msrun, f"--worker_num={self.ranks}", f"--local_worker_num={self.ranks}"]
            command += ["--master_addr=127.0.0.1", f"--master_port={self.port}", f"--log_dir={self.work}"]
            command += ["--join=False", job]
        else:
            environment.update(RANK_ID="0", RANK_SIZE="1", DEVICE_ID="0")
            command = [sys.executable, job]
        with open(os.path.join(self.work, "msrun.log"), "wb") as output:
            try:
                self.starter = subprocess.Popen(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, ()),
                ).pid
            except OSError as error:
                raise CannotStartError(f"cannot run {command[0]}: {error.strerror}") from error

    def processes(self) -> dict[int, str]:
        """Return who is who among the processes that msrun started: ranks by number, and the scheduler."""
        try:
            with open(os.path.join(self.work, "processes"), encoding="ascii") as file:
                return {int(pid): name for name, pid in map(str.split, file)}
        except FileNotFoundError:
            return {}

    def wait(self) -> None:
        """Wait until something has happened and see to it; raise `Stopped` if the run is over."""
        received = signal.sigtimedwait(self.stop_signals | {signal.SIGCHLD}, 1.0)
        if received and received.si_signo != signal.SIGCHLD:
            number = signal.Signals(received.si_signo)
            self.say(f"stopped by {number.name}; stopping all ranks")
            # As at a terminal, Ctrl-C reaches the program as KeyboardInterrupt.
            self.stop(signal.SIGINT if number == signal.SIGINT else signal.SIGTERM)
            raise Stopped(128 + number)
        failed: dict[str, int] = {}
        for pid, status in reap():
            name = self.processes().get(pid)
            if pid == self.starter and self.ranks == 1:
                name = "0"
            if pid == self.starter and self.ranks > 1:
                if status != 0:
                    self.fail("msrun", status, [f"{self.work}/msrun.log"])
                self.all_started_by = time.monotonic() + START_SECONDS
            elif name is None or pid in self.ended:
                pass  # left behind by a rank; it may have got the process id that a rank had
            elif status == 0:
                self.ended[pid] = name
            else:
                failed[name] = status
        scheduler = failed.pop("scheduler", 0)
        for name, status in failed.items():
            others = ", ".join(other for other in failed if other != name)
            note = f" (rank {others} failed too)" if others else ""
            logs = [self.log_of(name), f"{self.work}/worker_{name}.log", f"{self.work}/msrun.log"]
            self.fail(f"rank {name}", status, logs, note)
        # It matters no more once ranks are through.
        if scheduler != 0 and not self.ended:
            self.fail("the scheduler", scheduler, [f"{self.work}/scheduler.log"])
        if self.all_started_by and time.monotonic() > self.all_started_by:
            self.check_all_started()

    def check_all_started(self) -> None:
        """See to it that a rank which ended before it could say so is not waited for."""
        self.all_started_by = 0.0
        started = self.processes().values()
        for rank in map(str, range(self.ranks)):
            if rank not in started:
                self.fail(f"rank {rank}", 1, [f"{self.work}/worker_{rank}.log", f"{self.work}/msrun.log"])

    def fail(self, name: str, status: int, logs: list[str], note: str = "") -> None:
        """Stop the run and say who ended it, with the end of the first of `logs` that has any text."""
        if status < 0:
            how = f"was killed by signal {-status} ({signal.strsignal(-status)})"
        else:
            how = f"ended with status {status}"
        self.say(f"{name} {how}{note}; stopping the job")
        for log in logs:
            text = tail(log)
            if text:
                self.say(f"last lines of {log}:\n{text}")
                if "Address already in use" in text:
                    self.say(f"port {self.port} was taken by another program in the meantime; start again")
                break
        else:
            self.say(f"its log is empty: {logs[0]}")
        self.stop(signal.SIGTERM)
        raise Stopped(shell_status(status))

    def stop(self, number: signal.Signals, patience: float = 0.0) -> int:
        """Stop every process of the job and wait for them; return how many did not end by themselves.

        They get the signal `number`, after `patience` seconds, and are killed if that does not help.
        """
        ask_at = time.monotonic() + patience
        kill_at = ask_at + GRACE_SECONDS
        asked: set[int] = set()
        while True:
            reap()
            running = descendants(os.getpid())
            if not running:
                return len(asked)
            now = time.monotonic()
            if now > kill_at + KILL_SECONDS:
                self.say("these processes cannot be killed: " + " ".join(map(str, running)))
                return len(asked)
            names = {pid: name for pid, name in self.processes().items() if pid in running}
            for pid in running:
                if now >= kill_at or list(names.items()) == [(pid, "scheduler")]:
                    send(pid, signal.SIGKILL)  # the scheduler waits for ranks, and there are none any more
                elif names.get(pid) == "scheduler":
                    pass
                elif now >= ask_at and pid not in asked:
                    asked.add(pid)
                    send(pid, number)
            received = signal.sigtimedwait(self.stop_signals | {signal.SIGCHLD}, 0.1)
            if received and received.si_signo != signal.SIGCHLD:
                ask_at = kill_at = min(kill_at, now)  # a second Ctrl-C


def reap() -> list[tuple[int, int]]:
    """Collect the children that have ended: process id, and exit status or minus the signal's number."""
    ended = []
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
        while pid:
            ended.append((pid, -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)))
            pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        pass
    return ended


def descendants(ancestor: int) -> list[int]:
    """Return the processes that descend from a process, parents first."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    # The name in parentheses may hold spaces and parentheses; state and parent follow it.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry))
    found = [ancestor]
    for pid in found:
        found += children.get(pid, [])
    return found[1:]


def shell_status(status: int) -> int:
    """Return the exit status by which a shell would tell how a process ended."""
    return status if status >= 0 else 128 - status


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process that Python has no function for."""
    if ctypes.CDLL(None).prctl(option, value, 0, 0, 0) != 0:
        raise CannotStartError("this system cannot look after the job's processes; Linux 3.4 or newer can")


def send(pid: int, number: int) -> None:
    """Send a signal to a process that may have just ended."""
    with contextlib.suppress(OSError):
        os.kill(pid, number)


def tail(path: str) -> str:
    """Return the last lines of a log, indented; nothing if there is no such file."""
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - TAIL_BYTES))
            lines = file.read().splitlines()[-TAIL_LINES:]
    except OSError:
        return ""
    return "\n".join("    " + os.fsdecode(line) for line in lines)


def find_port(wanted: int) -> int:
    """Return the wanted port if it is free; for 0 one that is.

    Ports that the system hands out by itself (from 32768) are left alone: until the scheduler takes the port,
    some seconds from now, any outgoing connection could get such a one.
    """
    candidates = [wanted] if wanted else random.sample(range(20000, 32768), 200)
    reason = ""
    for port in candidates:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                probe.listen(1)
                return port
            except OSError as error:
                reason = error.strerror or str(error)
    if wanted:
        raise CannotStartError(f"port {wanted} cannot be used ({reason}); without -p and MASTER_PORT one is found")
    raise CannotStartError("no free port was found; name one with --port")


def become_process(work: str) -> None:
    """Become what msrun wants this process to be: a rank, or the scheduler."""
    with open(os.path.join(work, "settings.json"), encoding="ascii") as file:
        settings = json.load(file)
    environment = os.environ
    environment.pop("PATH", None)
    if settings["path"] is not None:
        environment["PATH"] = settings["path"]
    if environment.get("MS_ROLE") == "MS_SCHED":
        name, log, arguments = "scheduler", "", ["-c", SCHEDULER]
        os.chdir(work)
    else:
        name, arguments = environment["RANK_ID"], settings["command"]
        log = os.path.join(settings["logs"], f"device{name}", "train.log")
        environment["DEVICE_ID"] = name  # msrun sets it from some release on
        environment.setdefault("PYTHONUNBUFFERED", "1")  # for `tail -f`
        environment.setdefault("PYTHONHASHSEED", "0")  # sets in one order on all ranks: rows may be dealt from one
    processes = os.open(os.path.join(work, "processes"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(processes, f"{name} {os.getpid()}\n".encode())
    os.close(processes)
    # msrun, while it lives, takes the exit status of ranks that end; from then on the watcher gets it.
    while os.getppid() != settings["watcher"]:
        os.kill(settings["watcher"], 0)
        time.sleep(0.01)
    if os.getsid(0) != os.getpid():
        os.setsid()
    if log:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
    os.execv(settings["python"], [settings["python"], *arguments])


def main() -> int:
    """Run a job, or be one of its processes."""
    if sys.argv[1:2] != ["run"]:
        become_process(os.path.dirname(os.path.abspath(__file__)))
    name, work, ranks, port, logs, msrun = sys.argv[2:8]
    return Job(name, work, int(ranks), int(port or 0), logs, msrun, command=sys.argv[8:]).run()


if __name__ == "__main__":
    sys.exit(main())
