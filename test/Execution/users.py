"""Ranks of one machine that are of different users, started one by one; beside the same of one user."""
import os
import shutil
import socket
import subprocess
import sys
import tempfile

dsopt, model = sys.argv[1:]
OTHER = 65533  # a user that nothing belongs to


def run(program, data, users):
    """Losses of two ranks, each of its user."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    ranks = []
    for rank, user in enumerate(users):
        words = [program, f"-data={data}", "-steps=2"]
        place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "DSOPT_SECRET": "0123456789abcdef" * 2}
        ranks.append(subprocess.Popen(words, env={**os.environ, **place}, text=True, cwd="/", user=user,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    said = [rank.communicate(timeout=100)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], said
    losses = [line.split("loss ")[1].split()[0] for line in said[0].splitlines() if "loss " in line]
    assert len(losses) == 2, said
    return losses


if os.geteuid() != 0:
    print("left out: only root has several users")
    sys.exit()
with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # which all can open
    os.chmod(folder, 0o755)
    program, data = os.path.join(folder, "train"), os.path.join(folder, "batches.npz")
    subprocess.run([dsopt, f"{model}/model.onnx", "-dp=2", "-micro-batches=1", "-threads=1", "-o", program], check=True,
                   capture_output=True)
    shutil.copyfile(f"{model}/batches.npz", data)
    for path in (program, data):
        os.chmod(path, 0o755)
    assert run(program, data, [0, 0]) == run(program, data, [0, OTHER]) == run(program, data, [OTHER, 0])
print("the same losses")
