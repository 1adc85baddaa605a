"""What the tests of the Pretrain tab share: events by hand, snippets in a fresh process."""

import subprocess
import sys
from pathlib import Path

import gradio as gr

ROOT = Path(__file__).parents[3]
FORM = {"context": 16, "batch_size": 2, "n_steps": 3}


def event(**data):
    return gr.EventData(None, data)


def run_snippet(code, home):
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"GLASSBOX_HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
