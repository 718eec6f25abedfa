"""How long a memory snapshot takes to read, and how much memory, beside Python's own `pickle`.

    python benches/reading.py SNAPSHOT [LOWTIDE]

`pickle.load` runs whatever a file asks for: give it only files of your own. Lowtide reads and plans in the time shown.
"""

import subprocess
import sys


def main():
    snapshot = sys.argv[1]
    lowtide = sys.argv[2] if len(sys.argv) > 2 else "target/release/lowtide"
    load = "import gzip, pickle, sys; p = sys.argv[1]; pickle.load((gzip.open if p.endswith('.gz') else open)(p, 'rb'))"
    commands = {
        "lowtide plan, no search": [lowtide, "plan", snapshot, "--time-limit", "0", "--json"],
        "python pickle.load": [sys.executable, "-c", load, snapshot],
    }
    for name, command in commands.items():
        # Each in a process of its own, so that the most memory of its children is that of one command.
        script = (
            "import resource, subprocess, sys, time; start = time.monotonic();"
            "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL);"
            "print(time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        run = [sys.executable, "-c", script, *command]
        output = subprocess.run(run, check=True, capture_output=True, text=True).stdout
        seconds, kibibytes = output.split()
        print(f"{name:24}  {float(seconds):6.1f} s  {int(kibibytes) / 1024:7.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
