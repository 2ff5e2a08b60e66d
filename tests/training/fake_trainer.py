"""A stand-in for an exported project's train.py: it writes the files of a run, obeys `control`, and needs no torch.

    python train.py --run runs/a --steps 100 --delay 0.01

With --fail it ends with an error at that step.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--delay", type=float, default=0.01)
    parser.add_argument("--lr", dest="learning_rate", default="0.001")
    parser.add_argument("--data")
    parser.add_argument("--threads")
    parser.add_argument("--fail", type=int, default=0)
    parser.add_argument("--from-weights")
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    run = args.run
    if args.resume:  # with the settings of the run, and those of the command line before them
        saved = json.loads((run / "config.json").read_text())["settings"]
        parser.set_defaults(steps=saved["steps"], delay=saved["delay"])
        args = parser.parse_args()
    (run / "checkpoints").mkdir(parents=True, exist_ok=True)
    saved = run / "checkpoints" / "last.pt"
    first = int(saved.read_text()) if args.resume else 0
    settings = {"steps": args.steps, "lr": float(args.learning_rate), "delay": args.delay, "data": args.data}
    replace(run / "config.json", json.dumps({"task": "denoising", "settings": settings}))

    def status(state: str, step: int, message: str = "") -> None:
        replace(
            run / "status.json",
            json.dumps(
                {
                    "state": state,
                    "pid": os.getpid(),
                    "step": step,
                    "total_steps": args.steps,
                    "message": message,
                    "time": time.time(),
                }
            ),
        )

    began = time.monotonic()
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"schema": 1, "total_steps": args.steps, "task": "denoise"}) + "\n")
        status("running", first)
        for step in range(first + 1, args.steps + 1):
            command = read(run / "control")
            if command == "pause":
                status("paused", step - 1)
                while read(run / "control") == "pause":
                    time.sleep(0.005)
                status("running", step - 1)
            if read(run / "control") == "stop":
                replace(saved, str(step - 1))
                status("stopped", step - 1)
                return 130
            time.sleep(args.delay)
            if step == args.fail:
                status("failed", step, "the loss is NaN; use a smaller learning rate")
                print("error: the loss is NaN", file=sys.stderr)
                return 1
            line = {
                "step": step,
                "epoch": step // 10,
                "time": time.time(),
                "elapsed": time.monotonic() - began,
                "loss": 1.0 / step,
                "learning_rate": float(args.learning_rate),
                "throughput": 8 / max(args.delay, 1e-6),
                "memory": 1 << 28,
            }
            if step % 10 == 0:
                line["validation"] = {"psnr": 20 + step / args.steps, "ssim": 0.5}
                replace(saved, str(step))
            file.write(json.dumps(line) + "\n")
            file.flush()
            status("running", step)
    status("finished", args.steps)
    return 0


def read(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


def replace(path: Path, text: str) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    os.replace(part, path)


if __name__ == "__main__":
    sys.exit(main())
