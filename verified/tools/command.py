"""The command lines of these tools."""
import getopt, sys


def options(short, long, usage, words=None):
    """The options and the other words, in any order, of which there may be as many as words says (None: any number).
    --help prints the usage and ends with 0; what is wrong ends with 2."""
    try:
        opts, others = getopt.gnu_getopt(sys.argv[1:], "h" + short, ["help"] + long)
    except getopt.GetoptError as error:
        wrong(error, usage)
    if {"-h", "--help"} & {o for o, _ in opts}:
        print(usage)
        sys.exit(0)
    if words is not None and len(others) > words:
        wrong("there is a word too many: " + others[words], usage)
    return opts, others


def wrong(reason, usage):
    """says what is wrong with the command line, and ends"""
    print("%s: %s\n\n%s" % (sys.argv[0], reason, usage), file=sys.stderr)
    sys.exit(2)
