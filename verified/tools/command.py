"""The command lines of these tools. command.py is no program itself: they import it."""
import getopt, os, sys


def options(short, long, usage, words=None, files=False):
    """The options and the other words, in any order, of which there may be as many as words says (None: any number).
    With files these are files that can be read. --help prints the usage and ends with 0; what is wrong ends with 2."""
    try:
        opts, others = getopt.gnu_getopt(sys.argv[1:], "h" + short, ["help"] + long)
    except getopt.GetoptError as error:
        wrong(error, usage)
    if {"-h", "--help"} & {o for o, _ in opts}:
        print(usage)
        sys.exit(0)
    if words is not None and len(others) > words:
        wrong("there is a word too many: " + others[words], usage)
    for f in others if files else []:
        if not os.path.isfile(f) or not os.access(f, os.R_OK):
            wrong("there is no file to read: " + f, usage)
    return opts, others


def wrong(reason, usage):
    """says what is wrong with the command line, and ends"""
    print("%s: %s\n\n%s" % (sys.argv[0], reason, usage), file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    options("", [], __doc__, 0)
