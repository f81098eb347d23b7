"""The command lines of these tools."""
import getopt, sys


def options(short, long, usage):
    """the options and the other words, in any order; --help prints the usage and ends, and so does what is wrong"""
    try:
        opts, words = getopt.gnu_getopt(sys.argv[1:], "h" + short, ["help"] + long)
    except getopt.GetoptError as wrong:
        sys.exit("%s: %s\n\n%s" % (sys.argv[0], wrong, usage))
    if {"-h", "--help"} & {o for o, _ in opts}:
        print(usage)
        sys.exit(0)
    return opts, words
