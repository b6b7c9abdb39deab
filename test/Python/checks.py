"""What Python's tests say when something is wrong. Imported once dsopt can be."""
import sys

import dsopt


def check(truth, what):
    if not truth:
        sys.exit(f"wrong: {what}")


def fails(call, *words, kinds=(dsopt.DsoptError,)):
    """The error that a call ends with, which is of one of these kinds and has all words."""
    try:
        call()
    except kinds as error:
        check(all(word in str(error) for word in words), f"'{error}' lacks one of {words}")
        return error
    sys.exit(f"wrong: no error with {words}")
