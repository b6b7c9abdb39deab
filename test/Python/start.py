"""What Python's tests do first: after this dsopt of the source and build that they are given can be imported, in processes
that they start, too."""
import os
import sys

source, build = map(os.path.abspath, sys.argv[1:3])
os.environ["DSOPT_BUILD"] = build
os.environ["PYTHONPATH"] = os.path.join(source, "python")
sys.path[:0] = [os.environ["PYTHONPATH"], os.path.join(source, "test")]
