"""check_docs.py DSOPT-IMPORT Operators.md: the table names the operators and opsets that the
importer has. Its figures are those of onnx_cases.py --docs."""
import re
import subprocess
import sys

listed = subprocess.run([sys.argv[1], "--list-operators"], check=True, capture_output=True, text=True).stdout
rows = [f"{name} {first} {last}"
        for name, first, last in re.findall(r"^\| (\w+) \| (\d+) to (\d+) \|", open(sys.argv[2]).read(), re.M)]
if rows != listed.split("\n")[:-1]:
    sys.exit(f"docs/Operators.md differs from the importer in {sorted(set(rows) ^ set(listed.splitlines()))}: "
             "write it again with onnx_cases.py --docs")
print("operators:", len(rows))
