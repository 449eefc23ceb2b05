"""The programs that `run` and `counts` measure and use: how they are built and started."""
import os, shutil, subprocess, sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def compiled(folder, name, flags=("-O2",), libraries=(), suffix=""):
    """Compiles a C file of References, and returns the result's path; None if that fails."""
    target = os.path.join(folder, name + suffix)
    source = os.path.join(HERE, "References", name + ".c")
    command = ["gcc", "-std=gnu11", "-Wall", "-Wextra", *flags, source, "-o", target, *libraries]
    if shutil.which("gcc") and subprocess.run(command, capture_output=True).returncode == 0:
        return target
    print(f"{name} could not be built: left out", file=sys.stderr)
    return None


def benchmarks(scratch=".build-release"):
    """Builds WaybillBenchmarks in release mode, and returns its path. The scratch path starts at the package."""
    scratch = os.path.join(ROOT, scratch)
    command = ["swift", "build", "-c", "release", "--scratch-path", scratch, "-Xswiftc", "-gnone"]
    subprocess.run(command + ["--product", "WaybillBenchmarks"], cwd=ROOT, check=True, stdout=sys.stderr)
    return os.path.join(scratch, "release", "WaybillBenchmarks")


def serving(command, **how):
    """Starts a server of References, and returns it with its port. It ends when its standard input is closed."""
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **how)
    return server, server.stdout.readline().strip()


def end(server):
    server.stdin.close()
    server.wait()
